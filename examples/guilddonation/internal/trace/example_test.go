package trace_test

import (
	"fmt"
	"strings"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
)

func Example() {
	t, err := trace.Read(strings.NewReader(`
{"op": "tenant", "id": "pub", "model": "shared"}
{"op": "guild", "tenant": "pub", "guild": "1", "status": "open"}
{"op": "grant", "tenant": "pub", "player": "7", "item": "gold", "qty": 9}
{"op": "donate", "tenant": "pub", "key": "a", "player": "7", "guild": "1", "item": "gold", "qty": 5}
{"op": "donate", "tenant": "pub", "key": "b", "player": "7", "guild": "2", "item": "gold", "qty": 4}
{"op": "donate", "tenant": "pub", "key": "a", "player": "7", "guild": "1", "item": "gold", "qty": 4}
`[1:]), "night.ndjson")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := trace.Expect(t)
	for _, o := range e.Outcomes {
		fmt.Println(o.Line, o.Key, o.State)
	}
	fmt.Println("chains:", len(trace.Chains(t.Donations)), "bag:", e.Backpacks[0].Qty, "warehouse:", e.Warehouses[0].Qty)
	// Output:
	// 4 a completed
	// 5 b compensated
	// 6 a rejected
	// chains: 2 bag: 4 warehouse: 5
}

func ExampleRead_mistakes() {
	_, err := trace.Read(strings.NewReader(`{"op": "tenant", "id": "pub", "model": "shared"}
{"op": "grant", "tenant": "pub", "player": "7", "item": "gold", "qty": 1e3}
{"op": "grant", "tenant": "pub-a", "player": "7", "item": "gold", "qty": 1}
{"op": "grant", "tenant": "pub", "Player": "7", "item": "gold", "qty": 1}
`), "night.ndjson")
	fmt.Println(err)
	// Output:
	// trace: night.ndjson:2: field "qty": 1e3 is no whole number of 64 bits
	// trace: night.ndjson:3: field "tenant": no line before this one declares tenant "pub-a"
	// trace: night.ndjson:4: field "Player": unknown in a grant line
}
