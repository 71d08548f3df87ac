package gate_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tenantdal/tenantdal/internal/gate"
)

func TestGate_RemembersVerdicts(t *testing.T) {
	t.Parallel()
	g := gate.New(newSchema(t, gate.MySQL))
	const text = "SELECT id FROM items"
	v := g.Verdict(text)
	if v.Rewrite == nil || g.Judged() != 1 {
		t.Fatalf("%+v after %d judgements", v, g.Judged())
	}
	if again := g.Verdict(text); again != v {
		t.Error("the same text got another verdict")
	}
	if r := g.Verdict(v.Rewrite.Text); r != v.Rewrite.Verdict || g.Judged() != 1 {
		t.Errorf("the rewritten text is judged again: %d judgements", g.Judged())
	}
	if sys := g.SystemVerdict(text); sys == v || sys.Rewrite != nil || g.Judged() != 2 {
		t.Errorf("a system scope got the tenant's verdict: %+v", sys)
	}
	if r := g.Verdict("DROP TABLE items"); r.Refusal == nil || g.Verdict("DROP TABLE items") != r || g.Judged() != 3 {
		t.Errorf("a refusal is not remembered: %d judgements", g.Judged())
	}
	long := "SELECT '" + strings.Repeat("x", 20<<10) + "'"
	if a, b := g.Verdict(long), g.Verdict(long); a == b || a.Refusal != nil {
		t.Error("a long text is kept")
	}
}

// What is kept is bounded: a caller who writes values into its texts does not fill the memory, and what is used all the time stays.
func TestGate_KeepsABoundedNumber(t *testing.T) {
	t.Parallel()
	g := gate.New(newSchema(t, gate.SQLite))
	const hot, n = "SELECT id FROM items WHERE tenant_id = ?", 60_000
	first := g.Verdict(hot)
	for i := range n {
		g.Verdict(fmt.Sprintf("SELECT %d", i))
		if i%50 == 0 && g.Verdict(hot) != first {
			t.Fatalf("a text in use was judged again after %d others", i)
		}
	}
	before := g.Judged()
	for i := range n {
		g.Verdict(fmt.Sprintf("SELECT %d", i))
	}
	if again := g.Judged() - before; again < n*3/4 {
		t.Errorf("%d of %d texts were judged again: too many are kept", again, n)
	}
}

func TestGate_ConcurrentUse(t *testing.T) {
	t.Parallel()
	g := gate.New(newSchema(t, gate.Postgres))
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				v := g.Verdict(fmt.Sprintf("SELECT id FROM items WHERE id = %d", (i+w*7)%900))
				if v.Rewrite == nil || !strings.Contains(v.Rewrite.Text, "items.tenant_id = $1") {
					t.Errorf("%+v", v)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestNewSchema_Refuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d      gate.Dialect
		column string
		tables []gate.Table
	}{
		"Dialect":    {0, "tenant_id", nil},
		"Column":     {gate.MySQL, "tenant id", nil},
		"NoColumn":   {gate.MySQL, "", nil},
		"Name":       {gate.MySQL, "tenant_id", []gate.Table{{Name: "other.items", Class: gate.Tenant}}},
		"NoName":     {gate.MySQL, "tenant_id", []gate.Table{{Class: gate.Tenant}}},
		"Digit":      {gate.MySQL, "tenant_id", []gate.Table{{Name: "1items", Class: gate.Tenant}}},
		"ShardKey":   {gate.MySQL, "tenant_id", []gate.Table{{Name: "items", Class: gate.Tenant, ShardKey: "a b"}}},
		"Class":      {gate.MySQL, "tenant_id", []gate.Table{{Name: "items"}}},
		"Twice":      {gate.MySQL, "tenant_id", []gate.Table{{Name: "items", Class: gate.Tenant}, {Name: "items", Class: gate.Global}}},
		"TwiceFolds": {gate.SQLite, "tenant_id", []gate.Table{{Name: "items", Class: gate.Tenant}, {Name: "Items", Class: gate.Tenant}}},
	} {
		if s, err := gate.NewSchema(c.d, c.column, c.tables...); err == nil {
			t.Errorf("%s: NewSchema gives %+v", name, s)
		}
	}
	if _, err := gate.NewSchema(gate.MySQL, "tenant_id", gate.Table{Name: "items", Class: gate.Tenant}, gate.Table{Name: "items", Class: gate.Tenant}); err != nil {
		t.Errorf("the same declaration twice: %v", err)
	}
}
