package dal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// wentTo notes which server every statement of a caller went to.
type wentTo struct {
	mu   sync.Mutex
	seen []string
}

func (s *wentTo) Before(_ context.Context, e wire.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind != wire.Library {
		s.seen = append(s.seen, e.Shard+": "+e.Op)
	}
	return nil
}

func (s *wentTo) After(context.Context, wire.Event, error) {}

func (s *wentTo) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.seen
	s.seen = nil
	return out
}

// replicated is a place with a real replica, in the zone "near"; the primary is in "far".
type replicated struct {
	*dal.Store
	pair    *testutil.MariaDBPair
	seen    *wentTo
	a, b    context.Context
	cluster dal.Cluster
}

var p7 = dal.Key("player", "7")

func newReplicated(tb testing.TB, opts ...func(*dal.Config)) *replicated {
	tb.Helper()
	g := &replicated{pair: testutil.NewMariaDBReplica(tb), seen: &wentTo{}}
	at := testutil.NewDatabase(tb, g.pair.Primary)
	copied := g.pair.Replica.MySQLConfig()
	end := dal.Endpoint{
		Network: at.Net, Address: at.Addr, User: at.User, Password: at.Passwd, Database: at.DBName, Zone: "far",
		Replicas: []dal.Endpoint{{Network: copied.Net, Address: copied.Addr, Zone: "near"}},
	}
	g.cluster = dal.MySQLCluster(end)
	g.cluster.LoginSecret = "a secret of the tests"
	cfg := dal.Config{Cluster: g.cluster, Registry: threeModels(tb), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, Zone: "near", MaxOpen: 4}
	for _, o := range opts {
		o(&cfg)
	}
	up(tb, cfg)
	var err error
	if g.Store, err = dal.Open(tb.Context(), dal.WithObserver(cfg, g.seen)); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	g.a, g.b = tenant.NewContext(tb.Context(), "shared-a"), tenant.NewContext(tb.Context(), "shared-b")
	for _, ctx := range []context.Context{g.a, g.b} {
		id, _ := tenant.FromContext(ctx)
		if err := g.On(ctx, p7).Create(&Hero{Model: dal.Model{ID: 1}, PlayerID: "7", Name: string(id), Gold: 1}).Error; err != nil {
			tb.Fatal(err)
		}
	}
	g.fresh(tb)
	return g
}

// beat writes a heartbeat.
func (g *replicated) beat(tb testing.TB) {
	tb.Helper()
	if err := g.Beat(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// fresh writes a heartbeat and waits until the replica has it.
func (g *replicated) fresh(tb testing.TB) {
	tb.Helper()
	g.beat(tb)
	if err := g.pair.Sync(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// reads runs a read and returns the gold of hero 1, and whether it came from the replica.
func (g *replicated) reads(ctx context.Context, tb testing.TB, opts ...dal.Option) (gold int64, fromReplica bool) {
	tb.Helper()
	g.seen.take()
	var h Hero
	if err := g.On(ctx, p7, opts...).First(&h, 1).Error; err != nil {
		tb.Fatal(err)
	}
	seen := g.seen.take()
	if len(seen) != 1 || seen[0] != "s1: query" && seen[0] != "s1 replica 1: query" {
		tb.Fatalf("a read sent %v", seen)
	}
	return h.Gold, seen[0] == "s1 replica 1: query"
}

// until calls f until it reports true.
func until(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not within 20s: %s", what)
		}
	}
}

func TestReplica_A14_ReadsFromTheReplicaWhenAsked(t *testing.T) {
	t.Parallel()
	g := newReplicated(t)
	if gold, replica := g.reads(g.a, t); gold != 1 || replica {
		t.Errorf("without an option: gold %d, from the replica %v", gold, replica)
	}
	for name, opts := range map[string][]dal.Option{
		"nearest": {dal.Nearest()}, "replica": {dal.Replica(time.Minute)}, "both": {dal.Nearest(), dal.Replica(time.Minute)},
		"or refuse": {dal.Replica(time.Minute), dal.OrRefuse()},
	} {
		if gold, replica := g.reads(g.a, t, opts...); gold != 1 || !replica {
			t.Errorf("%s: gold %d, from the replica %v", name, gold, replica)
		}
	}
	st := g.Replicas()
	if len(st) != 1 || !st[0].Known || st[0].Err != nil || st[0].Zone != "near" || st[0].Sent.Statements == 0 || st[0].Lag <= 0 || st[0].Lag > time.Minute {
		t.Errorf("status: %+v", st)
	}

	home := newStoreOf(t, g, "far")
	var h Hero
	if err := home.On(g.a, p7, dal.Nearest()).First(&h, 1).Error; err != nil {
		t.Fatal(err)
	}
	if n := home.Replicas()[0].Sent.Statements; n != 0 {
		t.Errorf("in the primary's zone the replica got %d statements", n)
	}
	elsewhere := newStoreOf(t, g, "moon")
	if err := elsewhere.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.pair.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.On(g.a, p7, dal.Nearest(), dal.OrRefuse()).First(&h, 1).Error; !errors.Is(err, dal.ErrReplicaLag) {
		t.Errorf("no replica in the zone: %v", err)
	}
	if err := elsewhere.On(g.a, p7, dal.Replica(time.Minute), dal.OrRefuse()).First(&h, 1).Error; err != nil {
		t.Errorf("a replica in another zone: %v", err)
	}
}

// Start writes the heartbeats: a store whose owner never calls Beat reads from the replica.
func TestReplica_StartBeats(t *testing.T) {
	t.Parallel()
	g := newReplicated(t)
	s := newStoreOf(t, g, "near")
	read := func() error {
		var h Hero
		return s.On(g.a, p7, dal.Replica(time.Minute), dal.OrRefuse()).First(&h, 1).Error
	}
	if err := read(); !errors.Is(err, dal.ErrReplicaLag) {
		t.Fatalf("before Start: %v", err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err := read(); err != nil; err = read() {
		if !errors.Is(err, dal.ErrReplicaLag) || ctx.Err() != nil {
			t.Fatalf("after Start: %v", err)
		}
		if err := g.pair.Sync(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// newStoreOf opens a second store of the same cluster, in another zone.
func newStoreOf(tb testing.TB, g *replicated, zone string) *dal.Store {
	tb.Helper()
	s, err := dal.Open(tb.Context(), dal.Config{
		Cluster: g.cluster, Registry: threeModels(tb), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, Zone: zone, MaxOpen: 2,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func TestReplica_A14_OneThatLagsIsNotUsed(t *testing.T) {
	t.Parallel()
	g := newReplicated(t)
	if _, replica := g.reads(g.a, t, dal.Replica(time.Minute)); !replica {
		t.Fatal("the replica is not used")
	}
	if err := g.pair.StopSQL(); err != nil {
		t.Fatal(err)
	}
	if err := g.On(g.a, p7).Model(&Hero{}).Where("id = ?", 1).Update("gold", 2).Error; err != nil {
		t.Fatal(err)
	}
	const maxLag = 300 * time.Millisecond
	until(t, "the replica lags", func() bool {
		g.beat(t)
		gold, replica := g.reads(g.a, t, dal.Replica(maxLag))
		return !replica && gold == 2
	})
	if gold, replica := g.reads(g.a, t, dal.Replica(time.Minute)); !replica || gold != 1 {
		t.Errorf("within a minute: gold %d, from the replica %v: want the old row", gold, replica)
	}
	var lag *dal.ReplicaLagError
	if err := g.On(g.a, p7, dal.Replica(maxLag), dal.OrRefuse()).First(&Hero{}, 1).Error; !errors.As(err, &lag) || !errors.Is(err, dal.ErrReplicaLag) || lag.MaxLag != maxLag || lag.Replicas != 1 {
		t.Errorf("OrRefuse: %v", err)
	}
	if err := g.pair.StartSQL(); err != nil {
		t.Fatal(err)
	}
	until(t, "the replica caught up", func() bool {
		g.fresh(t)
		gold, replica := g.reads(g.a, t, dal.Replica(maxLag))
		return replica && gold == 2
	})
}

func TestReplica_A14_OneThatIsDownIsNotUsed(t *testing.T) {
	t.Parallel()
	g := newReplicated(t)
	if _, replica := g.reads(g.a, t, dal.Replica(time.Minute)); !replica {
		t.Fatal("the replica is not used")
	}
	if err := g.pair.Replica.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the first one meets a connection that is dead, and goes to the primary with the same call
		var h Hero
		if err := g.On(g.a, p7, dal.Replica(time.Minute)).First(&h, 1).Error; err != nil || h.Gold != 1 {
			t.Fatalf("while the replica is down: %+v, %v", h, err)
		}
		var n int64
		if err := g.On(g.a, p7, dal.Replica(time.Minute)).Raw("SELECT COUNT(*) FROM heros").Row().Scan(&n); err != nil || n != 1 {
			t.Fatalf("Row while the replica is down: %d, %v", n, err)
		}
	}
	if err := g.On(g.a, p7, dal.Replica(time.Minute), dal.OrRefuse()).First(&Hero{}, 1).Error; !errors.Is(err, dal.ErrReplicaLag) {
		t.Errorf("OrRefuse: %v", err)
	}
	if st := g.Replicas()[0]; st.Known || st.Err == nil {
		t.Errorf("status: %+v", st)
	}
	late := newStoreOf(t, g, "near") // a replica that is down stops nobody at start-up
	if err := late.On(g.a, p7, dal.Nearest()).First(&Hero{}, 1).Error; err != nil {
		t.Error(err)
	}
	if err := g.pair.Replica.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "the replica is used again", func() bool {
		g.fresh(t)
		_, replica := g.reads(g.a, t, dal.Replica(time.Minute))
		return replica
	})
	if used, st := g.Permits("shared-a", "s1"); used != 0 || st.InUse+st.SystemInUse != 0 || st.OverReleases != 0 {
		t.Errorf("permits: %d, %+v", used, st)
	}
}

func TestReplica_A14_NothingIsWrittenThroughIt(t *testing.T) {
	t.Parallel()
	g := newReplicated(t)
	if err := g.On(g.a, p7, dal.Replica(time.Minute)).First(&Hero{}, 1).Error; err != nil {
		t.Fatal(err)
	}
	on := func() *gorm.DB { return g.On(g.a, p7, dal.Replica(time.Minute)) }
	for name, call := range map[string]func() error{
		"create":      func() error { return on().Create(&Hero{PlayerID: "7"}).Error },
		"update":      func() error { return on().Model(&Hero{}).Where("id = 1").Update("gold", 9).Error },
		"delete":      func() error { return on().Delete(&Hero{}, 1).Error },
		"save":        func() error { return on().Save(&Hero{Model: dal.Model{ID: 1}, PlayerID: "7"}).Error },
		"exec":        func() error { return on().Exec("UPDATE heros SET gold = 9").Error },
		"exec select": func() error { return on().Exec("SELECT 1 FROM heros").Error },
		"raw write":   func() error { return on().Raw("UPDATE heros SET gold = 9").Scan(&Hero{}).Error },
		"returning":   func() error { return on().Raw("DELETE FROM heros WHERE id = 1 RETURNING id").Scan(&Hero{}).Error },
		"for update": func() error {
			return on().Clauses(clause.Locking{Strength: "UPDATE"}).First(&Hero{}, 1).Error
		},
		"skip locked": func() error {
			return on().Raw("SELECT * FROM heros WHERE id = 1 FOR UPDATE SKIP LOCKED").Scan(&Hero{}).Error
		},
		"lock in share mode": func() error { return on().Raw("SELECT * FROM heros LOCK IN SHARE MODE").Scan(&Hero{}).Error },
		"row for update":     func() error { return on().Raw("SELECT id FROM heros FOR UPDATE").Row().Scan(new(int64)) },
		"begin":              func() error { return on().Begin().Error },
		"transaction":        func() error { return on().Transaction(func(*gorm.DB) error { return nil }) },
		"skip default": func() error {
			return on().Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&Hero{PlayerID: "7"}).Error
		},
		"prepared": func() error {
			return on().Session(&gorm.Session{PrepareStmt: true}).Model(&Hero{}).Where("id = 1").Update("gold", 9).Error
		},
		"first or create": func() error {
			return on().Where(Hero{PlayerID: "7", Name: "new"}).FirstOrCreate(&Hero{}).Error
		},
		"connection": func() error { return on().Connection(func(*gorm.DB) error { return nil }) },
		"db": func() error {
			_, err := on().DB()
			return err
		},
	} {
		g.seen.take()
		if err := call(); !errors.Is(err, dal.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
		if sent := g.seen.take(); len(sent) > 0 && name != "first or create" {
			t.Errorf("%s: sent %v", name, sent)
		}
	}
	if gold, _ := g.reads(g.a, t); gold != 1 {
		t.Errorf("gold = %d", gold)
	}
	err := g.Transaction(g.a, p7, func(ctx context.Context, _ *gorm.DB) error {
		return g.On(ctx, p7, dal.Nearest()).First(&Hero{}, 1).Error
	})
	if !errors.Is(err, dal.ErrReplicaInTransaction) {
		t.Errorf("inside Store.Transaction: %v", err)
	}
	for name, opts := range map[string][]dal.Option{"zero": {dal.Replica(0)}, "negative": {dal.Replica(-1)}, "nil": {nil}, "alone": {dal.OrRefuse()}} {
		if err := g.On(g.a, p7, opts...).First(&Hero{}, 1).Error; !errors.Is(err, dal.ErrOption) {
			t.Errorf("option %s: %v", name, err)
		}
	}
}

func TestReplica_A14_ASessionReadsItsOwnWrites(t *testing.T) {
	t.Parallel()
	g := newReplicated(t)
	mine, other := dal.NewSession(g.a), dal.NewSession(g.a)
	replica := dal.Replica(time.Minute)
	if _, from := g.reads(mine, t, replica); !from {
		t.Error("a session that wrote nothing does not use the replica")
	}
	if err := g.pair.StopSQL(); err != nil {
		t.Fatal(err)
	}
	writes := map[string]func(gold int64) error{
		"update": func(gold int64) error {
			return g.On(mine, p7).Model(&Hero{}).Where("id = ?", 1).Update("gold", gold).Error
		},
		"exec": func(gold int64) error { return g.On(mine, p7).Exec("UPDATE heros SET gold = ?", gold).Error },
		"transaction": func(gold int64) error {
			return g.Transaction(mine, p7, func(_ context.Context, tx *gorm.DB) error {
				return tx.Model(&Hero{}).Where("id = ?", 1).Update("gold", gold).Error
			})
		},
		"without a transaction": func(gold int64) error {
			return g.On(mine, p7).Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&Hero{}).Where("id = ?", 1).Update("gold", gold).Error
		},
	}
	want := int64(1)
	for name, write := range writes {
		before := want
		want++
		if err := write(want); err != nil {
			t.Fatal(name, err)
		}
		if gold, from := g.reads(mine, t, replica); from || gold != want {
			t.Errorf("%s: the session reads %d, from the replica %v: want %d", name, gold, from, want)
		}
		if stale, from := g.reads(other, t, replica); !from || stale != before {
			t.Errorf("%s: another session reads %d, from the replica %v: want %d", name, stale, from, before)
		}
		var lag *dal.ReplicaLagError
		if err := g.On(mine, p7, replica, dal.OrRefuse()).First(&Hero{}, 1).Error; !errors.As(err, &lag) || !lag.Session {
			t.Errorf("%s: OrRefuse: %v", name, err)
		}
		g.beat(t) // written after the commit, and not yet on the replica
		if gold, from := g.reads(mine, t, replica); from || gold != want {
			t.Errorf("%s: after a heartbeat that the replica lacks: %d, from the replica %v", name, gold, from)
		}
		if err := g.pair.StartSQL(); err != nil {
			t.Fatal(err)
		}
		until(t, "the session's write is on the replica", func() bool {
			gold, from := g.reads(mine, t, replica)
			if gold != want {
				t.Fatalf("%s: the session reads %d, want %d", name, gold, want)
			}
			return from
		})
		if err := g.pair.StopSQL(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReplica_A14_OtherTenantsRowsNeverComeFromItEither(t *testing.T) {
	t.Parallel()
	g := newReplicated(t)
	on := func(ctx context.Context) *gorm.DB { return g.On(ctx, p7, dal.Replica(time.Minute), dal.OrRefuse()) }
	names := func(db *gorm.DB) (out []string, err error) {
		var list []Hero
		err = db.Find(&list).Error
		for _, h := range list {
			out = append(out, h.Name)
		}
		return out, err
	}
	g.seen.take()
	for shape, read := range map[string]func() ([]string, error){
		"find":    func() ([]string, error) { return names(on(g.a)) },
		"or":      func() ([]string, error) { return names(on(g.a).Where("id = 1 OR 1 = 1")) },
		"comment": func() ([]string, error) { return names(on(g.a).Where("id > ?", 0).Or("gold > ?", 0)) },
		"raw": func() (out []string, err error) {
			err = on(g.a).Raw("SELECT name FROM heros").Scan(&out).Error
			return out, err
		},
		"subquery": func() ([]string, error) {
			return names(on(g.a).Where("id IN (?)", on(g.a).Model(&Hero{}).Select("id")))
		},
	} {
		if got, err := read(); err != nil || !slices.Equal(got, []string{"shared-a"}) {
			t.Errorf("%s: %v, %v", shape, got, err)
		}
	}
	for _, at := range g.seen.take() {
		if at != "s1 replica 1: query" {
			t.Errorf("sent to %s", at)
		}
	}
	for shape, read := range map[string]func() error{
		"names the other": func() error {
			return on(g.a).Raw("SELECT * FROM heros WHERE tenant_id = 'shared-b'").Scan(&[]Hero{}).Error
		},
		"binds the other": func() error {
			return on(g.a).Raw("SELECT * FROM heros WHERE tenant_id = ?", "shared-b").Scan(&[]Hero{}).Error
		},
		"union": func() error {
			return on(g.a).Raw("SELECT * FROM heros UNION SELECT * FROM heros WHERE tenant_id = 'shared-b'").Scan(&[]Hero{}).Error
		},
		"undeclared":      func() error { return on(g.a).Raw("SELECT beat FROM tdal_heartbeat").Scan(new(int64)).Error },
		"another schema":  func() error { return on(g.a).Raw("SELECT * FROM mysql.user").Scan(&[]Hero{}).Error },
		"other's context": func() error { return on(g.a).WithContext(g.b).Find(&[]Hero{}).Error },
		"other's handle": func() error {
			return on(g.a).Where("id IN (?)", on(g.b).Model(&Hero{}).Select("id")).Find(&[]Hero{}).Error
		},
		"no tenant": func() error { return g.On(t.Context(), p7, dal.Replica(time.Minute)).Find(&[]Hero{}).Error },
		"comment":   func() error { return on(g.a).Raw("SELECT * FROM heros /*! WHERE 1=1 */").Scan(&[]Hero{}).Error },
	} {
		if err := read(); err == nil {
			t.Errorf("%s: no error", shape)
		}
		if sent := g.seen.take(); len(sent) > 0 {
			t.Errorf("%s: sent %v", shape, sent)
		}
	}
}

func TestReplica_A14_TenantsOfTheirOwnPlacesReadFromItToo(t *testing.T) {
	t.Parallel()
	g := newReplicated(t, func(c *dal.Config) { c.MaxOwnPlaces = 1 })
	for range 2 { // the second round opens each place anew
		for _, id := range []tenant.ID{"schema-c", "base-d"} {
			ctx := tenant.NewContext(t.Context(), id)
			if err := g.On(ctx, p7).Where("1 = 1").Delete(&Hero{}).Error; err != nil {
				t.Fatal(err)
			}
			if err := g.On(ctx, p7).Create(&Hero{PlayerID: "7", Name: string(id)}).Error; err != nil {
				t.Fatal(err)
			}
			r, err := g.Route(ctx, p7)
			if err != nil {
				t.Fatal(err)
			}
			until(t, "the replica serves "+string(id), func() bool {
				var list []Hero
				g.seen.take()
				if err := g.On(ctx, p7, dal.Replica(time.Minute)).Find(&list).Error; err != nil || len(list) != 1 || list[0].Name != string(id) {
					t.Fatalf("%s: %v, %v", id, list, err)
				}
				seen := g.seen.take()
				g.fresh(t)
				return slices.Equal(seen, []string{r.Place.String() + " replica 1: query"})
			})
		}
	}
}

func TestReplica_A14_PermitsAndGoroutinesAreGivenBack(t *testing.T) { // not parallel: it counts goroutines
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	g := newReplicated(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 40 {
				ctx, cancel := context.WithTimeout(g.a, time.Duration(1+i)*time.Millisecond)
				rows, err := g.On(ctx, p7, dal.Replica(time.Minute)).Model(&Hero{}).Rows()
				if err == nil {
					_ = rows.Close()
					err = rows.Err()
				}
				if end, _ := ctx.Deadline(); err != nil && time.Now().Before(end) && !strings.Contains(err.Error(), "quota") {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	until(t, "permits are given back", func() bool {
		used, st := g.Permits("shared-a", "s1")
		return used == 0 && st.InUse+st.SystemInUse == 0
	})
	rows, err := g.On(g.a, p7, dal.Replica(time.Minute), dal.OrRefuse()).Model(&Hero{}).Rows()
	if err != nil {
		t.Fatal(err)
	}
	if used, _ := g.Permits("shared-a", "s1"); used != 1 {
		t.Errorf("open rows of a replica hold %d permits of the tenant", used)
	}
	if err := errors.Join(rows.Close(), rows.Err()); err != nil {
		t.Fatal(err)
	}
	if used, st := g.Permits("shared-a", "s1"); used != 0 || st.OverReleases != 0 {
		t.Errorf("permits: %d, %+v", used, st)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestReplica_A14_ConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	primary := dal.Endpoint{Network: "tcp", Address: "a:3306", User: "u", Database: "d"}
	for name, r := range map[string]dal.Endpoint{
		"no address": {Network: "tcp"}, "no network": {Address: "b:3306"}, "itself": {Network: "tcp", Address: "a:3306"},
		"another database": {Network: "tcp", Address: "b:3306", Database: "e"}, "another dialect": {Dialect: dal.Postgres, Network: "tcp", Address: "b:5432"},
		"chained": {Network: "tcp", Address: "b:3306", Replicas: []dal.Endpoint{{Network: "tcp", Address: "c:3306"}}},
	} {
		e := primary
		e.Replicas = []dal.Endpoint{r}
		var bad *dal.ReplicaConfigError
		if err := dal.MySQLCluster(e).Validate(); !errors.As(err, &bad) || !errors.Is(err, dal.ErrReplicaConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	fit := primary
	fit.Replicas = []dal.Endpoint{{Network: "tcp", Address: "b:3306", Zone: "z"}}
	if err := dal.MySQLCluster(fit).Validate(); err != nil {
		t.Error(err)
	}
	twice := primary
	twice.Replicas = append(slices.Clone(fit.Replicas), fit.Replicas...)
	if err := dal.MySQLCluster(twice).Validate(); !errors.Is(err, dal.ErrReplicaConfig) {
		t.Errorf("named twice: %v", err)
	}
	lite := dal.SQLiteCluster(t.TempDir(), 1)
	lite.Shards[0].Replicas = fit.Replicas
	if err := lite.Validate(); !errors.Is(err, dal.ErrReplicaConfig) {
		t.Errorf("SQLite: %v", err)
	}
	pg := dal.PostgresCluster(fit)
	pg.LoginSecret = "s"
	if err := pg.Validate(); !errors.Is(err, dal.ErrReplicaConfig) {
		t.Errorf("PostgreSQL: %v", err)
	}
	cfg := dal.Config{Cluster: dal.MySQLCluster(fit), ServerConns: 30, MaxOpen: 16}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Cluster = dal.MySQLCluster(fit, dal.Endpoint{Network: "tcp", Address: "c:3306", User: "u", Database: "d", Replicas: fit.Replicas})
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "b:3306") {
		t.Errorf("two shards' replicas on one server: %v", err)
	}
}

func TestReplica_A14_WithoutReplicasThePrimaryIsRead(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	if err := g.On(g.a, p7).Create(&User{PlayerID: "7", Name: "x"}).Error; err != nil {
		t.Fatal(err)
	}
	for _, opt := range []dal.Option{dal.Nearest(), dal.Replica(time.Second)} {
		var u User
		if err := g.On(g.a, p7, opt).First(&u).Error; err != nil || u.Name != "x" {
			t.Errorf("%+v, %v", u, err)
		}
		if err := g.On(g.a, p7, opt).Create(&User{PlayerID: "7"}).Error; !errors.Is(err, dal.ErrReadOnly) {
			t.Errorf("a write: %v", err)
		}
		if err := g.On(g.a, p7, opt, dal.OrRefuse()).First(&u).Error; !errors.Is(err, dal.ErrReplicaLag) {
			t.Errorf("OrRefuse: %v", err)
		}
	}
}

func TestPlacement_C1_KeysSpreadOverTheTenantsOwnShardsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reg, err := tenant.NewStatic(
		tenant.Tenant{ID: "shared-a", Model: tenant.SharedTable},
		tenant.Tenant{ID: "hot", Model: tenant.OwnDatabase, Placement: tenant.Placement{Shards: []string{"hot-1", "hot-2"}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	cfg := dal.Config{Cluster: dal.SQLiteCluster(dir, 3), Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	up(t, cfg)
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	for id, want := range map[tenant.ID][]string{"shared-a": {"s1", "s2", "s3"}, "hot": {"hot-1", "hot-2"}} {
		count := map[string]int{}
		const keys = 600
		for i := range keys {
			r, err := store.Route(tenant.NewContext(t.Context(), id), dal.Key("player", fmt.Sprint("p", i)))
			if err != nil {
				t.Fatal(err)
			}
			count[r.Place.String()]++
		}
		if len(count) != len(want) {
			t.Errorf("%s: its keys are in %v, want %v", id, count, want)
		}
		for _, shard := range want {
			if n := count[shard]; n < keys/len(want)/2 || n > keys/len(want)*2 {
				t.Errorf("%s: %d of %d keys on %s", id, n, keys, shard)
			}
		}
	}
}
