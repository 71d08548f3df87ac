package dal

import (
	"strings"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// Place is where rows live: a shard, and a schema of its own on that shard or none. Each place is one physical database with pools of its own.
type Place struct {
	Shard  shardrouter.ShardID
	Schema string // empty: the shard's shared tables
}

// String returns "s1" or "s1/t_acme".
func (p Place) String() string {
	if p.Schema == "" {
		return string(p.Shard)
	}
	return string(p.Shard) + "/" + p.Schema
}

// Compare orders places by shard, then schema.
func (p Place) Compare(o Place) int {
	if c := strings.Compare(string(p.Shard), string(o.Shard)); c != 0 {
		return c
	}
	return strings.Compare(p.Schema, o.Schema)
}
