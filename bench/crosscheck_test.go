package bench

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // values of literals

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/gate/gatetest"
)

// Of every text that the gate lets out, TiDB's parser, which knows all of MySQL's grammar and nothing of the gate, finds the same tables, each as often:
// a table that only one of the two sees would be one that is not bound.
func TestCrossCheck_TablesAsTiDBFindsThem(t *testing.T) {
	t.Parallel()
	s, err := gate.NewSchema(gate.MySQL, "tenant_id",
		gate.Table{Name: "items", Class: gate.Tenant}, gate.Table{Name: "players", Class: gate.Tenant}, gate.Table{Name: "bags", Class: gate.Tenant}, gate.Table{Name: "catalog", Class: gate.Global})
	if err != nil {
		t.Fatal(err)
	}
	start := rand.Uint64()
	t.Logf("seed %d", start)
	p := parser.New()
	const statements = 4000
	var passed, compared int
	for n := range uint64(statements) {
		r := rand.New(rand.NewPCG(start, n))
		text := gatetest.Statement(r, gate.MySQL)
		if r.IntN(2) == 0 {
			text = gatetest.Mutate(r, text)
		}
		v := s.Judge(text)
		if v.Refusal != nil {
			continue
		}
		if v.Rewrite != nil {
			text, v = v.Rewrite.Text, v.Rewrite.Verdict
		}
		passed++
		st, err := p.ParseOneStmt(text, "", "")
		if err != nil { // RETURNING, and what other than MySQL alone knows
			continue
		}
		compared++
		if want, got := tablesOf(st), tablesIn(v, st); !maps.Equal(want, got) {
			t.Fatalf("statement %d of seed %d\n%s\nTiDB finds %v, the gate %v", n, start, text, want, got)
		}
	}
	t.Logf("%d of %d statements leave, %d of them compared", passed, statements, compared)
	if compared < statements/10 {
		t.Errorf("%d of %d statements compared", compared, statements)
	}
}

// tableVisitor counts the tables of a tree.
type tableVisitor struct {
	ctes, tables map[string]int
}

// Enter counts tables, and the names of common table expressions. What a DELETE of several tables deletes from is named in its FROM as well.
func (v *tableVisitor) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.CommonTableExpression:
		v.ctes[n.Name.L]++
	case *ast.TableName:
		v.tables[n.Name.L]++
	case *ast.DeleteTableList:
		return n, true
	}
	return n, false
}

// Leave goes on.
func (v *tableVisitor) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// tablesOf returns how often TiDB finds each table.
func tablesOf(st ast.StmtNode) map[string]int {
	v := &tableVisitor{ctes: map[string]int{}, tables: map[string]int{}}
	st.Accept(v)
	for name := range v.ctes {
		delete(v.tables, name)
	}
	return v.tables
}

// tablesIn returns how often a verdict has each table. UPDATE and DELETE read what they write, and the verdict says both.
func tablesIn(v *gate.Verdict, st ast.StmtNode) map[string]int {
	if e, ok := st.(*ast.ExplainStmt); ok {
		st = e.Stmt
	}
	_, insert := st.(*ast.InsertStmt)
	m := map[string]int{}
	for _, u := range v.Tables {
		if !u.Write || insert {
			m[strings.ToLower(u.Table.Name)]++
		}
	}
	return m
}
