package cache

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenantdal/tenantdal/dal/notify"
)

// Config says how much a cache keeps, and for how long.
type Config struct {
	// MaxEntries is the largest number of rows kept, of all tenants. Beyond it the least useful go. Zero means 10000.
	MaxEntries int
	// TTL is how long a row may be given after its load began: the bound for notices that are lost. Zero means a minute.
	TTL time.Duration
	// LoadTimeout bounds one load, which goes on when the caller that began it gives up. Zero means ten seconds.
	LoadTimeout time.Duration
	// Notifier tells other processes of writes, and this one of theirs. Nil: within TTL alone.
	Notifier notify.Notifier
	// Now is the clock. Nil means [time.Now].
	Now func() time.Time
}

// WithDefaults returns a copy with the zero values filled in.
func (c Config) WithDefaults() Config {
	if c.MaxEntries == 0 {
		c.MaxEntries = 10_000
	}
	if c.TTL == 0 {
		c.TTL = time.Minute
	}
	if c.LoadTimeout == 0 {
		c.LoadTimeout = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate reports every field that is out of range, in one error.
func (c Config) Validate() error {
	var errs []error
	if c.MaxEntries < 0 {
		errs = append(errs, fmt.Errorf("cache: Config.MaxEntries is %d: want 0 or more", c.MaxEntries))
	}
	if c.TTL < 0 {
		errs = append(errs, fmt.Errorf("cache: Config.TTL is %s: want 0 or more", c.TTL))
	}
	if c.LoadTimeout < 0 {
		errs = append(errs, fmt.Errorf("cache: Config.LoadTimeout is %s: want 0 or more", c.LoadTimeout))
	}
	return errors.Join(errs...)
}
