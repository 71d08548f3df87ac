package quota_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestConfig_WithDefaults(t *testing.T) {
	t.Parallel()
	filled := quota.Config{Rate: -1, Burst: 1, MaxConns: 8, MaxQueue: 256, MaxWait: 5 * time.Second, DebtBursts: 2}
	if got := (quota.Config{}).WithDefaults(); got != filled {
		t.Errorf("zero Config with defaults = %+v, want %+v", got, filled)
	}
	if got := filled.WithDefaults(); got != filled {
		t.Errorf("defaults twice = %+v, want %+v", got, filled)
	}
	own := quota.Config{Rate: 3, Burst: 9, MaxConns: -1, MaxQueue: -1, MaxWait: time.Minute, DebtBursts: -1}
	if got := own.WithDefaults(); got != own {
		t.Errorf("full Config with defaults = %+v, want it unchanged", got)
	}
	for rate, burst := range map[float64]int{0.01: 1, 1: 1, 1.5: 2, 10: 10, 1e300: math.MaxInt32} {
		if got := (quota.Config{Rate: rate}).WithDefaults().Burst; got != burst {
			t.Errorf("Burst for Rate %v = %d, want %d", rate, got, burst)
		}
	}
}

func TestConfig_Validate_Q45(t *testing.T) {
	t.Parallel()
	for _, c := range []quota.Config{
		{}, {Rate: -1}, {Rate: 1e-9}, {Rate: 10, Burst: 1}, {Burst: 5}, {MaxConns: -1}, {MaxQueue: -1}, {DebtBursts: -1}, {DebtBursts: 1000},
	} {
		if err := c.Validate(); err != nil {
			t.Errorf("Validate(%+v) = %v, want nil", c, err)
		}
		if err := c.WithDefaults().Validate(); err != nil {
			t.Errorf("Validate(%+v with defaults) = %v, want nil", c, err)
		}
	}
	for _, tt := range []struct {
		cfg   quota.Config
		field string
	}{
		{quota.Config{Rate: math.NaN()}, "Rate"},
		{quota.Config{Rate: math.Inf(1)}, "Rate"},
		{quota.Config{Rate: math.Inf(-1)}, "Rate"},
		{quota.Config{Rate: -2}, "Rate"},
		{quota.Config{Rate: -0.5}, "Rate"},
		{quota.Config{Burst: -1}, "Burst"},
		{quota.Config{MaxConns: -2}, "MaxConns"},
		{quota.Config{MaxQueue: -2}, "MaxQueue"},
		{quota.Config{MaxWait: -1}, "MaxWait"},
		{quota.Config{DebtBursts: -2}, "DebtBursts"},
		{quota.Config{DebtBursts: 1001}, "DebtBursts"},
	} {
		err := tt.cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), "config: "+tt.field+" is") || strings.Count(err.Error(), "\n") != 0 {
			t.Errorf("Validate(%+v) = %v, want one problem that names %s", tt.cfg, err, tt.field)
		}
		if q, err := quota.New(tt.cfg); err == nil || q != nil || strings.Count(err.Error(), "\n") != 0 {
			t.Errorf("New(%+v) = %v, %v, want one problem", tt.cfg, q, err)
		}
	}
	err := quota.Config{Rate: -3, Burst: -1, MaxConns: -3, MaxQueue: -3, MaxWait: -1, DebtBursts: -3}.Validate()
	for _, field := range []string{"Rate", "Burst", "MaxConns", "MaxQueue", "MaxWait", "DebtBursts"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("joined problems %q do not name %s", err, field)
		}
	}
}

func TestAdmit_Q45_InvalidLimits(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{})
	bad := []tenant.Limits{
		{Rate: math.NaN()}, {Rate: math.Inf(1)}, {Rate: math.Inf(-1)}, {Rate: -2}, {Burst: -1}, {MaxConns: -2}, {MaxQueue: -2},
	}
	for _, l := range bad {
		if p, err := q.Admit(context.Background(), "acme", "s1", l, 0); p != nil || !errors.Is(err, quota.ErrInvalidLimits) {
			t.Errorf("Admit under %+v = %v, %v, want ErrInvalidLimits", l, p, err)
		}
	}
	// And the same for a tenant that is known already. Its valid limits stay.
	p := admit(t, q, "acme", "s1", tenant.Limits{MaxConns: 1}, 0)
	for _, l := range bad {
		if p, err := q.TryAdmit("acme", "s1", l, 0); p != nil || !errors.Is(err, quota.ErrInvalidLimits) {
			t.Errorf("TryAdmit under %+v = %v, %v, want ErrInvalidLimits", l, p, err)
		}
		if err := q.SetLimits("acme", l); !errors.Is(err, quota.ErrInvalidLimits) {
			t.Errorf("SetLimits(%+v) = %v, want ErrInvalidLimits", l, err)
		}
		if err := q.SetLimits("nobody", l); !errors.Is(err, quota.ErrInvalidLimits) {
			t.Errorf("SetLimits(%+v) of an unknown tenant = %v, want ErrInvalidLimits", l, err)
		}
		q.Charge("acme", l, 1)
	}
	_, err := q.TryAdmit("acme", "s1", tenant.Limits{MaxConns: 1}, 0)
	exceeded(t, err, quota.LimitConns)
	p.Release()
	settled(t, q, uint64(2*len(bad)+2))
}

func TestAdmit_NoTenantNoShard(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{})
	if p, err := q.Admit(context.Background(), "", "s1", none, 0); p != nil || !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("Admit without a tenant = %v, %v, want ErrNoTenant", p, err)
	}
	if p, err := q.TryAdmit("", "s1", none, 0); p != nil || !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("TryAdmit without a tenant = %v, %v, want ErrNoTenant", p, err)
	}
	if p, err := q.Admit(context.Background(), "acme", "", none, 0); p != nil || !errors.Is(err, quota.ErrNoShard) {
		t.Errorf("Admit without a shard = %v, %v, want ErrNoShard", p, err)
	}
	if p, err := q.SystemAdmit(context.Background(), "", 1, 1); p != nil || !errors.Is(err, quota.ErrNoShard) {
		t.Errorf("SystemAdmit without a shard = %v, %v, want ErrNoShard", p, err)
	}
	q.Charge("", none, 1)
	settled(t, q, 4)
	if n := q.Stats().Tenants; n != 0 {
		t.Errorf("Stats().Tenants = %d after calls without a tenant, want 0", n)
	}
}
