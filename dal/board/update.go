package board

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
)

// deadlocks is how often one statement that lost a lock is sent again. It has changed nothing.
const deadlocks = 10

// update applies one update.
func (b *Board) update(ctx context.Context, player string, score, at int64) error {
	st := updates[b.cfg.Mode].in(b.store.Dialect())
	return b.inOpenGroup(ctx, player, func(g spot) (bool, error) {
		res, err := g.lib.Exec(ctx, st, []byte(player), score, at, string(b.tenant), g.place)
		switch {
		case err == nil:
			n, err := res.RowsAffected()
			return n > 0, err
		case b.cfg.Mode == Add && wire.IsOutOfRange(err):
			return false, &OverflowError{Tenant: b.tenant, Board: b.cfg.Name, Err: err}
		}
		return false, err
	})
}

// Remove removes the player's entry, by one transaction at the place of the player's group. The materialised board and cached counts have it until they are
// made anew.
//
// It returns [gorm.ErrRecordNotFound] for a player without an entry, else the errors of [Board.UpdateAt].
func (b *Board) Remove(ctx context.Context, player string) error {
	err := b.checkUse(ctx, player)
	if err != nil {
		return err
	}
	var removed int64
	err = b.inOpenGroup(ctx, player, func(g spot) (done bool, err error) {
		err = g.lib.Tx(ctx, func(tx *dal.LibraryTx) error {
			rows, err := tx.Query(ctx, shareGroup.in(b.store.Dialect()), string(b.tenant), g.place)
			if err != nil {
				return err
			}
			state := absent
			if err := one(rows, &state); err != nil || state != open {
				return err
			}
			res, err := tx.Exec(ctx, removeEntry.in(b.store.Dialect()), string(b.tenant), g.place, []byte(player))
			if err != nil {
				return err
			}
			removed, err = res.RowsAffected()
			done = true
			return err
		})
		return done, err
	})
	if err == nil && removed == 0 {
		err = gorm.ErrRecordNotFound
	}
	if err != nil {
		return fmt.Errorf("board: remove from %q: %w", b.cfg.Name, err)
	}
	return nil
}

// spot is where the entries of a group lie.
type spot struct {
	place string
	lib   *dal.Library
}

// spot finds the place of a shard key.
func (b *Board) spot(ctx context.Context, place shardrouter.Key) (spot, error) {
	r, err := b.store.Route(ctx, dal.Key(Keyspace, string(place)))
	if err != nil {
		return spot{}, err
	}
	lib, err := b.store.Library(r.Place, dal.LaneTenant)
	return spot{place: string(place), lib: lib}, err
}

// inOpenGroup calls fn until it has met an open group. fn does nothing and returns false where the group is not open; where it still does nothing though
// the group was open before and after, there is nothing to do.
func (b *Board) inOpenGroup(ctx context.Context, player string, fn func(spot) (bool, error)) error {
	for lost := 0; ; {
		l := b.layout.Load()
		i := l.group(player)
		g, err := b.spot(ctx, l.places[i])
		if err != nil {
			return err
		}
		before := l.seen[i].Load()
		done, err := fn(g)
		switch {
		case err != nil && dal.IsRetryable(err) && lost < deadlocks && ctx.Err() == nil:
			lost++
			continue
		case err != nil:
			return err
		case done:
			l.seen[i].Store(true)
			return nil
		}
		state, err := b.state(ctx, g)
		switch {
		case err != nil:
			return err
		case state == open && before:
			return nil
		case state == open: // another caller may have made the row since fn looked
			l.seen[i].Store(true)
		default:
			changed, err := b.adopt(ctx, l)
			switch {
			case err != nil:
				return err
			case changed:
			case state != absent:
				return ErrRebuilding
			default: // should a rebuild have begun meanwhile, the row is there when it is made, for good
				if _, err := g.lib.Exec(ctx, makeGroup.in(b.store.Dialect()), string(b.tenant), g.place, b.cfg.Name, int(open)); err != nil && !dal.IsRetryable(err) {
					return err
				}
			}
		}
	}
}

// state reads a group's state.
func (b *Board) state(ctx context.Context, g spot) (groupState, error) {
	rows, err := g.lib.Query(ctx, readGroup.in(b.store.Dialect()), string(b.tenant), g.place)
	if err != nil {
		return absent, err
	}
	state := absent
	err = one(rows, &state)
	return state, err
}

// own reads the player's row, and the state of its group.
func (b *Board) own(ctx context.Context, l *layout, player string) (entry, groupState, error) {
	state := absent
	g, err := b.spot(ctx, l.places[l.group(player)])
	if err != nil {
		return entry{}, state, err
	}
	rows, err := g.lib.Query(ctx, readEntry.in(b.store.Dialect()), string(b.tenant), []byte(player), string(b.tenant), g.place)
	if err != nil {
		return entry{}, state, err
	}
	var score, at sql.NullInt64
	if err := one(rows, &state, &score, &at); err != nil {
		return entry{}, state, err
	}
	if !score.Valid {
		return entry{}, state, gorm.ErrRecordNotFound
	}
	return entry{Player: []byte(player), Score: score.Int64, At: at.Int64}, state, nil
}

// one scans the first row, if there is one, and closes the rows.
func one(rows *sql.Rows, into ...any) error {
	var err error
	if rows.Next() {
		err = rows.Scan(into...)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}
