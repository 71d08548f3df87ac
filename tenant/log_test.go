package tenant_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/tenantdal/tenantdal/tenant"
)

// newLogger returns a logger through the handler under test, without the time.
func newLogger() (*slog.Logger, *bytes.Buffer) {
	var buf bytes.Buffer
	h := slog.NewTextHandler(&buf, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}})
	return slog.New(tenant.NewLogHandler(h)), &buf
}

func TestLogHandler(t *testing.T) {
	t.Parallel()
	bg := context.Background()
	a := tenant.NewContext(bg, "a")
	s1 := tenant.WithShard(a, "s1")
	sys := tenant.System(bg, "nightly", "bag")
	for name, c := range map[string]struct {
		ctx  context.Context
		log  func(ctx context.Context, l *slog.Logger)
		want string
	}{
		"tenant":     {a, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "k", 1) }, `msg=m k=1 tenant=a`},
		"shard":      {s1, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m") }, `msg=m tenant=a shard=s1`},
		"shard only": {tenant.WithShard(bg, "s1"), func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m") }, `msg=m shard=s1`},
		"system":     {sys, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m") }, `msg=m tenant=system reason=nightly`},
		"none":       {bg, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "k", 1) }, `msg=m k=1`},
		"ill-formed": {tenant.NewContext(bg, "A\n"), func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m") }, `msg=m`},
		"no context": {a, func(_ context.Context, l *slog.Logger) { l.Info("m") }, `msg=m`},

		"already in the record":  {s1, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "tenant", "x") }, `msg=m tenant=x shard=s1`},
		"already in the handler": {s1, func(ctx context.Context, l *slog.Logger) { l.With("tenant", "x", "shard", "y").InfoContext(ctx, "m") }, `msg=m tenant=x shard=y`},
		"reason already there":   {sys, func(ctx context.Context, l *slog.Logger) { l.InfoContext(ctx, "m", "reason", "mine") }, `msg=m reason=mine tenant=system`},
		"in an unnamed group": {s1, func(ctx context.Context, l *slog.Logger) {
			l.InfoContext(ctx, "m", slog.Group("", "tenant", "x"))
		}, `msg=m tenant=x shard=s1`},
		"with other attributes": {a, func(ctx context.Context, l *slog.Logger) { l.With("k", 1).With().InfoContext(ctx, "m") }, `msg=m k=1 tenant=a`},

		"below a group": {s1, func(ctx context.Context, l *slog.Logger) { l.WithGroup("g").InfoContext(ctx, "m", "k", 1) }, `msg=m g.k=1 tenant=a shard=s1`},
		"below groups with attributes": {a, func(ctx context.Context, l *slog.Logger) {
			l.With("x", 0).WithGroup("g").With("y", 1).WithGroup("").WithGroup("h").With("z", 2).InfoContext(ctx, "m", "k", 3)
		}, `msg=m x=0 g.y=1 g.h.z=2 g.h.k=3 tenant=a`},
		"another tenant attribute in a group": {a, func(ctx context.Context, l *slog.Logger) {
			l.WithGroup("g").With("tenant", "x").InfoContext(ctx, "m", "tenant", "y")
		}, `msg=m g.tenant=x g.tenant=y tenant=a`},
		"in the handler before the group": {a, func(ctx context.Context, l *slog.Logger) {
			l.With("tenant", "x").WithGroup("g").InfoContext(ctx, "m", "k", 1)
		}, `msg=m tenant=x g.k=1`},
		"an empty group": {a, func(ctx context.Context, l *slog.Logger) { l.WithGroup("g").InfoContext(ctx, "m") }, `msg=m tenant=a`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, buf := newLogger()
			c.log(c.ctx, l)
			if got := strings.TrimSpace(buf.String()); got != c.want {
				t.Errorf("logged %q, want %q", got, c.want)
			}
		})
	}
}

// Loggers derived from one parent do not see each other's attributes.
func TestLogHandler_SiblingsAreApart(t *testing.T) {
	t.Parallel()
	l, buf := newLogger()
	ctx := tenant.NewContext(t.Context(), "a")
	parent := l.WithGroup("g").With("p", 0)
	one, two := parent.With("one", 1), parent.With("two", 2)
	sub1, sub2 := one.WithGroup("h"), one.WithGroup("i")
	for _, l := range []*slog.Logger{one, two, parent, sub1, sub2} {
		l.InfoContext(ctx, "m", "k", 3)
	}
	want := "msg=m g.p=0 g.one=1 g.k=3 tenant=a\nmsg=m g.p=0 g.two=2 g.k=3 tenant=a\nmsg=m g.p=0 g.k=3 tenant=a\n" +
		"msg=m g.p=0 g.one=1 g.h.k=3 tenant=a\nmsg=m g.p=0 g.one=1 g.i.k=3 tenant=a\n"
	if buf.String() != want {
		t.Errorf("logged\n%s\nwant\n%s", buf, want)
	}
}

// A record is shared with other handlers, so it is not changed, nor is the array behind it: slog marks that with !BUG.
func TestLogHandler_LeavesTheRecord(t *testing.T) {
	t.Parallel()
	l, buf := newLogger()
	r := slog.Record{Message: "m"}
	for i := range 8 {
		r.AddAttrs(slog.Int(strings.Repeat("k", i+1), i))
	}
	ctx := tenant.NewContext(t.Context(), "a")
	for range 2 {
		if err := l.Handler().Handle(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Split(buf.String(), "\n"); lines[0] != lines[1] || strings.Contains(buf.String(), "!BUG") {
		t.Errorf("one record was logged as\n%s", buf)
	}
	if n := r.NumAttrs(); n != 8 {
		t.Errorf("the record has %d attributes, want 8", n)
	}
}

func TestLogHandler_Enabled(t *testing.T) {
	t.Parallel()
	h := tenant.NewLogHandler(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if h.Enabled(t.Context(), slog.LevelInfo) || !h.Enabled(t.Context(), slog.LevelWarn) {
		t.Error("Enabled does not ask the next handler")
	}
	defer func() {
		if recover() == nil {
			t.Error("NewLogHandler(nil) did not panic")
		}
	}()
	tenant.NewLogHandler(nil)
}

// The handler keeps the rules of slog, with and without a tenant in the context.
func TestLogHandler_Conformance(t *testing.T) {
	for _, bound := range []bool{false, true} {
		var buf bytes.Buffer
		slogtest.Run(t, func(*testing.T) slog.Handler {
			buf.Reset()
			var h slog.Handler = slog.NewJSONHandler(&buf, nil)
			h = tenant.NewLogHandler(h)
			if bound {
				h = boundHandler{h}
			}
			return h
		}, func(t *testing.T) map[string]any {
			var m map[string]any
			if err := json.Unmarshal(buf.Bytes(), &m); err != nil {
				t.Fatal(err)
			}
			if got := m["tenant"]; bound && got != "a" {
				t.Errorf("tenant = %v, want a", got)
			}
			delete(m, "tenant")
			return m
		})
	}
}

// boundHandler logs everything under tenant a.
type boundHandler struct{ slog.Handler }

func (h boundHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.Handler.Handle(tenant.NewContext(ctx, "a"), r)
}

func (h boundHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return boundHandler{h.Handler.WithAttrs(a)}
}

func (h boundHandler) WithGroup(n string) slog.Handler { return boundHandler{h.Handler.WithGroup(n)} }
