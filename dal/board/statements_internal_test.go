package board

import (
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// Every reference to a table in a constant is bound to the tenant: by a value of its own, or by an equal column of a table that is.
func TestStatements_NameTheTenant(t *testing.T) {
	t.Parallel()
	n := 0
	for _, st := range wire.Statements() {
		if !strings.HasPrefix(st.Name(), "board.") {
			continue
		}
		n++
		args := make([]any, strings.Count(st.Text(), "?"))
		for i := range args {
			args[i] = "acme"
		}
		if err := st.CheckTenant("s1", "acme", args); err != nil || st.System() {
			t.Errorf("%s with its tenant: %v", st.Name(), err)
		}
		reads := strings.Count(st.Text(), "FROM ") + strings.Count(st.Text(), "JOIN ")
		if strings.HasPrefix(st.Text(), "UPDATE ") {
			reads++
		}
		bound := strings.Count(st.Text(), "tenant_id = ?")
		rows := strings.Count(st.Text(), "VALUES (?") + strings.Count(st.Text(), "), (?")
		if reads != bound || len(st.TenantArgs()) != bound+rows {
			t.Errorf("%s reads %d table(s) with %d tenant(s), %d of them checked", st.Name(), reads, bound, len(st.TenantArgs()))
		}
		for _, i := range st.TenantArgs() {
			args[i] = "globex"
			if st.CheckTenant("s1", "acme", args) == nil {
				t.Errorf("%s passes with another tenant as argument %d", st.Name(), i)
			}
			args[i] = "acme"
			before := st.Text()
			for range len(args) - i {
				before = before[:strings.LastIndex(before, "?")]
			}
			if !strings.HasSuffix(before, "tenant_id = ") && !strings.HasSuffix(before, ") VALUES (") && !strings.HasSuffix(before, "), (") {
				t.Errorf("%s: argument %d is not a tenant_id: %s", st.Name(), i, before)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d statements checked, want all", n)
	}
}
