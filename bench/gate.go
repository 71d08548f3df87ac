package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// GateTexts are what the cases send, as the layer builds them, and one text of a user's that the gate binds by a rewrite.
func GateTexts() map[Case]string {
	return map[Case]string{
		First:  "SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (`items`.`id` = ?) ORDER BY `items`.`id` LIMIT ?",
		Find20: "SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (player_id = ?) LIMIT ?",
		Update: "UPDATE `items` SET `qty`=?,`updated_at`=? WHERE `items`.`tenant_id` = ? AND (id = ?)",
		Create: "INSERT INTO `items` (`id`,`tenant_id`,`created_at`,`updated_at`,`player_id`,`name`,`qty`) VALUES (?,?,?,?,?,?,?)",
		"Raw":  "SELECT name, COUNT(*) FROM items WHERE qty > ? GROUP BY name",
	}
}

// GateResult is what the gate's verdict on one text costs.
type GateResult struct {
	Case      Case
	Seen, New Sample // medians
}

// MeasureGate measures the gate alone: a text that it has seen, and one that it reads for the first time.
func MeasureGate(cfg Config) ([]GateResult, error) {
	cfg = cfg.WithDefaults()
	schema, err := gate.NewSchema(gate.MySQL, "tenant_id", gate.Table{Name: "items", Class: gate.Tenant, ShardKey: "player_id"})
	if err != nil {
		return nil, err
	}
	texts := GateTexts()
	var all []GateResult
	for _, c := range append(Cases(), "Raw") {
		g, text := gate.New(schema), texts[c]
		g.Verdict(strings.Clone(text)) // each statement's text is a string of its own
		seen, err := median(cfg, func() error { return refusal(g.Verdict(text)) })
		if err != nil {
			return nil, err
		}
		first, err := median(cfg, func() error { return refusal(schema.Judge(text)) })
		if err != nil {
			return nil, err
		}
		all = append(all, GateResult{c, seen, first})
	}
	return all, nil
}

func refusal(v *gate.Verdict) error {
	if v.Refusal != nil {
		return fmt.Errorf("bench: the gate refused: %s", v.Refusal.Reason)
	}
	return nil
}

// median measures an operation in rounds of a tenth of a block, and returns the median of each number.
func median(cfg Config, op Op) (Sample, error) {
	length := max(cfg.Block/10, time.Millisecond)
	n, err := calibrate(op, length)
	if err != nil {
		return Sample{}, err
	}
	var r Result
	for range cfg.Rounds {
		s, err := block(op, n)
		if err != nil {
			return Sample{}, err
		}
		r.Samples = append(r.Samples, s)
	}
	return Sample{
		Wall: r.Median(func(s Sample) float64 { return s.Wall }), CPU: r.Median(func(s Sample) float64 { return s.CPU }),
		Allocs: r.Median(func(s Sample) float64 { return s.Allocs }), Bytes: r.Median(func(s Sample) float64 { return s.Bytes }),
	}, nil
}

// WriteGateTable prints what the gate costs.
func WriteGateTable(w io.Writer, results []GateResult) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "gate\tseen: ns\tallocs\tnew: ns\tallocs\t\n")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t\n", r.Case, r.Seen.Wall, r.Seen.Allocs, r.New.Wall, r.New.Allocs)
	}
	return t.Flush()
}
