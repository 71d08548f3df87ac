package dal_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// What gorm logs: a failed statement with its text and without its values, nothing for a row that is not there, and every statement after Debug.
func TestLogger_FailuresAndDebug(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) { c.Logger = slog.New(slog.NewTextHandler(&out, nil)) })
	g.seed(t)
	lines := func() string {
		defer out.Reset()
		return out.String()
	}
	lines()

	var it Item
	if err := g.player(g.a).First(&it, 99).Error; err == nil {
		t.Fatal("a row that is not there was found")
	}
	if got := lines(); got != "" {
		t.Errorf("a row that is not there was logged: %s", got)
	}
	if err := g.player(g.a).Where("no_such_column = ?", "secret-value").Find(&[]Item{}).Error; err == nil {
		t.Fatal("a statement over no column passed")
	}
	got := lines()
	for _, want := range []string{"level=ERROR", "no_such_column = ?", "tenant=a", "shard="} {
		if !strings.Contains(got, want) {
			t.Errorf("the record of a failed statement lacks %q: %s", want, got)
		}
	}
	if err := g.player(g.a).Debug().Where("name = ?", "secret-value").Find(&[]Item{}).Error; err != nil {
		t.Fatal(err)
	}
	debug := lines()
	for _, want := range []string{"level=INFO", "name = ?", "tenant=a", "trace.rows=0"} {
		if !strings.Contains(debug, want) {
			t.Errorf("the record after Debug lacks %q: %s", want, debug)
		}
	}
	if strings.Contains(got+debug, "secret-value") {
		t.Errorf("a record holds a value: %s%s", got, debug)
	}
}
