package board

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
)

// layout says where a board's entries lie. It is immutable, but for what was seen of its groups.
type layout struct {
	generation int64 // how often the board was rebuilt
	groups     int
	keep       int
	places     []shardrouter.Key // of each group
	seen       []atomic.Bool     // whether each group was seen open: then it has its row, for good
}

func newLayout(board string, generation int64, groups, keep int) *layout {
	l := &layout{generation: generation, groups: groups, keep: keep, seen: make([]atomic.Bool, groups)}
	prefix := board + "/"
	if generation > 0 { // a name has no slash
		prefix += strconv.FormatInt(generation, 10) + "/"
	}
	for g := range groups {
		l.places = append(l.places, shardrouter.Key(prefix+strconv.Itoa(g)))
	}
	return l
}

// group returns the player's group, the same in every process.
func (l *layout) group(player string) int {
	return int(shardrouter.HashBare(player) % uint64(l.groups))
}

// current calls fn with the board's layout until that was still the board's after fn had read: entries of an old layout are removed only after a new one is
// the board's, so what fn has read was whole.
func (b *Board) current(ctx context.Context, fn func(l *layout) error) error {
	for {
		l := b.layout.Load()
		err := fn(l)
		var deep *TooDeepError
		if err != nil && !errors.Is(err, gorm.ErrRecordNotFound) && !errors.As(err, &deep) {
			return err
		}
		changed, aerr := b.adopt(ctx, l)
		if aerr != nil {
			return aerr
		}
		if !changed {
			return err
		}
	}
}

// adopt reads the definition, takes over its layout, and reports whether that is another one than l.
func (b *Board) adopt(ctx context.Context, l *layout) (changed bool, err error) {
	def, err := b.definition(ctx)
	if err != nil || def.Generation == l.generation && def.KeepCount == l.keep {
		return false, err
	}
	b.layout.CompareAndSwap(l, newLayout(b.cfg.Name, def.Generation, def.GroupCount, def.KeepCount))
	return true, nil
}

// definition reads the persisted definition.
func (b *Board) definition(ctx context.Context) (definition, error) {
	var found definition
	err := b.store.On(ctx, dal.Key(Keyspace, b.cfg.Name)).Where("board = ?", b.cfg.Name).Take(&found).Error
	return found, err
}
