// Command quickstart is the shortest program on tenantdal: it makes two shards, writes a row for a tenant and reads it back.
//
//	go run ./examples/quickstart
//
// The shards are SQLite files in a temporary directory. With dal.ParseURLs in place of dal.SQLiteCluster they are MySQL or MariaDB servers.
package main

import (
	"context"
	"embed"
	"fmt"
	"log"
	"os"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
)

//go:embed sqlite mysql
var files embed.FS

// Item is something that a player has.
type Item struct {
	dal.Model
	PlayerID string
	Name     string
}

func main() {
	ctx, dir := context.Background(), must(os.MkdirTemp("", "quickstart-"))
	defer os.RemoveAll(dir)
	cfg := dal.Config{
		Cluster:  dal.SQLiteCluster(dir, 2),
		Tables:   []dal.Table{dal.Tenant[Item]("player", "player_id")},
		Registry: must(tenant.NewStatic(tenant.Tenant{ID: "acme", Model: tenant.SharedTable})),
	}
	must(schema.Up(ctx, cfg, schema.Set{Name: "game", FS: files}))
	store := must(dal.Open(ctx, cfg))
	defer store.Close(ctx)
	acme := tenant.NewContext(ctx, "acme")
	items := gorm.G[Item](store.On(acme, dal.Key("player", "7")))
	check(items.Create(acme, &Item{PlayerID: "7", Name: "sword"}))
	found := must(items.Where("player_id = ?", "7").Find(acme))
	fmt.Println(found[0].TenantID, "has a", found[0].Name)
}

// must returns v, or ends the program.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// check ends the program on an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
