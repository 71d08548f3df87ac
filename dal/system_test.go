package dal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// journal is a log whose records can be looked at.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

// records returns the records with this message.
func (j *journal) records(t *testing.T, msg string) []map[string]any {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []map[string]any
	for line := range strings.Lines(j.buf.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r["msg"] == msg {
			out = append(out, r)
		}
	}
	return out
}

func logged(j *journal) gameOption {
	return func(c *dal.Config, _ *[]tenant.Tenant) { c.Logger = slog.New(slog.NewJSONHandler(j, nil)) }
}

func TestSystem_T57_OriginalContextIsStillTheTenant(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	r, err := g.Route(g.a, dal.Key("player", "7"))
	if err != nil {
		t.Fatal(err)
	}
	parent, cancel := context.WithCancel(g.a)
	defer cancel()
	sys := tenant.System(parent, "report", "users")
	h := g.OnPlace(sys, r.Place)
	tenants := map[tenant.ID]int{}
	see := func(h *gorm.DB) {
		t.Helper()
		var users []User
		if err := h.Find(&users).Error; err != nil {
			t.Fatal(err)
		}
		clear(tenants)
		for _, u := range users {
			tenants[u.TenantID]++
		}
	}
	if see(h); tenants["a"] != 3 || tenants["b"] != 3 {
		t.Errorf("under the bypass: %v", tenants)
	}
	// The same request goes on with its own context, before, during and after a use of the bypass.
	for _, own := range []*gorm.DB{g.player(parent), g.player(g.a), g.player(parent).Unscoped()} {
		if see(own); tenants["a"] != 3 || len(tenants) != 1 {
			t.Errorf("the request itself sees %v", tenants)
		}
	}
	g.rec.take()
	g.refusedAs(t, g.player(g.a).WithContext(sys).Find(&[]User{}).Error, tenant.ErrSystemScope)
	g.refusedAs(t, h.WithContext(g.a).Find(&[]User{}).Error, tenant.ErrNotSystem)
	_, err = gorm.G[User](h).Find(g.a)
	g.refusedAs(t, err, tenant.ErrNotSystem)
	g.refusedAs(t, g.player(sys).Find(&[]User{}).Error, tenant.ErrSystemScope)

	// Another scope's context opens nothing on this handle, be it wider or narrower.
	g.refusedAs(t, h.WithContext(tenant.System(g.a, "report", "users", "items")).Find(&[]User{}).Error, dal.ErrScopeEnded)
	g.refusedAs(t, h.WithContext(tenant.System(g.a, "something else", "users")).Find(&[]User{}).Error, dal.ErrScopeEnded)

	// A context derived from the scope's is the scope's.
	short, end := context.WithCancel(sys)
	if see(h.WithContext(short)); len(tenants) != 2 {
		t.Errorf("under a derived context: %v", tenants)
	}
	end()
	if see(h); len(tenants) != 2 {
		t.Errorf("after a derived context ended: %v", tenants)
	}
	g.rec.take()

	cancel()
	g.refusedAs(t, h.Find(&[]User{}).Error, dal.ErrScopeEnded)
	err = h.WithContext(context.WithoutCancel(sys)).Find(&[]User{}).Error
	g.refusedAs(t, err, dal.ErrScopeEnded)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is lost: %v", err)
	}
	g.refusedAs(t, h.WithContext(context.WithoutCancel(sys)).Begin().Error, dal.ErrScopeEnded)
	g.refusedAs(t, h.WithContext(context.WithoutCancel(sys)).Create(&User{Model: dal.Model{TenantID: "a"}, PlayerID: "7"}).Error, dal.ErrScopeEnded)
	if see(g.player(g.a)); tenants["a"] != 3 || len(tenants) != 1 {
		t.Errorf("afterwards the request sees %v", tenants)
	}
}

func TestSystem_T57_AuditedAndCounted(t *testing.T) {
	t.Parallel()
	j := &journal{}
	g := newGame(t, logged(j))
	sys := tenant.System(g.a, "monthly report", "users", "catalogs")
	h := g.OnPlace(sys, dal.Place{Shard: "s1"})
	if got := j.records(t, "system scope"); len(got) != 0 || g.SystemUses().Uses != 0 {
		t.Errorf("a handle that was not used is audited: %v", got)
	}
	g.refusedAs(t, h.Find(&[]Item{}).Error, dal.ErrClosedTable)
	for range 3 { // one record a handle
		if err := h.Find(&[]User{}).Error; err != nil {
			t.Fatal(err)
		}
	}
	got := j.records(t, "system scope")
	if len(got) != 1 || got[0]["level"] != "INFO" || got[0]["reason"] != "monthly report" || got[0]["shard"] != "s1" || got[0]["tenant"] != "system" ||
		fmt.Sprint(got[0]["tables"]) != "[users catalogs]" {
		t.Errorf("the record: %v", got)
	}
	if st := g.SystemUses(); st.Uses != 1 || len(st.Recent) != 1 || st.Recent[0].Reason != "monthly report" || st.Recent[0].Place.Shard != "s1" ||
		!slices.Equal(st.Recent[0].Tables, []string{"users", "catalogs"}) || st.Recent[0].At.IsZero() {
		t.Errorf("SystemUses: %+v", st)
	}
	// A write and a transaction are uses too. Reasons made of anything cost no memory: the last 32 are kept.
	err := g.OnPlace(tenant.System(g.a, "r0", "jobs"), dal.Place{Shard: "s2"}).Transaction(func(tx *gorm.DB) error { return tx.Create(&Job{ID: 1}).Error })
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 100; i++ {
		if err := g.OnPlace(tenant.System(g.a, fmt.Sprint("r", i), "jobs"), dal.Place{Shard: "s2"}).Find(&[]Job{}).Error; err != nil {
			t.Fatal(err)
		}
	}
	st := g.SystemUses()
	if st.Uses != 101 || len(st.Recent) != 32 || st.Recent[0].Reason != "r68" || st.Recent[31].Reason != "r99" {
		t.Errorf("after 101 uses: %d, %d kept, from %q to %q", st.Uses, len(st.Recent), st.Recent[0].Reason, st.Recent[len(st.Recent)-1].Reason)
	}
	if got := j.records(t, "system scope"); len(got) != 101 {
		t.Errorf("%d records for 101 uses", len(got))
	}
}

func TestSystem_T58_OpensTheNamedTablesAlone(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	r, err := g.Route(g.a, dal.Key("player", "7"))
	if err != nil {
		t.Fatal(err)
	}
	sys := func(tables ...string) *gorm.DB { return g.OnPlace(tenant.System(g.a, "report", tables...), r.Place) }
	g.rec.take()
	for name, c := range map[string]func() error{
		"another table":             func() error { return sys("users").Find(&[]Item{}).Error },
		"in a write":                func() error { return sys("users").Where("id = 1").Delete(&Item{}).Error },
		"its name in another case":  func() error { return sys("USERS").Find(&[]User{}).Error },
		"a pattern":                 func() error { return sys("*", "user%", "%").Find(&[]User{}).Error },
		"a qualified name":          func() error { return sys("main.users").Find(&[]User{}).Error },
		"a System table":            func() error { return sys("users").Find(&[]Job{}).Error },
		"a Global table is written": func() error { return sys("users").Create(&Catalog{ID: 9}).Error },
		"association mode":          func() error { return sys("users").Model(&User{PlayerID: "7"}).Association("Items").Find(&[]Item{}) },
	} {
		t.Run(name, func(t *testing.T) { g.refusedAs(t, c(), dal.ErrClosedTable) })
	}
	// Closed tables in one statement with an open one: nothing of the statement leaves.
	for name, c := range map[string]func(h *gorm.DB) error{
		"Joins": func(h *gorm.DB) error {
			return h.Joins("JOIN items ON items.player_id = users.player_id").Find(&[]User{}).Error
		},
		"sub-query": func(h *gorm.DB) error {
			return h.Where("player_id IN (?)", g.OnPlace(tenant.System(g.a, "report", "users"), r.Place).Model(&Item{}).Select("player_id")).Find(&[]User{}).Error
		},
		"raw": func(h *gorm.DB) error { return h.Raw("SELECT u.* FROM users u, items i").Scan(&[]User{}).Error },
		"union": func(h *gorm.DB) error {
			return h.Raw("SELECT name FROM users UNION SELECT name FROM items").Scan(&[]string{}).Error
		},
		"CTE": func(h *gorm.DB) error {
			return h.Raw("WITH x AS (SELECT name FROM items) SELECT name FROM x, users").Scan(&[]string{}).Error
		},
		"where": func(h *gorm.DB) error { return h.Where("EXISTS (SELECT 1 FROM items)").Find(&[]User{}).Error },
	} {
		t.Run(name, func(t *testing.T) {
			err := c(sys("users"))
			if !errors.Is(err, dal.ErrClosedTable) && !errors.Is(err, dal.ErrShape) {
				t.Errorf("error %v, want a refusal", err)
			}
			for _, text := range g.rec.take() {
				t.Errorf("a refused statement left: %s", text)
			}
		})
	}
	// Preload reads the open table, then refuses the closed one.
	var users []User
	if err := sys("users").Preload("Items").Find(&users).Error; !errors.Is(err, dal.ErrClosedTable) {
		t.Errorf("Preload of a closed table: %v", err)
	}
	for _, text := range g.rec.take() {
		if strings.Contains(text, "items") {
			t.Errorf("the closed table was read: %s", text)
		}
	}
	if err := sys("users", "items").Preload("Items").Find(&users).Error; err != nil {
		t.Errorf("Preload of an open table: %v", err)
	}
	// A Global table is open to reads as it is to every tenant.
	if err := sys("users").Find(&[]Catalog{}).Error; err != nil {
		t.Errorf("a Global table: %v", err)
	}

	// Tenancy and soft delete are switches of their own.
	if err := g.player(g.a).Where("id = 1").Delete(&User{}).Error; err != nil {
		t.Fatal(err)
	}
	count := func(h *gorm.DB) (n int64) {
		t.Helper()
		if err := h.Model(&User{}).Count(&n).Error; err != nil {
			t.Error(err)
		}
		return n
	}
	if n := count(sys("users")); n != 5 {
		t.Errorf("the bypass shows %d users, want 5: deleted rows stay hidden", n)
	}
	if n := count(sys("users").Unscoped()); n != 6 {
		t.Errorf("the bypass with Unscoped shows %d users, want 6", n)
	}
	if n := count(g.player(g.a).Unscoped()); n != 3 {
		t.Errorf("Unscoped shows the tenant %d users, want its own 3", n)
	}
}
