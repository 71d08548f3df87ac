package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tdal": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// The golden sessions of the command: testdata/script/*.txtar.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"deployment": deployment},
	})
}

type (
	hero struct {
		dal.Model
		PlayerID string
	}
	battle struct {
		dal.Model
		RoomID string
	}
	entry struct {
		dal.Model
		Day string
	}
)

// deployment DIR makes a deployment of two shards on SQLite, with a pin, a room, a split range and a shard that drains.
func deployment(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: deployment DIR")
	}
	reg, err := tenant.NewStatic(
		tenant.Tenant{ID: "acme", Model: tenant.SharedTable}, tenant.Tenant{ID: "zeta", Model: tenant.OwnSchema},
		tenant.Tenant{ID: "big", Model: tenant.OwnDatabase, Status: tenant.Suspended},
	)
	ts.Check(err)
	cfg := dal.Config{
		Cluster: dal.SQLiteCluster(ts.MkAbs(args[0]), 2), Registry: reg,
		Tables: []dal.Table{dal.Tenant[hero]("player", "player_id"), dal.Tenant[battle]("room", "room_id"), dal.Tenant[entry]("log", "day")},
		Routing: []shardrouter.Keyspace{
			{Name: "player", Strategy: shardrouter.StrategySlots},
			{Name: "room", Strategy: shardrouter.StrategyRoom},
			{Name: "log", Strategy: shardrouter.StrategyRange, Kind: shardrouter.TimeRange, Splits: []shardrouter.Split{{Shard: "s1"}, {From: "2026-07-01", Shard: "s2"}}},
		},
	}
	files := fstest.MapFS{}
	for i, t := range [][2]string{{"heros", "player_id"}, {"battles", "room_id"}, {"entries", "day"}} {
		for _, dialect := range []string{"sqlite", "mysql"} {
			files[fmt.Sprintf("%s/%04d_%s.sql", dialect, i+1, t[0])] = &fstest.MapFile{Data: fmt.Appendf(nil, "-- +goose Up\nCREATE TABLE IF NOT EXISTS %s "+
				"(tenant_id VARCHAR(63) NOT NULL, id BIGINT NOT NULL, %s VARCHAR(255) NOT NULL, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id));\n"+
				"-- +goose Down\nDROP TABLE IF EXISTS %[1]s;\n", t[0], t[1])}
		}
	}
	ctx := context.Background()
	_, err = schema.Up(ctx, cfg, schema.Set{Name: "game", FS: files})
	ts.Check(err)
	store, err := dal.Open(ctx, cfg)
	ts.Check(err)
	_, err = store.Change(tenant.System(ctx, "the test's own", "heros", "battles", "entries"), "ops",
		shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "acme", Keyspace: "player", Key: "7", Shard: "s2"}},
		shardrouter.AssignRoom{Room: shardrouter.Room{Tenant: "acme", Keyspace: "room", Key: "r1", Shard: "s2"}},
		shardrouter.SetShard{Shard: "s2", Info: shardrouter.ShardInfo{State: shardrouter.Draining, Zone: "north"}})
	ts.Check(errors.Join(err, store.Close(ctx)))
}
