package bench

import (
	"context"
	"database/sql"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Who the statements are for: one tenant, one player.
const (
	tenantID = "acme"
	playerID = "7"
	itemID   = int64(1) // gorm.io/sharding reads no other type
)

// Case is one kind of statement.
type Case string

const (
	// First reads one row by its key.
	First Case = "First"
	// Find20 reads the twenty rows of a player.
	Find20 Case = "Find20"
	// Update sets one column of one row, in gorm's default transaction.
	Update Case = "Update"
	// Create inserts one row whose id is given, in gorm's default transaction.
	Create Case = "Create"
)

// Cases lists every case, in the order of the table.
func Cases() []Case { return []Case{First, Find20, Update, Create} }

// Rows is how many rows the driver answers a case with.
func (c Case) Rows() int {
	if c == Find20 {
		return 20
	}
	return 1
}

// Op sends one statement of a case.
type Op func() error

// Peer is one way to keep tenants apart.
type Peer struct {
	Name string
	// Open returns the operations over a driver. The caller closes with the returned function.
	Open func(d *NullDriver) (ops map[Case]Op, closer func() error, err error)
}

// Peers lists plain gorm first, since the others are compared with it.
func Peers() []Peer {
	return []Peer{
		{"plain gorm", openPlain},
		{"tenantdal", openTenantDAL},
		{"gorm.io/sharding", openSharding},
		{"go-saas", openSaaS},
	}
}

// openGorm opens gorm's MySQL dialect over the driver, with no query of its own, no log, and gorm's default transaction around each write.
func openGorm(d *NullDriver) (*gorm.DB, func() error, error) {
	pool := sql.OpenDB(d)
	g, err := gorm.Open(mysql.New(mysql.Config{Conn: pool, SkipInitializeWithVersion: true}), &gorm.Config{Logger: logger.Discard, DisableAutomaticPing: true})
	return g, pool.Close, err
}

// requestContext is what a service's handler has in hand: a context that can be cancelled.
func requestContext() (context.Context, context.CancelFunc) {
	return context.WithCancel(context.Background())
}
