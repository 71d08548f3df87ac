package dal

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
)

// checked is a model with a key of the library's own, a shard key and a unique name.
type checked struct {
	ID       int64     `gorm:"primaryKey;autoIncrement:false"`
	TenantID tenant.ID `gorm:"column:tenant_id"`
	PlayerID string
	Email    string
}

// good is what a MySQL database should say of it.
func good() shape {
	return shape{
		Columns: map[string]column{
			"id":        {Name: "id", Type: "bigint"},
			"tenant_id": {Name: "tenant_id", Type: "varchar", Size: 63, Collation: "ascii_bin"},
			"player_id": {Name: "player_id", Type: "varbinary", Size: 255},
			"email":     {Name: "email", Type: "varbinary", Size: 255},
		},
		Indexes: []index{
			{Name: "PRIMARY", Unique: true, Primary: true, Columns: []string{"tenant_id", "id"}},
			{Name: "k_player", Columns: []string{"tenant_id", "player_id"}},
			{Name: "u_email", Unique: true, Columns: []string{"tenant_id", "player_id", "email"}},
		},
	}
}

func TestCheck_WhatKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	ts, err := newTables([]Table{Tenant[checked]("player", "player_id")})
	if err != nil {
		t.Fatal(err)
	}
	tbl := ts.all[0]
	if got := tbl.compare(good(), MySQL); len(got) != 0 {
		t.Fatalf("a good table is refused: %v", got)
	}
	set := func(name string, f func(*column)) func(*shape) {
		return func(s *shape) {
			c := s.Columns[name]
			f(&c)
			s.Columns[name] = c
		}
	}
	for name, c := range map[string]struct {
		spoil   func(*shape)
		problem string
		mend    string
	}{
		"T38 case-folding tenant": {set("tenant_id", func(c *column) { c.Collation = "utf8mb4_general_ci" }), "two tenants may be equal", "ascii_bin"},
		"T39 padding key":         {set("player_id", func(c *column) { c.Type, c.Collation = "varchar", "utf8mb4_bin" }), "pads blanks or folds case", "VARBINARY"},
		"S12 folding key":         {set("player_id", func(c *column) { c.Type, c.Collation = "varchar", "utf8mb4_general_ci" }), "pads blanks or folds case", "VARBINARY"},
		"T42 CHAR tenant":         {set("tenant_id", func(c *column) { c.Type = "char" }), "tenant_id is char", "VARCHAR(63)"},
		"T40 numeric tenant":      {set("tenant_id", func(c *column) { c.Type, c.Collation = "bigint", "" }), "tenant_id is bigint", "VARCHAR(63)"},
		"short tenant":            {set("tenant_id", func(c *column) { c.Size = 20 }), "varchar(20)", "VARCHAR(63)"},
		"null tenant":             {set("tenant_id", func(c *column) { c.Nullable = true }), "may be NULL", "NOT NULL"},
		"S14 null shard key":      {set("player_id", func(c *column) { c.Nullable = true }), "may be NULL", "NOT NULL"},
		"S30 auto increment":      {set("id", func(c *column) { c.Auto = true }), "AUTO_INCREMENT", "library fills"},
		"missing column":          {func(s *shape) { delete(s.Columns, "email") }, "no column \"email\"", "migrate"},
		"T47 unique without tenant": {func(s *shape) {
			s.Indexes[2].Columns = []string{"player_id", "email"}
		}, "does not begin with tenant_id", "lead it"},
		"S31 unique without shard key": {func(s *shape) { s.Indexes[2].Columns = []string{"tenant_id", "email"} }, "lacks the shard key", "add player_id"},
		"index without tenant":         {func(s *shape) { s.Indexes[1].Columns = []string{"player_id"} }, "index k_player", "lead it"},
		"primary without tenant":       {func(s *shape) { s.Indexes[0].Columns = []string{"id"} }, "primary key PRIMARY", "lead it"},
		"no primary":                   {func(s *shape) { s.Indexes = s.Indexes[1:] }, "no primary key", "PRIMARY KEY"},
		"T48 foreign key over tenants": {func(s *shape) {
			s.Keys = []foreignKey{{Name: "fk", Table: "users", From: []string{"player_id"}, To: []string{"id"}}}
		}, "foreign key fk", "tenant_id"},
		"folding unique on SQLite": {func(s *shape) { s.Indexes[2].Loose = []string{"email"} }, "without regard to case", "BINARY"},
	} {
		s := good()
		c.spoil(&s)
		got := tbl.compare(s, MySQL)
		if len(got) != 1 || !strings.Contains(got[0].Error(), c.problem) || !strings.Contains(got[0].Mend, c.mend) || !errors.Is(got[0], ErrModel) {
			t.Errorf("%s: %v, want one error with %q and the mend %q", name, got, c.problem, c.mend)
		}
	}
	s := good()
	s.Indexes = append(s.Indexes, index{Name: "k_due", Columns: []string{"state", "due_at"}})
	if got := tbl.compare(s, MySQL); len(got) != 1 {
		t.Errorf("k_due outside the library's tables passes: %v", got)
	}
	s = good()
	s.Keys = []foreignKey{{Name: "fk", Table: "users", From: []string{"tenant_id", "player_id"}, To: []string{"tenant_id", "id"}}}
	if got := tbl.compare(s, MySQL); len(got) != 0 {
		t.Errorf("a composite foreign key is refused: %v", got)
	}
}
