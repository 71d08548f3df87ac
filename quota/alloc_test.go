package quota_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

// Without a wait an admission allocates the permit and nothing else. Permits are not pooled, so that a late Release cannot hit another's.
func TestAdmit_AllocatesThePermitAlone(t *testing.T) {
	limits := tenant.Limits{Rate: 1e9, Burst: 1e6, MaxConns: 4}
	q := newQuota(t, quota.Config{})
	ctx := context.Background()
	held := admit(t, q, "acme", "s2", limits, 8)
	inner := quota.WithPermit(ctx, held)
	for _, tt := range []struct {
		name string
		want float64
		call func()
	}{
		{"Admit", 1, func() { admit(t, q, "acme", "s1", limits, 8).Release() }},
		{"TryAdmit", 1, func() {
			if p, err := q.TryAdmit("acme", "s1", limits, 8); err == nil {
				p.Release()
			}
		}},
		{"AdmitPooled", 1, func() {
			if p, err := q.AdmitPooled(ctx, "acme", "s1", limits, 8, "pool of s1", 16); err == nil {
				p.Release()
			}
		}},
		{"SystemAdmit", 1, func() {
			if p, err := q.SystemAdmit(ctx, "s1", 2, 2); err == nil {
				p.Release()
			}
		}},
		{"Charge", 0, func() { q.Charge("acme", limits, 3) }},
		{"RetainRelease", 0, func() { held.Retain(); held.Release() }},
		{"WithPermit", 1, func() { sink = quota.WithPermit(ctx, held) }},
		{"Held", 0, func() { q.Held(inner, "acme", "s2") }},
		{"InUse", 0, func() { q.InUse("acme", "s1") }},
	} {
		if got := testing.AllocsPerRun(1000, tt.call); got != tt.want {
			t.Errorf("%s allocates %v times, want %v", tt.name, got, tt.want)
		}
	}
	held.Release()
}

var sink context.Context

// The cost of an admission does not grow with the number of tenants, nor its one allocation.
func BenchmarkAdmit(b *testing.B) {
	for _, rate := range []float64{-1, 1e9} {
		for _, tenants := range []int{1, 10, 10_000} {
			name := fmt.Sprintf("Rate=%v/Tenants=%d", rate > 0, tenants)
			setup := func(b *testing.B) (*quota.Quota, []tenant.ID, tenant.Limits) {
				q := newQuota(b, quota.Config{MaxConns: 64})
				ids := make([]tenant.ID, tenants)
				l := tenant.Limits{Rate: rate}
				for i := range ids {
					ids[i] = tenantID(i)
					admit(b, q, ids[i], "s1", l, 0).Release()
				}
				b.ReportAllocs()
				b.ResetTimer()
				return q, ids, l
			}
			b.Run(name, func(b *testing.B) {
				q, ids, l := setup(b)
				ctx := context.Background()
				for i := range b.N {
					p, err := q.Admit(ctx, ids[i%len(ids)], "s1", l, 100)
					if err != nil {
						b.Fatal(err)
					}
					p.Release()
				}
			})
			b.Run(name+"/Parallel", func(b *testing.B) {
				q, ids, l := setup(b)
				ctx := context.Background()
				var worker atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					for i := int(worker.Add(1)) * 7919; pb.Next(); i++ {
						p, err := q.Admit(ctx, ids[i%len(ids)], "s1", l, 100)
						if err != nil {
							b.Error(err)
							return
						}
						p.Release()
					}
				})
			})
		}
	}
}

// A hand-over: two callers per permit, so that each admission waits for a release.
func BenchmarkAdmit_Contended(b *testing.B) {
	q := newQuota(b, quota.Config{MaxConns: 1})
	b.ReportAllocs()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, err := q.Admit(context.Background(), "acme", "s1", none, 0)
			if err != nil {
				b.Error(err)
				return
			}
			p.Release()
		}
	})
}

func BenchmarkCharge(b *testing.B) {
	q := newQuota(b, quota.Config{})
	l := tenant.Limits{Rate: 1e9}
	b.ReportAllocs()
	for range b.N {
		q.Charge("acme", l, 1)
	}
}

// The state of an idle tenant on one shard, in bytes.
func BenchmarkBytesPerTenant(b *testing.B) {
	for _, rate := range []float64{-1, 1e9} {
		b.Run(fmt.Sprintf("Rate=%v", rate > 0), func(b *testing.B) {
			const tenants = 10_000
			for range b.N {
				ids := make([]tenant.ID, tenants)
				for i := range ids {
					ids[i] = tenantID(i)
				}
				q := newQuota(b, quota.Config{})
				held := make([]*quota.Permit, tenants)
				before := heap()
				for i, id := range ids {
					held[i] = admit(b, q, id, "s1", tenant.Limits{Rate: rate}, 0)
				}
				b.ReportMetric(float64(heap()-before)/tenants, "B/tenant")
				for _, p := range held {
					p.Release()
				}
			}
		})
	}
}
