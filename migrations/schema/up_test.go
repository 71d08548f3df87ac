package schema_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestUp_AllModels(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, b *bench) {
		b.tenants(sharedTenant("acme"), schemaTenant("zeta"), databaseTenant("big"))
		rep := b.mustUp(game2, schema.Saga())
		want := []string{"big-s1", "s1", "s1/t_zeta", "s2", "s2/t_zeta"}
		var got []string
		for _, p := range rep.Places {
			got = append(got, p.Place.String())
			if len(p.Sets) != 2 || p.Sets[0].Version != 3 || p.Sets[0].From != 0 || len(p.Sets[0].Applied) != 3 || p.Err != nil {
				t.Errorf("place %s: got %+v, want set game at 3 after 3 files", p.Place, p)
			}
			if cols := b.columns(p.Place, p.Tenant, "hero"); !reflect.DeepEqual(cols, []string{"id", "level", "tenant_id"}) {
				t.Errorf("place %s: hero has columns %v", p.Place, cols)
			}
			if cols := b.columns(p.Place, p.Tenant, "saga_out"); !slices.Contains(cols, "saga_id") {
				t.Errorf("place %s: saga_out has columns %v", p.Place, cols)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("places: got %v, want %v", got, want)
		}
		if rep.Epoch != 2 || rep.Control.Version < 7 {
			t.Fatalf("got epoch %d and control at %d, want 2 and at least 7", rep.Epoch, rep.Control.Version)
		}
		versions, targets, err := b.control().Versions(t.Context())
		if err != nil || len(versions) != 10 || targets["game"] != 3 || targets["saga"] != int64(last(t, schema.Saga().FS)) {
			t.Fatalf("Versions: got %v, targets %v, %v", versions, targets, err)
		}
		for _, v := range versions {
			if v.Version != targets[v.Set] {
				t.Errorf("%+v is not at the target", v)
			}
		}
		b.wantUpToDate(game2, schema.Saga())

		// Again: nothing to do.
		rep = b.mustUp(game2, schema.Saga())
		for _, p := range rep.Places {
			for _, s := range p.Sets {
				if len(s.Applied) != 0 || s.From != s.Version {
					t.Errorf("second run, place %s: got %+v, want nothing applied", p.Place, s)
				}
			}
		}
		if rep.Epoch != 2 {
			t.Errorf("second run: got epoch %d, want 2", rep.Epoch)
		}
	})
}

// The files of an embedded deployment are where the documentation says, and nobody else can read them.
func TestUp_SQLiteFiles(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, 2).tenants(sharedTenant("acme"), schemaTenant("zeta"), databaseTenant("big"))
	b.mustUp(game1)
	dir := b.cfg.Cluster.Dir
	for _, name := range []string{"control.db", "s1.db", "s2.db", "s1.t_zeta.db", "s2.t_zeta.db", "big-s1.db"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%v", err)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*.db")); len(found) != 6 {
		t.Errorf("got files %v, want six databases", found)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: got %v, %v, want mode 0700", info, err)
	}
}

// A new release: what is there stays, what is new is applied.
func TestUp_NewRelease(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.tenants(schemaTenant("zeta"))
		b.mustUp(game1)
		b.exec(dal.Place{Shard: "s1"}, "", "INSERT INTO hero (tenant_id, id) VALUES ('acme', 7)")
		rep := b.mustUp(game2)
		for _, p := range rep.Places {
			if s := p.Sets[0]; s.From != 1 || s.Version != 3 || !reflect.DeepEqual(s.Applied, []string{"0002_level.sql", "0003_item.sql"}) {
				t.Errorf("place %s: got %+v, want files 2 and 3 applied", p.Place, s)
			}
		}
		if got := b.list(dal.Place{Shard: "s1"}, "", "SELECT level FROM hero WHERE id = 7"); !reflect.DeepEqual(got, []string{"1"}) {
			t.Fatalf("the row of before: got level %v, want 1", got)
		}
		// The old release starts once more, as in a rollback of the deployment: it changes nothing and takes nothing back.
		rep = b.mustUp(game1)
		if s := rep.Places[0].Sets[0]; s.Version != 3 || len(s.Applied) != 0 {
			t.Fatalf("old release: got %+v, want version 3 and nothing applied", s)
		}
		if _, targets, err := b.control().Versions(t.Context()); err != nil || targets["game"] != 3 {
			t.Fatalf("old release: got targets %v, %v, want 3", targets, err)
		}
	})
}

// Ten places; the fifth fails. The others are done, the report says which file failed where, the place's version is recorded, and a later run resumes.
func TestUp_T68_FifthOfTenFails(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		var all []tenant.Tenant
		for i := range 9 { // with the shared place there are ten
			all = append(all, schemaTenant(tenant.ID(fmt.Sprintf("n%d", i+1))))
		}
		b.tenants(all...)
		b.mustUp(game1)
		fifth := dal.Place{Shard: "s1", Schema: "t_n4"}
		// Somebody added the column by hand.
		b.exec(fifth, "n4", "ALTER TABLE hero ADD COLUMN level INT NOT NULL DEFAULT 1")

		rep, err := b.up(game2)
		e := upError(t, err)
		if len(e.Failed) != 1 || e.Failed[0].Place != fifth || e.Failed[0].Tenant != "n4" || e.Failed[0].Set != "game" || e.Failed[0].File != "0002_level.sql" {
			t.Fatalf("Failed: got %+v, want file 0002_level.sql of place %s", e.Failed, fifth)
		}
		if len(e.Done) != 9 || slices.Contains(e.Done, fifth) {
			t.Fatalf("Done: got %v, want the nine others", placeNames(e.Done))
		}
		if wire.Code(err) == 0 || !strings.Contains(err.Error(), "9 done, 1 failed") {
			t.Fatalf("error: got %v, want the server's error and the counts", err)
		}
		if len(rep.Places) != 10 || rep.Places[4].Place != fifth || rep.Places[4].Sets[0].Version != 1 {
			t.Fatalf("report: got %+v, want the fifth place at version 1", rep.Places[4])
		}
		versions, targets, err := b.control().Versions(t.Context())
		if err != nil || targets["game"] != 3 {
			t.Fatalf("Versions: got targets %v, %v", targets, err)
		}
		for _, v := range versions {
			if want := map[bool]int64{true: 1, false: 3}[v.Schema == fifth.Schema]; v.Version != want {
				t.Errorf("Versions: got %+v, want version %d", v, want)
			}
		}
		behind := 0
		for _, s := range b.status(game2) {
			if !s.UpToDate() {
				behind++
				if s.Place != fifth || !reflect.DeepEqual(s.Pending, []string{"0002_level.sql", "0003_item.sql"}) || s.Dirty != nil {
					t.Errorf("Status: got %+v, want two files pending in %s", s, fifth)
				}
			}
		}
		if behind != 1 {
			t.Errorf("Status: %d places are behind, want 1", behind)
		}

		// The column is taken away, and the next run goes on there.
		b.exec(fifth, "n4", "ALTER TABLE hero DROP COLUMN level")
		rep = b.mustUp(game2)
		for _, p := range rep.Places {
			want := 0
			if p.Place == fifth {
				want = 2
			}
			if len(p.Sets[0].Applied) != want {
				t.Errorf("place %s: got %+v, want %d files applied", p.Place, p.Sets[0], want)
			}
		}
		b.wantUpToDate(game2)
	})
}

// A place that fails at its third file has two: that is what is recorded.
func TestUp_T68_RecordsHowFarItCame(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		set := files("game", map[string]string{"0001_hero.sql": createHero, "0002_item.sql": createItem, "0003_bad.sql": "ALTER TABLE nothing ADD COLUMN x INT | ALTER TABLE nothing DROP COLUMN x"})
		never := files("never", map[string]string{"0001_never.sql": "CREATE TABLE IF NOT EXISTS never (id BIGINT NOT NULL) | DROP TABLE IF EXISTS never"})
		rep, err := b.up(set, never)
		if e := upError(t, err); e.Failed[0].File != "0003_bad.sql" {
			t.Fatalf("Up: got %+v, want 0003_bad.sql", e.Failed)
		}
		want := []schema.SetReport{{Set: "game", Version: 2, Applied: []string{"0001_hero.sql", "0002_item.sql"}}}
		if got := rep.Places[0].Sets; !reflect.DeepEqual(got, want) {
			t.Fatalf("report: got %+v, want %+v and the set after it not begun", got, want)
		}
		versions, _, err := b.control().Versions(t.Context())
		if err != nil || len(versions) != 1 || versions[0].Version != 2 {
			t.Fatalf("Versions: got %v, %v, want game at 2", versions, err)
		}
	})
}

// A store refuses a place that is behind, and serves again when it is not.
func TestUp_T68_StoreRefusesOldPlace(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.tenants(schemaTenant("old"))
		b.mustUp(game1)
		place := dal.Place{Shard: "s1", Schema: "t_old"}
		b.exec(place, "old", "ALTER TABLE hero ADD COLUMN level INT NOT NULL DEFAULT 1")
		if _, err := b.up(game2); err == nil {
			t.Fatal("Up: got nil, want an error")
		}
		old, err := dal.Open(t.Context(), b.cfg)
		if err == nil {
			defer func() { _ = old.Close(context.Background()) }()
			err = old.OnPlace(tenant.System(t.Context(), "look at the old place", "hero"), place).Exec("anything").Error
		}
		if !errors.Is(err, dal.ErrNotMigrated) {
			t.Fatalf("a store over an old place: got %v, want ErrNotMigrated", err)
		}
		b.exec(place, "old", "ALTER TABLE hero DROP COLUMN level")
		b.mustUp(game2)
		s, err := dal.Open(t.Context(), b.cfg)
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestUp_TwoAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, b *bench) {
		b.tenants(sharedTenant("acme"), schemaTenant("zeta"), databaseTenant("big"))
		const runs = 4
		var wg sync.WaitGroup
		errs := make([]error, runs)
		applied := make([]int, runs)
		for i := range runs {
			wg.Go(func() {
				rep, err := b.up(game2, schema.Saga())
				errs[i] = err
				if rep != nil {
					for _, p := range rep.Places {
						for _, s := range p.Sets {
							applied[i] += len(s.Applied)
						}
					}
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, n := range applied {
			total += n
		}
		if want := 5 * (3 + last(t, schema.Saga().FS)); total != want {
			t.Fatalf("%d runs applied %v = %d files, want %d: each once", runs, applied, total, want)
		}
		b.wantUpToDate(game2, schema.Saga())
		if epoch, err := b.control().Epoch(t.Context()); err != nil || epoch != 2 {
			t.Fatalf("Epoch: got %d, %v, want 2", epoch, err)
		}
	})
}

func TestUp_ChecksumChanged(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, b *bench) {
		b.mustUp(game1)
		changed := files("game", map[string]string{
			"0001_hero.sql": strings.Replace(createHero, "id BIGINT", "id INT", 1), "0002_level.sql": addLevel, "0003_item.sql": createItem,
		})
		renamed := files("game", map[string]string{"0001_champion.sql": createHero})
		gone := files("game", map[string]string{"0002_hero.sql": createHero})
		for name, set := range map[string]schema.Set{"changed": changed, "renamed": renamed, "gone": gone} {
			rep, err := b.up(set)
			e := upError(t, err)
			var ce *schema.ChecksumError
			if !errors.As(err, &ce) || !errors.Is(err, schema.ErrChecksum) || ce.Set != "game" || ce.Version != 1 || ce.File != "0001_hero.sql" {
				t.Fatalf("%s: got %v, want a *ChecksumError", name, err)
			}
			if (ce.Found == "") != (name == "gone") || ce.Applied == "" {
				t.Fatalf("%s: got %+v", name, ce)
			}
			if len(e.Failed) != 2 || len(e.Done) != 0 || rep.Places != nil {
				t.Fatalf("%s: got %+v, want both places refused and none begun", name, e)
			}
		}
		for _, s := range b.status(changed) {
			if s.Place.Shard != "" && (!reflect.DeepEqual(s.Changed, []string{"0001_hero.sql"}) || s.UpToDate()) {
				t.Errorf("Status: got %+v, want 0001_hero.sql changed", s)
			}
		}
		// Nothing ran, nothing was demanded: the old files still do.
		if _, targets, err := b.control().Versions(t.Context()); err != nil || targets["game"] != 1 {
			t.Fatalf("Versions: got targets %v, %v, want 1", targets, err)
		}
		if got := b.columns(dal.Place{Shard: "s1"}, "", "hero"); len(got) != 2 {
			t.Fatalf("hero has columns %v, want two", got)
		}
		b.mustUp(game1)
	})
}

// A checkout with other line ends is no change.
func TestUp_ChecksumLineEnds(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, 1)
	b.mustUp(game1)
	crlf := files("game", map[string]string{"0001_hero.sql": createHero})
	for _, f := range crlf.FS.(fstest.MapFS) {
		f.Data = []byte(strings.ReplaceAll(string(f.Data), "\n", "\r\n"))
	}
	b.mustUp(crlf)
}

func TestUp_OutOfOrder(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		gap := files("game", map[string]string{"0001_hero.sql": createHero, "0003_item.sql": createItem})
		b.mustUp(gap)
		_, err := b.up(game2)
		var oe *schema.OutOfOrderError
		if !errors.As(err, &oe) || !errors.Is(err, schema.ErrOutOfOrder) || !reflect.DeepEqual(oe.Files, []string{"0002_level.sql"}) || oe.Version != 3 {
			t.Fatalf("got %v, want an *OutOfOrderError about 0002_level.sql", err)
		}
		if len(b.columns(dal.Place{Shard: "s1"}, "", "hero")) != 2 {
			t.Fatal("a file was applied out of order")
		}
	})
}

func TestUp_OtherShardList(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(t *testing.T, b *bench) {
		all := b.cfg.Cluster.Shards
		b.cfg.Cluster.Shards = all[:2]
		b.mustUp(game1)
		renamed := slices.Clone(all)
		renamed[1].Shard = "other"
		for _, shards := range [][]dal.Endpoint{all[:1], renamed[:2], renamed} {
			b.cfg.Cluster.Shards = shards
			rep, err := b.up(game2)
			var mismatch *control.TopologyMismatchError
			if !errors.As(err, &mismatch) || rep.Places != nil {
				t.Fatalf("Up with %d shards: got %v, want a *TopologyMismatchError before any place", len(shards), err)
			}
		}
		b.cfg.Cluster.Shards = all[:2]
		for _, s := range b.status(game1) {
			if !s.UpToDate() {
				t.Errorf("after refusals: %+v", s)
			}
		}
	})
}

func TestUp_MoreShardsJoin(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, b *bench) {
		all := slices.Clone(b.cfg.Cluster.Shards)
		all[3].Shard = "x9"
		b.tenants(sharedTenant("acme"), schemaTenant("zeta"))
		b.cfg.Cluster.Shards = all[:2]
		if rep := b.mustUp(game1); rep.Joined != nil {
			t.Fatalf("the first run: %v joined, want none", rep.Joined)
		}
		before, err := b.control().Topology(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.cfg.Cluster.Shards = all
		if _, err := schema.Provision(t.Context(), b.cfg, "zeta", game1); !errors.Is(err, control.ErrMismatch) {
			t.Errorf("Provision before Up: got %v, want ErrMismatch", err)
		}
		rep := b.mustUp(game1)
		if want := []shardrouter.ShardID{"s3", "x9"}; !slices.Equal(rep.Joined, want) || rep.Epoch != before.Epoch()+1 {
			t.Errorf("got %v joined at epoch %d, want %v at %d", rep.Joined, rep.Epoch, want, before.Epoch()+1)
		}
		for _, p := range []dal.Place{{Shard: "s3"}, {Shard: "s3", Schema: "t_zeta"}, {Shard: "x9"}, {Shard: "x9", Schema: "t_zeta"}} {
			owner := tenant.ID("")
			if p.Schema != "" {
				owner = "zeta"
			}
			if len(b.columns(p, owner, "hero")) != 2 {
				t.Errorf("place %s has no heroes", p)
			}
		}
		after, err := b.control().Topology(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range rep.Joined {
			if got := after.Info(id).State; got != shardrouter.Joining {
				t.Errorf("shard %s is %v, want joining", id, got)
			}
		}
		for i := range 500 {
			key := shardrouter.Key(fmt.Sprint(i + 1))
			for _, k := range before.Keyspaces() {
				was, _ := before.Owner(k.Name, "acme", key)
				if is, err := after.Owner(k.Name, "acme", key); err != nil || is != was {
					t.Fatalf("key %s of keyspace %s went from %s to %s, %v", key, k.Name, was, is, err)
				}
			}
		}
		log, err := b.control().TopologyLog(t.Context(), 9)
		if err != nil || len(log) != 1 || log[0].Epoch != rep.Epoch || log[0].Actor != "schema.Up" || log[0].Reason == "" || len(log[0].Changes) != 2 {
			t.Errorf("history %+v, %v", log, err)
		}
		if again := b.mustUp(game1); again.Joined != nil || again.Epoch != rep.Epoch {
			t.Errorf("once more: %v joined at epoch %d", again.Joined, again.Epoch)
		}
		b.wantUpToDate(game1)
	})
}

// A shard whose place cannot be made does not join, and the others do.
func TestUp_ShardThatCannotBeMadeDoesNotJoin(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, b *bench) {
		all := slices.Clone(b.cfg.Cluster.Shards)
		b.cfg.Cluster.Shards = all[:2]
		b.mustUp(game1)
		b.cfg.Cluster.Shards = slices.Clone(all)
		in := filepath.Join(b.cfg.Cluster.Dir, "s3.db")
		if b.server() {
			b.cfg.Cluster.Shards[2].Address = filepath.Join(t.TempDir(), ".s.PGSQL.1")
		} else if err := os.Mkdir(in, 0o700); err != nil {
			t.Fatal(err)
		}
		rep, err := b.up(game1)
		e := upError(t, err)
		if len(e.Failed) != 1 || e.Failed[0].Place.Shard != "s3" || !slices.Equal(rep.Joined, []shardrouter.ShardID{"s4"}) {
			t.Fatalf("got %v joined, %+v, want s4 joined and s3 failed", rep.Joined, e)
		}
		if b.server() {
			b.cfg.Cluster.Shards = all
		} else if err := os.Remove(in); err != nil {
			t.Fatal(err)
		}
		if rep := b.mustUp(game1); !slices.Equal(rep.Joined, []shardrouter.ShardID{"s3"}) {
			t.Errorf("mended: got %v joined, want s3", rep.Joined)
		}
	})
}

// Servers named in another order would send every key to the wrong one: each database knows whose it is.
func TestUp_SwappedServers(t *testing.T) {
	t.Parallel()
	b := onMariaDB(t, 3)
	b.mustUp(game1)
	s := b.cfg.Cluster.Shards
	s[1], s[2] = s[2], s[1]
	rep, err := b.up(game2)
	var ie *schema.IdentityError
	if !errors.As(err, &ie) || !errors.Is(err, schema.ErrIdentity) || rep.Places != nil {
		t.Fatalf("Up: got %v, want an *IdentityError before any place", err)
	}
	for _, st := range b.status(game1) {
		if swapped := st.Place.Shard == "s2" || st.Place.Shard == "s3"; swapped != errors.Is(st.Err, schema.ErrIdentity) {
			t.Errorf("Status: got %+v", st)
		}
	}
	s[1], s[2] = s[2], s[1]
	b.mustUp(game2)
}

func TestUp_PlacementChange(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.tenants(sharedTenant("acme"), schemaTenant("zeta"))
		b.mustUp(game1)
		b.tenants(schemaTenant("acme"), sharedTenant("zeta"), schemaTenant("new"))
		rep, err := b.up(game2)
		e := upError(t, err)
		if len(e.Failed) != 2 || !errors.Is(err, control.ErrPlacementChange) || rep.Places != nil {
			t.Fatalf("Up: got %+v, want both tenants refused and no place begun", e)
		}
		if _, err := b.control().Tenant(t.Context(), "new"); !errors.Is(err, tenant.ErrUnknownTenant) {
			t.Fatalf("Tenant(new): got %v, want it unknown: the run was refused", err)
		}
	})
}

// Limits and status follow the registry; tenants that left it keep their databases up to date.
func TestUp_RegistryChanges(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.tenants(sharedTenant("acme"), schemaTenant("zeta"))
		b.mustUp(game1)
		acme := sharedTenant("acme")
		acme.Status, acme.Limits.Rate = tenant.Suspended, 12.5
		b.tenants(acme)
		rep := b.mustUp(game2)
		if len(rep.Places) != 2 || rep.Places[1].Sets[0].Version != 3 {
			t.Fatalf("got %+v, want the schema of zeta as well", rep.Places)
		}
		got, err := b.control().Tenant(t.Context(), "acme")
		if err != nil || got.Status != tenant.Suspended || got.Limits.Rate != 12.5 {
			t.Fatalf("Tenant(acme): got %+v, %v", got, err)
		}
		// No registry at all: what the control database knows.
		b.cfg.Registry = nil
		if rep := b.mustUp(game2); len(rep.Places) != 2 {
			t.Fatalf("without a registry: got %+v, want two places", rep.Places)
		}
	})
}

func TestUp_NewKeyspace(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		type Hero struct {
			dal.Model
			PlayerID string
		}
		type Guild struct {
			dal.Model
			GuildID string
		}
		b.cfg.Tables = []dal.Table{dal.Tenant[Hero]("player", "player_id")}
		if rep := b.mustUp(game1); rep.Epoch != 1 {
			t.Fatalf("got epoch %d, want 1", rep.Epoch)
		}
		b.cfg.Tables = append(b.cfg.Tables, dal.Tenant[Guild]("guild", "guild_id"))
		if rep := b.mustUp(game1); rep.Epoch != 2 {
			t.Fatalf("with a new keyspace: got epoch %d, want 2", rep.Epoch)
		}
		b.cfg.VirtualNodes = 64
		if _, err := b.up(game1); !errors.Is(err, control.ErrMismatch) {
			t.Fatalf("with other virtual nodes: got %v, want ErrMismatch", err)
		}
	})
}

// Two tenants whose placements name one file, or a tenant's that names a file of the library's.
func TestUp_T46_PlaceConflict(t *testing.T) {
	t.Parallel()
	for name, tenants := range map[string][]tenant.Tenant{
		"a schema tenant's file":     {schemaTenant("zeta"), databaseTenant("evil", "s1.t_zeta")},
		"the control database":       {databaseTenant("evil", "control")},
		"the control database, case": {databaseTenant("evil", "Control")},
		"a default shard, case":      {databaseTenant("evil", "S1")},
		"another tenant's, case":     {databaseTenant("big", "big-s1"), databaseTenant("evil", "BIG-s1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := onSQLite(t, 1).tenants(tenants...)
			rep, err := b.up(game1)
			var pc *schema.PlaceConflictError
			if !errors.As(err, &pc) || !errors.Is(err, schema.ErrPlaceConflict) || rep.Places != nil {
				t.Fatalf("Up: got %v, want a *PlaceConflictError before any place", err)
			}
			if found, _ := filepath.Glob(filepath.Join(b.cfg.Cluster.Dir, "*.db")); len(found) != 1 {
				t.Fatalf("files %v were made, want the control database alone", found)
			}
		})
	}
	t.Run("a default shard", func(t *testing.T) {
		t.Parallel()
		onEach(t, 1, func(t *testing.T, b *bench) {
			b.tenants(databaseTenant("evil", "s1"))
			if rep, err := b.up(game1); err == nil || rep.Places != nil {
				t.Fatalf("Up: got %v, want it refused before any place", err)
			}
		})
	})
	for name, tenants := range map[string][]tenant.Tenant{
		"the control database":      {databaseTenant("evil", "tdal_control")},
		"a schema tenant's":         {schemaTenant("zeta"), databaseTenant("evil", "t_zeta")},
		"a schema tenant's, case":   {schemaTenant("zeta"), databaseTenant("evil", "T_zeta")},
		"another tenant's database": {databaseTenant("big", "x"), databaseTenant("evil", "X")},
	} {
		t.Run("mariadb: "+name, func(t *testing.T) {
			t.Parallel()
			b := onMariaDB(t, 1).tenants(tenants...)
			if rep, err := b.up(game1); !errors.Is(err, schema.ErrPlaceConflict) || rep.Places != nil {
				t.Fatalf("Up: got %v, want ErrPlaceConflict before any place", err)
			}
		})
	}
}

// listing is a registry that answers with whatever it is given.
type listing []tenant.Tenant

func (l listing) Tenant(_ context.Context, id tenant.ID) (tenant.Tenant, error) {
	if len(l) > 0 {
		return l[0], nil
	}
	return tenant.Tenant{}, &tenant.UnknownTenantError{ID: id}
}
func (l listing) Tenants(context.Context) ([]tenant.Tenant, error) { return l, nil }

// An id that is no id is refused before any SQL, and before any file.
func TestUp_T46_IdentifierInjection(t *testing.T) {
	t.Parallel()
	for _, bad := range []tenant.Tenant{
		sharedTenant(`x"; DROP SCHEMA public; --`), schemaTenant("x`; DROP DATABASE mysql; --"), databaseTenant("../../etc/x"),
		{ID: "ok", Model: tenant.OwnSchema, Placement: tenant.Placement{Schema: "x`y"}},
		{ID: "ok", Model: tenant.OwnSchema, Placement: tenant.Placement{Schema: "../x"}},
		{ID: "ok", Model: tenant.OwnSchema, Placement: tenant.Placement{Schema: "mysql"}},
		databaseTenant("ok", "a/b"), databaseTenant("ok", "x`; --"),
	} {
		onEach(t, 1, func(t *testing.T, b *bench) {
			seen := &hook{before: func(int, wire.Event) error { return nil }}
			b.m = b.m.Observed(seen)
			b.cfg.Registry = listing{bad}
			if rep, err := b.up(game1); err == nil || rep != nil {
				t.Fatalf("Up with %+v: got %v, %v, want it refused", bad, rep, err)
			}
			if rep, err := b.m.Provision(t.Context(), b.cfg, bad.ID, game1); err == nil || rep != nil {
				t.Fatalf("Provision with %+v: got %v, %v, want it refused", bad, rep, err)
			}
			if seen.count != 0 {
				t.Fatalf("%d operations reached a database, want none", seen.count)
			}
			if !b.server() {
				if _, err := os.Stat(b.cfg.Cluster.Dir); err == nil {
					t.Fatal("the folder was made")
				}
			}
		})
	}
}

// noLister is a registry that cannot list.
type noLister struct{}

func (noLister) Tenant(_ context.Context, id tenant.ID) (tenant.Tenant, error) {
	return tenant.Tenant{}, &tenant.UnknownTenantError{ID: id}
}

func TestUp_BadConfiguration(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, 1)
	b.cfg.Registry = noLister{}
	if _, err := b.up(game1); !errors.Is(err, schema.ErrRegistry) {
		t.Errorf("a registry that cannot list: got %v, want ErrRegistry", err)
	}
	if _, err := schema.Status(t.Context(), b.cfg, game1); !errors.Is(err, schema.ErrRegistry) {
		t.Errorf("Status with a registry that cannot list: got %v, want ErrRegistry", err)
	}
	b.cfg.Registry = listing{sharedTenant("a"), sharedTenant("a")}
	if _, err := b.up(game1); !errors.Is(err, schema.ErrRegistry) {
		t.Errorf("a registry that lists a tenant twice: got %v, want ErrRegistry", err)
	}
	b.cfg.Registry = nil
	for name, sets := range map[string][]schema.Set{
		"twice":             {game1, game1},
		"control":           {files("control", map[string]string{"0001_x.sql": createHero})},
		"name":              {files("Game!", map[string]string{"0001_x.sql": createHero})},
		"no files":          {{Name: "game"}},
		"one table in two":  {game1, files("other", map[string]string{"0001_hero.sql": createHero})},
		"the library's own": {files("game", map[string]string{"0001_x.sql": "DROP TABLE IF EXISTS tdal_place | DROP TABLE IF EXISTS x"})},
	} {
		if _, err := b.up(sets...); !errors.Is(err, schema.ErrLint) {
			t.Errorf("%s: got %v, want ErrLint", name, err)
		}
	}
	if _, err := (schema.Migrator{Parallelism: -1, LockWait: -1}).Up(t.Context(), b.cfg, game1); err == nil || !strings.Contains(err.Error(), "Parallelism") || !strings.Contains(err.Error(), "LockWait") {
		t.Errorf("negative settings: got %v, want both named", err)
	}
	if _, err := os.Stat(b.cfg.Cluster.Dir); err == nil {
		t.Error("a refused run made the folder")
	}
	b.cfg.Cluster = dal.Cluster{}
	if _, err := b.up(game1); err == nil {
		t.Error("no cluster: got nil, want an error")
	}
}

func TestUp_Progress(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, 3).tenants(schemaTenant("zeta"))
	var seen []dal.Place
	b.m.Progress = func(p schema.PlaceReport) { seen = append(seen, p.Place) }
	b.mustUp(game1)
	if got := placeNames(seen); len(got) != 6 || len(slices.Compact(got)) != 6 {
		t.Fatalf("Progress: got %v, want each of six places once", got)
	}
}

func TestUp_Cancelled(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, b *bench) {
		b.mustUp()
		ctx, cancel := context.WithCancel(t.Context())
		b.m.Parallelism = 1
		b.m.Progress = func(schema.PlaceReport) { cancel() }
		_, err := b.m.Up(ctx, b.cfg, game2)
		e := upError(t, err)
		if !errors.Is(err, context.Canceled) || len(e.Failed) == 0 {
			t.Fatalf("Up: got %v, want context.Canceled", err)
		}
		b.m.Progress = nil
		b.mustUp(game2)
		b.wantUpToDate(game2)
	})
}

// A run that dies between any two operations is taken up by the next one. Nothing is half done, doubled or forgotten.
func TestUp_DiesAnywhere(t *testing.T) {
	t.Parallel()
	repeatable := files("game", map[string]string{"0001_hero.sql": createHero, "0002_item.sql": createItem})
	onEach(t, 1, func(t *testing.T, b *bench) {
		cluster, name := b.cfg.Cluster, ""
		if b.server() {
			name = cluster.Shards[0].Database
		}
		step := 1
		switch {
		case b.postgres():
			step = 13
		case b.server() && raceEnabled:
			step = 11
		case b.server():
			step = 4 // each run makes databases and flushes
		case raceEnabled:
			step = 6
		}
		finished := false
		for n := 1; !finished; n += step {
			if n > 1000 {
				t.Fatal("a run has more than 1000 operations")
			}
			// A deployment of its own each time.
			if b.server() {
				b.cfg.Cluster.Shards = slices.Clone(cluster.Shards)
				b.cfg.Cluster.Shards[0].Database = fmt.Sprintf("%s_k%d", name, n)
			} else {
				b.cfg.Cluster.Dir = filepath.Join(cluster.Dir, fmt.Sprint(n))
			}
			b.tenants(sharedTenant("acme"), databaseTenant("big"))
			b.m = schema.Migrator{Parallelism: 1}.Observed(&hook{before: func(i int, _ wire.Event) error {
				if i >= n {
					return errDied
				}
				return nil
			}})
			_, err := b.up(repeatable)
			finished = err == nil
			if !finished && !errors.Is(err, errDied) {
				t.Fatalf("died at operation %d: got %v", n, err)
			}
			b.m = schema.Migrator{}
			rep, err := b.up(repeatable)
			if err != nil {
				t.Fatalf("died at operation %d, second run: %v", n, err)
			}
			if rep.Epoch != 2 || len(rep.Places) != 2 {
				t.Fatalf("died at operation %d, second run: got %+v", n, rep)
			}
			b.wantUpToDate(repeatable)
			versions, targets, err := b.control().Versions(t.Context())
			if err != nil || len(versions) != 2 || versions[0].Version != 2 || versions[1].Version != 2 || targets["game"] != 2 {
				t.Fatalf("died at operation %d: got versions %v, targets %v, %v", n, versions, targets, err)
			}
			for _, p := range rep.Places {
				if got := b.list(p.Place, p.Tenant, "SELECT version_id FROM tdal_version_game WHERE version_id > 0 ORDER BY version_id"); !reflect.DeepEqual(got, []string{"1", "2"}) {
					t.Fatalf("died at operation %d: goose's list is %v", n, got)
				}
				if got := b.list(p.Place, p.Tenant, "SELECT state FROM tdal_checksums WHERE state <> 'applied'"); got != nil {
					t.Fatalf("died at operation %d: steps are left as %v", n, got)
				}
			}
		}
	})
}

// The topology that a store reads is the one that Up made.
func TestUp_Topology(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, 3).tenants(databaseTenant("big", "big-s1", "big-s2"))
	b.mustUp(game1)
	top, err := b.control().Topology(t.Context())
	if err != nil || !reflect.DeepEqual(top.Shards(), []shardrouter.ShardID{"s1", "s2", "s3"}) ||
		!reflect.DeepEqual(top.Dedicated("big"), []shardrouter.ShardID{"big-s1", "big-s2"}) {
		t.Fatalf("Topology: got %+v, %v", top, err)
	}
}
