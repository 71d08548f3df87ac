package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// State is how a donation ended.
type State string

// The three states in which a donation ends.
const (
	// Completed means that the items left the bag and reached the warehouse.
	Completed State = "completed"
	// Compensated means that the guild's side refused, and that the bag is whole again.
	Compensated State = "compensated"
	// Rejected means that nothing happened and that nothing is left behind: the key stays free.
	Rejected State = "rejected"
)

// Outcome is the end of one donate line.
type Outcome struct {
	// Line is the line's number in the trace, counted from 1.
	Line   int    `json:"line"`
	Tenant string `json:"tenant"`
	Key    string `json:"key"`
	State  State  `json:"state"`
}

// Backpack is one cell of a player's bag. A cell with Qty 0 may be left out of a report.
type Backpack struct {
	Tenant string `json:"tenant"`
	Player string `json:"player"`
	Item   string `json:"item"`
	Qty    int64  `json:"qty"`
}

// Warehouse is one cell of a guild's warehouse. A cell with Qty 0 may be left out of a report.
type Warehouse struct {
	Tenant string `json:"tenant"`
	Guild  string `json:"guild"`
	Item   string `json:"item"`
	Qty    int64  `json:"qty"`
}

// Shard counts what one shard owns: players and guilds with rows there, and donations in its journal.
type Shard struct {
	ID        string `json:"id"`
	Players   int    `json:"players"`
	Guilds    int    `json:"guilds"`
	Donations int    `json:"donations"`
}

// Report is what a run found in the databases after its last donation.
type Report struct {
	// Outcomes has one element for each donate line of the trace.
	Outcomes   []Outcome   `json:"outcomes"`
	Backpacks  []Backpack  `json:"backpacks"`
	Warehouses []Warehouse `json:"warehouses"`
	Shards     []Shard     `json:"shards"`
	// Conserved says whether bags, pending donations and warehouses add up to what was minted and not burned, for every tenant and item.
	Conserved bool `json:"conserved"`
	// Pending is the number of donations that have not ended.
	Pending int `json:"pending"`
}

// Expected is the outcome that a trace must have: what a [Report] says of it, without the parts that depend on the shards.
type Expected struct {
	Outcomes   []Outcome   `json:"outcomes"`
	Backpacks  []Backpack  `json:"backpacks"`
	Warehouses []Warehouse `json:"warehouses"`
}

// Sort puts the rows into the order of the report file: outcomes by line, the others by their ids, byte by byte.
func (r *Report) Sort() {
	sortRows(r.Outcomes, r.Backpacks, r.Warehouses)
	slices.SortFunc(r.Shards, func(a, b Shard) int { return cmp.Compare(a.ID, b.ID) })
}

// Sort puts the rows into the order of the report file, as [Report.Sort] does.
func (e *Expected) Sort() {
	sortRows(e.Outcomes, e.Backpacks, e.Warehouses)
}

func sortRows(outcomes []Outcome, bags []Backpack, stock []Warehouse) {
	slices.SortFunc(outcomes, func(a, b Outcome) int { return cmp.Compare(a.Line, b.Line) })
	slices.SortFunc(bags, func(a, b Backpack) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Player, b.Player), cmp.Compare(a.Item, b.Item))
	})
	slices.SortFunc(stock, func(a, b Warehouse) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Guild, b.Guild), cmp.Compare(a.Item, b.Item))
	})
}

// Encode writes the report as JSON with one row a line, sorted as [Report.Sort] says; r itself is left as it is.
//
// Equal reports give equal bytes, whatever the order of their rows. A nil part is written as an empty list.
func (r *Report) Encode(w io.Writer) error {
	sorted := Report{
		Outcomes: slices.Clone(r.Outcomes), Backpacks: slices.Clone(r.Backpacks),
		Warehouses: slices.Clone(r.Warehouses), Shards: slices.Clone(r.Shards),
	}
	sorted.Sort()
	var b bytes.Buffer
	err := errors.Join(
		encodeRows(&b, "{\"outcomes\": [", sorted.Outcomes),
		encodeRows(&b, "],\n\"backpacks\": [", sorted.Backpacks),
		encodeRows(&b, "],\n\"warehouses\": [", sorted.Warehouses),
		encodeRows(&b, "],\n\"shards\": [", sorted.Shards),
	)
	if err != nil {
		return fmt.Errorf("report: encode: %w", err)
	}
	fmt.Fprintf(&b, "],\n\"conserved\": %t, \"pending\": %d}\n", r.Conserved, r.Pending)
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("report: write: %w", err)
	}
	return nil
}

// encodeRows appends head and then the rows, each on a line of its own.
func encodeRows[T any](b *bytes.Buffer, head string, rows []T) error {
	b.WriteString(head)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // an item named "<b>" should be found by grep
	for i, row := range rows {
		if i > 0 {
			b.Truncate(b.Len() - 1) // the encoder ends each value with a line feed
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads a report that [Report.Encode] or another writer of the format made. Unknown fields and text after the object are refused.
func Decode(r io.Reader) (*Report, error) {
	out := new(Report)
	if err := decode(r, out); err != nil {
		return nil, err
	}
	return out, nil
}

// DecodeExpected reads the outcome a trace must have, with the rules of [Decode].
func DecodeExpected(r io.Reader) (*Expected, error) {
	out := new(Expected)
	if err := decode(r, out); err != nil {
		return nil, err
	}
	return out, nil
}

func decode(r io.Reader, into any) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("report: decode: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("report: decode: text after the report")
	}
	return nil
}
