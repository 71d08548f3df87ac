package board

import (
	"strconv"
	"sync/atomic"

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
