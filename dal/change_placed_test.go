package dal_test

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

// Fight is a row of a room.
type Fight struct {
	dal.Model
	RoomID string
}

func fights() schema.Set {
	files := fstest.MapFS{}
	for dialect, types := range map[string][2]string{
		"sqlite": {"TEXT", "TEXT"}, "mysql": {"VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin", "VARBINARY(255)"},
	} {
		files[dialect+"/0001_fights.sql"] = &fstest.MapFile{Data: fmt.Appendf(nil, "-- +goose Up\nCREATE TABLE IF NOT EXISTS fights (tenant_id %s NOT NULL, id BIGINT NOT NULL, room_id %s NOT NULL, "+
			"created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id));\n-- +goose Down\nDROP TABLE IF EXISTS fights;\n", types[0], types[1])}
	}
	return schema.Set{Name: "fights", FS: files}
}

// arena is a store over two shards, with players on a ring and fights in rooms.
type arena struct {
	*dal.Store
	cfg    dal.Config
	rec    *recorder
	ctx    context.Context // of tenant shared-a
	system context.Context
}

func newArena(t *testing.T, c dal.Cluster) *arena {
	t.Helper()
	a := &arena{rec: &recorder{}, ctx: tenant.NewContext(t.Context(), "shared-a"), system: tenant.System(t.Context(), "the arena's topology", "heros", "fights")}
	cfg := dal.WithObserver(dal.Config{
		Cluster: c, Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id"), dal.Tenant[Fight]("room", "room_id")},
		Routing: []shardrouter.Keyspace{{Name: "room", Strategy: shardrouter.StrategyRoom}},
	}, a.rec)
	if _, err := schema.Up(t.Context(), cfg, heroes("", ""), fights()); err != nil {
		t.Fatal(err)
	}
	a.Store, a.cfg = opened(t, cfg), cfg
	return a
}

// must makes changes that nothing speaks against.
func (a *arena) must(t *testing.T, changes ...shardrouter.Change) *shardrouter.Topology {
	t.Helper()
	next, err := a.Change(a.system, "ops", changes...)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// on returns the shard that has the key.
func (a *arena) on(t *testing.T, keyspace, key string) shardrouter.ShardID {
	t.Helper()
	r, err := a.Route(a.ctx, dal.Key(keyspace, key))
	if err != nil {
		t.Fatal(err)
	}
	return r.Place.Shard
}

func room(key string, shard shardrouter.ShardID) shardrouter.Change {
	return shardrouter.AssignRoom{Room: shardrouter.Room{Tenant: "shared-a", Keyspace: "room", Key: shardrouter.Key(key), Shard: shard}}
}

func pinned(key string, shard shardrouter.ShardID) shardrouter.Change {
	return shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "shared-a", Keyspace: "player", Key: shardrouter.Key(key), Shard: shard}}
}

func state(shard shardrouter.ShardID, s shardrouter.ShardState) shardrouter.Change {
	return shardrouter.SetShard{Shard: shard, Info: shardrouter.ShardInfo{State: s}}
}

func TestChange_A4_RoomsAreAssignedAndSticky(t *testing.T) {
	t.Parallel()
	onTwo(t, func(t *testing.T, c dal.Cluster, _ dal.Endpoint) {
		a := newArena(t, c)
		a.rec.take()
		if err := a.On(a.ctx, dal.Key("room", "r1")).Create(&Fight{RoomID: "r1"}).Error; !errors.Is(err, shardrouter.ErrRoomNotFound) {
			t.Errorf("a room that was never assigned: got %v, want ErrRoomNotFound", err)
		}
		if texts := a.rec.take(); slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "fights") }) {
			t.Errorf("for a room that was never assigned %q left", texts)
		}
		a.must(t, room("r1", "s2"), room("r2", "s1"))
		for key, shard := range map[string]shardrouter.ShardID{"r1": "s2", "r2": "s1"} {
			if got := a.on(t, "room", key); got != shard {
				t.Errorf("room %s is on %s, want %s", key, got, shard)
			}
			if err := a.On(a.ctx, dal.Key("room", key)).Create(&Fight{RoomID: key}).Error; err != nil {
				t.Fatal(err)
			}
			var there []Fight
			if err := a.OnPlace(a.system, dal.Place{Shard: shard}).Find(&there).Error; err != nil || len(there) != 1 || there[0].RoomID != key {
				t.Errorf("shard %s has %+v, %v, want the fight of room %s", shard, there, err, key)
			}
		}
		if _, err := a.Route(tenant.NewContext(t.Context(), "shared-b"), dal.Key("room", "r1")); !errors.Is(err, shardrouter.ErrRoomNotFound) {
			t.Errorf("the other tenant's room of that name: got %v, want ErrRoomNotFound", err)
		}

		a.must(t, room("r1", "s2")) // once more where it is
		var assigned *shardrouter.RoomAssignedError
		if _, err := a.Change(a.system, "ops", room("r1", "s1")); !errors.As(err, &assigned) || assigned.Room.Shard != "s2" {
			t.Errorf("assigned elsewhere: got %v, want a *RoomAssignedError", err)
		}
		var needs *shardrouter.NeedsReshardError
		drop := shardrouter.DropRoom{Tenant: "shared-a", Keyspace: "room", Key: "r1"}
		if _, err := a.Change(a.system, "ops", drop); !errors.As(err, &needs) || len(needs.Plan.Moves) != 1 || needs.Plan.Moves[0].Key != "r1" {
			t.Errorf("a room with rows is dropped: got %v, want a *NeedsReshardError", err)
		}
		a.must(t, state("s2", shardrouter.Draining))
		if got := a.on(t, "room", "r1"); got != "s2" {
			t.Errorf("room r1 went to %s after other changes, want s2", got)
		}
		if err := a.On(a.ctx, dal.Key("room", "r1")).Where("room_id = ?", "r1").Delete(&Fight{}).Error; err != nil {
			t.Fatal(err)
		}
		a.must(t, drop)
		if _, err := a.Route(a.ctx, dal.Key("room", "r1")); !errors.Is(err, shardrouter.ErrRoomNotFound) {
			t.Errorf("after it was dropped: got %v, want ErrRoomNotFound", err)
		}
	})
}

func TestChange_B3_DrainingAndDownShards(t *testing.T) {
	t.Parallel()
	onTwo(t, func(t *testing.T, c dal.Cluster, _ dal.Endpoint) {
		a := newArena(t, c)
		here, there := keyOn(t, a.Topology(), "shared-a", "s1"), keyOn(t, a.Topology(), "shared-a", "s2")
		a.must(t, room("r1", "s2"))
		epoch := a.must(t, state("s2", shardrouter.Draining)).Epoch()
		for what, change := range map[string]shardrouter.Change{"room": room("r2", "s2"), "pin": pinned(here, "s2")} {
			var bad *shardrouter.ShardStateError
			if _, err := a.Change(a.system, "ops", change); !errors.As(err, &bad) || bad.Shard != "s2" || bad.State != shardrouter.Draining {
				t.Errorf("a new %s on a draining shard: got %v, want a *ShardStateError", what, err)
			}
		}
		if got := a.Topology().Epoch(); got != epoch {
			t.Errorf("a refusal made epoch %d of %d", got, epoch)
		}
		write := func() []error {
			return []error{
				a.On(a.ctx, dal.Key("player", there)).Create(&Hero{PlayerID: there}).Error,
				a.On(a.ctx, dal.Key("room", "r1")).Create(&Fight{RoomID: "r1"}).Error,
			}
		}
		for _, err := range write() {
			if err != nil {
				t.Errorf("what a draining shard has goes on: %v", err)
			}
		}

		a.must(t, state("s2", shardrouter.Down))
		a.rec.take()
		for _, err := range write() {
			var down *shardrouter.ShardDownError
			if !errors.Is(err, shardrouter.ErrShardDown) || !errors.As(err, &down) || down.Shard != "s2" {
				t.Errorf("a shard that is down: got %v, want a *ShardDownError", err)
			}
		}
		if texts := a.rec.take(); len(texts) != 0 {
			t.Errorf("for a shard that is down %q left", texts)
		}
		if err := a.On(a.ctx, dal.Key("player", here)).Create(&Hero{PlayerID: here}).Error; err != nil {
			t.Errorf("the shard that is not down: %v", err)
		}
		a.must(t, state("s2", shardrouter.Active), room("r2", "s2"))
		for _, err := range write() {
			if err != nil {
				t.Errorf("the shard is back: %v", err)
			}
		}
	})
}

func TestChange_A5_S18_RebalanceOfRoomsAndPins(t *testing.T) {
	t.Parallel()
	onTwo(t, func(t *testing.T, c dal.Cluster, _ dal.Endpoint) {
		a := newArena(t, c)
		here, there := keyOn(t, a.Topology(), "shared-a", "s1"), keyOn(t, a.Topology(), "shared-a", "s2")
		a.must(t, pinned(here, "s2"), pinned(there, "s1"), room("r9", "s2"), room("r10", "s2"), room("stays", "s1"))
		if err := a.On(a.ctx, dal.Key("player", here)).Create(&Hero{PlayerID: here}).Error; err != nil {
			t.Fatal(err)
		}
		change := shardrouter.Rebalance{Active: []shardrouter.ShardID{"s1"}}
		moved := []shardrouter.Migration{
			{Kind: shardrouter.MigratePin, Keyspace: "player", Tenant: "shared-a", Key: shardrouter.Key(here), From: "s2", To: "s1"},
			{Kind: shardrouter.MigrateRoom, Keyspace: "room", Tenant: "shared-a", Key: "r10", From: "s2"},
			{Kind: shardrouter.MigrateRoom, Keyspace: "room", Tenant: "shared-a", Key: "r9", From: "s2"},
		}
		var needs *shardrouter.NeedsReshardError
		if _, err := a.Change(a.system, "ops", change); !errors.As(err, &needs) || !reflect.DeepEqual(needs.Plan.Migrations, moved) {
			t.Fatalf("with a row: got %v, want a *NeedsReshardError with the migrations %+v", err, moved)
		}
		if got := a.on(t, "player", here); got != "s2" {
			t.Errorf("the refusal moved the pin to %s", got)
		}
		if err := a.On(a.ctx, dal.Key("player", here)).Where("player_id = ?", here).Delete(&Hero{}).Error; err != nil {
			t.Fatal(err)
		}
		next := a.must(t, change)
		if !slices.Equal(next.Shards(), []shardrouter.ShardID{"s1"}) {
			t.Errorf("shards %v, want s1 alone", next.Shards())
		}
		for keyspace, key := range map[string]string{"player": here, "room": "stays"} {
			if got := a.on(t, keyspace, key); got != "s1" {
				t.Errorf("key %s of %s is on %s, want s1", key, keyspace, got)
			}
		}
		if pins := next.Config().Pins; len(pins) != 2 || pins[0].Shard != "s1" || pins[1].Shard != "s1" {
			t.Errorf("pins %+v, want both on s1", pins)
		}
		for _, key := range []string{"r9", "r10"} {
			if _, err := a.Route(a.ctx, dal.Key("room", key)); !errors.Is(err, shardrouter.ErrRoomNotFound) {
				t.Errorf("room %s of the lost shard: got %v, want ErrRoomNotFound", key, err)
			}
		}
		a.must(t, room("r9", "s1")) // made anew
		if got := a.on(t, "room", "r9"); got != "s1" {
			t.Errorf("room r9 is on %s, want s1", got)
		}
	})
}

func TestChange_A13_OneOfManyWinsAndTheHistorySaysWhoAndWhy(t *testing.T) {
	t.Parallel()
	onTwo(t, func(t *testing.T, c dal.Cluster, _ dal.Endpoint) {
		cfg := dal.Config{Cluster: c, Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
		up(t, cfg)
		const writers = 4
		var wg, read sync.WaitGroup
		read.Add(writers)
		errs := make([]error, writers)
		stores := make([]*dal.Store, writers)
		for i := range stores {
			rec := &recorder{}
			stores[i] = opened(t, dal.WithObserver(cfg, rec))
			once := sync.OnceFunc(func() { // it has read the topology, and looks for rows; none changes anything before all do
				read.Done()
				read.Wait()
			})
			rec.breaks(func(e wire.Event) error {
				if strings.Contains(e.Text, "heros") {
					once()
				}
				return nil
			})
		}
		at := stores[0].Topology().Epoch()
		var keys []string // of s1, one a writer
		for n := 1; len(keys) < writers; n++ {
			key := fmt.Sprint(n)
			if owner, err := stores[0].Topology().Owner("player", "shared-a", shardrouter.Key(key)); err != nil {
				t.Fatal(err)
			} else if owner == "s1" {
				keys = append(keys, key)
			}
		}
		pin := func(i int) shardrouter.Change { return pinned(keys[i], "s2") }
		for i, s := range stores {
			wg.Go(func() {
				ctx := tenant.System(t.Context(), fmt.Sprint("reason ", i), "heros")
				_, errs[i] = s.Change(ctx, fmt.Sprint("writer ", i), pin(i))
			})
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			var conflict *control.EpochConflictError
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Errorf("writers %d and %d both won", winner, i)
			case !errors.Is(err, control.ErrEpochConflict) || !errors.As(err, &conflict) || conflict.Want != at || conflict.Have != at+1:
				t.Errorf("writer %d: got %v, want an *EpochConflictError from %d to %d", i, err, at, at+1)
			}
		}
		if winner < 0 {
			t.Fatal("none won")
		}
		if got := stores[winner].Topology(); got.Epoch() != at+1 || len(got.Config().Pins) != 1 {
			t.Errorf("the winner's topology: epoch %d, pins %+v", got.Epoch(), got.Config().Pins)
		}
		if _, err := stores[0].TopologyLog(t.Context(), 9); !errors.Is(err, tenant.ErrNotSystem) {
			t.Errorf("the history without a system scope: got %v, want ErrNotSystem", err)
		}
		log, err := stores[0].TopologyLog(tenant.System(t.Context(), "audit", "heros"), 9)
		if err != nil || len(log) != 1 || log[0].Epoch != at+1 || log[0].Actor != fmt.Sprint("writer ", winner) || log[0].Reason != fmt.Sprint("reason ", winner) {
			t.Fatalf("history %+v, %v, want one change of writer %d", log, err, winner)
		}
		if change, err := shardrouter.UnmarshalChange(log[0].Changes[0]); err != nil || change != pin(winner) {
			t.Errorf("the history has %#v, %v, want %#v", change, err, pin(winner))
		}
	})
}

// A shard that operators have marked down stops no process from starting, and is opened when it is back.
func TestOpen_B3_ShardThatIsDown(t *testing.T) {
	t.Parallel()
	c := dal.SQLiteCluster(t.TempDir(), 2)
	a := newArena(t, c)
	here, there := keyOn(t, a.Topology(), "shared-a", "s1"), keyOn(t, a.Topology(), "shared-a", "s2")
	a.must(t, state("s2", shardrouter.Down))
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.Dir, "s2.db")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil { // nothing that could be opened
		t.Fatal(err)
	}
	b := opened(t, a.cfg)
	if err := b.On(a.ctx, dal.Key("player", here)).Create(&Hero{PlayerID: here}).Error; err != nil {
		t.Errorf("the other shard: %v", err)
	}
	if err := b.On(a.ctx, dal.Key("player", there)).Create(&Hero{PlayerID: there}).Error; !errors.Is(err, shardrouter.ErrShardDown) {
		t.Errorf("the shard that is down: got %v, want ErrShardDown", err)
	}
	if err := errors.Join(os.Remove(file), os.Rename(file+".away", file)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Change(a.system, "ops", state("s2", shardrouter.Active)); err != nil {
		t.Fatal(err)
	}
	if err := b.On(a.ctx, dal.Key("player", there)).Create(&Hero{PlayerID: there}).Error; err != nil {
		t.Errorf("the shard is back: %v", err)
	}
}
