package gate_test

import (
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// ordinary are texts as gorm builds them, one of each verb.
var ordinary = map[string]string{
	"Select": "SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (`items`.`id` = ?) ORDER BY `items`.`id` LIMIT ?",
	"Insert": "INSERT INTO `items` (`id`,`tenant_id`,`created_at`,`updated_at`,`player_id`,`name`,`qty`) VALUES (?,?,?,?,?,?,?)",
	"Update": "UPDATE `items` SET `qty`=?,`updated_at`=? WHERE `items`.`tenant_id` = ? AND (id = ?)",
	"Delete": "DELETE FROM `items` WHERE `items`.`tenant_id` = ? AND (id = ?)",
	"Raw":    "SELECT i.name, COUNT(*) FROM items AS i WHERE i.qty > ? GROUP BY i.name", // bound by a rewrite
}

func costSchema(tb testing.TB) *gate.Schema {
	tb.Helper()
	s, err := gate.NewSchema(gate.MySQL, "tenant_id", gate.Table{Name: "items", Class: gate.Tenant, ShardKey: "player_id"})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// A text that was seen costs no allocation and is not read again; neither is the text that a rewrite made of it, nor one that was refused.
// It runs beside no other test: all allocations count.
func TestGate_SeenTextsAllocateNothing(t *testing.T) {
	g := gate.New(costSchema(t))
	texts := map[string]string{"Refused": "SELECT * FROM strangers", "Unreadable": "SELECT FROM WHERE ((("}
	for name, text := range ordinary {
		texts[name] = text
	}
	for name, text := range texts {
		v := g.Verdict(text)
		if refused := name == "Refused" || name == "Unreadable"; (v.Refusal != nil) != refused {
			t.Fatalf("%s: %q is refused: %v, want %v", name, text, v.Refusal, refused)
		}
		if v.Rewrite != nil {
			texts[name+" rewritten"] = v.Rewrite.Text
		}
	}
	before := g.Judged()
	for name, text := range texts {
		if n := testing.AllocsPerRun(100, func() { g.Verdict(text) }); n != 0 {
			t.Errorf("%s: a seen text allocates %v times, want 0", name, n)
		}
	}
	if n := g.Judged() - before; n != 0 {
		t.Errorf("%d texts were read again", n)
	}
}

func BenchmarkGate(b *testing.B) {
	for name, text := range ordinary {
		b.Run("Seen/"+name, func(b *testing.B) {
			g := gate.New(costSchema(b))
			g.Verdict(strings.Clone(text)) // each statement's text is a string of its own
			b.ReportAllocs()
			for b.Loop() {
				if v := g.Verdict(text); v.Refusal != nil {
					b.Fatal(v.Refusal)
				}
			}
		})
		b.Run("New/"+name, func(b *testing.B) {
			s := costSchema(b)
			b.ReportAllocs()
			for b.Loop() {
				if v := s.Judge(text); v.Refusal != nil {
					b.Fatal(v.Refusal)
				}
			}
		})
	}
}
