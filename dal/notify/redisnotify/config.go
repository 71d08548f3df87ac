package redisnotify

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tenantdal/tenantdal/dal/notify"
)

// Config says which server carries the notices, and how.
type Config struct {
	// Client publishes, and opens the one connection of all subscriptions. It stays the caller's, who closes it after the Notifier. A client that fails over
	// is one too. It must be set.
	//
	// Its time-outs bound what the contexts of calls do not: a Publish under way ends with the context only if the client's ContextTimeoutEnabled is set, and
	// otherwise with its ReadTimeout (3 s unless set). Its retries are not used, see [Notifier.Publish].
	Client *redis.Client
	// Prefix begins the name of each channel, before the topic: 1 to 64 bytes of [A-Za-z0-9._:-]. Empty means "tenantdal:".
	Prefix string
	// Queue is how many notices wait for one subscription before the next one is lost. Zero means 256.
	Queue int
	// HealthCheck is the silence after which the server is asked whether it still is there. A connection is given up, and made anew, after at most three
	// times as long without a word. Zero means five seconds.
	HealthCheck time.Duration
	// Logger gets a record when the connection of the subscriptions is made, at info, and when it breaks, at warn. Nil: none.
	Logger *slog.Logger
}

const maxPrefix = 64

// WithDefaults returns a copy with the zero values filled in.
func (c Config) WithDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = "tenantdal:"
	}
	if c.Queue == 0 {
		c.Queue = 256
	}
	if c.HealthCheck == 0 {
		c.HealthCheck = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports every field that is missing or out of range, in one error.
func (c Config) Validate() error {
	var errs []error
	if c.Client == nil {
		errs = append(errs, errors.New("redisnotify: Config.Client is nil"))
	}
	if c.Prefix != "" && (len(c.Prefix) > maxPrefix || notify.Check(c.Prefix, nil) != nil) {
		errs = append(errs, fmt.Errorf("redisnotify: Config.Prefix is %q: want at most %d bytes of [A-Za-z0-9._:-]", c.Prefix, maxPrefix))
	}
	if c.Queue < 0 {
		errs = append(errs, fmt.Errorf("redisnotify: Config.Queue is %d: want 0 or more", c.Queue))
	}
	if c.HealthCheck < 0 {
		errs = append(errs, fmt.Errorf("redisnotify: Config.HealthCheck is %s: want 0 or more", c.HealthCheck))
	}
	return errors.Join(errs...)
}
