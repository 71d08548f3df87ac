package shardrouter

import (
	"fmt"
	"slices"
	"testing"
)

// clash puts the i-th points of X and Y on one hash, and everything else elsewhere.
func clash(shard ShardID, i int) uint64 {
	if shard == "X" || shard == "Y" {
		return mix(uint64(i) + 1)
	}
	return ringPoint(shard, i)
}

func mustRing(t *testing.T, point pointFunc, shards ...ShardID) *Ring {
	t.Helper()
	r, err := newRing(shards, MinVirtualNodes, nil, point)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRing_S05_ForcedCollisions(t *testing.T) {
	t.Parallel()
	step := func(r *Ring, err error) *Ring {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := mustRing(t, clash, "X", "Y", "z")
	built := map[string]*Ring{
		"other order": mustRing(t, clash, "z", "Y", "X"),
		"X added":     step(mustRing(t, clash, "Y", "z").AddShard("X")),
		"Y added":     step(mustRing(t, clash, "X", "z").AddShard("Y")),
		"X returned":  step(step(want.RemoveShard("X")).AddShard("X")),
		"Y returned":  step(step(want.RemoveShard("Y")).AddShard("Y")),
	}
	withoutX, withoutY := step(want.RemoveShard("X")), step(want.RemoveShard("Y"))

	for i := range MinVirtualNodes {
		h := clash("X", i)
		if h != clash("Y", i) {
			t.Fatal("the points do not collide")
		}
		if got := want.OwnerOfHash(h); got != "X" {
			t.Errorf("point %d: owner %q, want X, the lesser id", i, got)
		}
		for name, r := range built {
			if got := r.OwnerOfHash(h); got != "X" {
				t.Errorf("%s, point %d: owner %q, want X", name, i, got)
			}
		}
		if got := withoutX.OwnerOfHash(h); got != "Y" {
			t.Errorf("without X, point %d: owner %q, want Y: its point was lost", i, got)
		}
		if got := withoutY.OwnerOfHash(h); got != "X" {
			t.Errorf("without Y, point %d: owner %q, want X", i, got)
		}
	}
	for name, r := range built {
		if !slices.Equal(r.hashes, want.hashes) || !slices.Equal(r.owners, want.owners) {
			t.Errorf("%s: the ring differs", name)
		}
		if len(r.hashes) != 3*MinVirtualNodes {
			t.Errorf("%s: %d points, want %d", name, len(r.hashes), 3*MinVirtualNodes)
		}
	}
	if len(withoutX.hashes) != 2*MinVirtualNodes {
		t.Errorf("without X: %d points, want %d", len(withoutX.hashes), 2*MinVirtualNodes)
	}
}

// All points of all shards on one hash, at either end of the circle: the lookup must neither run out of the arrays nor
// lose the order.
func TestRing_S05_EverythingCollides(t *testing.T) {
	t.Parallel()
	for _, at := range []uint64{0, 1, 1 << 63, ^uint64(0) - 1, ^uint64(0)} {
		r := mustRing(t, func(ShardID, int) uint64 { return at }, "b", "c", "a")
		for _, h := range []uint64{0, 1, at - 1, at, at + 1, ^uint64(0)} {
			if got := r.OwnerOfHash(h); got != "a" {
				t.Errorf("points at %x: OwnerOfHash(%x) = %q, want a", at, h, got)
			}
		}
	}
}

// Points crowded into one bucket of the index, as a bad hash would place them: the lookup is still that of the sorted list.
func TestRing_CrowdedBucket(t *testing.T) {
	t.Parallel()
	next := map[ShardID]uint64{"a": 0, "b": 1, "c": 2}
	for _, base := range []uint64{0, 1 << 40, ^uint64(0) - 4096} {
		r := mustRing(t, func(s ShardID, i int) uint64 { return base + 3*uint64(i)*2 + next[s]*2 }, "a", "b", "c")
		for off := range uint64(3 * MinVirtualNodes * 2) {
			i, _ := slices.BinarySearch(r.hashes, base+off)
			if want := r.shards[r.owners[i%len(r.owners)]]; r.OwnerOfHash(base+off) != want {
				t.Fatalf("OwnerOfHash(%x) = %q, want %q", base+off, r.OwnerOfHash(base+off), want)
			}
		}
	}
}

func TestRing_A8_Boundaries(t *testing.T) {
	t.Parallel()
	r := mustRing(t, ringPoint, "s1", "s2", "s3")
	for i, h := range r.hashes {
		if got, want := r.OwnerOfHash(h), r.shards[r.owners[i]]; got != want {
			t.Errorf("a key on point %d: %q, want the point's own shard %q", i, got, want)
		}
		next := r.shards[r.owners[(i+1)%len(r.owners)]]
		if got := r.OwnerOfHash(h + 1); got != next {
			t.Errorf("a key behind point %d: %q, want the next point's shard %q", i, got, next)
		}
	}
	first, last := r.hashes[0], r.hashes[len(r.hashes)-1]
	if first == 0 || last == ^uint64(0) {
		t.Fatal("no room to wrap around")
	}
	for _, h := range []uint64{last + 1, ^uint64(0), 0, first} {
		if got, want := r.OwnerOfHash(h), r.shards[r.owners[0]]; got != want {
			t.Errorf("OwnerOfHash(%x) = %q, want the first point's shard %q: the circle wraps around", h, got, want)
		}
	}
}

// Labels that a plain concatenation would make equal.
func TestRing_S04_Labels(t *testing.T) {
	t.Parallel()
	shards := []ShardID{"db", "1db", "db1", "db11", "11db", "s", "s1", "s11", "s-1", "s.1", "s_1"}
	labels := make(map[uint64]string)
	for _, s := range shards {
		for i := range 1000 {
			h, label := ringPoint(s, i), fmt.Sprintf("%s#%d", s, i)
			if other, taken := labels[h]; taken {
				t.Fatalf("%s and %s share a point", label, other)
			}
			if h != HashBare(label) {
				t.Fatalf("the point of %s is %x, want the hash of that label", label, h)
			}
			labels[h] = label
		}
	}
	r, err := newRing(shards, 0, nil, ringPoint)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.Compact(slices.Clone(r.hashes))); n != len(shards)*DefaultVirtualNodes {
		t.Errorf("%d distinct points, want %d", n, len(shards)*DefaultVirtualNodes)
	}
}

// The control of the distribution tests: on the same keys, a ring over FNV-1a without the finalizer fails their bound by
// far, so they do see what they are there for.
func TestRing_S01_RawHashFails(t *testing.T) {
	t.Parallel()
	for _, n := range []int{8, 64} {
		var shards []ShardID
		for i := range n {
			shards = append(shards, ShardID(fmt.Sprintf("s%d", i+1)))
		}
		raw := func(s string) uint64 { return fnv1a(fnvOffset, s) }
		r, err := newRing(shards, 0, nil, func(s ShardID, i int) uint64 { return raw(fmt.Sprintf("%s#%d", s, i)) })
		if err != nil {
			t.Fatal(err)
		}
		counts := make(map[ShardID]int)
		for i := range 200_000 {
			counts[r.OwnerOfHash(raw(fmt.Sprintf("tenant-00017/player-%09d", i)))]++
		}
		lo, hi := 200_000, 0
		for _, s := range shards {
			lo, hi = min(lo, counts[s]), max(hi, counts[s])
		}
		ratio := float64(hi) / float64(max(lo, 1))
		t.Logf("%d shards: max/min %.2f", n, ratio)
		if ratio < 2.5 {
			t.Errorf("%d shards: max/min %.2f without the finalizer, want over 2.5", n, ratio)
		}
	}
}
