package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
)

// asleep returns a game whose suspended tenant has three users on its player's shard.
func asleep(t *testing.T, s dal.Suspension) (*game, context.Context) {
	t.Helper()
	g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) { c.Suspended = s })
	for _, raw := range g.raw {
		for id := 1; id <= 3; id++ {
			if _, err := raw.Exec("INSERT INTO users (tenant_id, id, player_id, name, gold) VALUES ('sleepy', ?, '7', 'n', 10)", id); err != nil {
				t.Fatal(err)
			}
		}
	}
	return g, tenant.NewContext(t.Context(), "sleepy")
}

func TestStatus_SuspendWrites_Reads(t *testing.T) {
	t.Parallel()
	g, ctx := asleep(t, dal.SuspendWrites)
	for name, read := range map[string]func(h *gorm.DB) (int, error){
		"Find":  func(h *gorm.DB) (int, error) { var u []User; return 3, h.Find(&u).Error },
		"First": func(h *gorm.DB) (int, error) { return 1, h.First(&User{}).Error },
		"Count": func(h *gorm.DB) (int, error) {
			var n int64
			err := h.Model(&User{}).Count(&n).Error
			return int(n), err
		},
		"Pluck": func(h *gorm.DB) (int, error) {
			var names []string
			err := h.Model(&User{}).Pluck("name", &names).Error
			return len(names), err
		},
		"Row": func(h *gorm.DB) (int, error) {
			var n int
			err := h.Model(&User{}).Select("COUNT(*)").Row().Scan(&n)
			return n, err
		},
		"Rows": func(h *gorm.DB) (int, error) {
			rows, err := h.Model(&User{}).Rows()
			if err != nil {
				return 0, err
			}
			n := 0
			for rows.Next() {
				n++
			}
			return n, errors.Join(rows.Err(), rows.Close())
		},
		"read-only transaction": func(h *gorm.DB) (int, error) {
			var n int64
			err := h.Transaction(func(tx *gorm.DB) error { return tx.Model(&User{}).Count(&n).Error }, &sql.TxOptions{ReadOnly: true})
			return int(n), err
		},
	} {
		if n, err := read(g.player(ctx)); err != nil || n == 0 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	// The library's own transaction begins read-only; a write in it is refused, and sent nowhere.
	g.rec.take()
	err := g.Transaction(ctx, dal.Key("player", "7"), func(ctx context.Context, tx *gorm.DB) error {
		var n int64
		if err := g.player(ctx).Model(&User{}).Count(&n).Error; err != nil || n != 3 {
			t.Errorf("a read in it: %d, %v", n, err)
		}
		g.rec.take()
		g.refusedInTx(t, tx.Model(&User{}).Where("id = 1").Update("gold", 1).Error, tenant.ErrSuspended)
		g.refusedInTx(t, g.player(ctx).Create(&User{PlayerID: "7"}).Error, tenant.ErrSuspended)
		g.refusedInTx(t, tx.Clauses(clause.Locking{Strength: "UPDATE"}).Find(&[]User{}).Error, tenant.ErrSuspended)
		return nil
	})
	if err != nil {
		t.Errorf("the transaction: %v", err)
	}
	if _, err := g.Route(ctx, dal.Key("player", "7")); !errors.Is(err, tenant.ErrSuspended) {
		t.Errorf("Route: %v; who asks for a route may write there", err)
	}
}

func TestStatus_SuspendWrites_NothingIsWritten(t *testing.T) {
	t.Parallel()
	g, ctx := asleep(t, dal.SuspendWrites)
	before := g.dump(t, "sleepy")
	h := func() *gorm.DB { return g.player(ctx) }
	for name, write := range map[string]func() error{
		"Create":           func() error { return h().Create(&User{PlayerID: "7"}).Error },
		"CreateInBatches":  func() error { return h().CreateInBatches(&[]User{{PlayerID: "7"}, {PlayerID: "7"}}, 1).Error },
		"Create map":       func() error { return h().Model(&User{}).Create(map[string]any{"player_id": "7"}).Error },
		"Save":             func() error { return h().Save(&User{Model: dal.Model{ID: 1, TenantID: "sleepy"}, PlayerID: "7"}).Error },
		"Update":           func() error { return h().Model(&User{}).Where("id = 1").Update("gold", 1).Error },
		"UpdateColumn":     func() error { return h().Model(&User{}).Where("id = 1").UpdateColumn("gold", 1).Error },
		"Updates":          func() error { return h().Model(&User{}).Where("id = 1").Updates(User{Gold: 1}).Error },
		"Delete":           func() error { return h().Where("id = 1").Delete(&User{}).Error },
		"Unscoped Delete":  func() error { return h().Unscoped().Where("id = 1").Delete(&User{}).Error },
		"Exec":             func() error { return h().Exec("UPDATE users SET gold = 1 WHERE tenant_id = 'sleepy'").Error },
		"Raw RETURNING":    func() error { var u []User; return h().Raw("DELETE FROM users RETURNING *").Scan(&u).Error },
		"FOR UPDATE":       func() error { return h().Clauses(clause.Locking{Strength: "UPDATE"}).Find(&[]User{}).Error },
		"FOR SHARE":        func() error { return h().Clauses(clause.Locking{Strength: "SHARE"}).First(&User{}).Error },
		"Begin":            func() error { return h().Begin().Error },
		"Transaction":      func() error { return h().Transaction(func(*gorm.DB) error { return nil }) },
		"generic Create":   func() error { return gorm.G[User](h()).Create(ctx, &User{PlayerID: "7"}) },
		"Repository":       func() error { return repo(t, g).Create(ctx, &User{PlayerID: "7"}) },
		"read-only writes": func() error { return writeInReadOnly(h()) },
	} {
		t.Run(name, func(t *testing.T) {
			err := write()
			if name == "read-only writes" {
				g.refusedInTx(t, err, tenant.ErrSuspended)
				return
			}
			g.refusedAs(t, err, tenant.ErrSuspended)
		})
	}
	if after := g.dump(t, "sleepy"); after != before {
		t.Errorf("rows changed:\n%s", after)
	}
	if res := h().Where(User{Name: "nobody"}).FirstOrCreate(&User{PlayerID: "7"}); !errors.Is(res.Error, tenant.ErrSuspended) {
		t.Errorf("FirstOrCreate of a row that is not there: %v", res.Error)
	}
	if after := g.dump(t, "sleepy"); after != before {
		t.Errorf("FirstOrCreate wrote:\n%s", after)
	}
}

// On every kind of database a suspended tenant reads, in transactions too, and changes nothing.
func TestStatus_SuspendWrites_EveryDatabase(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			models := map[tenant.ID]tenant.Model{"shared-s": tenant.SharedTable, "schema-s": tenant.OwnSchema, "base-s": tenant.OwnDatabase}
			registry := func(s tenant.Status) *switched {
				var all []tenant.Tenant
				for id, m := range models {
					all = append(all, tenant.Tenant{ID: id, Model: m, Status: s})
				}
				return newSwitched(t, all...)
			}
			reg := registry(tenant.Active)
			cfg := dal.Config{Cluster: cluster(t), Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, Suspended: dal.SuspendWrites}
			up(t, cfg)
			store, err := dal.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := store.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			key := dal.Key("player", "p")
			for id := range models {
				ctx := tenant.NewContext(t.Context(), id)
				if err := store.On(ctx, key).Create(&Hero{PlayerID: "p", Gold: 5}).Error; err != nil {
					t.Fatal(err)
				}
				reg.set(id, tenant.Suspended)
				if err := store.On(ctx, key).Model(&Hero{}).Where("gold = 5").Update("gold", 6).Error; !errors.Is(err, tenant.ErrSuspended) {
					t.Errorf("%s: a write: %v", id, err)
				}
				var found []Hero
				if err := store.On(ctx, key).Find(&found).Error; err != nil || len(found) != 1 || found[0].Gold != 5 {
					t.Errorf("%s: a read: %+v, %v", id, found, err)
				}
				err := store.Transaction(ctx, key, func(ctx context.Context, tx *gorm.DB) error {
					if err := tx.Find(&found).Error; err != nil || len(found) != 1 {
						t.Errorf("%s: a read in a transaction: %+v, %v", id, found, err)
					}
					if err := store.On(ctx, key).Create(&Hero{PlayerID: "p"}).Error; !errors.Is(err, tenant.ErrSuspended) {
						t.Errorf("%s: a write in a transaction: %v", id, err)
					}
					return nil
				})
				if err != nil {
					t.Errorf("%s: a transaction that reads: %v", id, err)
				}
				reg.set(id, tenant.Active)
				if err := store.On(ctx, key).Model(&Hero{}).Where("gold = 5").Update("gold", 6).Error; err != nil {
					t.Errorf("%s: active again: %v", id, err)
				}
			}
		})
	}
}

// Raw texts are judged by what they do, in the dialect whose locks can be seen.
func TestStatus_SuspendWrites_RawTexts(t *testing.T) {
	t.Parallel()
	tenants, top := landed(t, 1)
	tenants[0].Status = tenant.Suspended
	reg, err := tenant.NewStatic(tenants...)
	if err != nil {
		t.Fatal(err)
	}
	rec := &recorder{}
	store, err := dal.OpenFixed(dal.WithObserver(dal.Config{Registry: reg, Tables: gameTables(), Suspended: dal.SuspendWrites}, rec), dal.Fixed{
		Topology: top, Dialect: dal.MySQL, Connect: func(dal.Place) (driver.Connector, error) { return &plainConnector{closed: func() {}}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	ctx := tenant.NewContext(t.Context(), "t0")
	on := func() *gorm.DB { return store.On(ctx, dal.Key("player", "7")) }
	for _, text := range []string{"SELECT id FROM users", "WITH x AS (SELECT id FROM users) SELECT id FROM x", "SELECT 'for update', id FROM users"} {
		var ids []int64
		if err := on().Raw(text).Scan(&ids).Error; err != nil || len(ids) != 3 {
			t.Errorf("%s: %v, %v", text, ids, err)
		}
	}
	rec.take()
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, tenant.ErrSuspended) {
			t.Errorf("%s: %v", what, err)
		}
		if rec.begun() != 0 {
			t.Errorf("%s began a transaction", what)
		}
		for _, text := range rec.take() {
			t.Errorf("%s left: %s", what, text)
		}
	}
	for _, text := range []string{
		"SELECT id FROM users FOR UPDATE", "SELECT id FROM users FOR SHARE", "SELECT id FROM users LOCK IN SHARE MODE", "select id from users for update nowait",
		"UPDATE users SET gold = 1", "DELETE FROM users", "INSERT INTO `lines` (no) VALUES (1)",
	} {
		refused("Raw "+text, on().Raw(text).Scan(&[]int64{}).Error)
		refused("Exec "+text, on().Exec(text).Error)
	}
	refused("Row", on().Raw("SELECT id FROM users FOR UPDATE").Row().Scan(new(int64)))
	refused("Clauses", on().Clauses(clause.Locking{Strength: "UPDATE"}).Find(&[]User{}).Error)
	db, err := on().DB()
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(ctx, "UPDATE users SET gold = 1 WHERE tenant_id = ?", "t0")
	refused("DB()", err)
}

func repo(t *testing.T, g *game) *dal.Repository[User] {
	t.Helper()
	r, err := dal.NewRepository[User](g.Store)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func writeInReadOnly(h *gorm.DB) error {
	return h.Transaction(func(tx *gorm.DB) error { return tx.Where("id = 1").Delete(&User{}).Error }, &sql.TxOptions{ReadOnly: true})
}

func TestStatus_SuspendAllIsTheDefault(t *testing.T) {
	t.Parallel()
	g, ctx := asleep(t, 0)
	g.refusedAs(t, g.player(ctx).Find(&[]User{}).Error, tenant.ErrSuspended)
	g.refusedAs(t, g.player(ctx).Create(&User{PlayerID: "7"}).Error, tenant.ErrSuspended)
	g.refusedAs(t, g.Transaction(ctx, dal.Key("player", "7"), func(context.Context, *gorm.DB) error { return nil }), tenant.ErrSuspended)
	cfg := dal.Config{Cluster: dal.SQLiteCluster("d", 1), Tables: gameTables(), Suspended: 7}
	if err := cfg.Validate(); err == nil {
		t.Error("Config.Suspended 7 is valid")
	}
}

// switched is a registry whose tenants' status can be changed.
type switched struct {
	*tenant.Static
	mu     sync.Mutex // guards status
	status map[tenant.ID]tenant.Status
}

func (r *switched) Tenant(ctx context.Context, id tenant.ID) (tenant.Tenant, error) {
	t, err := r.Static.Tenant(ctx, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.status[id]; s != 0 {
		t.Status = s
	}
	return t, err
}

func (r *switched) set(id tenant.ID, s tenant.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status[id] = s
}

func newSwitched(t *testing.T, tenants ...tenant.Tenant) *switched {
	t.Helper()
	static, err := tenant.NewStatic(tenants...)
	if err != nil {
		t.Fatal(err)
	}
	return &switched{Static: static, status: map[tenant.ID]tenant.Status{}}
}

func TestStatus_KeptHandleLearnsOfIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tenants, _ := landed(t, 2)
		reg := newSwitched(t, tenants...)
		e := newEstate(t, 2, func(c *dal.Config) { c.Registry, c.Suspended, c.TenantMaxAge = reg, dal.SuspendWrites, time.Second })
		defer func() { _ = e.Close(context.Background()) }()
		kept := e.on(t.Context(), 0)
		read := func() error { return kept.Find(&[]User{}).Error }
		write := func() error { return kept.Where("id = 1").Delete(&User{}).Error }
		if err := errors.Join(read(), write()); err != nil {
			t.Fatal(err)
		}
		reg.set("t0", tenant.Suspended)
		if err := e.on(t.Context(), 0).Where("id = 1").Delete(&User{}).Error; !errors.Is(err, tenant.ErrSuspended) {
			t.Errorf("On asks a registry of one's own at once: %v", err)
		}
		time.Sleep(time.Second)
		if err := write(); !errors.Is(err, tenant.ErrSuspended) {
			t.Errorf("a write on a kept handle after TenantMaxAge: %v", err)
		}
		if err := read(); err != nil {
			t.Errorf("a read on it: %v", err)
		}
		reg.set("t0", tenant.Deleting)
		time.Sleep(time.Second)
		if err := read(); !errors.Is(err, tenant.ErrDeleting) {
			t.Errorf("deleting: %v", err)
		}
		reg.set("t0", tenant.Active)
		time.Sleep(time.Second)
		if err := errors.Join(read(), write()); err != nil {
			t.Errorf("active again: %v", err)
		}
		if err := e.on(t.Context(), 1).Find(&[]User{}).Error; err != nil {
			t.Errorf("its neighbour: %v", err)
		}
	})
}

func TestStatus_DrainWaitsForWhatHadBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tenants, _ := landed(t, 2)
		tenants[0].Limits.MaxConns = 2
		reg := newSwitched(t, tenants...)
		e := newEstate(t, 2, func(c *dal.Config) { c.Registry, c.TenantMaxAge = reg, time.Hour })
		defer func() { _ = e.Close(context.Background()) }()
		sys := tenant.System(t.Context(), "delete t0", "jobs")
		ctx, key := e.ctx(t.Context(), 0), dal.Key("player", "7")

		if err := e.Drain(ctx, "t0"); !errors.Is(err, tenant.ErrNotSystem) {
			t.Errorf("Drain by the tenant itself: %v", err)
		}
		var served *dal.StillServedError
		if err := e.Drain(sys, "t0"); !errors.As(err, &served) || !errors.Is(err, dal.ErrStillServed) || served.Status != tenant.Active {
			t.Errorf("Drain of an active tenant: %v", err)
		}
		if err := e.Drain(sys, "nobody"); !errors.Is(err, tenant.ErrUnknownTenant) {
			t.Errorf("Drain of an unknown tenant: %v", err)
		}

		kept := e.on(t.Context(), 0)
		rows := e.rows(t, 0)
		inTx, endTx, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- e.Transaction(ctx, key, func(ctx context.Context, tx *gorm.DB) error {
				close(inTx)
				<-endTx
				if err := tx.Where("id = 1").Delete(&User{}).Error; err != nil {
					return err
				}
				return e.On(ctx, key).Create(&User{PlayerID: "7"}).Error
			})
		}()
		<-inTx
		queued := make(chan error, 1)
		go func() { queued <- kept.Find(&[]User{}).Error }() // both permits are taken: it waits
		synctest.Wait()

		reg.set("t0", tenant.Deleting)
		short, cancel := context.WithTimeout(sys, time.Second)
		defer cancel()
		var left *dal.DrainError
		if err := e.Drain(short, "t0"); !errors.As(err, &left) || left.InUse != 2 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain with rows and a transaction open: %v", err)
		}
		if err := kept.Find(&[]User{}).Error; !errors.Is(err, tenant.ErrDeleting) {
			t.Errorf("a kept handle, long before TenantMaxAge: %v", err)
		}
		if err := e.on(t.Context(), 0).Find(&[]User{}).Error; !errors.Is(err, tenant.ErrDeleting) {
			t.Errorf("a new handle: %v", err)
		}

		drained := make(chan error, 1)
		go func() { drained <- e.Drain(sys, "t0") }()
		synctest.Wait()
		close(endTx)
		if err := <-ended; err != nil {
			t.Errorf("the transaction that had begun: %v", err)
		}
		if err := <-queued; !errors.Is(err, tenant.ErrDeleting) {
			t.Errorf("who waited for a permit meanwhile: %v", err)
		}
		time.Sleep(time.Second)
		select {
		case err := <-drained:
			t.Errorf("Drain returned %v while rows are open", err)
		default:
		}
		if n := rest(t, rows); n != 2 {
			t.Errorf("the rows gave %d more", n)
		}
		if err := <-drained; err != nil {
			t.Errorf("Drain: %v", err)
		}
		if n, _ := e.Permits("t0", "t0-s1"); n != 0 || e.open.Load() != 0 {
			t.Errorf("after Drain: %d permits, %d of its places open", n, e.open.Load())
		}
		if err := e.on(t.Context(), 1).Find(&[]User{}).Error; err != nil {
			t.Errorf("its neighbour: %v", err)
		}
	})
}

// The status in the control database reaches a store that has the tenant in its cache.
func TestStatus_DrainReadsPastTheCache(t *testing.T) {
	t.Parallel()
	tenants := func(s tenant.Status) dal.Config {
		reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable, Status: s}, tenant.Tenant{ID: "b", Model: tenant.SharedTable})
		if err != nil {
			t.Fatal(err)
		}
		return dal.Config{Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, TenantMaxAge: time.Hour}
	}
	cfg := tenants(tenant.Active)
	cfg.Cluster = dal.SQLiteCluster(t.TempDir(), 1)
	up(t, cfg)
	open := cfg
	open.Registry = nil
	store, err := dal.Open(t.Context(), open)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	ctx := tenant.NewContext(t.Context(), "a")
	kept := store.On(ctx, dal.Key("player", "p"))
	if err := kept.Create(&Hero{PlayerID: "p"}).Error; err != nil {
		t.Fatal(err)
	}
	gone := tenants(tenant.Deleting)
	gone.Cluster = cfg.Cluster
	if _, err := schema.Up(t.Context(), gone, heroes("", "")); err != nil {
		t.Fatal(err)
	}
	if err := kept.Find(&[]Hero{}).Error; err != nil {
		t.Errorf("the cache is an hour old at most, and this store was told nothing: %v", err)
	}
	if err := store.Drain(tenant.System(t.Context(), "delete a", "jobs"), "a"); err != nil {
		t.Errorf("Drain: %v", err)
	}
	for name, h := range map[string]*gorm.DB{"kept": kept, "new": store.On(ctx, dal.Key("player", "p"))} {
		if err := h.Find(&[]Hero{}).Error; !errors.Is(err, tenant.ErrDeleting) {
			t.Errorf("%s handle after Drain: %v", name, err)
		}
	}
	if err := store.On(tenant.NewContext(t.Context(), "b"), dal.Key("player", "p")).Find(&[]Hero{}).Error; err != nil {
		t.Errorf("its neighbour: %v", err)
	}
}
