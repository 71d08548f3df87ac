package tenant_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
)

var (
	schemaShape = regexp.MustCompile(`\At_[a-z0-9][a-z0-9_$-]*\z`)
	shardShape  = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,64}\z`)
)

// The outputs are golden: they name schemas and files that exist. A change here loses data from sight.
func TestNames_Golden(t *testing.T) {
	t.Parallel()
	z61, z62, z63 := strings.Repeat("z", 61), strings.Repeat("z", 62), strings.Repeat("z", 63)
	for in, want := range map[string]string{
		"a":   "t_a",
		"a-b": "t_a-b",
		"sys": "t_sys",
		"0":   "t_0",
		z61:   "t_" + z61,
		z62:   "t_zzzzzzzzzzzzzzzzzzzz$" + goldenHash[62],
		z63:   "t_zzzzzzzzzzzzzzzzzzzz$" + goldenHash[63],
	} {
		if got := tenant.SchemaName(tenant.ID(in)); got != want {
			t.Errorf("SchemaName(%q) = %q, want %q", in, got, want)
		}
	}
	for _, c := range []struct {
		id   string
		n    int
		want string
	}{
		{"a", 1, "a-s1"},
		{"a", 12, "a-s12"},
		{"a-s1", 2, "a-s1-s2"},
		{z61, 1, z61 + "-s1"},
		{z62, 1, "zzzzzzzzzzzzzzzzzzzz." + goldenHash[62] + "-s1"},
		{z63, 10, "zzzzzzzzzzzzzzzzzzz." + goldenHash[63] + "-s10"},
	} {
		if got := tenant.ShardName(tenant.ID(c.id), c.n); got != c.want {
			t.Errorf("ShardName(%q, %d) = %q, want %q", c.id, c.n, got, c.want)
		}
	}
}

// goldenHash[n] is the first 40 hexadecimal digits of the SHA-256 of n times "z", from sha256sum.
var goldenHash = map[int]string{
	62: "b7642f4b10f04e742ba3a5a16f22ea782305828a",
	63: "85021e4907c21645631d596eee989bf43c2cd56b",
}

func TestNames_IllFormedPanics(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(){
		"SchemaName empty":     func() { tenant.SchemaName("") },
		"SchemaName injection": func() { tenant.SchemaName(`x"; DROP SCHEMA public; --`) },
		"ShardName path":       func() { tenant.ShardName("../x", 1) },
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, tenant.ErrInvalidID) {
					t.Errorf("%s panicked with %v, want ErrInvalidID", name, err)
				}
			}()
			call()
		}()
	}
	for _, n := range []int{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("ShardName(a, %d) did not panic", n)
				}
			}()
			tenant.ShardName("a", n)
		}()
	}
}

// checkNames verifies the form of the names of one id, and that each is read back in one way only.
func checkNames(t *testing.T, id tenant.ID, n int) (schema, shard string) {
	t.Helper()
	schema, shard = tenant.SchemaName(id), tenant.ShardName(id, n)
	if !schemaShape.MatchString(schema) || len(schema) > 63 {
		t.Fatalf("SchemaName(%q) = %q (%d bytes)", id, schema, len(schema))
	}
	if !shardShape.MatchString(shard) {
		t.Fatalf("ShardName(%q, %d) = %q (%d bytes)", id, n, shard, len(shard))
	}
	if !strings.Contains(schema, "$") && schema != "t_"+string(id) {
		t.Fatalf("SchemaName(%q) = %q, which is the short name of another id", id, schema)
	}
	head, tail, _ := cutLast(shard, "-s")
	if tail != fmt.Sprint(n) || (!strings.Contains(shard, ".") && head != string(id)) {
		t.Fatalf("ShardName(%q, %d) = %q, which reads as (%q, %s)", id, n, shard, head, tail)
	}
	if _, err := tenant.Place(tenant.Tenant{ID: id, Model: tenant.OwnSchema}); err != nil {
		t.Fatalf("Place refuses the schema it makes: %v", err)
	}
	if _, err := tenant.Place(tenant.Tenant{ID: id, Model: tenant.OwnDatabase}); err != nil {
		t.Fatalf("Place refuses the shard it makes: %v", err)
	}
	return schema, shard
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Ids made to look like one another's names, at the lengths where the form changes.
func TestNames_T46_Injective(t *testing.T) {
	t.Parallel()
	const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789_-"
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	ids := map[tenant.ID]bool{"a": true, "a-s1": true, "a-s1-s2": true, "t_a": true, "t_t_a": true, "s1": true, "a-s": true, "a-s-s1": true}
	for len(ids) < 20_000 {
		n := 1 + rnd.IntN(63)
		if rnd.IntN(2) == 0 {
			n = 58 + rnd.IntN(6)
		}
		b := make([]byte, n)
		for i := range b {
			// Few letters, so that ids share long prefixes and suffixes.
			b[i] = "as1_-"[rnd.IntN(5)]
			if rnd.IntN(20) == 0 {
				b[i] = alphabet[rnd.IntN(len(alphabet))]
			}
		}
		if id, err := tenant.ParseID(string(b)); err == nil {
			ids[id] = true
			// The id's own hash, as an id.
			name := tenant.SchemaName(id)
			if twin, err := tenant.ParseID(strings.ReplaceAll(strings.TrimPrefix(name, "t_"), "$", "_")); err == nil {
				ids[twin] = true
			}
		}
	}
	schemas, shards := map[string]tenant.ID{}, map[string]string{}
	for id := range ids {
		for _, n := range []int{1, 2, 11, 1 << 40} {
			schema, shard := checkNames(t, id, n)
			if other, taken := schemas[schema]; taken && other != id {
				t.Fatalf("%q and %q share the schema %q", id, other, schema)
			}
			schemas[schema] = id
			owner := fmt.Sprintf("%s/%d", id, n)
			if other, taken := shards[shard]; taken {
				t.Fatalf("%s and %s share the shard %q", owner, other, shard)
			}
			shards[shard] = owner
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a", "a-s1", 1, 2)
	f.Add(strings.Repeat("a", 62), strings.Repeat("a", 63), 1, 1)
	f.Add(strings.Repeat("a", 63), strings.Repeat("a", 62)+"b", 1, 10)
	f.Fuzz(func(t *testing.T, a, b string, n, m int) {
		x, errX := tenant.ParseID(a)
		y, errY := tenant.ParseID(b)
		if errX != nil || errY != nil || n < 1 || m < 1 {
			return
		}
		schemaX, shardX := checkNames(t, x, n)
		schemaY, shardY := checkNames(t, y, m)
		if (schemaX == schemaY) != (x == y) {
			t.Errorf("schemas of %q and %q: %q, %q", x, y, schemaX, schemaY)
		}
		if (shardX == shardY) != (x == y && n == m) {
			t.Errorf("shards of (%q, %d) and (%q, %d): %q, %q", x, n, y, m, shardX, shardY)
		}
	})
}
