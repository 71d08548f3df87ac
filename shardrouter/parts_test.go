package shardrouter_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tenantdal/tenantdal/shardrouter"
)

func TestParts_SpreadAndUnambiguous(t *testing.T) {
	t.Parallel()
	parts, err := shardrouter.Parts("42", 4)
	if err != nil || !slices.Equal(parts, []shardrouter.Key{"42#0", "42#1", "42#2", "42#3"}) {
		t.Fatalf("Parts = %v, %v", parts, err)
	}
	shards := []shardrouter.ShardID{"s1", "s2", "s3", "s4"}
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: shards, Keyspaces: []shardrouter.Keyspace{{Name: "guild"}}})
	if err != nil {
		t.Fatal(err)
	}
	many, err := shardrouter.Parts("42", 64)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := top.Owners("guild", "a", many)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shards {
		if !slices.Contains(owners, s) {
			t.Errorf("none of 64 parts is on %s", s)
		}
	}
	count := map[shardrouter.Key]int{}
	for i := range 4000 {
		p, err := shardrouter.PartOf("42", 4, fmt.Sprint("member-", i))
		if err != nil || !slices.Contains(parts, p) {
			t.Fatalf("PartOf = %q, %v", p, err)
		}
		if again, _ := shardrouter.PartOf("42", 4, fmt.Sprint("member-", i)); again != p {
			t.Fatalf("member %d is in %q and %q", i, p, again)
		}
		count[p]++
	}
	for p, n := range count {
		if n < 800 || n > 1200 {
			t.Errorf("part %s holds %d of 4000 members, want about 1000", p, n)
		}
	}
	for _, p := range many {
		if key, n, ok := shardrouter.SplitPart(p); !ok || key != "42" || many[n] != p {
			t.Errorf("SplitPart(%q) = %q, %d, %v", p, key, n, ok)
		}
	}
	for _, k := range []shardrouter.Key{"42", "", "#1", "42#", "42#x", "42#01", "42#-1", "42#+1", "42#4096", "42#1#2", "0#1"} {
		if key, n, ok := shardrouter.SplitPart(k); ok {
			t.Errorf("SplitPart(%q) = %q, %d", k, key, n)
		}
	}
}

// Where parts go is data: another place for a member would lose its rows.
func TestParts_Golden(t *testing.T) {
	t.Parallel()
	for by, want := range goldenParts {
		if got, err := shardrouter.PartOf("guild", 8, by); err != nil || got != want {
			t.Errorf("PartOf(%q) = %q, %v, want %q", by, got, err, want)
		}
	}
}

func TestParts_Refused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key shardrouter.Key
		n   int
	}{{"42#3", 4}, {"4#2", 4}, {"#", 4}, {"42", 0}, {"42", -1}, {"42", shardrouter.MaxParts + 1}} {
		_, err := shardrouter.Parts(c.key, c.n)
		_, one := shardrouter.PartOf(c.key, c.n, "x")
		for _, err := range []error{err, one} {
			var parts *shardrouter.PartsError
			if !errors.As(err, &parts) || parts.Key != c.key || parts.Parts != c.n {
				t.Errorf("%q in %d parts: %v", c.key, c.n, err)
			}
		}
	}
	if _, err := shardrouter.Parts("", 2); !errors.Is(err, shardrouter.ErrEmptyKey) {
		t.Errorf("an empty key: %v", err)
	}
	if _, err := shardrouter.PartOf("0", 2, "x"); !errors.Is(err, shardrouter.ErrZeroKey) {
		t.Errorf("a zero key: %v", err)
	}
}

var goldenParts = map[string]shardrouter.Key{"": "guild#3", "1": "guild#7", "alice": "guild#4", "member-7": "guild#0"}
