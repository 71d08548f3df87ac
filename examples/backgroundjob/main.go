package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
)

//go:embed schema
var files embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "backgroundjob:", err)
		os.Exit(1)
	}
}

// run is the program: it makes its databases in a temporary directory, plays, and removes them.
func run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "backgroundjob-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := open(ctx, dal.SQLiteCluster(dir, 2))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	return play(ctx, store, out)
}

// config is the deployment: acme lives in shared tables, globex in a schema of its own. Nothing else in the program tells them apart.
func config(cluster dal.Cluster) (dal.Config, error) {
	registry, err := tenant.NewStatic(
		tenant.Tenant{ID: "acme", Model: tenant.SharedTable},
		tenant.Tenant{ID: "globex", Model: tenant.OwnSchema},
		tenant.Tenant{ID: "sleepy", Model: tenant.SharedTable, Status: tenant.Suspended},
	)
	if err != nil {
		return dal.Config{}, err
	}
	return dal.Config{
		Cluster:  cluster,
		Registry: registry,
		Tables:   []dal.Table{dal.Tenant[Reward]("player", "player_id"), dal.Tenant[Note]("player", "player_id")},
	}, nil
}

// sets returns the schema of the program's own tables.
func sets() (schema.Set, error) {
	sub, err := fs.Sub(files, "schema")
	return schema.Set{Name: "backgroundjob", FS: sub}, err
}

// open makes the databases and opens the store.
func open(ctx context.Context, cluster dal.Cluster) (*dal.Store, error) {
	cfg, err := config(cluster)
	if err != nil {
		return nil, err
	}
	set, err := sets()
	if err != nil {
		return nil, err
	}
	if _, err := schema.Up(ctx, cfg, set); err != nil {
		return nil, err
	}
	return dal.Open(ctx, cfg)
}

// play lets players of both tenants finish matches, then runs the jobs that came of it, and prints what happened.
func play(ctx context.Context, store *dal.Store, out io.Writer) error {
	log := slog.New(tenant.NewLogHandler(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	queue := &Queue{}
	game := NewGame(store, queue, log)
	defer game.Wait()
	worker := NewWorker(log, map[string]Handler{kindReward: NewRewards(store, log).Handle})

	for _, m := range []struct {
		tenant tenant.ID
		match  Match
	}{
		{"acme", Match{Player: "7", Number: 1, Gold: 10}},
		{"globex", Match{Player: "7", Number: 1, Gold: 500}}, // the same player and the same match, of another tenant
		{"acme", Match{Player: "7", Number: 2, Gold: 20}},
	} {
		if err := request(ctx, game, m.tenant, m.match); err != nil {
			return err
		}
	}
	// Somebody's script writes a job by hand and forgets the tenant. It comes right after a job of acme's.
	queue.Push([]byte(`{"v":1,"kind":"match.reward","payload":"eyJwbGF5ZXIiOiI3IiwibnVtYmVyIjozLCJnb2xkIjo5OTl9"}`))
	if err := request(ctx, game, "globex", Match{Player: "8", Number: 2, Gold: 700}); err != nil {
		return err
	}
	queue.Repeat() // the broker delivers the last job twice, as brokers do

	game.Wait()
	if err := worker.Drain(ctx, queue); err != nil {
		return err
	}
	for _, d := range worker.Dead() {
		fmt.Fprintf(out, "dead letter %q: %v\n", d.Reason, d.Err)
	}
	return report(ctx, store, out)
}

// request is one request of a player: it carries the tenant, which was proved at the edge, and has a deadline. When it is answered, its context is
// cancelled.
func request(ctx context.Context, game *Game, id tenant.ID, m Match) error {
	ctx, cancel := context.WithTimeout(tenant.NewContext(ctx, id), time.Second)
	defer cancel()
	return game.Finish(ctx, m)
}

// report prints what each tenant's players have.
func report(ctx context.Context, store *dal.Store, out io.Writer) error {
	for _, p := range []struct {
		tenant tenant.ID
		player string
	}{{"acme", "7"}, {"globex", "7"}, {"globex", "8"}} {
		ctx := tenant.NewContext(ctx, p.tenant)
		var rewards []Reward
		var notes int64
		db := store.On(ctx, dal.Key("player", p.player))
		if err := db.Where("player_id = ?", p.player).Order("id").Find(&rewards).Error; err != nil {
			return err
		}
		if err := db.Model(&Note{}).Where("player_id = ?", p.player).Count(&notes).Error; err != nil {
			return err
		}
		var gold int64
		for _, r := range rewards {
			gold += r.Gold
		}
		fmt.Fprintf(out, "%s: player %s has %d gold of %d matches, %d notes\n", p.tenant, p.player, gold, len(rewards), notes)
	}
	return nil
}

// withoutTime leaves the time out of the log, so that the program prints the same each time.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
