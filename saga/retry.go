package saga

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// The pause before a transaction that lost a lock is tried again: the first and the longest, halved at random.
const (
	againMin = time.Millisecond
	againMax = 100 * time.Millisecond
)

// errAgain asks for the whole transaction to be run again at once, as when the first row of a cell appeared while it was being inserted. It is wrapped
// together with a broken commit that asks for the same. Callers see it inside a [*ContendedError] alone.
var errAgain = errors.New("saga: the rows changed meanwhile")

// again runs fn, a whole transaction, until it succeeds, fails for good, has used up Config.Retries or ctx ends. What is used up is a [*ContendedError].
func (d *Donations) again(ctx context.Context, fn func() error) error {
	for try := 1; ; try++ {
		err := fn()
		if err == nil || !lost(err) {
			return err
		}
		if try >= d.cfg.Retries {
			return &ContendedError{Tries: try, Err: err}
		}
		timer := time.NewTimer(backoff(againMin, againMax, try))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), &ContendedError{Tries: try, Err: err})
		}
	}
}

// lost reports a try after which the whole transaction may be run again. A donation of which it is not known whether it was started is none: what the
// next try met would hide that from the caller.
func lost(err error) bool {
	return !errors.Is(err, ErrUnknownOutcome) && (errors.Is(err, errAgain) || dal.IsRetryable(err))
}

// exec runs one statement by itself, as often as it loses a lock, and returns the number of rows that it matched.
func (d *Donations) exec(ctx context.Context, lib *dal.Library, st *wire.Statement, args ...any) (n int64, err error) {
	err = d.again(ctx, func() error {
		res, err := lib.Exec(ctx, st, args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

// backoff returns the pause before the attempt after attempt (from 1): from first, doubling to longest, of which a random half is taken off.
func backoff(first, longest time.Duration, attempt int) time.Duration {
	pause := longest
	if shift := max(attempt-1, 0); shift < 30 && first<<shift < longest {
		pause = first << shift
	}
	return pause/2 + rand.N(pause/2+1)
}

// isBadKey reports a shard key that is none.
func isBadKey(err error) bool {
	var kind *shardrouter.KeyTypeError
	return errors.Is(err, shardrouter.ErrEmptyKey) || errors.Is(err, shardrouter.ErrZeroKey) || errors.As(err, &kind)
}

// unroutable reports an error of routing that no waiting mends.
func unroutable(err error) bool {
	return isBadKey(err) || errors.Is(err, tenant.ErrUnknownTenant) || errors.Is(err, tenant.ErrInvalidID)
}

// badData reports that the database refuses the values themselves. It is a closed list, since everything else may pass: a database that is away, full,
// read-only or not migrated keeps a donation pending and never quarantines it.
func badData(err error) bool {
	switch code := wire.Code(err); code {
	case 1048, 1264, 1265, 1292, 1366, 1406, 1690, 3819, 4025: // NULL, range, truncation, value, length, arithmetic, CHECK (MySQL, MariaDB)
		return true
	case 18: // SQLITE_TOOBIG
		return true
	default:
		// SQLITE_CONSTRAINT but keys, SQLITE_MISMATCH; MySQL's numbers start at 1000.
		return !wire.IsDuplicateKey(err) && (code == 19 || code == 275 || code == 1299 || code == 3091 || code == 20)
	}
}
