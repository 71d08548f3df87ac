package trace_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
)

func TestExpect_Golden(t *testing.T) {
	t.Parallel()
	got, want := trace.Expect(readGolden(t)), expectedGolden(t)
	if bad := report.Compare(want, asReport(got)); bad != nil {
		t.Errorf("%d differences from the golden outcome: %.10q", len(bad), bad)
	}
	if len(got.Outcomes) != 2062 || len(got.Backpacks) != 1145 || len(got.Warehouses) != 234 {
		t.Errorf("%d outcomes, %d bags, %d warehouses; want 2062, 1145, 234", len(got.Outcomes), len(got.Backpacks), len(got.Warehouses))
	}
}

func TestExpect(t *testing.T) {
	t.Parallel()
	const (
		ok, back, no = report.Completed, report.Compensated, report.Rejected
		most         = "9223372036854775807"
	)
	donate := func(change ...string) string { // pairs of field and JSON value
		tr := []string{"tenant", `"pub"`, "key", `"k"`, "player", `"7"`, "guild", `"1"`, "item", `"gold"`, "qty", `5`}
		var b bytes.Buffer
		b.WriteString(`{"op":"donate"`)
		for i := 0; i < len(tr); i += 2 {
			for j := 0; j < len(change); j += 2 {
				if change[j] == tr[i] {
					tr[i+1] = change[j+1]
				}
			}
			b.WriteString(`,"` + tr[i] + `":` + tr[i+1])
		}
		return b.String() + "}"
	}
	grant := text("grant", "qty", "10")
	for _, c := range []struct {
		name  string
		lines []string // after pub, guild 1, and 10 gold in the bag of player 7
		want  []report.State
		bag   int64 // gold of player 7 in the end
		stock int64 // gold of guild 1 in the end
	}{
		{"Completed", []string{donate()}, []report.State{ok}, 5, 5},
		{"WholeBag", []string{donate("qty", "10")}, []report.State{ok}, 0, 10},
		{"BagTooSmall", []string{donate("qty", "11")}, []report.State{no}, 10, 0},
		{"BagTooSmallByDonations", []string{donate("qty", "10"), donate("key", `"l"`, "qty", "1")}, []report.State{ok, no}, 0, 10},
		{"GrantAfterTheDonation", []string{donate("qty", "20"), grant}, []report.State{ok}, 0, 20},
		{"NoSuchItem", []string{donate("item", `"gold "`)}, []report.State{no}, 10, 0},
		{"NoSuchPlayer", []string{donate("player", `"07"`)}, []report.State{no}, 10, 0},
		{"NoSuchGuild", []string{donate("guild", `"01"`)}, []report.State{back}, 10, 0},
		{"GuildClosed", []string{donate("guild", `"c"`), `{"op":"guild","tenant":"pub","guild":"c","status":"closed"}`}, []report.State{back}, 10, 0},
		{"GuildOfAnotherTenant", []string{text("tenant", "", ""), text("guild", "tenant", `"new"`), donate("guild", `"2"`)}, []report.State{back}, 10, 0},
		{"BagOfAnotherTenant", []string{text("tenant", "", ""), donate("tenant", `"new"`)}, []report.State{no}, 10, 0},
		{"UndeclaredGuildWithStock", []string{text("stock", "guild", `"g"`), donate("guild", `"g"`)}, []report.State{back}, 10, 0},
		{"WarehouseFull", []string{text("stock", "qty", most), donate("qty", "1")}, []report.State{back}, 10, 9223372036854775807},
		{"WarehouseFilled", []string{text("stock", "qty", "9223372036854775802"), donate(), donate("key", `"l"`, "qty", "1")}, []report.State{ok, back}, 5, 9223372036854775807},
		{"QtyZero", []string{donate("qty", "0")}, []report.State{no}, 10, 0},
		{"QtyBelowZero", []string{donate("qty", "-5")}, []report.State{no}, 10, 0},
		{"QtyLeast", []string{donate("qty", "-9223372036854775808")}, []report.State{no}, 10, 0},
		{"QtyMost", []string{donate("qty", most)}, []report.State{no}, 10, 0},
		{"TenantUndeclared", []string{donate("tenant", `"nobody"`)}, []report.State{no}, 10, 0},
		{"TenantIllFormed", []string{donate("tenant", `"Pub"`), donate("tenant", `""`)}, []report.State{no, no}, 10, 0},
		{
			"TenantDeclaredLater",
			[]string{donate("tenant", `"new"`), text("tenant", "", ""), text("grant", "tenant", `"new"`), `{"op":"guild","tenant":"new","guild":"1","status":"open"}`},
			[]report.State{ok},
			10, 0,
		},
		{"EmptyIDs", []string{donate("player", `""`), donate("guild", `""`), donate("item", `""`), donate("key", `""`)}, []report.State{no, no, no, no}, 10, 0},
		{"ZeroIDs", []string{donate("player", `"0"`), donate("guild", `"0"`)}, []report.State{no, no}, 10, 0},
		{"ZeroKey", []string{donate("key", `"0"`)}, []report.State{ok}, 5, 5},
		{"SameKeySamePayload", []string{donate(), donate(), donate()}, []report.State{ok, ok, ok}, 5, 5},
		{"SameKeySamePayloadCompensated", []string{donate("guild", `"x"`), donate("guild", `"x"`)}, []report.State{back, back}, 10, 0},
		{"SameKeyOtherPayload", []string{donate(), donate("qty", "4"), donate("guild", `"x"`), donate("item", `"gold "`), donate()}, []report.State{ok, no, no, no, ok}, 5, 5},
		{"SameKeyAfterCompensation", []string{donate("guild", `"x"`), donate()}, []report.State{back, no}, 10, 0},
		{"SameKeyAfterRejection", []string{donate("qty", "11"), donate("qty", "0"), donate(), donate("qty", "11")}, []report.State{no, no, ok, no}, 5, 5},
		{"SameKeyRejectedTwice", []string{donate("qty", "11"), donate("qty", "11")}, []report.State{no, no}, 10, 0},
		{"SameKeyOfTwoPlayers", []string{text("grant", "player", `"07"`), donate(), donate("player", `"07"`)}, []report.State{ok, ok}, 5, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := trace.Expect(mustParse(t, append([]string{pub, guild, grant}, c.lines...)...))
			var states []report.State
			for _, o := range e.Outcomes {
				states = append(states, o.State)
			}
			if !reflect.DeepEqual(states, c.want) {
				t.Errorf("states %q, want %q", states, c.want)
			}
			var bag, stock int64
			for _, b := range e.Backpacks {
				if b.Qty == 0 {
					t.Errorf("a cell with 0: %+v", b)
				}
				if b.Tenant == "pub" && b.Player == "7" && b.Item == "gold" {
					bag = b.Qty
				}
			}
			for _, w := range e.Warehouses {
				if w.Tenant == "pub" && w.Guild == "1" && w.Item == "gold" {
					stock = w.Qty
				}
			}
			if bag != c.bag || stock != c.stock {
				t.Errorf("bag %d, warehouse %d; want %d, %d", bag, stock, c.bag, c.stock)
			}
		})
	}
}
