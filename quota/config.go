package quota

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Config holds the service's defaults. A tenant's own [tenant.Limits] win over them, field by field. The zero Config is valid.
type Config struct {
	// Rate is the number of statements per second that a tenant without a rate of its own may start, over the long run.
	//
	// Zero means -1, which is no limit.
	Rate float64

	// Burst is the number of statements that a tenant at the default rate may start at once after a pause. It is the size of the
	// token bucket, and never 0: a bucket without room would refuse everything for ever.
	//
	// Zero means max(1, ceil(Rate)). It has no effect while the rate is unlimited. A tenant with a rate of its own and no burst gets
	// max(1, ceil(that rate)).
	Burst int

	// MaxConns is the number of permits that a tenant may hold at a time on one shard. Each stands for one connection.
	//
	// Zero means 8; -1 means no limit but the pool's.
	MaxConns int

	// MaxQueue is the number of callers of one tenant that may wait for a permit of one shard at a time. The next one is refused.
	//
	// Zero means 256; -1 means that nobody waits: without a free permit the call is refused at once.
	MaxQueue int

	// MaxWait is the longest wait for a permit, whatever the caller's ctx would allow.
	//
	// Zero means 5 s.
	MaxWait time.Duration

	// DebtBursts bounds what statements inside a transaction may owe, in bursts of that tenant. They are counted by [Quota.Charge],
	// never wait and never fail; what passes the bound is dropped and counted in [Stats.DebtDropped]. While a tenant owes anything, its
	// next admission is refused.
	//
	// Zero means 2; -1 means no debt: such statements take the tokens there are, and the rest is dropped. At most 1000.
	DebtBursts int
}

// Defaults of [Config], named in its fields' comments.
const (
	defaultMaxConns   = 8
	defaultMaxQueue   = 256
	defaultMaxWait    = 5 * time.Second
	defaultDebtBursts = 2
	maxDebtBursts     = 1000
)

// unlimited is the value of a rate or a number of permits that is not bounded.
const unlimited = -1

// WithDefaults returns a copy of c in which each zero field has its documented default. Other values are kept, wrong ones too.
func (c Config) WithDefaults() Config {
	if c.Rate == 0 {
		c.Rate = unlimited
	}
	if c.Burst == 0 {
		c.Burst = burstFor(c.Rate)
	}
	if c.MaxConns == 0 {
		c.MaxConns = defaultMaxConns
	}
	if c.MaxQueue == 0 {
		c.MaxQueue = defaultMaxQueue
	}
	if c.MaxWait == 0 {
		c.MaxWait = defaultMaxWait
	}
	if c.DebtBursts == 0 {
		c.DebtBursts = defaultDebtBursts
	}
	return c
}

// Validate returns nil, or one error that joins all problems, each naming its field. A zero field is valid: it means its default.
func (c Config) Validate() error {
	var errs []error
	if !validRate(c.Rate) {
		errs = append(errs, fmt.Errorf("quota: config: Rate is %v, want a number above 0, 0 for the default, or -1 for no limit", c.Rate))
	}
	if c.Burst < 0 || c.Burst > maxBurst {
		errs = append(errs, fmt.Errorf("quota: config: Burst is %d, want 1 to %d, or 0 for the default", c.Burst, maxBurst))
	}
	if c.MaxConns < unlimited {
		errs = append(errs, fmt.Errorf("quota: config: MaxConns is %d, want at least 1, 0 for the default, or -1 for no limit", c.MaxConns))
	}
	if c.MaxQueue < -1 {
		errs = append(errs, fmt.Errorf("quota: config: MaxQueue is %d, want at least 1, 0 for the default, or -1 for no waiting", c.MaxQueue))
	}
	if c.MaxWait < 0 {
		errs = append(errs, fmt.Errorf("quota: config: MaxWait is %v, want more than 0, or 0 for the default", c.MaxWait))
	}
	if c.DebtBursts < -1 || c.DebtBursts > maxDebtBursts {
		errs = append(errs, fmt.Errorf("quota: config: DebtBursts is %d, want 1 to %d, 0 for the default, or -1 for no debt", c.DebtBursts, maxDebtBursts))
	}
	return errors.Join(errs...)
}

// maxBurst keeps a bucket and its debt within the integers that a float64 holds exactly.
const maxBurst = math.MaxInt32

// burstFor returns the burst of a rate that names none: one second's worth, at least 1.
func burstFor(rate float64) int {
	if !(rate > 1) { // NaN too, which Validate reports
		return 1
	}
	return int(min(math.Ceil(rate), maxBurst))
}

// validRate reports whether rate is -1, 0 or a positive finite number.
func validRate(rate float64) bool {
	return rate == unlimited || (rate >= 0 && !math.IsInf(rate, 0))
}
