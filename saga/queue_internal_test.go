package saga

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenantdal/tenantdal/tenant"
)

func TestFairQueue_BacklogDelaysNoOtherByMoreThanARound(t *testing.T) {
	t.Parallel()
	var q fairQueue[string]
	for range 50_000 {
		q.push("big", "big", 0)
	}
	q.push("small", "small", 0)
	if got := q.take(2); !slices.Contains(got, "small") {
		t.Errorf("take(2) behind a backlog of 50,000 = %v, want the small tenant's entry in it", got)
	}
	if q.size != 49_999+0 {
		t.Errorf("size = %d, want 49999", q.size)
	}
}

func TestFairQueue_FullQueueDropsFromTheLongestLine(t *testing.T) {
	t.Parallel()
	var q fairQueue[int]
	for i := range 4 {
		q.push("big", i, 4)
	}
	if dropped, full := q.push("small", 100, 4); !full || dropped != 3 {
		t.Errorf("push to a full queue dropped %d, %v, want 3 of the big tenant", dropped, full)
	}
	if dropped, full := q.push("big", 4, 4); !full || dropped != 4 {
		t.Errorf("push of the big tenant dropped %d, %v, want its own 4", dropped, full)
	}
	if got, want := q.take(10), []int{0, 100, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("take = %v, want %v", got, want)
	}
}

// Whatever is pushed comes out once, in the order of its tenant, and what is neither out nor dropped is counted.
func TestFairQueue_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q fairQueue[int]
		model := map[tenant.ID][]int{}
		size := 0
		tenants := []tenant.ID{"a", "b", "c"}
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				id := rapid.SampledFrom(tenants).Draw(t, "tenant")
				limit := rapid.IntRange(0, 6).Draw(t, "limit")
				next++
				model[id] = append(model[id], next)
				size++
				dropped, full := q.push(id, next, limit)
				if full != (limit > 0 && size > limit) {
					t.Fatalf("push with %d entries and limit %d: full = %v", size, limit, full)
				}
				if !full {
					return
				}
				size--
				for other, entries := range model {
					if n := len(entries); n > 0 && entries[n-1] == dropped {
						for x, e := range model {
							if len(e) > n {
								t.Fatalf("dropped from %s with %d entries, but %s has %d", other, n, x, len(e))
							}
						}
						model[other] = entries[:n-1]
						return
					}
				}
				t.Fatalf("dropped %d, which is not the newest of any line", dropped)
			},
			"take": func(t *rapid.T) {
				n := rapid.IntRange(0, 5).Draw(t, "n")
				got := q.take(n)
				if len(got) != min(n, size) {
					t.Fatalf("take(%d) of %d = %v", n, size, got)
				}
				size -= len(got)
				for _, v := range got {
					found := false
					for id, entries := range model {
						if len(entries) > 0 && entries[0] == v {
							model[id], found = entries[1:], true
						}
					}
					if !found {
						t.Fatalf("take gave %d, which is not the oldest of any line: %v", v, model)
					}
				}
			},
			"": func(t *rapid.T) {
				if q.size != size || len(q.turn) != len(q.lines) {
					t.Fatalf("size = %d, want %d; %d in turn, %d lines", q.size, size, len(q.turn), len(q.lines))
				}
			},
		})
	})
}
