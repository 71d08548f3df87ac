package board

import (
	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// Keyspace places the groups of all boards.
const Keyspace = "board"

// definition is how a board was made. It lies on the board's home shard, the owner of its name.
type definition struct {
	TenantID   tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	Board      string    `gorm:"column:board;primaryKey;size:64;not null"`
	GroupCount int       `gorm:"column:group_count;not null"`
	KeepCount  int       `gorm:"column:keep_count;not null"`
	Generation int64     `gorm:"column:generation;not null"`  // how often it was rebuilt
	NextGroups int       `gorm:"column:next_groups;not null"` // of the rebuild that copies; else 0
	NextKeep   int       `gorm:"column:next_keep;not null"`
	OldGroups  int       `gorm:"column:old_groups;not null"` // of the generation before this one, while its entries are removed; else 0
	Owner      string    `gorm:"column:owner;size:32;not null"`
	LeaseUntil int64     `gorm:"column:lease_until;not null"` // microseconds since 1970, by the database's clock
}

// TableName returns "board_definitions".
func (definition) TableName() string { return "board_definitions" }

// entry is a player's row.
type entry struct {
	TenantID tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	Place    string    `gorm:"column:place;primaryKey;size:80;not null"`   // "<board>/<group>"
	Player   []byte    `gorm:"column:player;primaryKey;size:255;not null"` // bytes, which need not be UTF-8
	Board    string    `gorm:"column:board;size:64;not null"`
	Score    int64     `gorm:"column:score;not null"`
	At       int64     `gorm:"column:at;not null"` // microseconds since 1970
}

// TableName returns "board_entries".
func (entry) TableName() string { return "board_entries" }

// group is the row that an update of the group's entries shares a lock of. It is made by the first update, and never removed.
type group struct {
	TenantID tenant.ID  `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	Place    string     `gorm:"column:place;primaryKey;size:80;not null"`
	Board    string     `gorm:"column:board;size:64;not null"`
	State    groupState `gorm:"column:state;not null"`
}

// TableName returns "board_groups".
func (group) TableName() string { return "board_groups" }

type groupState int

const (
	absent  groupState = 0 // no row
	open    groupState = 1 // takes updates
	closed  groupState = 2 // frozen for good: a rebuild copies its entries, or has copied them
	filling groupState = 3 // of the next layout: takes entries of a rebuild alone
)

// global is a board's materialised best. It lies on the board's home shard.
type global struct {
	TenantID   tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	Board      string    `gorm:"column:board;primaryKey;size:64;not null"`
	ComputedAt int64     `gorm:"column:computed_at;not null"` // microseconds since 1970
	Entries    []byte    `gorm:"column:entries;not null"`     // JSON, a list of stored
}

// TableName returns "board_globals".
func (global) TableName() string { return "board_globals" }

// Tables returns the declarations of this package's tables, for dal.Config.Tables. Their DDL is the set "board" of package migrations/schema.
func Tables() []dal.Table {
	return []dal.Table{
		dal.Tenant[definition](Keyspace, "board"),
		dal.Tenant[entry](Keyspace, "place"),
		dal.Tenant[group](Keyspace, "place"),
		dal.Tenant[global](Keyspace, "board"),
	}
}
