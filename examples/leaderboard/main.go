// Command leaderboard keeps one leaderboard for each of two tenants over three shards: it gives players scores, and reads the best ten and a player's
// rank.
//
//	go run ./examples/leaderboard
//	go run ./examples/leaderboard -shards mysql://USER@HOST:3306/DATABASE,mysql://...
//
// The shards are three SQLite files in a temporary directory, or MySQL or MariaDB servers, whose password is in TENANTDAL_PASSWORD. There the scores
// stay, so a second run finds the same board.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/board"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
)

// passwordEnv names the environment variable with the password of the shards of -shards.
const passwordEnv = "TENANTDAL_PASSWORD"

func main() {
	urls := flag.String("shards", "", "URLs of MySQL or MariaDB shards, separated by commas; empty means three SQLite files")
	flag.Parse()
	if err := start(context.Background(), *urls, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// start chooses the shards.
func start(ctx context.Context, urls string, out io.Writer) (err error) {
	if urls != "" {
		cluster, err := dal.ParseURLs(urls, os.Getenv(passwordEnv))
		if err != nil {
			return err
		}
		return run(ctx, cluster, out)
	}
	dir, err := os.MkdirTemp("", "leaderboard-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return run(ctx, dal.SQLiteCluster(dir, 3), out)
}

// run migrates, opens the store, and plays for both tenants.
func run(ctx context.Context, cluster dal.Cluster, out io.Writer) (err error) {
	tenants, err := tenant.NewStatic(tenant.Tenant{ID: "acme", Model: tenant.SharedTable}, tenant.Tenant{ID: "globex", Model: tenant.SharedTable})
	if err != nil {
		return err
	}
	cfg := dal.Config{Cluster: cluster, Tables: board.Tables(), Registry: tenants}
	if _, err := schema.Up(ctx, cfg, schema.Board()); err != nil {
		return err
	}
	store, err := dal.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	return errors.Join(
		play(tenant.NewContext(ctx, "acme"), store, 30, out),
		play(tenant.NewContext(ctx, "globex"), store, 5, out),
	)
}

// play gives the players of the context's tenant two scores each, of which the board keeps the better one, then reads the board.
func play(ctx context.Context, store *dal.Store, players int, out io.Writer) error {
	arena, err := board.Open(ctx, store, board.Config{Name: "arena", Mode: board.Best})
	if err != nil {
		return err
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range players {
		player := fmt.Sprintf("player-%02d", i)
		for round, score := range []int64{int64(i * 37 % 100), int64(i * 61 % 100)} {
			if err := arena.UpdateAt(ctx, player, score, day.AddDate(0, 0, round)); err != nil {
				return err
			}
		}
	}
	top, err := arena.Top(ctx, 10)
	if err != nil {
		return err
	}
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, best %d of %d:\n", id, len(top), players)
	for i, e := range top {
		fmt.Fprintf(out, "%3d. %s %d\n", i+1, e.Player, e.Score)
	}
	rank, e, err := arena.Rank(ctx, "player-04")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is number %d with %d\n", e.Player, rank, e.Score)
	return nil
}
