package gate

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

const (
	// stripes is the number of locks: one for all would be a line of every statement of the process.
	stripes = 16
	// generation is how many texts a stripe keeps before it begins anew; the generation before is kept beside it.
	generation = 512
	// longestKept bounds what is remembered: longer texts, large batches as a rule, are judged each time.
	longestKept = 16 << 10
)

// Gate is a [Schema] that remembers its verdicts by text, refusals too. At most 2 x 16 x 512 texts of at most 16 KiB are kept; the longest unused go.
// A text that it has seen costs two hashes and no allocation. It is safe for concurrent use.
type Gate struct {
	schema  *Schema
	seed    maphash.Seed
	tenants [stripes]stripe
	systems [stripes]stripe
	misses  atomic.Int64
}

// stripe holds two generations of verdicts.
type stripe struct {
	mu       sync.RWMutex // guards both maps; nothing is judged under it
	now, old map[string]*Verdict
}

// New returns a gate over the schema.
func New(s *Schema) *Gate { return &Gate{schema: s, seed: maphash.MakeSeed()} }

// Schema returns what the gate judges by.
func (g *Gate) Schema() *Schema { return g.schema }

// Judged returns how many texts were read because they had not been seen, or not been kept.
func (g *Gate) Judged() int64 { return g.misses.Load() }

// Verdict returns the verdict of a tenant's statement.
func (g *Gate) Verdict(text string) *Verdict {
	s := &g.tenants[maphash.String(g.seed, text)%stripes]
	if v := s.get(text); v != nil {
		return v
	}
	g.misses.Add(1)
	v := g.schema.Judge(text)
	s.put(text, v)
	if v.Rewrite != nil {
		r := v.Rewrite
		g.tenants[maphash.String(g.seed, r.Text)%stripes].put(r.Text, r.Verdict)
	}
	return v
}

// SystemVerdict returns the verdict of a statement under a system scope.
func (g *Gate) SystemVerdict(text string) *Verdict {
	s := &g.systems[maphash.String(g.seed, text)%stripes]
	if v := s.get(text); v != nil {
		return v
	}
	g.misses.Add(1)
	v := g.schema.JudgeSystem(text)
	s.put(text, v)
	return v
}

func (s *stripe) get(text string) *Verdict {
	s.mu.RLock()
	v := s.now[text]
	if v == nil {
		v = s.old[text]
		s.mu.RUnlock()
		if v != nil {
			s.put(text, v)
		}
		return v
	}
	s.mu.RUnlock()
	return v
}

func (s *stripe) put(text string, v *Verdict) {
	if len(text) > longestKept {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.now) >= generation {
		s.now, s.old = nil, s.now
	}
	if s.now == nil {
		s.now = make(map[string]*Verdict, generation/4)
	}
	s.now[text] = v
}
