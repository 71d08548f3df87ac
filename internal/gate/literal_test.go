package gate_test

import (
	"database/sql"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/gate/gatetest"
)

// What the gate takes for text literals and quoted names, the server takes for the same, with the same values: where they differed, one of them would
// see the end of a text, and code behind it, where the other sees none.
func TestLiterals_SQLite(t *testing.T) {
	t.Parallel()
	literals(t, gate.SQLite)
}

func TestLiterals_MariaDB(t *testing.T) {
	t.Parallel()
	literals(t, gate.MySQL)
}

func TestLiterals_Postgres(t *testing.T) {
	t.Parallel()
	literals(t, gate.Postgres)
}

func literals(t *testing.T, d gate.Dialect) {
	t.Helper()
	db := worlds(t, d)[0].db
	r := rand.New(rand.NewPCG(newSeed(t), 0))
	var made, compared, names int
	for end := time.Now().Add(*differential); time.Now().Before(end) || made < 2000; made++ {
		text := junk(r, d)
		if want, ok := gate.Literals(d, text); ok {
			got, err := row(db, "SELECT "+text)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("the server reads %q as %q (%v), the gate as %q", text, got, err, want)
			}
			compared++
		}
		if want, ok := gate.Names(d, text); ok {
			got, err := columns(db, "SELECT 1 AS "+strings.ReplaceAll(text, ",", ", 1 AS "))
			if strings.Contains(text, ",") && len(want) == 1 { // a comma in the name
				got, err = columns(db, "SELECT 1 AS "+text)
			}
			switch {
			case len(want) > 1 && strings.Count(text, ",") != len(want)-1: // commas in names and between them
			case d == gate.MySQL && slices.ContainsFunc(want, func(s string) bool { return s != strings.TrimSpace(s) }): // MariaDB refuses a name that ends in a blank, and cuts one at its beginning
			case err != nil || !slices.Equal(got, want):
				t.Fatalf("the server reads %q as %q (%v), the gate as %q", text, got, err, want)
			default:
				names++
			}
		}
	}
	t.Logf("%d made, %d lists of texts and %d of names compared", made, compared, names)
	if compared < made/20 || names < made/100 {
		t.Errorf("of %d texts %d are literals and %d are names: the generator has lost its way", made, compared, names)
	}
}

// junk makes something between quotes, with pieces that end quotes and comments in one dialect or another.
func junk(r *rand.Rand, d gate.Dialect) string {
	quotes := []string{"''", "''", `""`, "``"}
	if d == gate.SQLite {
		quotes = append(quotes, "[]")
	}
	var b strings.Builder
	for n := range 1 + r.IntN(3) {
		if n > 0 {
			b.WriteString([]string{",", ", ", " ,\n", "", " "}[r.IntN(5)])
		}
		q := quotes[r.IntN(len(quotes))]
		b.WriteByte(q[0])
		for range r.IntN(5) {
			piece := gatetest.Pieces[r.IntN(len(gatetest.Pieces))]
			if r.IntN(3) > 0 { // mostly well-formed
				piece = strings.ReplaceAll(piece, q[1:], q[1:]+q[1:])
			}
			b.WriteString(piece)
		}
		b.WriteByte(q[1])
	}
	return b.String()
}

// row returns the first row as texts.
func row(db *sql.DB, text string) ([]string, error) {
	rows, err := db.Query(text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		return nil, err
	}
	cells := make([]sql.NullString, len(names))
	dest := make([]any, len(names))
	for i := range cells {
		dest[i] = &cells[i]
	}
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	list := make([]string, len(cells))
	for i, c := range cells {
		list[i] = c.String
	}
	return list, rows.Err()
}

func columns(db *sql.DB, text string) ([]string, error) {
	rows, err := db.Query(text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return rows.Columns()
}
