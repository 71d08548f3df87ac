package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"gorm.io/gorm"
	"modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// estate is a store over n tenants with a database of their own each, t0 to tn-1, on a driver that answers every query with the rows 1, 2 and 3.
type estate struct {
	*dal.Store
	open, most, connects atomic.Int64 // pools open now, most of them at a time, pools opened ever
	mu                   sync.Mutex   // guards fail
	fail                 map[shardrouter.ShardID]error
}

// newEstate opens the store; the caller closes it.
func newEstate(tb testing.TB, n int, change func(*dal.Config)) *estate {
	tb.Helper()
	e := &estate{fail: map[shardrouter.ShardID]error{}}
	tenants, top := landed(tb, n)
	reg, err := tenant.NewStatic(tenants...)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := dal.Config{Registry: reg, Tables: gameTables(), Quota: quota.Config{MaxWait: 5 * time.Second}}
	if change != nil {
		change(&cfg)
	}
	e.Store, err = dal.OpenFixed(cfg, dal.Fixed{Topology: top, Dialect: dal.SQLite, Connect: func(p dal.Place) (driver.Connector, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if err := e.fail[p.Shard]; err != nil {
			return nil, err
		}
		e.connects.Add(1)
		for now := e.open.Add(1); ; {
			most := e.most.Load()
			if now <= most || e.most.CompareAndSwap(most, now) {
				return &plainConnector{closed: func() { e.open.Add(-1) }}, nil
			}
		}
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// landed returns n tenants with a database each, and their topology.
func landed(tb testing.TB, n int) ([]tenant.Tenant, *shardrouter.Topology) {
	tb.Helper()
	tenants := make([]tenant.Tenant, n)
	dedicated := map[string][]shardrouter.ShardID{}
	for i := range tenants {
		t, err := tenant.Place(tenant.Tenant{ID: tenant.ID(fmt.Sprint("t", i)), Model: tenant.OwnDatabase})
		if err != nil {
			tb.Fatal(err)
		}
		tenants[i] = t
		dedicated[string(t.ID)] = []shardrouter.ShardID{shardrouter.ShardID(t.Placement.Shards[0])}
	}
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: []shardrouter.ShardID{"s1"}, Dedicated: dedicated, Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "guild"}}})
	if err != nil {
		tb.Fatal(err)
	}
	return tenants, top
}

func (e *estate) ctx(parent context.Context, i int) context.Context {
	return tenant.NewContext(parent, tenant.ID(fmt.Sprint("t", i)))
}

func (e *estate) on(parent context.Context, i int) *gorm.DB {
	return e.On(e.ctx(parent, i), dal.Key("player", "7"))
}

// rows opens the rows of tenant i, and reads the first.
func (e *estate) rows(tb testing.TB, i int) *sql.Rows {
	tb.Helper()
	rows, err := e.on(tb.Context(), i).Model(&User{}).Select("id").Rows()
	if err != nil {
		tb.Fatal(err)
	}
	if !rows.Next() {
		tb.Fatalf("no row: %v", rows.Err())
	}
	return rows
}

// rest reads what is left of open rows and closes them.
func rest(tb testing.TB, rows *sql.Rows) int {
	tb.Helper()
	n := 0
	for rows.Next() {
		n++
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		tb.Errorf("open rows broke: %v", err)
	}
	return n
}

// plainConnector is a database that answers every query alike.
type plainConnector struct{ closed func() }

func (c *plainConnector) Connect(context.Context) (driver.Conn, error) { return plainConn{}, nil }
func (c *plainConnector) Driver() driver.Driver                        { return nil }
func (c *plainConnector) Close() error                                 { c.closed(); return nil }

type plainConn struct{}

func (plainConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not prepared here") }
func (plainConn) Close() error                        { return nil }
func (plainConn) Begin() (driver.Tx, error)           { return plainConn{}, nil }
func (plainConn) Commit() error                       { return nil }
func (plainConn) Rollback() error                     { return nil }
func (plainConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func (plainConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &plainRows{}, nil
}

type plainRows struct{ n int64 }

func (*plainRows) Columns() []string { return []string{"id"} }
func (*plainRows) Close() error      { return nil }
func (r *plainRows) Next(dest []driver.Value) error {
	if r.n++; r.n > 3 {
		return io.EOF
	}
	dest[0] = r.n
	return nil
}

func TestOwnPlaces_T67_FiveThousandTenants(t *testing.T) {
	t.Parallel()
	const tenants, limit, callers = 5000, 16, 8
	e := newEstate(t, tenants, func(c *dal.Config) { c.MaxOwnPlaces = limit })
	defer func() { _ = e.Close(context.Background()) }()
	kept := e.rows(t, 0) // its place stays in use all the time
	var old *gorm.DB     // a handle that outlives its place
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := 1 + c; i < tenants; i += callers {
				h := e.on(t.Context(), i)
				if i == 1 {
					old = h
				}
				if err := h.Find(&[]User{}).Error; err != nil {
					t.Errorf("tenant %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	st := e.OwnPlaces()
	if st.Max != limit || st.Open > limit || st.InUse != 1 || st.Waiting != 0 || st.Refused != 0 || st.Opened < tenants || st.Opened-st.Evicted != uint64(st.Open) {
		t.Errorf("%+v", st)
	}
	if most := e.most.Load(); most > limit {
		t.Errorf("%d pools were open at a time, want at most %d", most, limit)
	}
	if open := e.open.Load(); open != int64(st.Open) {
		t.Errorf("%d pools are open, OwnPlaces says %d", open, st.Open)
	}
	if n := rest(t, kept); n != 2 {
		t.Errorf("the rows that were open all the time gave %d more, want 2", n)
	}
	opened := e.OwnPlaces().Opened
	if err := old.Find(&[]User{}).Error; err != nil {
		t.Errorf("a handle that outlived its place: %v", err)
	}
	if now := e.OwnPlaces(); now.Opened != opened+1 || now.InUse != 0 {
		t.Errorf("its place was not opened anew, or is still held: %+v, %d before", now, opened)
	}
	if got := e.Stats().Statements; got != tenants+1 {
		t.Errorf("Stats counts %d statements, want %d: what closed places sent stays counted", got, tenants+1)
	}
	if err := e.Close(t.Context()); err != nil || e.open.Load() != 0 {
		t.Errorf("Close: %v; %d pools left", err, e.open.Load())
	}
}

func TestOwnPlaces_T67_InUseIsNeverClosed(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(t *testing.T, e *estate, pressure func()){
		"rows": func(t *testing.T, e *estate, pressure func()) {
			rows := e.rows(t, 0)
			pressure()
			if n := rest(t, rows); n != 2 {
				t.Errorf("%d rows left, want 2", n)
			}
		},
		"store transaction": func(t *testing.T, e *estate, pressure func()) {
			err := e.Transaction(e.ctx(t.Context(), 0), dal.Key("player", "7"), func(ctx context.Context, tx *gorm.DB) error {
				pressure()
				if err := tx.Where("id = 1").Delete(&User{}).Error; err != nil {
					return err
				}
				return e.On(ctx, dal.Key("player", "7")).Find(&[]User{}).Error
			})
			if err != nil {
				t.Error(err)
			}
		},
		"gorm transaction": func(t *testing.T, e *estate, pressure func()) {
			tx := e.on(t.Context(), 0).Begin()
			pressure()
			if err := errors.Join(tx.Find(&[]User{}).Error, tx.Commit().Error); err != nil {
				t.Error(err)
			}
		},
		"transaction of a handle whose place was opened anew": func(t *testing.T, e *estate, pressure func()) {
			h := e.on(t.Context(), 0)
			pressure()
			if err := h.Transaction(func(tx *gorm.DB) error {
				pressure()
				return tx.Find(&[]User{}).Error
			}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEstate(t, 40, func(c *dal.Config) { c.MaxOwnPlaces = 2 })
			use(t, e, func() {
				for i := 1; i < 40; i++ {
					if err := e.on(t.Context(), i).Find(&[]User{}).Error; err != nil {
						t.Errorf("tenant %d: %v", i, err)
					}
				}
			})
			if st := e.OwnPlaces(); st.InUse != 0 || st.Open > 2 || e.most.Load() > 2 {
				t.Errorf("%+v, at most %d open", st, e.most.Load())
			}
			if err := e.Close(t.Context()); err != nil || e.open.Load() != 0 {
				t.Errorf("Close: %v; %d pools left", err, e.open.Load())
			}
		})
	}
}

func TestOwnPlaces_T67_AllInUseIsABoundedWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEstate(t, 10, func(c *dal.Config) { c.MaxOwnPlaces = 2 })
		defer func() {
			if err := e.Close(context.Background()); err != nil || e.open.Load() != 0 {
				t.Errorf("Close: %v; %d pools left", err, e.open.Load())
			}
		}()
		first, second := e.rows(t, 0), e.rows(t, 1)
		start := time.Now()
		err := e.on(t.Context(), 2).Find(&[]User{}).Error
		var busy *dal.PlacesBusyError
		if !errors.As(err, &busy) || !errors.Is(err, dal.ErrPlacesBusy) || !dal.SafeToRetry(err) || busy.Max != 2 || busy.Waited != 5*time.Second {
			t.Errorf("all in use: %v", err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("refused after %v, want Quota.MaxWait", took)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.on(short, 2).Find(&[]User{}).Error; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 6*time.Second {
			t.Errorf("a caller whose own time ends first: %v after %v", err, time.Since(start))
		}

		// Two callers of tenant 2 share its place in the line, tenant 3 stands behind, and a third place finds the line full.
		var order []string
		var mu sync.Mutex
		done := make(chan error, 3)
		call := func(i int) {
			go func() {
				err := e.on(t.Context(), i).Find(&[]User{}).Error
				mu.Lock()
				defer mu.Unlock()
				order = append(order, fmt.Sprint(i))
				done <- err
			}()
			synctest.Wait()
		}
		call(2)
		call(2)
		call(3)
		if err := e.on(t.Context(), 4).Find(&[]User{}).Error; !errors.As(err, &busy) || busy.Waited != 0 {
			t.Errorf("a full line: %v", err)
		}
		if st := e.OwnPlaces(); st.Waiting != 2 || st.InUse != 2 || st.Refused != 2 {
			t.Errorf("with two in line: %+v", st)
		}
		if n := rest(t, first); n != 2 {
			t.Errorf("%d rows left of the first", n)
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if order[0] != "2" { // who was served may note it late
			t.Errorf("served in the order %v", order)
		}
		if n := rest(t, second); n != 2 {
			t.Errorf("%d rows left of the second", n)
		}
		if st := e.OwnPlaces(); st.InUse != 0 || st.Waiting != 0 || st.Open != 2 || e.most.Load() != 2 {
			t.Errorf("in the end: %+v, at most %d open", st, e.most.Load())
		}
	})
}

func TestOwnPlaces_IdleOnesAreClosedOnUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEstate(t, 6, nil)
		defer func() { _ = e.Close(context.Background()) }()
		for i := range 5 {
			if err := e.on(t.Context(), i).Find(&[]User{}).Error; err != nil {
				t.Fatal(err)
			}
		}
		rows := e.rows(t, 0)
		time.Sleep(11 * time.Minute)
		for range 3 {
			if err := e.on(t.Context(), 5).Find(&[]User{}).Error; err != nil {
				t.Fatal(err)
			}
		}
		if st := e.OwnPlaces(); st.Reaped != 4 || st.Open != 2 || e.open.Load() != 2 {
			t.Errorf("after eleven idle minutes: %+v, %d pools", st, e.open.Load())
		}
		if n := rest(t, rows); n != 2 {
			t.Errorf("rows of eleven minutes gave %d more", n)
		}
	})
}

// What DB() hands out is one pool for all tenants of a kind: it costs nothing for each of them, and outlives their places.
func TestOwnPlaces_DirectPoolOutlivesItsPlace(t *testing.T) {
	t.Parallel()
	const tenants = 100
	e := newEstate(t, tenants, func(c *dal.Config) { c.MaxOwnPlaces = 2 })
	defer func() { _ = e.Close(context.Background()) }()
	pools := map[*sql.DB]bool{}
	var first *sql.DB
	read := func(db *sql.DB, i int) error {
		rows, err := db.QueryContext(e.ctx(t.Context(), i), "SELECT id FROM users WHERE tenant_id = ?", fmt.Sprint("t", i))
		if err != nil {
			return err
		}
		if n := rest(t, rows); n != 3 {
			t.Errorf("tenant %d: %d rows", i, n)
		}
		return nil
	}
	for i := range tenants {
		db, err := e.on(t.Context(), i).DB()
		if err != nil {
			t.Fatal(err)
		}
		if pools[db] = true; first == nil {
			first = db
		}
		if err := read(db, i); err != nil {
			t.Errorf("tenant %d: %v", i, err)
		}
	}
	if len(pools) != 1 {
		t.Errorf("%d pools for %d tenants", len(pools), tenants)
	}
	if err := read(first, 0); err != nil {
		t.Errorf("its place was closed long ago: %v", err)
	}
	conn, err := first.Conn(e.ctx(t.Context(), 0))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 20; i++ { // the connection keeps its place open
		if err := read(first, i); err != nil {
			t.Error(err)
		}
	}
	rows, err := conn.QueryContext(e.ctx(t.Context(), 0), "SELECT id FROM users WHERE tenant_id = ?", "t0")
	if err != nil {
		t.Fatal(err)
	}
	if n := rest(t, rows); n != 3 {
		t.Errorf("%d rows on the connection that was held", n)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if st := e.OwnPlaces(); st.InUse != 0 || st.Open > 2 || e.most.Load() > 2 {
		t.Errorf("%+v, at most %d open", st, e.most.Load())
	}
	if _, err := first.QueryContext(tenant.NewContext(t.Context(), "nobody"), "SELECT id FROM users WHERE tenant_id = ?", "nobody"); !errors.Is(err, tenant.ErrUnknownTenant) {
		t.Errorf("an unknown tenant: %v", err)
	}
}

func TestOwnPlaces_FailureCostsItsTenantAlone(t *testing.T) {
	t.Parallel()
	e := newEstate(t, 4, func(c *dal.Config) { c.MaxOwnPlaces = 1 })
	defer func() { _ = e.Close(context.Background()) }()
	broken := errors.New("disk on fire")
	e.fail["t1-s1"] = broken
	for range 5 { // it must give its slot back each time
		if err := e.on(t.Context(), 1).Find(&[]User{}).Error; !errors.Is(err, broken) {
			t.Errorf("the broken place: %v", err)
		}
		if err := e.on(t.Context(), 2).Find(&[]User{}).Error; err != nil {
			t.Errorf("its neighbour: %v", err)
		}
	}
	delete(e.fail, "t1-s1")
	if err := e.on(t.Context(), 1).Find(&[]User{}).Error; err != nil {
		t.Errorf("after it was mended: %v", err)
	}
	if st := e.OwnPlaces(); st.Failed != 5 || st.Open != 1 || st.InUse != 0 {
		t.Errorf("%+v", st)
	}
}

func TestOwnPlaces_CloseRefusesWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEstate(t, 4, func(c *dal.Config) { c.MaxOwnPlaces = 1 })
		rows := e.rows(t, 0)
		waits := make(chan error, 1)
		go func() { waits <- e.on(t.Context(), 1).Find(&[]User{}).Error }()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- e.Close(context.Background()) }()
		time.Sleep(time.Second)
		if n := rest(t, rows); n != 2 {
			t.Errorf("Close broke open rows: %d left", n)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-waits; !errors.Is(err, dal.ErrClosed) {
			t.Errorf("who waited for a place: %v", err)
		}
		if err := e.on(t.Context(), 0).Find(&[]User{}).Error; !errors.Is(err, dal.ErrClosed) || e.open.Load() != 0 {
			t.Errorf("after Close: %v, %d pools", err, e.open.Load())
		}
	})
}

func TestOwnPlaces_Stress(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const tenants, limit = 24, 3
	e := newEstate(t, tenants, func(c *dal.Config) { c.MaxOwnPlaces, c.Quota.MaxWait = limit, 50*time.Millisecond })
	handles := make([]*gorm.DB, tenants)
	for i := range handles {
		handles[i] = e.on(t.Context(), i)
	}
	var served atomic.Int64
	var wg sync.WaitGroup
	for c := range 12 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(c)))
			for range 300 {
				i := r.IntN(tenants)
				ctx, cancel := context.WithTimeout(e.ctx(t.Context(), i), time.Duration(1+r.IntN(20))*time.Millisecond)
				var err error
				switch r.IntN(4) {
				case 0:
					err = e.On(ctx, dal.Key("player", "7")).Find(&[]User{}).Error
				case 1:
					err = handles[i].WithContext(ctx).Find(&[]User{}).Error
				case 2:
					err = e.Transaction(ctx, dal.Key("player", "7"), func(ctx context.Context, tx *gorm.DB) error {
						return errors.Join(tx.Find(&[]User{}).Error, e.On(ctx, dal.Key("player", "7")).Find(&[]User{}).Error)
					})
				case 3:
					var rows *sql.Rows
					if rows, err = handles[i].WithContext(ctx).Model(&User{}).Select("id").Rows(); err == nil {
						for rows.Next() {
							runtime.Gosched()
						}
						err = errors.Join(rows.Err(), rows.Close())
					}
				}
				cancel()
				switch {
				case err == nil:
					served.Add(1)
				case errors.Is(err, dal.ErrPlacesBusy), dal.IsTimeout(err), errors.Is(err, quota.ErrQuotaExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, sql.ErrTxDone):
				default:
					t.Errorf("tenant %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	for range 1000 { // rows whose context ended are closed by database/sql's own goroutine
		if e.OwnPlaces().InUse == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if st := e.OwnPlaces(); st.InUse != 0 || st.Waiting != 0 || st.Open > limit || e.most.Load() > limit || served.Load() == 0 {
		t.Errorf("%+v, at most %d open, %d served", st, e.most.Load(), served.Load())
	}
	if err := e.Close(context.Background()); err != nil || e.open.Load() != 0 {
		t.Errorf("Close: %v; %d pools left", err, e.open.Load())
	}
}

// On real files: what was written before the place was closed is there when it is opened anew.
func TestOwnPlaces_SQLiteFilesKeepTheirRows(t *testing.T) {
	t.Parallel()
	tenants, _ := landed(t, 6)
	tenants = append(tenants, tenant.Tenant{ID: "c", Model: tenant.OwnSchema})
	reg, err := tenant.NewStatic(tenants...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := dal.Config{Cluster: dal.SQLiteCluster(dir, 1), Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, MaxOwnPlaces: 2}
	if _, err := schema.Up(t.Context(), cfg, heroes("", "")); err != nil {
		t.Fatal(err)
	}
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if st := store.OwnPlaces(); st.Opened != 0 {
		t.Errorf("Open opened %d places of single tenants; they are opened when they are used", st.Opened)
	}
	all, err := reg.Tenants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		for _, tn := range all {
			h := store.On(tenant.NewContext(t.Context(), tn.ID), dal.Key("player", "p"))
			if err := h.Create(&Hero{PlayerID: "p", Name: string(tn.ID)}).Error; err != nil {
				t.Fatalf("%s: %v", tn.ID, err)
			}
			var found []Hero
			if err := h.Find(&found).Error; err != nil || len(found) != round+1 {
				t.Errorf("%s, round %d: %d rows, %v", tn.ID, round, len(found), err)
			}
			for _, f := range found {
				if f.Name != string(tn.ID) {
					t.Errorf("%s reads a row of %s", tn.ID, f.Name)
				}
			}
		}
	}
	if st := store.OwnPlaces(); st.Open != 2 || st.Evicted == 0 || st.Opened-st.Evicted != 2 {
		t.Errorf("%+v", st)
	}
	// Beside the store: the files are whole, and hold one tenant each.
	for _, tn := range all {
		name := "s1.t_c.db"
		if tn.Model == tenant.OwnDatabase {
			name = string(tn.ID) + "-s1.db"
		}
		c, err := sqlite.NewConnector("file:" + filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		raw := sql.OpenDB(c)
		var mine, others int
		err = raw.QueryRow("SELECT COUNT(CASE WHEN tenant_id = ? THEN 1 END), COUNT(CASE WHEN tenant_id <> ? THEN 1 END) FROM heros", string(tn.ID), string(tn.ID)).Scan(&mine, &others)
		if err := errors.Join(err, raw.Close()); err != nil || mine != 3 || others != 0 {
			t.Errorf("%s: %d of its rows, %d of others, %v", name, mine, others, err)
		}
	}
}

// A place that is opened anew is recognised at once; its tables are compared again only after a schema change.
func TestOwnPlaces_TablesAreComparedOnceAVersion(t *testing.T) {
	t.Parallel()
	tenants, _ := landed(t, 2)
	reg, err := tenant.NewStatic(tenants...)
	if err != nil {
		t.Fatal(err)
	}
	cfg := dal.Config{Cluster: dal.SQLiteCluster(t.TempDir(), 1), Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, MaxOwnPlaces: 1}
	up(t, cfg)
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	checks := func() uint64 { // statements of the check when the place is opened
		t.Helper()
		for _, i := range []int{1, 0} { // the other one closes it
			h := store.On(tenant.NewContext(t.Context(), tenants[i].ID), dal.Key("player", "p"))
			if err := h.Find(&[]Hero{}).Error; err != nil {
				t.Fatal(err)
			}
		}
		return store.StatsOf(dal.Place{Shard: "t0-s1"}).Schemas
	}
	first, again := checks(), checks()
	if again == 0 || again >= first {
		t.Errorf("%d statements at the first opening, %d at the second", first, again)
	}
	file := &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE IF NOT EXISTS more (id INTEGER);\n-- +goose Down\nDROP TABLE IF EXISTS more;\n")}
	more := schema.Set{Name: "more", FS: fstest.MapFS{"sqlite/0001_more.sql": file, "mysql/0001_more.sql": file}}
	if _, err := schema.Up(t.Context(), cfg, heroes("", ""), more); err != nil {
		t.Fatal(err)
	}
	if changed := checks(); changed != first {
		t.Errorf("%d statements after a schema change, want all %d", changed, first)
	}
	if later := checks(); later != again {
		t.Errorf("%d statements later, want %d", later, again)
	}
}

// A place that was up to date can be opened while the control database is away; one that nobody knows cannot.
func TestOwnPlaces_ControlDatabaseIsAway(t *testing.T) {
	t.Parallel()
	servers := testutil.NewMariaDBCluster(t, 2)
	var ends []dal.Endpoint
	for _, m := range servers {
		c := testutil.NewDatabase(t, m)
		ends = append(ends, dal.Endpoint{Network: c.Net, Address: c.Addr, User: c.User, Password: c.Passwd, Database: c.DBName})
	}
	tenants, _ := landed(t, 3)
	reg, err := tenant.NewStatic(tenants...)
	if err != nil {
		t.Fatal(err)
	}
	cfg := dal.Config{Cluster: dal.MySQLCluster(ends...), Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, MaxOwnPlaces: 1}
	cfg.Cluster.LoginSecret, cfg.Cluster.Dedicated = "a secret of the tests", &ends[1]
	up(t, cfg)
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	if err := servers[0].Kill(); err != nil { // the control database and s1; the tenants' own are on the other server
		t.Fatal(err)
	}
	for range 2 {
		for _, tn := range tenants {
			h := store.On(tenant.NewContext(t.Context(), tn.ID), dal.Key("player", "p"))
			if err := h.Create(&Hero{PlayerID: "p"}).Error; err != nil {
				t.Errorf("%s: %v", tn.ID, err)
			}
		}
	}
	if st := store.OwnPlaces(); st.Opened != 6 || st.Failed != 0 {
		t.Errorf("%+v", st)
	}
}

func TestConfig_ServerConns(t *testing.T) {
	t.Parallel()
	at := func(addr, db string) dal.Endpoint {
		return dal.Endpoint{Network: "tcp", Address: addr, User: "u", Database: db}
	}
	cfg := dal.Config{Cluster: dal.MySQLCluster(at("a:1", "g1"), at("a:1", "g2"), at("b:1", "g3")), Tables: gameTables(), MaxOpen: 10}
	for conns, fits := range map[int]bool{0: true, 32: true, 31: false, 13: false} { // a: 2 shards of 10 + 4, and 4 for the control database
		cfg.ServerConns = conns
		err := cfg.Validate()
		if (err == nil) != fits {
			t.Errorf("ServerConns %d: %v", conns, err)
		}
		if err != nil && !strings.Contains(err.Error(), "Config.ServerConns") {
			t.Errorf("ServerConns %d: the error does not name the field: %v", conns, err)
		}
	}
	cfg.ServerConns, cfg.MaxOpen = 44, 0 // 2 * (16 + 4) + 4
	if err := cfg.Validate(); err != nil {
		t.Errorf("the default MaxOpen: %v", err)
	}
	cfg.ServerConns = 43
	if err := cfg.Validate(); err == nil {
		t.Error("the default MaxOpen passes 43 connections")
	}
	for _, bad := range []dal.Config{{MaxOwnPlaces: -1}, {ServerConns: -1}} {
		bad.Cluster, bad.Tables = dal.SQLiteCluster("d", 1), gameTables()
		if err := bad.Validate(); err == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
