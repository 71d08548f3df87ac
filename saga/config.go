package saga

import (
	"errors"
	"fmt"
	"time"
)

// Never, as Config.VoidAfter, keeps a donation pending however long its guild's shard is away.
const Never time.Duration = -1

// maxList is the largest number of ids in one statement's IN list.
const maxList = 64

// Config describes how donations are carried out. The zero value of a field means its documented default.
type Config struct {
	// VoidAfter is how long a donation may stay undecided, by the clock of the player's database. After that the guild's shard is asked to void it;
	// whichever of credit and void it wrote first stands. It never refunds by itself. What a relay finds that was away for longer than that, it voids.
	//
	// Zero means 30s; [Never] means no limit.
	VoidAfter time.Duration

	// Handover is how long a donation that was handed over in process is left to this process before polls see it.
	//
	// Zero means 5s.
	Handover time.Duration

	// LeaseFor is how long a claimed donation is left to its claimer, by the database's clock. A lease saves work and guards nothing: two relays on
	// one donation do no harm.
	//
	// Zero means 30s.
	LeaseFor time.Duration

	// StepTimeout bounds each step of the relay on one place, so that a place that hangs delays itself alone.
	//
	// Zero means 10s.
	StepTimeout time.Duration

	// PollMin and PollMax bound the pause between two polls of one place: PollMin while there is work, doubling to PollMax while there is none, each
	// with a jitter of a quarter.
	//
	// Zero means 50ms and 5s.
	PollMin, PollMax time.Duration

	// PlacesEvery is how often the list of places is read again, to find those of new tenants.
	//
	// Zero means 10s.
	PlacesEvery time.Duration

	// Batch is the largest number of donations decided in one transaction of a guild's place.
	//
	// Zero means 32; at most 64.
	Batch int

	// PerTenant is the largest number of donations of one tenant that one poll of a place claims.
	//
	// Zero means 64; at most 64.
	PerTenant int

	// Workers is the number of goroutines that decide, and the number that end, donations of one place at a time. They exist only while there is work.
	//
	// Zero means 1 on SQLite, whose files have one writer, and 2 elsewhere.
	Workers int

	// QueueSize is the largest number of donations that wait in process for one place. When it is full the tenant with the longest queue loses its
	// last entry, which the poll finds again.
	//
	// Zero means 4096.
	QueueSize int

	// MaxAttempts is the number of attempts after which a donation that fails for reasons of its own (never for a database that is away) is
	// quarantined.
	//
	// Zero means 8.
	MaxAttempts int

	// RetryMin and RetryMax bound the pause before a failed donation is tried again: RetryMin after the first attempt, doubling to RetryMax, with jitter.
	//
	// Zero means 100ms and 30s.
	RetryMin, RetryMax time.Duration

	// Retries is the number of times that one transaction is tried when it loses a lock (deadlock, lock wait, busy). Then it is a [*ContendedError].
	//
	// Zero means 12.
	Retries int
}

// WithDefaults returns a copy with every zero field filled, except Workers, whose default depends on the database.
func (c Config) WithDefaults() Config {
	span := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	count := func(n *int, def int) {
		if *n == 0 {
			*n = def
		}
	}
	span(&c.VoidAfter, 30*time.Second)
	span(&c.Handover, 5*time.Second)
	span(&c.LeaseFor, 30*time.Second)
	span(&c.StepTimeout, 10*time.Second)
	span(&c.PollMin, 50*time.Millisecond)
	span(&c.PollMax, 5*time.Second)
	span(&c.PlacesEvery, 10*time.Second)
	span(&c.RetryMin, 100*time.Millisecond)
	span(&c.RetryMax, 30*time.Second)
	count(&c.Batch, 32)
	count(&c.PerTenant, maxList)
	count(&c.QueueSize, 4096)
	count(&c.MaxAttempts, 8)
	count(&c.Retries, 12)
	return c
}

// Validate reports every mistake at once, each with its field's name. It expects the defaults to be filled.
func (c Config) Validate() error {
	var errs []error
	if c.VoidAfter != Never && c.VoidAfter < time.Millisecond {
		errs = append(errs, fmt.Errorf("saga: Config.VoidAfter is %v: want at least 1ms, or saga.Never", c.VoidAfter))
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"Handover", c.Handover},
		{"LeaseFor", c.LeaseFor},
		{"StepTimeout", c.StepTimeout},
		{"PollMin", c.PollMin},
		{"PollMax", c.PollMax},
		{"PlacesEvery", c.PlacesEvery},
		{"RetryMin", c.RetryMin},
		{"RetryMax", c.RetryMax},
	} {
		if f.value < time.Millisecond {
			errs = append(errs, fmt.Errorf("saga: Config.%s is %v: want at least 1ms", f.name, f.value))
		}
	}
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"Batch", c.Batch, maxList},
		{"PerTenant", c.PerTenant, maxList},
		{"QueueSize", c.QueueSize, 1 << 20},
		{"MaxAttempts", c.MaxAttempts, 1 << 20},
		{"Retries", c.Retries, 1 << 10},
	} {
		if f.value < 1 || f.value > f.max {
			errs = append(errs, fmt.Errorf("saga: Config.%s is %d: want 1 to %d", f.name, f.value, f.max))
		}
	}
	if c.Workers < 0 || c.Workers > 256 {
		errs = append(errs, fmt.Errorf("saga: Config.Workers is %d: want 1 to 256, or 0 for the default", c.Workers))
	}
	if c.PollMin > c.PollMax {
		errs = append(errs, fmt.Errorf("saga: Config.PollMin %v is longer than Config.PollMax %v", c.PollMin, c.PollMax))
	}
	if c.RetryMin > c.RetryMax {
		errs = append(errs, fmt.Errorf("saga: Config.RetryMin %v is longer than Config.RetryMax %v", c.RetryMin, c.RetryMax))
	}
	if c.StepTimeout > c.LeaseFor {
		errs = append(errs, fmt.Errorf("saga: Config.StepTimeout %v is longer than Config.LeaseFor %v: every slow step would be done twice", c.StepTimeout, c.LeaseFor))
	}
	return errors.Join(errs...)
}
