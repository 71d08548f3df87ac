package testutil_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

var _ testutil.TB = testing.TB(nil)

// Sword is the model of the shadow runs.
type Sword struct {
	dal.Model
	PlayerID string
	Name     string
	Qty      int64
}

func swordTables() []dal.Table { return []dal.Table{dal.Tenant[Sword]("player", "player_id")} }

func swordSets() []schema.Set {
	file := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("-- +goose Up\n" + text + "\n-- +goose Down\nDROP TABLE IF EXISTS swords;\n")}
	}
	return []schema.Set{{Name: "swords", FS: fstest.MapFS{
		"sqlite/0001_swords.sql": file("CREATE TABLE IF NOT EXISTS swords (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, name TEXT NOT NULL, " +
			"qty INTEGER NOT NULL, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id), UNIQUE (tenant_id, player_id, name));"),
		"mysql/0001_swords.sql": file("CREATE TABLE IF NOT EXISTS swords (tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, id BIGINT NOT NULL, " +
			"player_id VARBINARY(255) NOT NULL, name VARBINARY(100) NOT NULL, qty BIGINT NOT NULL, created_at DATETIME(6), updated_at DATETIME(6), " +
			"PRIMARY KEY (tenant_id, id), UNIQUE (tenant_id, player_id, name));"),
	}}}
}

// armoury is a repository as it should be.
type armoury struct {
	store  *dal.Store
	swords *dal.Repository[Sword]
}

func newArmoury(w testutil.ShadowWorld) (*armoury, error) {
	r, err := dal.NewRepository[Sword](w.Store)
	return &armoury{w.Store, r}, err
}

func (a *armoury) on(ctx context.Context, player string) *gorm.DB {
	return a.store.On(ctx, dal.Key("player", player))
}

// Name takes no context, and is not called.
func (a *armoury) Name() string { return "armoury" }

func (a *armoury) Get(ctx context.Context, player string, id int64) (Sword, error) {
	return a.swords.Get(ctx, player, id)
}

func (a *armoury) Named(ctx context.Context, player, name string) (s *Sword, err error) {
	s = &Sword{}
	return s, a.on(ctx, player).Where("name = ?", name).First(s).Error
}

func (a *armoury) Fill(ctx context.Context, player string, into *[]Sword) error {
	return a.on(ctx, player).Order("id").Find(into).Error
}

func (a *armoury) Total(ctx context.Context, player string) (n int64, err error) {
	return n, a.on(ctx, player).Model(&Sword{}).Select("COALESCE(SUM(qty), 0)").Scan(&n).Error
}

func (a *armoury) Add(ctx context.Context, s *Sword) error { return a.swords.Create(ctx, s) }

func (a *armoury) Rename(ctx context.Context, player string, id int64, name string) error {
	return a.on(ctx, player).Model(&Sword{}).Where("id = ?", id).Update("name", name).Error
}

func (a *armoury) Drop(ctx context.Context, player string, id int64) error {
	return a.swords.Delete(ctx, player, id)
}

// verdict is a test that a shadow run fails.
type verdict struct {
	testing.TB
	mu     sync.Mutex // guards what follows
	errors []string
	fatal  bool
}

func (v *verdict) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.errors = append(v.errors, fmt.Sprintf(format, args...))
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	v.fatal = true
	runtime.Goexit()
}

func (v *verdict) Logf(string, ...any) {}

// shadow returns what a run says of a repository.
func shadow[R any](t *testing.T, s testutil.Shadow[R]) []string {
	t.Helper()
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() { // Fatalf ends the goroutine
		defer close(done)
		testutil.RunShadow(v, s)
	}()
	<-done
	return v.errors
}

func TestRunShadow_PassesAScopedRepository(t *testing.T) {
	t.Parallel()
	testutil.RunShadow(t, testutil.Shadow[*armoury]{Config: dal.Config{Tables: swordTables()}, Sets: swordSets(), New: newArmoury})
}

func TestRunShadow_MariaDB(t *testing.T) {
	t.Parallel()
	cfg := testutil.NewDatabase(t, testutil.SharedMariaDB(t, 1)[0])
	cluster := dal.MySQLCluster(dal.Endpoint{Network: cfg.Net, Address: cfg.Addr, User: cfg.User, Password: cfg.Passwd, Database: cfg.DBName})
	config := dal.Config{Tables: swordTables(), Cluster: cluster}
	testutil.RunShadow(t, testutil.Shadow[*armoury]{Config: config, Sets: swordSets(), New: newArmoury})

	leaks := shadow(t, testutil.Shadow[*leaky]{Config: config, Sets: swordSets(), New: newLeaky})
	said := strings.Join(leaks, "\n")
	for _, method := range []string{"All", "Hidden", "Count", "Grab", "Drop"} {
		if !strings.Contains(said, "RunShadow: "+method+" ") {
			t.Errorf("%s passed; the run said:\n%s", method, said)
		}
	}
}

// leaky leaks by every method, through a pool beside the store.
type leaky struct {
	db *sql.DB
}

func newLeaky(w testutil.ShadowWorld) (*leaky, error) {
	return &leaky{w.DB}, nil
}

// box hides what it holds.
type box struct{ inner map[string]*string }

func (l *leaky) All(ctx context.Context, player string) ([]string, error) {
	rows, err := l.db.QueryContext(ctx, "SELECT name FROM swords WHERE player_id = ? ORDER BY name", player)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var names []string
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		names = append(names, n)
	}
	return names, rows.Err()
}

func (l *leaky) Hidden(ctx context.Context, player string) (box, error) {
	names, err := l.All(ctx, player)
	b := box{map[string]*string{}}
	for _, n := range names {
		b.inner[n[:1]] = &n
	}
	return b, err
}

func (l *leaky) Lazy(ctx context.Context, player string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names, err := l.All(ctx, player)
		for _, n := range names {
			if !yield(n, err) {
				return
			}
		}
	}
}

func (l *leaky) Into(ctx context.Context, player string, names *[]string) (err error) {
	*names, err = l.All(ctx, player)
	return err
}

func (l *leaky) Complain(ctx context.Context, player string) error {
	names, err := l.All(ctx, player)
	return errors.Join(err, fmt.Errorf("too many swords: %v", names))
}

func (l *leaky) Count(ctx context.Context, player string) (n int, err error) {
	return n, l.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM swords WHERE player_id = ? /* of all */", player).Scan(&n)
}

// Known names the tenant, to look at all others.
func (l *leaky) Known(ctx context.Context, id int64) (known bool, err error) {
	return known, l.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM swords WHERE id = ? AND tenant_id <> ?)", id, "shadow-own").Scan(&known)
}

func (l *leaky) Grab(ctx context.Context, id int64) error {
	_, err := l.db.ExecContext(ctx, "UPDATE swords SET qty = qty + 1 WHERE id = ?", id)
	return err
}

func (l *leaky) Copy(ctx context.Context, id int64) error {
	_, err := l.db.ExecContext(ctx, "UPDATE swords SET qty = (SELECT MAX(s.qty) FROM (SELECT qty FROM swords) AS s) WHERE id = ? AND tenant_id = ?", id, "shadow-own")
	return err
}

func (l *leaky) Drop(ctx context.Context, id int64) error {
	st, err := l.db.PrepareContext(ctx, "DELETE FROM swords WHERE id = ?")
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	_, err = st.ExecContext(ctx, id)
	return err
}

func (l *leaky) Plant(ctx context.Context, id int64) error {
	_, err := l.db.ExecContext(ctx, "INSERT INTO swords (tenant_id, id, player_id, name, qty) VALUES (?, ?, '7', 'gift', 1)", "shadow-canary", id+100)
	return err
}

func TestRunShadow_CatchesEveryLeakBesideTheStore(t *testing.T) {
	t.Parallel()
	leaks := shadow(t, testutil.Shadow[*leaky]{Config: dal.Config{Tables: swordTables()}, Sets: swordSets(), New: newLeaky})
	for method, want := range map[string][]string{
		"All":      {"the canary \"canary-", "(swords.name, row ", "it was returned by \"SELECT name FROM swords WHERE player_id = ? ORDER BY name\" [7] (beside the store)", "names no tenant"},
		"Hidden":   {"the canary \"canary-", "result 1.inner"},
		"Lazy":     {"the canary \"canary-"},
		"Into":     {"the canary \"canary-", "argument 3"},
		"Complain": {"the canary \"canary-", "result 1"},
		"Count":    {"its result depends on the other tenant's rows: result 1 = 7 instead of result 1 = 3", "names no tenant"},
		"Known":    {"its result depends on the other tenant's rows: result 1 = true instead of result 1 = false", "SELECT EXISTS"},
		"Grab":     {"rows that are not the caller's changed", "UPDATE swords SET qty = qty + 1", "names no tenant"},
		"Copy":     {"the caller's row swords", "UPDATE swords SET qty = (SELECT MAX"},
		"Drop":     {"rows that are not the caller's changed", "\"DELETE FROM swords WHERE id = ?\" [1] (beside the store)"},
		"Plant":    {"rows that are not the caller's changed", "names the other tenant"},
	} {
		var said []string
		for _, l := range leaks {
			if strings.HasPrefix(l, "RunShadow: "+method+" ") {
				said = append(said, l)
			}
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(said, "\n"), w) {
				t.Errorf("%s: the run did not say %q; it said:\n%s", method, w, strings.Join(said, "\n"))
			}
		}
	}
}

// A method that takes the system scope reads all tenants: that is a leak, unless it is named with a reason.
func TestRunShadow_SystemScopeNeedsAReason(t *testing.T) {
	t.Parallel()
	s := testutil.Shadow[*reporter]{
		Config: dal.Config{Tables: swordTables()}, Sets: swordSets(),
		New: func(w testutil.ShadowWorld) (*reporter, error) { return &reporter{w.Store}, nil },
	}
	if said := strings.Join(shadow(t, s), "\n"); !strings.Contains(said, "RunShadow: All ") || !strings.Contains(said, "canary-") {
		t.Errorf("a system scope passed: %q", said)
	}
	s.Skip = map[string]string{"All": "the operator's report over all tenants"}
	s.Calls = map[string]func(context.Context, *reporter) (any, error){
		"own": func(ctx context.Context, r *reporter) (any, error) {
			var n int64
			return n, r.store.On(ctx, dal.Key("player", "7")).Model(&Sword{}).Count(&n).Error
		},
	}
	testutil.RunShadow(t, s)
}

type reporter struct{ store *dal.Store }

func (r *reporter) All(ctx context.Context) (all []Sword, err error) {
	sys := tenant.System(context.WithoutCancel(ctx), "report", "swords")
	return all, r.store.OnPlace(sys, dal.Place{Shard: "s1"}).Find(&all).Error
}

// odd has methods that a run cannot call by itself.
type odd struct{}

func (odd) Each(context.Context, func(Sword) error) error { return nil }
func (odd) Idle(context.Context) error                    { return nil }

func TestRunShadow_NothingIsPassedOver(t *testing.T) {
	t.Parallel()
	cfg := dal.Config{Tables: swordTables()}
	for name, c := range map[string]struct {
		shadow testutil.Shadow[odd]
		want   []string
	}{
		"methods": {
			testutil.Shadow[odd]{},
			[]string{"Each cannot be called: its argument 2 is a func(testutil_test.Sword) error", "Idle sent no statement"},
		},
		"unknown skip": {
			testutil.Shadow[odd]{Skip: map[string]string{"Each": "a callback", "Idle": "it does nothing", "Gone": "it was there once"}},
			[]string{"Skip names Gone, which is no method of testutil_test.odd", "nothing was called"},
		},
		"unknown column": {
			testutil.Shadow[odd]{Values: map[string]func(int) any{"swords.colour": func(int) any { return "red" }}},
			[]string{"Shadow.Values names 1 columns that no declared table has"},
		},
		"values that do not fit": {
			testutil.Shadow[odd]{Values: map[string]func(int) any{"swords.name": func(int) any { return nil }}},
			[]string{"made-up rows do not fit table \"swords\", give Shadow.Values for its columns"},
		},
		"two shards": {
			testutil.Shadow[odd]{Config: dal.Config{Cluster: dal.SQLiteCluster("unused", 2)}},
			[]string{"a shadow run needs a cluster of one shard"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.shadow.Sets = swordSets()
			c.shadow.Config.Tables = cfg.Tables
			said := strings.Join(shadow(t, c.shadow), "\n")
			for _, w := range c.want {
				if !strings.Contains(said, w) {
					t.Errorf("the run did not say %q; it said:\n%s", w, said)
				}
			}
		})
	}
}
