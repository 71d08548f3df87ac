package board

import (
	"math/rand/v2"
	"testing"
)

// However the scores are spread, there are at most 2n segments, in order, that together count every entry; each has one score or at most 2/n of all; and the
// bounds contain the true number.
func TestGather_Bounds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	for _, distinct := range []int{0, 1, 7, 16, 17, 1000, 20_000} {
		const n = 8
		var rows []segment
		var total int64
		score := int64(1 << 40)
		for range distinct {
			score -= 1 + random.Int64N(1000)
			c := 1 + random.Int64N(3)
			if random.IntN(50) == 0 {
				c = 1000
			}
			rows = append(rows, segment{High: score, Low: score, Count: c})
			total += c
		}
		g := gatherer{n: n}
		for _, r := range rows {
			g.add(r.High, r.Count)
		}
		if len(g.all) > 2*n {
			t.Fatalf("%d scores: %d segments", distinct, len(g.all))
		}
		var sum int64
		for i, s := range g.all {
			sum += s.Count
			if s.Low > s.High || i > 0 && s.High >= g.all[i-1].Low || s.Low != s.High && s.Count > 2*total/n {
				t.Errorf("%d scores, %d entries: segment %d is %+v after %+v", distinct, total, i, s, g.all[max(0, i-1)])
			}
		}
		if sum != total {
			t.Errorf("%d scores: %d counted, want %d", distinct, sum, total)
		}
		var better int64
		for _, r := range rows {
			least, most := above(g.all, r.High)
			if least > better || most < better {
				t.Fatalf("%d scores: above %d: %d to %d, want %d", distinct, r.High, least, most, better)
			}
			if least, most = above(g.all, r.High-1); least > better+r.Count || most < better+r.Count {
				t.Fatalf("%d scores: above %d: %d to %d, want %d", distinct, r.High-1, least, most, better+r.Count)
			}
			better += r.Count
		}
	}
}
