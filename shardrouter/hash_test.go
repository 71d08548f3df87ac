package shardrouter_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"testing"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// golden is testdata/routing-golden.json: outputs of the hash, of hash modulo n and of rings, over bare keys. They were
// made by another implementation. A difference means that rows are looked for where they are not.
type golden struct {
	Hash   map[string]string `json:"hash"`
	Modulo []struct {
		N     uint64            `json:"n"`
		Index map[string]uint64 `json:"index"`
	} `json:"modulo"`
	Ring []struct {
		Shards       []shardrouter.ShardID          `json:"shards"`
		VirtualNodes int                            `json:"virtual_nodes"`
		Owner        map[string]shardrouter.ShardID `json:"owner"`
	} `json:"ring"`
}

func readGolden(t *testing.T) golden {
	t.Helper()
	b, err := os.ReadFile("testdata/routing-golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Hash) < 13 || len(g.Modulo) < 3 || len(g.Ring) < 6 {
		t.Fatalf("the golden file lost vectors: %d hashes, %d moduli, %d rings", len(g.Hash), len(g.Modulo), len(g.Ring))
	}
	return g
}

func TestHash_A7_GoldenMovesData(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	for key, want := range g.Hash {
		if got := fmt.Sprintf("%016x", shardrouter.HashBare(key)); got != want {
			t.Errorf("HashBare(%q) = %s, want %s", key, got, want)
		}
	}
	for _, m := range g.Modulo {
		for key, want := range m.Index {
			if got := shardrouter.HashBare(key) % m.N; got != want {
				t.Errorf("HashBare(%q) %% %d = %d, want %d", key, m.N, got, want)
			}
		}
	}
}

// mixed is the finalizer, written anew from its definition.
func mixed(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return x
}

// Hash is the standard library's FNV-1a over tenant, NUL and key, then the finalizer.
func TestHash_A7_Definition(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"a", "acme", "tenant-00017", ""} {
		for _, key := range []string{"1", "42", "星尘", "player-000000123", "\x00", "\xff", ""} {
			h := fnv.New64a()
			h.Write([]byte(tenant + "\x00" + key))
			if got, want := shardrouter.Hash(tenant, shardrouter.Key(key)), mixed(h.Sum64()); got != want {
				t.Errorf("Hash(%q, %q) = %x, want %x", tenant, key, got, want)
			}
			if got, want := shardrouter.Hash(tenant, shardrouter.Key(key)), shardrouter.HashBare(tenant+"\x00"+key); got != want {
				t.Errorf("Hash(%q, %q) = %x, want HashBare of the joined text, %x", tenant, key, got, want)
			}
		}
	}
}

// Golden outputs of the tenant form: this is what places data. A change moves it.
func TestHash_GoldenWithTenant(t *testing.T) {
	t.Parallel()
	for in, want := range map[[2]string]string{
		{"acme", "7"}:          "1f5247d6da23135b",
		{"acme", "player-1"}:   "2f53854db0f97850",
		{"a", "bc"}:            "82a144826e72d59e",
		{"ab", "c"}:            "9291f5e7171dc35a",
		{"tenant-00017", "星尘"}: "1785b1a0cb7c8e1c",
	} {
		if got := fmt.Sprintf("%016x", shardrouter.Hash(in[0], shardrouter.Key(in[1]))); got != want {
			t.Errorf("Hash(%q, %q) = %s, want %s", in[0], in[1], got, want)
		}
	}
}

// Flipping any one bit of a key flips about half of the hash.
func TestHash_A7_Avalanche(t *testing.T) {
	t.Parallel()
	const keys = 2000
	var flips, worstLow, worstHigh float64
	worstLow = 1
	for bit := range 8 {
		var counts [64]int
		for i := range keys {
			b := []byte("tenant-00017/player-" + strconv.Itoa(100_000_000+i))
			h := shardrouter.HashBare(string(b))
			b[len(b)-1] ^= 1 << bit
			d := h ^ shardrouter.HashBare(string(b))
			for j := range counts {
				counts[j] += int(d >> j & 1)
			}
		}
		for _, n := range counts {
			p := float64(n) / keys
			flips += p / (8 * 64)
			worstLow, worstHigh = min(worstLow, p), max(worstHigh, p)
		}
	}
	if flips < 0.49 || flips > 0.51 || worstLow < 0.4 || worstHigh > 0.6 {
		t.Errorf("one flipped key bit flips a hash bit with p = %.3f (%.3f to %.3f), want about 0.5 each", flips, worstLow, worstHigh)
	}
}
