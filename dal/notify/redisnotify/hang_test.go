//go:build unix

package redisnotify_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/dal/notify/redisnotify"
	"github.com/tenantdal/tenantdal/testutil"
)

// A server that hangs closes nothing: it is found out by its silence.
func TestNotifier_ServerHangs(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	lines := make(records, 1000)
	n := open(t, r, redisnotify.Config{HealthCheck: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(lines, nil))},
		func(o *redis.Options) { o.ReadTimeout = time.Second })
	got, _ := subscribe(t, n, "t")
	lines.await(t, "the connection is made")
	server, err := os.FindProcess(r.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	lines.await(t, redisnotify.ErrSilent.Error())
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, io.ErrNoProgress)
	defer cancel()
	if err := n.Publish(ctx, "t", nil); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("Publish to a server that hangs = %v, want the cause of its context", err)
	}
	if stop, err := n.Subscribe(t.Context(), "u", func(notify.Notice) {}); err == nil || stop != nil {
		t.Errorf("Subscribe on a server that hangs = %v, want an error", err)
	}
	if err := server.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if m := next(t, got); !m.Lost {
		t.Errorf("after the silence came %+v, want a loss", m)
	}
	lines.await(t, "the connection is made")
}
