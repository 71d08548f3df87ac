package report_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
)

// past returns 2^63-1 + n, a sum that no int64 holds.
func past(n int64) *big.Int {
	return new(big.Int).Add(big.NewInt(math.MaxInt64), big.NewInt(n))
}

func TestConserved(t *testing.T) {
	t.Parallel()
	even := report.Conservation{Tenant: "pub", Item: "gold", Minted: past(10), Burned: big.NewInt(3), Bags: past(1), Pending: big.NewInt(2), Warehouses: big.NewInt(4)}
	missing, tooMany := even, even
	missing.Bags = past(0)
	tooMany.Pending = past(0)
	for _, c := range []struct {
		name     string
		accounts []report.Conservation
		want     bool
	}{
		{"NoAccounts", nil, true},
		{"NilIsZero", []report.Conservation{{Tenant: "pub"}}, true},
		{"PastInt64", []report.Conservation{even}, true},
		{"Missing", []report.Conservation{even, missing}, false},
		{"TooMany", []report.Conservation{tooMany, even}, false},
		{"ErrorsDoNotCancelOut", []report.Conservation{{Bags: big.NewInt(1)}, {Minted: big.NewInt(1)}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := report.Conserved(c.accounts); got != c.want {
				t.Errorf("Conserved(%v) = %t, want %t", c.accounts, got, c.want)
			}
		})
	}
	if bad := report.Violations([]report.Conservation{missing, even, tooMany}); len(bad) != 2 || bad[0].Bags != missing.Bags || bad[1].Pending != tooMany.Pending {
		t.Errorf("Violations = %v, want the first and the last account", bad)
	}
}

func TestConservation_String(t *testing.T) {
	t.Parallel()
	c := report.Conservation{Tenant: "pub", Item: "gold ", Minted: past(1), Bags: past(0)}
	const want = `tenant "pub" item "gold ": bags 9223372036854775807 + pending 0 + warehouses 0 = 9223372036854775807, minted 9223372036854775808 - burned 0 = 9223372036854775808: 1 missing`
	if got := c.String(); got != want {
		t.Errorf("String() = %s\nwant %s", got, want)
	}
	c.Burned = big.NewInt(5)
	const tooMany = `tenant "pub" item "gold ": bags 9223372036854775807 + pending 0 + warehouses 0 = 9223372036854775807, minted 9223372036854775808 - burned 5 = 9223372036854775803: 4 too many`
	if got := c.String(); got != tooMany {
		t.Errorf("String() = %s\nwant %s", got, tooMany)
	}
}
