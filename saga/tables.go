package saga

import (
	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// The keyspaces of a donation's two sides.
const (
	PlayerKeyspace = "player"
	GuildKeyspace  = "guild"
)

// Bag is one cell of a player's bag. Outside this package it is for reading: what changes it must also change the ledger.
type Bag struct {
	TenantID tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	PlayerID string    `gorm:"column:player_id;primaryKey;size:255;not null"`
	ItemID   string    `gorm:"column:item_id;primaryKey;size:255;not null"`
	Qty      int64     `gorm:"column:qty;not null"`
}

// TableName returns "bag".
func (Bag) TableName() string { return "bag" }

// Warehouse is one cell of a guild's warehouse. Outside this package it is for reading.
type Warehouse struct {
	TenantID tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	GuildID  string    `gorm:"column:guild_id;primaryKey;size:255;not null"`
	ItemID   string    `gorm:"column:item_id;primaryKey;size:255;not null"`
	Qty      int64     `gorm:"column:qty;not null"`
}

// TableName returns "warehouse".
func (Warehouse) TableName() string { return "warehouse" }

// Guild is a guild with its status: 1 takes donations, 2 refuses them.
type Guild struct {
	TenantID tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	GuildID  string    `gorm:"column:guild_id;primaryKey;size:255;not null"`
	Status   int8      `gorm:"column:status;not null"`
}

// TableName returns "guild".
func (Guild) TableName() string { return "guild" }

// LedgerRow is one mint or burn, or one change of a guild's status. The ledger is append-only.
type LedgerRow struct {
	TenantID  tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	MintID    string    `gorm:"column:mint_id;primaryKey;size:255;not null"`
	Side      int8      `gorm:"column:side;primaryKey;autoIncrement:false;not null"` // 1 bag, 2 warehouse
	OwnerID   string    `gorm:"column:owner_id;primaryKey;size:255;not null"`        // the player or the guild
	Kind      int8      `gorm:"column:kind;not null"`                                // 1 mint, 2 burn, 3 guild status
	ItemID    string    `gorm:"column:item_id;size:255;not null"`
	Qty       int64     `gorm:"column:qty;not null"`
	CreatedAt int64     `gorm:"column:created_at;autoCreateTime:false;not null"` // microseconds of the database's clock
}

// TableName returns "ledger".
func (LedgerRow) TableName() string { return "ledger" }

// Journal is a donation on the player's side: the journal row that is its outbox row too.
type Journal struct {
	TenantID   tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	SagaID     ID        `gorm:"column:saga_id;primaryKey;size:16;not null"`
	State      State     `gorm:"column:state;not null"`
	PlayerID   string    `gorm:"column:player_id;size:255;not null"`
	RequestKey string    `gorm:"column:request_key;size:255;not null"` // the caller's idempotency key
	GuildID    string    `gorm:"column:guild_id;size:255;not null"`
	ItemID     string    `gorm:"column:item_id;size:255;not null"`
	Qty        int64     `gorm:"column:qty;not null"`
	BodyHash   ID        `gorm:"column:body_hash;size:16;not null"` // of guild, item and quantity
	Epoch      int64     `gorm:"column:epoch;not null"`             // the topology's, when the donation was started
	Attempts   int32     `gorm:"column:attempts;not null"`
	DueAt      int64     `gorm:"column:due_at;not null"`  // when polls see it; all times in microseconds of this database's clock
	VoidAt     int64     `gorm:"column:void_at;not null"` // when it is to be voided
	LeaseOwner []byte    `gorm:"column:lease_owner;size:16;not null"`
	LeaseUntil int64     `gorm:"column:lease_until;not null"`
	Fence      int64     `gorm:"column:fence;not null"` // grows with each claim; an older one writes nothing
	Reason     Reason    `gorm:"column:reason;size:255;not null"`
	CreatedAt  int64     `gorm:"column:created_at;autoCreateTime:false;not null"`
	EndedAt    int64     `gorm:"column:ended_at;not null"` // 0 while it has not ended
}

// TableName returns "saga_out".
func (Journal) TableName() string { return "saga_out" }

// Decision is a donation on the guild's side. Whoever inserts it decides; it never changes afterwards.
type Decision struct {
	TenantID  tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	SagaID    ID        `gorm:"column:saga_id;primaryKey;size:16;not null"`
	Outcome   Outcome   `gorm:"column:outcome;not null"`
	PlayerID  string    `gorm:"column:player_id;size:255;not null"`
	GuildID   string    `gorm:"column:guild_id;size:255;not null"`
	ItemID    string    `gorm:"column:item_id;size:255;not null"`
	Qty       int64     `gorm:"column:qty;not null"`
	BodyHash  ID        `gorm:"column:body_hash;size:16;not null"`
	Reason    Reason    `gorm:"column:reason;size:255;not null"`
	Epoch     int64     `gorm:"column:epoch;not null"` // the topology's, when it was decided
	DecidedAt int64     `gorm:"column:decided_at;not null"`
}

// TableName returns "saga_in".
func (Decision) TableName() string { return "saga_in" }

// Tables returns the declarations of this package's tables, for dal.Config.Tables. Their DDL is the set "saga" of package migrations/schema.
func Tables() []dal.Table {
	return []dal.Table{
		dal.Tenant[Bag](PlayerKeyspace, "player_id"),
		dal.Tenant[Warehouse](GuildKeyspace, "guild_id"),
		dal.Tenant[Guild](GuildKeyspace, "guild_id"),
		dal.Local[LedgerRow](),
		dal.Local[Journal](),
		dal.Local[Decision](),
	}
}

// TableNames returns the names of this package's tables, for [tenant.System]. The result is the caller's own.
func TableNames() []string {
	return []string{"bag", "warehouse", "guild", "ledger", "saga_out", "saga_in"}
}
