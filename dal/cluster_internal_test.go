package dal

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenantdal/tenantdal/tenant"
)

// TestIdentifier_FitsAndTellsApart checks the names of databases that are made for tenants.
func TestIdentifier_FitsAndTellsApart(t *testing.T) {
	t.Parallel()
	id := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,62}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := tenant.ID(id.Draw(t, "a")), tenant.ID(id.Draw(t, "b"))
		c := MySQLCluster(Endpoint{Network: "tcp", Address: "h:1", User: "u", Database: strings.Repeat("_", rapid.IntRange(1, 40).Draw(t, "base"))})
		c.LoginSecret = "s"
		seen := map[string]bool{}
		for _, x := range []tenant.ID{a, b} {
			for _, p := range []Place{{"s1", tenant.SchemaName(x)}, {"own-shard", ""}} {
				e, err := c.Endpoint(p, x)
				if err != nil {
					t.Fatal(err)
				}
				if width(e.Database) > 64 {
					t.Fatalf("%q is too wide", e.Database)
				}
				if p.Schema != "" && a != b && seen[e.Database] {
					t.Fatalf("%q and %q share %q", a, b, e.Database)
				}
				seen[e.Database] = true
			}
		}
		ua, pa := login("game", "s", a)
		ub, pb := login("game", "s", b)
		if (a == b) != (ua == ub && pa == pb) || len(ua) > 32 {
			t.Fatalf("logins %q and %q", ua, ub)
		}
	})
}
