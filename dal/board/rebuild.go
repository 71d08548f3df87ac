package board

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
)

const (
	// rebuildLease is how long a rebuild that says nothing is thought alive. It is renewed between steps when a third has passed.
	rebuildLease = 30 * time.Second

	rebuildPage = 512 // entries read at a time
)

// Rebuild changes the number of groups and Keep of the board, and returns when its entries lie in the new groups and the old ones are removed. A Keep alone
// is changed by one statement. Other Boards, in any process, take the new numbers over by themselves; [Open] wants them from then on.
//
// Reads go on throughout, and answer from the old groups until all at once the new ones are the board's. Updates and removals are refused with
// [ErrRebuilding] from the close of their group until then: for about as long as the copy takes. No update is lost: each group is closed for good, waiting
// for the updates in it, before the first entry is copied.
//
// A rebuild that fails, or whose process dies, leaves the board as it is, with updates refused if it had begun to copy: call Rebuild with the same numbers, in
// any process, and it goes on. After a death that is possible when its lease, of 30 seconds, has ended. Should the dead one come back, it changes nothing
// that matters.
//
// It returns [*RebuildingError] while another rebuild runs or when another one must be ended first, [*ConfigError], [*TenantError], and the errors of
// [dal.Store.Route].
func (b *Board) Rebuild(ctx context.Context, groups, keep int) error {
	r, err := b.rebuild(ctx, groups, keep, rebuildLease)
	if err == nil && r != nil {
		r.step = r.renewIfDue
		err = r.end(ctx)
	}
	if err != nil {
		return fmt.Errorf("board: rebuild %q: %w", b.cfg.Name, err)
	}
	return nil
}

// end runs to the end, or gives the lease up.
func (r *rebuilding) end(ctx context.Context) error {
	err := r.run(ctx)
	if err != nil {
		err = errors.Join(err, r.release(context.WithoutCancel(ctx)))
	}
	return err
}

// rebuilding is a rebuild that has the lease.
type rebuilding struct {
	b        *Board
	groups   int
	keep     int
	def      definition // as it was before the claim
	home     spot
	owner    string
	lease    time.Duration
	renewed  time.Time
	step     func(context.Context) error // called before each step
	from, to *layout
}

// rebuild checks what is asked for, and claims the lease. It returns nil if there is nothing left to do.
func (b *Board) rebuild(ctx context.Context, groups, keep int, lease time.Duration) (*rebuilding, error) {
	asked := b.cfg
	asked.Groups, asked.Keep = groups, keep
	if err := errors.Join(asked.check(), b.checkTenant(ctx)); err != nil {
		return nil, err
	}
	home, err := b.spot(ctx, shardrouter.Key(b.cfg.Name))
	if err != nil {
		return nil, err
	}
	def, err := b.definition(ctx)
	if err != nil {
		return nil, err
	}
	r := &rebuilding{b: b, groups: groups, keep: keep, def: def, home: home, owner: rand.Text(), lease: lease, renewed: time.Now()}
	next, nextKeep := groups, keep
	asMade := def.GroupCount == groups && def.KeepCount == keep
	switch resting := def.NextGroups == 0 && def.OldGroups == 0; {
	case resting && asMade:
		_, err := b.adopt(ctx, b.layout.Load())
		return nil, err
	case resting && def.GroupCount == groups:
		if err := r.write(ctx, setKeep, keep, string(b.tenant), b.cfg.Name, def.Generation); err != nil {
			return nil, err
		}
		_, err := b.adopt(ctx, b.layout.Load())
		return nil, err
	case resting, def.NextGroups == groups && def.NextKeep == keep:
	case def.OldGroups > 0 && asMade:
		next, nextKeep = 0, 0
	default:
		return nil, r.refused(def)
	}
	err = r.write(ctx, claim, next, nextKeep, r.owner, lease.Microseconds(), string(b.tenant), b.cfg.Name, def.Generation, def.NextGroups, def.NextKeep, def.OldGroups)
	return r, err
}

// write changes the definition by a constant that demands its state, and refuses if that is another one.
func (r *rebuilding) write(ctx context.Context, st statement, args ...any) error {
	n, err := r.exec(ctx, r.home, st, args...)
	if err != nil || n > 0 {
		return err
	}
	def, err := r.b.definition(ctx)
	if err != nil {
		return err
	}
	return r.refused(def)
}

// refused says what the board is being rebuilt to, or what it was rebuilt to meanwhile.
func (r *rebuilding) refused(def definition) error {
	e := &RebuildingError{Tenant: r.b.tenant, Board: r.b.cfg.Name, Groups: def.NextGroups, Keep: def.NextKeep}
	if def.NextGroups == 0 {
		e.Groups, e.Keep = def.GroupCount, def.KeepCount
	}
	return e
}

// exec runs a constant by itself, again when it has lost a lock.
func (r *rebuilding) exec(ctx context.Context, at spot, st statement, args ...any) (n int64, err error) {
	err = again(ctx, func() error {
		res, err := at.lib.Exec(ctx, st.in(r.b.store.Dialect()), args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

// again calls fn again when it has lost a lock, a few times.
func again(ctx context.Context, fn func() error) error {
	for lost := 0; ; lost++ {
		if err := fn(); err == nil || !dal.IsRetryable(err) || lost == deadlocks || ctx.Err() != nil {
			return err
		}
	}
}

func (r *rebuilding) renewIfDue(ctx context.Context) error {
	if time.Since(r.renewed) < r.lease/3 {
		return nil
	}
	r.renewed = time.Now()
	return r.write(ctx, renew, r.lease.Microseconds(), string(r.b.tenant), r.b.cfg.Name, r.owner)
}

// release lets another rebuild go on at once.
func (r *rebuilding) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.lease/3)
	defer cancel()
	_, err := r.exec(ctx, r.home, renew, 0, string(r.b.tenant), r.b.cfg.Name, r.owner)
	return err
}

// run does what is left to do. Every step may be done twice, and by two at once: what is copied does not change any more; a copy changes no entry that is
// there, and adds none to a group that was opened, which is after all copies; and the lease is compared where the layout turns.
func (r *rebuilding) run(ctx context.Context) error {
	name, generation := r.b.cfg.Name, r.def.Generation
	if r.def.OldGroups == 0 {
		r.from = newLayout(name, generation, r.def.GroupCount, r.def.KeepCount)
		r.to = newLayout(name, generation+1, r.groups, r.keep)
		if err := r.move(ctx); err != nil {
			return err
		}
	} else {
		r.from = newLayout(name, generation-1, r.def.OldGroups, r.def.KeepCount)
		r.to = newLayout(name, generation, r.def.GroupCount, r.def.KeepCount)
	}
	if _, err := r.b.adopt(ctx, r.b.layout.Load()); err != nil {
		return err
	}
	if err := r.each(ctx, r.from, r.clear); err != nil {
		return err
	}
	return r.write(ctx, finish, "", string(r.b.tenant), name, r.to.generation, r.owner)
}

// move closes the old groups, copies their entries, opens the new groups and makes them the board's.
func (r *rebuilding) move(ctx context.Context) error {
	set := func(st statement, more ...any) func(context.Context, spot) error {
		return func(ctx context.Context, at spot) error {
			_, err := r.exec(ctx, at, st, append([]any{string(r.b.tenant), at.place}, more...)...)
			return err
		}
	}
	for _, stage := range []struct {
		of *layout
		do func(context.Context, spot) error
	}{
		{r.from, set(closeGroup, r.b.cfg.Name)},
		{r.to, set(makeGroup, r.b.cfg.Name, int(filling))},
		{r.from, r.copy},
		{r.to, set(openGroup)},
	} {
		if err := r.each(ctx, stage.of, stage.do); err != nil {
			return err
		}
	}
	if err := r.step(ctx); err != nil {
		return err
	}
	return r.write(ctx, turn, string(r.b.tenant), r.b.cfg.Name, r.from.generation, r.owner)
}

// each does a step for each group of a layout.
func (r *rebuilding) each(ctx context.Context, l *layout, do func(context.Context, spot) error) error {
	for _, place := range l.places {
		if err := r.step(ctx); err != nil {
			return err
		}
		at, err := r.b.spot(ctx, place)
		if err != nil {
			return err
		}
		if err := do(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// pages calls fn for the entries of a group, page by page, in the order of players.
func (r *rebuilding) pages(ctx context.Context, at spot, fn func([]entry) error) error {
	after := []byte{} // no player's
	for {
		rows, err := at.lib.Query(ctx, readPage.in(r.b.store.Dialect()), string(r.b.tenant), at.place, after, rebuildPage)
		if err != nil {
			return err
		}
		var page []entry
		for rows.Next() && err == nil {
			var e entry
			err = rows.Scan(&e.Player, &e.Score, &e.At)
			page = append(page, e)
		}
		if err := errors.Join(err, rows.Err(), rows.Close()); err != nil || len(page) == 0 {
			return err
		}
		if err := fn(page); err != nil {
			return err
		}
		after = page[len(page)-1].Player
		if err := r.step(ctx); err != nil {
			return err
		}
	}
}

// copy copies the entries of an old group.
func (r *rebuilding) copy(ctx context.Context, at spot) error {
	return r.pages(ctx, at, func(page []entry) error {
		byGroup := map[int][]entry{}
		for _, e := range page {
			g := r.to.group(string(e.Player))
			byGroup[g] = append(byGroup[g], e)
		}
		for g, entries := range byGroup {
			to, err := r.b.spot(ctx, r.to.places[g])
			if err != nil {
				return err
			}
			if err := again(ctx, func() error { return r.fill(ctx, to, entries) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// fill inserts entries into a new group, in one transaction, unless the group was opened: then it has them, or a player was removed since.
func (r *rebuilding) fill(ctx context.Context, to spot, entries []entry) error {
	return to.lib.Tx(ctx, func(tx *dal.LibraryTx) error {
		rows, err := tx.Query(ctx, shareGroup.in(r.b.store.Dialect()), string(r.b.tenant), to.place)
		if err != nil {
			return err
		}
		state := absent
		if err := one(rows, &state); err != nil || state != filling {
			return err
		}
		for len(entries) > 0 {
			n := min(len(entries), 1<<(len(copies)-1))
			size := bits.Len(uint(n - 1))
			var args []any
			for i := range 1 << size {
				e := entries[min(i, n-1)]
				args = append(args, string(r.b.tenant), to.place, e.Player, r.b.cfg.Name, e.Score, e.At)
			}
			if _, err := tx.Exec(ctx, copies[size].in(r.b.store.Dialect()), args...); err != nil {
				return err
			}
			entries = entries[n:]
		}
		return nil
	})
}

// clear removes the entries of an old group.
func (r *rebuilding) clear(ctx context.Context, at spot) error {
	return r.pages(ctx, at, func(page []entry) error {
		_, err := r.exec(ctx, at, clearPage, string(r.b.tenant), at.place, page[len(page)-1].Player)
		return err
	})
}
