package quota_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

// pooled asks for a permit of acme's or another tenant's in the line of one pool.
func pooled(ctx context.Context, q *quota.Quota, id tenant.ID, l tenant.Limits, size int) (*quota.Permit, error) {
	return q.AdmitPooled(ctx, id, "s1", l, 0, "pool of s1", size)
}

// A permit of both lanes holds both until its last reference goes, and then neither.
func TestAdmitPooled_HoldsBoth(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{})
	p, err := pooled(t.Context(), q, "acme", none, 4)
	if err != nil {
		t.Fatal(err)
	}
	p.Retain()
	for range 2 {
		if st := q.Stats(); st.InUse != 2 || st.SystemInUse != 1 || q.InUse("acme", "s1") != 1 || st.Granted != 1 {
			t.Errorf("while it is held: %+v", st)
		}
		p.Release()
	}
	if st := q.Stats(); st.InUse != 0 || st.SystemInUse != 0 || st.Granted != 1 || st.Refused != 0 {
		t.Errorf("after the last Release: %+v", st)
	}
	p.Release()
	if st := q.Stats(); st.OverReleases != 1 || st.InUse != 0 {
		t.Errorf("after one Release too many: %+v", st)
	}
}

// All tenants of a pool stand in its line; who is refused there gets tenant and shard in the error, has taken nothing, and is counted once.
func TestAdmitPooled_LineOfThePool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxWait: time.Second})
		limits := tenant.Limits{Rate: 1e-9, Burst: 1} // one token, and no more in a lifetime
		first, err := pooled(t.Context(), q, "acme", none, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pooled(t.Context(), q, "zeta", limits, 1)
		var exceeded *quota.ExceededError
		if !errors.As(err, &exceeded) || exceeded.Limit != quota.LimitWait || exceeded.Tenant != "zeta" || exceeded.Shard != "s1" {
			t.Errorf("in a full pool: %v (%+v), want a wait of zeta's on s1", err, exceeded)
		}
		if n := q.InUse("zeta", "s1"); n != 0 {
			t.Errorf("the refused call left %d permits in use", n)
		}
		if st := q.Stats(); st.Granted != 1 || st.Refused != 1 || st.InUse != 2 || st.Waiting != 0 {
			t.Errorf("after one admission and one refusal: %+v", st)
		}

		served := make(chan error)
		go func() {
			p, err := pooled(t.Context(), q, "zeta", limits, 1) // pays with the token that it got back
			if err == nil {
				p.Release()
			}
			served <- err
		}()
		synctest.Wait()
		first.Release()
		if err := <-served; err != nil {
			t.Errorf("after the pool was free again: %v", err)
		}
		if st := q.Stats(); st.InUse != 0 || st.SystemInUse != 0 || st.Waiting != 0 || st.Granted != 2 {
			t.Errorf("in the end: %+v", st)
		}
	})
}

// Whoever holds a place in the pool's line does not wait for a second one.
func TestAdmitPooled_Nested(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{})
	p, err := pooled(t.Context(), q, "acme", none, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	ctx := quota.WithPermit(t.Context(), p)
	if _, err := pooled(ctx, q, "acme", none, 1); !errors.Is(err, quota.ErrNestedAcquire) {
		t.Errorf("nested in a full pool: %v, want ErrNestedAcquire", err)
	}
	if n := q.InUse("acme", "s1"); n != 1 {
		t.Errorf("%d permits in use, want 1", n)
	}
}

// A permit knows whether its caller stood in a line for it.
func TestPermit_Waited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxWait: time.Second})
		first, err := pooled(t.Context(), q, "acme", none, 1)
		if err != nil || first.Waited() {
			t.Fatalf("alone: waited %v, %v", first != nil && first.Waited(), err)
		}
		second := make(chan *quota.Permit)
		go func() {
			p, err := pooled(t.Context(), q, "zeta", none, 1)
			if err != nil {
				t.Error(err)
			}
			second <- p
		}()
		synctest.Wait()
		first.Release()
		if p := <-second; p != nil {
			if !p.Waited() {
				t.Error("served from the pool's line, and Waited says no")
			}
			p.Release()
		}
	})
}
