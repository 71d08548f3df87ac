package saga_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

// A changed value here would make every donation of older versions unknown, and its key free for a second deduction.
func TestDeriveID_Golden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tenant, player, key, want string }{
		{"acme", "7", "k", "15300d8e8b1dae1b72985dcade23bd26"},
		{"acme", "007", "k", "9927fb555267a8388cb8d072970fdeb7"},
		{"globex", "7", "k", "3a1c1a6fbffb3c0a1671c1b797fcd6be"},
		{"a", "xé '%", "key\n", "5eae37afa863059ca7212259cab55cc7"},
	} {
		if got := saga.DeriveID(tenant.ID(c.tenant), c.player, c.key).String(); got != c.want {
			t.Errorf("DeriveID(%q, %q, %q) = %s, want %s", c.tenant, c.player, c.key, got, c.want)
		}
	}
	for _, c := range []struct {
		guild, item string
		qty         int64
		want        string
	}{
		{"12", "gold", 5, "99df36554e594abef41a955d42bddf0f"},
		{"12", "gold ", math.MaxInt64, "516963e6e9e08268f05596bf3827f603"},
	} {
		if got := saga.BodyHash(c.guild, c.item, c.qty).String(); got != c.want {
			t.Errorf("body hash of (%q, %q, %d) = %s, want %s", c.guild, c.item, c.qty, got, c.want)
		}
	}
}

func TestDeriveID_Q08_DependsOnTenantPlayerAndKeyAlone(t *testing.T) {
	t.Parallel()
	base := saga.DeriveID("acme", "7", "k")
	if again := saga.DeriveID("acme", "7", "k"); again != base {
		t.Errorf("DeriveID twice = %s and %s", base, again)
	}
	seen := map[saga.ID]string{base: "base"}
	for name, id := range map[string]saga.ID{
		"tenant":        saga.DeriveID("acm", "e7", "k"),
		"player":        saga.DeriveID("acme", "07", "k"),
		"key":           saga.DeriveID("acme", "7", "K"),
		"blank":         saga.DeriveID("acme", "7", "k "),
		"moved border":  saga.DeriveID("acme", "7k", ""),
		"moved border2": saga.DeriveID("acme", "", "7k"),
	} {
		if other, taken := seen[id]; taken {
			t.Errorf("DeriveID: %q and %q are one id", name, other)
		}
		seen[id] = name
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	id := saga.DeriveID("acme", "7", "k")
	got, err := saga.ParseID(id.String())
	if err != nil || got != id {
		t.Errorf("ParseID(%s) = %s, %v", id, got, err)
	}
	for _, s := range []string{"", "00", id.String() + "0", strings.Repeat("g", 32), id.String()[:31]} {
		if _, err := saga.ParseID(s); err == nil {
			t.Errorf("ParseID(%q): no error", s)
		}
	}
	var scanned saga.ID
	v, err := id.Value()
	if err := errors.Join(err, scanned.Scan(v)); err != nil || scanned != id {
		t.Errorf("Scan(Value()) = %s, %v, want %s", scanned, err, id)
	}
	if err := scanned.Scan("0123456789abcdef"); err == nil {
		t.Error("Scan(string): no error")
	}
}
