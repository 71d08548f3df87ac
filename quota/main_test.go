package quota_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// none are limits that leave all to the service's defaults.
var none tenant.Limits

// newQuota returns a Quota with cfg.
func newQuota(t testing.TB, cfg quota.Config) *quota.Quota {
	t.Helper()
	q, err := quota.New(cfg)
	if err != nil {
		t.Fatalf("New(%+v) = %v", cfg, err)
	}
	return q
}

// admit returns a permit that there must be.
func admit(t testing.TB, q *quota.Quota, id tenant.ID, shard string, l tenant.Limits, poolMax int) *quota.Permit {
	t.Helper()
	p, err := q.Admit(context.Background(), id, shard, l, poolMax)
	if err != nil {
		t.Fatalf("Admit(%s, %s) = %v, want a permit", id, shard, err)
	}
	return p
}

// exceeded returns the refusal that err must be, by the limit it must be of.
func exceeded(t testing.TB, err error, limit quota.Limit) *quota.ExceededError {
	t.Helper()
	var e *quota.ExceededError
	if !errors.As(err, &e) || !errors.Is(err, quota.ErrQuotaExceeded) {
		t.Fatalf("error = %v, want an *ExceededError that is ErrQuotaExceeded", err)
	}
	if e.Limit != limit {
		t.Fatalf("refused by %q (%v), want %q", e.Limit, err, limit)
	}
	return e
}

// answer is what an Admit returned.
type answer struct {
	p   *quota.Permit
	err error
}

// start calls Admit in a goroutine of its own.
func start(ctx context.Context, q *quota.Quota, id tenant.ID, shard string, l tenant.Limits, poolMax int) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		p, err := q.Admit(ctx, id, shard, l, poolMax)
		c <- answer{p, err}
	}()
	return c
}

// pending reports whether c has no answer yet.
func pending(c <-chan answer) bool { return len(c) == 0 }

// granted returns the permit that c must hold by now.
func granted(t testing.TB, c <-chan answer) *quota.Permit {
	t.Helper()
	select {
	case a := <-c:
		if a.err != nil {
			t.Fatalf("waiter was refused: %v", a.err)
		}
		return a.p
	default:
		t.Fatal("waiter has no answer, want a permit")
		return nil
	}
}

// refused returns the error that c must hold by now.
func refused(t testing.TB, c <-chan answer) error {
	t.Helper()
	select {
	case a := <-c:
		if a.err == nil {
			t.Fatal("waiter got a permit, want a refusal")
		}
		return a.err
	default:
		t.Fatal("waiter has no answer, want a refusal")
		return nil
	}
}

// lateCtx is a ctx that has ended without having said so on its channel yet: the instant between a grant and a cancel, held still.
type lateCtx struct {
	context.Context
	done  chan struct{}
	ended atomic.Bool
}

func newLateCtx() *lateCtx {
	return &lateCtx{Context: context.Background(), done: make(chan struct{})}
}

func (c *lateCtx) end() { c.ended.Store(true) }

func (c *lateCtx) Done() <-chan struct{} { return c.done }

func (c *lateCtx) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

// settled checks that nothing is held and nobody waits, and that asked calls had one answer each.
func settled(t testing.TB, q *quota.Quota, asked uint64) {
	t.Helper()
	st := q.Stats()
	if st.InUse != 0 || st.Waiting != 0 || st.SystemInUse != 0 || st.SystemWaiting != 0 {
		t.Errorf("Stats() = %+v, want nothing in use and nobody waiting", st)
	}
	if st.Granted+st.Refused != asked {
		t.Errorf("Granted %d + Refused %d = %d, want the %d calls made", st.Granted, st.Refused, st.Granted+st.Refused, asked)
	}
}
