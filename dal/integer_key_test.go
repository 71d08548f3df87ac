package dal_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Squad is a row of a guild whose ids are integers.
type Squad struct {
	dal.Model
	GuildID int64
}

func squads() schema.Set {
	const table = "-- +goose Up\nCREATE TABLE IF NOT EXISTS squads (tenant_id {tenant} NOT NULL, guild_id BIGINT NOT NULL, id BIGINT NOT NULL, created_at {time} NOT NULL, updated_at {time} NOT NULL, PRIMARY KEY (tenant_id, guild_id, id));\n\n-- +goose Down\nDROP TABLE IF EXISTS squads;\n"
	return schema.Set{Name: "squads", FS: fstest.MapFS{
		"sqlite/0001_squads.sql": {Data: []byte(strings.NewReplacer("{tenant}", "TEXT", "{time}", "DATETIME", "BIGINT", "INTEGER").Replace(table))},
		"mysql/0001_squads.sql":  {Data: []byte(strings.NewReplacer("{tenant}", "VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin", "{time}", "DATETIME(6)").Replace(table))},
	}}
}

// In a column of integers "007" is 7, and another key for routing: it is refused before it is sent, so that no row gets where nobody looks for it.
func TestRouting_S11_TextThatIsNoIntegersOwn(t *testing.T) {
	t.Parallel()
	onTwo(t, func(t *testing.T, c dal.Cluster, _ dal.Endpoint) {
		cfg := dal.Config{Cluster: c, Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Squad]("guild", "guild_id")}}
		if _, err := schema.Up(t.Context(), cfg, squads()); err != nil {
			t.Fatal(err)
		}
		s := opened(t, cfg)
		ctx := tenant.NewContext(t.Context(), "shared-a")
		owner := func(key shardrouter.Key) shardrouter.ShardID {
			id, err := s.Topology().Owner("guild", "shared-a", key)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		odd := shardrouter.Key("007")
		for owner(odd) == owner("7") { // one that lives elsewhere
			odd = "0" + odd
		}
		for what, err := range map[string]error{
			"raw insert":     s.On(ctx, dal.Key("guild", string(odd))).Exec("INSERT INTO squads (id, guild_id, created_at, updated_at) VALUES (1, ?, ?, ?)", string(odd), "2026-01-01 00:00:00", "2026-01-01 00:00:00").Error,
			"read by itself": s.On(ctx, dal.Key("guild", string(odd))).Where("guild_id = ?", string(odd)).Find(&[]Squad{}).Error,
			"read by 7":      s.On(ctx, dal.Key("guild", 7)).Where("guild_id = ?", string(odd)).Find(&[]Squad{}).Error,
			"a space":        s.On(ctx, dal.Key("guild", 7)).Where("guild_id = ?", " 7").Find(&[]Squad{}).Error,
			"a sign":         s.On(ctx, dal.Key("guild", 7)).Where("guild_id = ?", "+7").Find(&[]Squad{}).Error,
		} {
			if !errors.Is(err, dal.ErrShape) {
				t.Errorf("%s: got %v, want ErrShape", what, err)
			}
		}
		// gorm makes the value of a map the field's own, which is 7, before it is judged.
		if err := s.On(ctx, dal.Key("guild", string(odd))).Model(&Squad{}).Create(map[string]any{"guild_id": string(odd)}).Error; !errors.Is(err, dal.ErrCrossShard) {
			t.Errorf("map: got %v, want ErrCrossShard", err)
		}
		for _, key := range []any{7, "7", int64(-3)} {
			var ref dal.KeyRef
			switch k := key.(type) {
			case int:
				ref = dal.Key("guild", k)
			case int64:
				ref = dal.Key("guild", k)
			case string:
				ref = dal.Key("guild", k)
			}
			if err := s.On(ctx, ref).Where("guild_id = ?", key).Find(&[]Squad{}).Error; err != nil {
				t.Errorf("the key %v: %v", key, err)
			}
		}
	})
}
