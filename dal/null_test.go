package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// null is a driver that answers every query with the same rows of items at once, and every other statement with one changed row.
type null struct {
	rows  int
	owner driver.Value // what tenant_id is in them
}

func (n *null) Connect(context.Context) (driver.Conn, error) { return nullConn{n}, nil }

func (n *null) Driver() driver.Driver { return nullDriver{} }

func (nullDriver) Open(string) (driver.Conn, error) { return nil, driver.ErrBadConn }

func (c nullConn) Prepare(string) (driver.Stmt, error)                          { return nil, errors.New("nothing is prepared") }
func (c nullConn) Close() error                                                 { return nil }
func (c nullConn) Begin() (driver.Tx, error)                                    { return nullTx{}, nil }
func (nullTx) Commit() error                                                    { return nil }
func (nullTx) Rollback() error                                                  { return nil }
func (c nullConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return nullTx{}, nil }

type (
	nullDriver struct{}
	nullConn   struct{ of *null }
	nullTx     struct{}
	nullRows   struct {
		of   *null
		read int
	}
)

func (c nullConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &nullRows{of: c.of}, nil
}

func (c nullConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

var (
	nullColumns = []string{"id", "tenant_id", "created_at", "updated_at", "player_id", "name", "qty"}
	nullTime    = time.Unix(1_750_000_000, 0).UTC()
	nullText    = []byte("7")
)

func (*nullRows) Columns() []string { return nullColumns }
func (*nullRows) Close() error      { return nil }

func (r *nullRows) Next(dest []driver.Value) error {
	if r.read == r.of.rows {
		return io.EOF
	}
	r.read++
	dest[0], dest[1], dest[2], dest[3], dest[4], dest[5], dest[6] = int64(1), r.of.owner, nullTime, nullTime, nullText, nullText, int64(3)
	return nil
}

// nullStore is a store over one null driver, with a rate limit that never refuses.
func nullStore(tb testing.TB, n *null) *dal.Store {
	tb.Helper()
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: []shardrouter.ShardID{"s1", "s2"}, Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "guild"}}})
	if err != nil {
		tb.Fatal(err)
	}
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable, Limits: tenant.Limits{Rate: 1e9, Burst: 1e6, MaxConns: 8}})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := dal.OpenFixed(dal.Config{Registry: reg, Tables: gameTables()}, dal.Fixed{
		Topology: top, Dialect: dal.MySQL, Connect: func(dal.Place) (driver.Connector, error) { return n, nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// plainItem is Item for gorm alone.
type plainItem struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false"`
	TenantID  string
	CreatedAt time.Time
	UpdatedAt time.Time
	PlayerID  string
	Name      string
	Qty       int64
}

func (plainItem) TableName() string { return "items" }

// A tenant_id is read as what it is, in whichever type the driver gives it.
func TestScan_TenantID(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sent driver.Value
		want tenant.ID
	}{{"a", "a"}, {[]byte("a"), "a"}, {nil, ""}, {[]byte(""), ""}} {
		s := nullStore(t, &null{rows: 2, owner: tt.sent})
		its := []Item{{Name: "of another query"}}
		if err := s.On(tenant.NewContext(t.Context(), "a"), dal.Key("player", "7")).Find(&its).Error; err != nil {
			t.Fatal(err)
		}
		if len(its) != 2 || its[0].TenantID != tt.want || its[1].TenantID != tt.want || its[0].Qty != 3 {
			t.Errorf("sent %#v, read %+v, want tenant %q twice", tt.sent, its, tt.want)
		}
	}
}

// The layer allocates at most six times more than gorm with a predicate written by hand. It runs beside no other test: all allocations count.
func TestLayer_Allocations(t *testing.T) {
	const most, runs = 6, 500
	ctx := t.Context()
	scoped := tenant.NewContext(ctx, "a")
	for _, tt := range []struct {
		name  string
		rows  int
		plain func(*gorm.DB) error
		layer func(*gorm.DB) error
	}{
		{
			"First", 1,
			func(g *gorm.DB) error { return g.Where("tenant_id = ?", "a").First(&plainItem{}, 1).Error },
			func(g *gorm.DB) error { return g.First(&Item{}, 1).Error },
		},
		{
			"Find20", 20,
			func(g *gorm.DB) error {
				return g.Where("tenant_id = ? AND player_id = ?", "a", "7").Limit(20).Find(&[]plainItem{}).Error
			},
			func(g *gorm.DB) error { return g.Where("player_id = ?", "7").Limit(20).Find(&[]Item{}).Error },
		},
		{
			"Update", 0,
			func(g *gorm.DB) error {
				return g.Model(&plainItem{}).Where("tenant_id = ? AND id = ?", "a", 1).Update("qty", 5).Error
			},
			func(g *gorm.DB) error { return g.Model(&Item{}).Where("id = ?", 1).Update("qty", 5).Error },
		},
		{
			"Create", 0,
			func(g *gorm.DB) error {
				return g.Create(&plainItem{ID: 1, TenantID: "a", PlayerID: "7", Name: "x", Qty: 3}).Error
			},
			func(g *gorm.DB) error {
				return g.Create(&Item{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "x", Qty: 3}).Error
			},
		},
	} {
		n := &null{rows: tt.rows, owner: []byte("a")}
		pool := sql.OpenDB(n)
		defer func() { _ = pool.Close() }()
		g, err := gorm.Open(mysql.New(mysql.Config{Conn: pool, SkipInitializeWithVersion: true}), &gorm.Config{Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		s := nullStore(t, n)
		var failed error
		plain := testing.AllocsPerRun(runs, func() { failed = errors.Join(failed, tt.plain(g.WithContext(ctx))) })
		layer := testing.AllocsPerRun(runs, func() { failed = errors.Join(failed, tt.layer(s.On(scoped, dal.Key("player", "7")))) })
		if failed != nil {
			t.Fatal(failed)
		}
		t.Logf("%s: plain %v, layer %v", tt.name, plain, layer)
		if layer > plain+most {
			t.Errorf("%s allocates %v times, plain gorm %v: %v more, want at most %d", tt.name, layer, plain, layer-plain, most)
		}
	}
}
