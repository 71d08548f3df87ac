package saga

import (
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// Every reference to a table names the tenant, except in the system's own polls and sums.
func TestStatements_NameTheTenant(t *testing.T) {
	t.Parallel()
	n := 0
	for _, st := range wire.Statements() {
		if !strings.HasPrefix(st.Name(), "saga.") || st.System() {
			continue
		}
		n++
		tables := 0
		words := strings.FieldsFunc(st.Text(), func(r rune) bool { return strings.ContainsRune(" ,()=", r) })
		for i, w := range words {
			if (w == "FROM" || w == "UPDATE" || w == "INTO") && i+1 < len(words) {
				tables++
			}
		}
		if tables == 0 || strings.Count(st.Text(), "tenant_id") < tables || len(st.TenantArgs()) != tables {
			t.Errorf("%s names %d table(s), tenant_id %d time(s), and has tenant arguments %v", st.Name(), tables, strings.Count(st.Text(), "tenant_id"), st.TenantArgs())
		}
		args := make([]any, strings.Count(st.Text(), "?"))
		for i := range args {
			args[i] = "acme"
		}
		if err := st.CheckTenant("s1", "acme", args); err != nil {
			t.Errorf("%s with its tenant: %v", st.Name(), err)
		}
		for _, i := range st.TenantArgs() {
			args[i] = "globex"
			if st.CheckTenant("s1", "acme", args) == nil {
				t.Errorf("%s passes with another tenant as argument %d", st.Name(), i)
			}
			args[i] = "acme"
			if i >= len(args) || !strings.HasSuffix(before(st.Text(), i), "tenant_id = ") && !strings.Contains(st.Text(), "INSERT INTO") {
				t.Errorf("%s: argument %d is not compared with tenant_id", st.Name(), i)
			}
		}
	}
	if n < 50 {
		t.Errorf("%d statements of saga checked, want all", n)
	}
}

// before returns the text before the placeholder with number i.
func before(text string, i int) string {
	at := -1
	for range i + 1 {
		at += 1 + strings.Index(text[at+1:], "?")
	}
	return text[:at]
}

func TestListed_PadsByRepeatingAnID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, size int }{{1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {33, 64}, {64, 64}} {
		ids := make([]ID, c.n)
		for i := range ids {
			ids[i][0] = byte(i)
		}
		st, args := settleJournal.of(dal.MySQL, ids, "acme", int64(1))
		if got := strings.Count(st.Text(), "?"); got != len(args) || got != c.size+2 {
			t.Errorf("of(%d ids): %d placeholders, %d arguments, want %d", c.n, got, len(args), c.size+2)
		}
		if last := args[len(args)-1].([]byte); last[0] != byte(c.n-1) {
			t.Errorf("of(%d ids) is padded with id %d, want the last", c.n, last[0])
		}
	}
}
