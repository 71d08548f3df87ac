package quota_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tenantdal/tenantdal/quota"
)

func TestPermit_CountsReferences(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{MaxConns: 1})
	p := admit(t, q, "acme", "s1", none, 0)
	if p.Tenant() != "acme" || p.Shard() != "s1" {
		t.Errorf("permit of %q on %q, want acme on s1", p.Tenant(), p.Shard())
	}
	p.Retain()
	if !p.TryRetain() {
		t.Fatal("TryRetain of a live permit = false")
	}
	for i := range 3 {
		if n := q.InUse("acme", "s1"); n != 1 {
			t.Fatalf("InUse = %d with %d references, want 1", n, 3-i)
		}
		p.Release()
	}
	settled(t, q, 1)
}

// A Release too many frees nothing, neither now nor for whoever has the slot next, and a permit that was given back stays dead.
func TestPermit_Q46_ReleasedOnce(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{MaxConns: 1})
	old := admit(t, q, "acme", "s1", none, 0)
	old.Release()
	old.Release()
	p := admit(t, q, "acme", "s1", none, 0)
	old.Release()
	if n := q.InUse("acme", "s1"); n != 1 {
		t.Errorf("InUse = %d after a late Release of an old permit, want 1", n)
	}
	_, err := q.TryAdmit("acme", "s1", none, 0)
	exceeded(t, err, quota.LimitConns)

	if old.TryRetain() {
		t.Error("TryRetain revived a permit")
	}
	old.Retain()
	old.Release()
	if st := q.Stats(); st.OverReleases != 3 || st.LateRetains != 1 || st.InUse != 1 {
		t.Errorf("Stats() = %+v, want 3 over-releases, 1 late retain, 1 in use", st)
	}
	p.Release()
	settled(t, q, 3)
}

// Many owners end their references at once: the slot comes back once.
func TestPermit_ConcurrentReleases(t *testing.T) {
	t.Parallel()
	const owners, rounds = 8, 500
	q := newQuota(t, quota.Config{MaxConns: 1})
	for range rounds {
		p := admit(t, q, "acme", "s1", none, 0)
		var wg sync.WaitGroup
		for range owners {
			wg.Go(func() {
				if p.TryRetain() {
					p.Release()
				}
				p.Release() // the owners have one reference among them
			})
		}
		wg.Wait()
		if n := q.InUse("acme", "s1"); n != 0 {
			t.Fatalf("InUse = %d, want 0", n)
		}
	}
	if n := q.Stats().OverReleases; n != rounds*(owners-1) {
		t.Errorf("OverReleases = %d, want %d", n, rounds*(owners-1))
	}
	settled(t, q, rounds)
}

// A holder that panics, or ends by runtime.Goexit, gives its permit back through its deferred Release; the next waiter is served.
func TestPermit_Q63_HolderPanics(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"Panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQuota(t, quota.Config{MaxConns: 1})
				fail := make(chan struct{})
				ready := make(chan struct{})
				go func() {
					defer func() { _ = recover() }()
					p := admit(t, q, "acme", "s1", none, 0)
					defer p.Release()
					close(ready)
					<-fail
					end()
				}()
				<-ready
				w := start(context.Background(), q, "acme", "s1", none, 0)
				synctest.Wait()
				if !pending(w) {
					t.Fatal("the waiter did not wait")
				}
				close(fail)
				synctest.Wait()
				granted(t, w).Release()
				settled(t, q, 2)
			})
		})
	}
}
