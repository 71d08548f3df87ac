package saga

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// maxField is the width of every key column in bytes.
const maxField = 255

// resolveLimit bounds how long a broken commit is looked up, whatever became of the caller's ctx.
const resolveLimit = 5 * time.Second

// Donation asks to move items from a player's bag to a guild's warehouse. All texts are compared byte by byte and have 1 to 255 bytes.
type Donation struct {
	// Key is the caller's idempotency key, unique per tenant and player: equal keys of two players are two donations.
	Key string
	// Player and Guild are shard keys; "0" is refused, since it is what an id that was never set looks like.
	Player string
	Guild  string
	Item   string
	// Qty is the number of items, at least 1.
	Qty int64
}

// Receipt says where a donation stands.
type Receipt struct {
	SagaID ID
	State  State
	Reason Reason // for [Refunded] and [Quarantined]
	// Replayed reports that the donation had been started before, by an equal call.
	Replayed bool
}

// errors by which a transaction of T1 is rolled back: each says what to read next.
var (
	errExists = errors.New("saga: the journal row exists")
	errShort  = errors.New("saga: the bag is too small")
)

// Donate takes the items out of the player's bag and writes the journal row, in one transaction on the player's shard, and returns after its commit.
// The relay carries the donation on: see [Donations.Start]. The same donation again moves nothing and returns where the first one stands.
//
// The tenant is the context's. On any error nothing was moved, unless the error is an [*UnknownOutcomeError]. Errors: [*QuantityError] and
// [*FieldError] before anything is sent; those of [tenant.FromContext] and [dal.Store.Route] for a tenant that is missing, unknown or suspended;
// [*InsufficientError]; [*ConflictError]; [*ContendedError]; [ErrClosed]; a [*quota.ExceededError] of the tenant's limits; errors of the database, wrapped.
//
// It is safe for concurrent use, also for equal donations, also from several processes.
func (d *Donations) Donate(ctx context.Context, don Donation) (Receipt, error) {
	if d.relay.closed() {
		return Receipt{}, ErrClosed
	}
	j, err := d.prepare(ctx, don)
	if err != nil {
		return Receipt{}, err
	}
	lib, err := d.store.Library(j.source, dal.LaneTenant)
	if err != nil {
		return Receipt{}, fmt.Errorf("saga: donate: %w", err)
	}
	var rec Receipt
	started := false
	if d.relay.reserve(j) {
		defer func() { d.relay.release(j, started) }()
	}
	err = d.again(ctx, func() error {
		var err error
		rec, err = d.start(ctx, lib, j)
		return err
	})
	if err != nil {
		return Receipt{}, err
	}
	started = !rec.Replayed
	return rec, nil
}

// prepare checks a donation and finds its two places.
func (d *Donations) prepare(ctx context.Context, don Donation) (*job, error) {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("saga: donate: %w", err)
	}
	if don.Qty <= 0 {
		return nil, &QuantityError{Qty: don.Qty}
	}
	if err := checkFields("Key", don.Key, "Player", don.Player, "Guild", don.Guild, "Item", don.Item); err != nil {
		return nil, err
	}
	source, err := d.route(ctx, PlayerKeyspace, "Player", don.Player)
	if err != nil {
		return nil, err
	}
	target, err := d.route(ctx, GuildKeyspace, "Guild", don.Guild)
	if err != nil {
		return nil, err
	}
	return &job{
		tenant: id, id: DeriveID(id, don.Player, don.Key), source: source.Place, target: target.Place,
		player: don.Player, key: don.Key, guild: don.Guild, item: don.Item, qty: don.Qty,
		hash: bodyHash(don.Guild, don.Item, don.Qty), epoch: int64(target.Epoch),
	}, nil
}

// checkFields takes names and values in turn and reports the first value that is empty or too long.
func checkFields(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		switch n := len(pairs[i+1]); {
		case n == 0:
			return &FieldError{Field: pairs[i], Err: errors.New("it is empty")}
		case n > maxField:
			return &FieldError{Field: pairs[i], Err: fmt.Errorf("it has %d bytes: want at most %d", n, maxField)}
		}
	}
	return nil
}

// route finds the place of a key; a key that is none is the field's fault.
func (d *Donations) route(ctx context.Context, keyspace, field, key string) (dal.Route, error) {
	r, err := d.store.Route(ctx, dal.Key(keyspace, key))
	switch {
	case err == nil:
		return r, nil
	case isBadKey(err):
		return dal.Route{}, &FieldError{Field: field, Err: err}
	}
	return dal.Route{}, fmt.Errorf("saga: %w", err)
}

// start runs T1 once and settles what an error left open.
func (d *Donations) start(ctx context.Context, lib *dal.Library, j *job) (Receipt, error) {
	complete := false
	err := lib.Tx(ctx, func(tx *dal.LibraryTx) error {
		if err := d.take(ctx, tx, j); err != nil {
			return err
		}
		complete = true
		return nil
	})
	switch {
	case err == nil:
		return Receipt{SagaID: j.id, State: Pending}, nil
	case errors.Is(err, errShort):
		return Receipt{}, &InsufficientError{Tenant: j.tenant, Owner: j.player, Item: j.item, Qty: j.qty}
	case errors.Is(err, errExists):
		rec, found, err := d.journal(ctx, lib, readJournal, j)
		if err == nil && !found {
			return Receipt{}, errAgain
		}
		return rec, err
	case complete && !errors.Is(err, wire.ErrPoisoned):
		return d.resolve(ctx, j, err)
	}
	return Receipt{}, fmt.Errorf("saga: donate: %w", err)
}

// take is T1's body: the bag, then a fresh journal row.
func (d *Donations) take(ctx context.Context, tx *dal.LibraryTx, j *job) error {
	n, err := changed(ctx, tx, d.st(takeFromBag), j.qty, string(j.tenant), d.text(j.player), d.text(j.item), j.qty)
	if err != nil {
		return err
	}
	if n == 0 { // an equal donation may have emptied the bag
		_, found, err := d.journal(ctx, tx, readJournal, j)
		switch {
		case err != nil && !errors.Is(err, ErrConflict):
			return err
		case found:
			return errExists
		}
		return errShort
	}
	due := int64(0)
	if j.attempts > 0 {
		due = d.cfg.Handover.Microseconds()
	}
	_, err = tx.Exec(ctx, d.st(insertJournal), string(j.tenant), j.id.bytes(), d.text(j.player), d.text(j.key), d.text(j.guild), d.text(j.item), j.qty,
		j.hash.bytes(), j.epoch, j.attempts, due, d.voidAfter())
	if dal.IsDuplicateKey(err) {
		return errExists
	}
	return err
}

// voidAfter returns Config.VoidAfter in microseconds.
func (d *Donations) voidAfter() int64 {
	if d.cfg.VoidAfter == Never {
		return math.MaxInt64 / 2 // a sum with the clock stays in range
	}
	return d.cfg.VoidAfter.Microseconds()
}

// journal reads where a donation stands. It returns a [*ConflictError], and found, when the row has another body.
func (d *Donations) journal(ctx context.Context, q querier, st statement, j *job) (rec Receipt, found bool, err error) {
	rec = Receipt{SagaID: j.id, Replayed: true}
	var hash looseHash
	found, err = first(ctx, q, d.st(st), []any{string(j.tenant), j.id.bytes()}, &rec.State, &hash, &rec.Reason)
	switch {
	case err != nil:
		return Receipt{}, false, fmt.Errorf("saga: read the journal: %w", err)
	case !found:
		return Receipt{}, false, nil
	case ID(hash) != j.hash:
		return Receipt{}, true, &ConflictError{Tenant: j.tenant, Player: j.player, Key: j.key, SagaID: j.id}
	}
	return rec, true, nil
}

// resolve finds out what a broken commit did. It reads the journal row on a new connection, in a transaction that waits for whoever still holds the
// row: there, the donation was started; not there, it never will be by that commit. Only then it may be tried again. It asks in the library's own lane,
// since a tenant at its limit must be told too.
func (d *Donations) resolve(ctx context.Context, j *job, broken error) (Receipt, error) {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveLimit)
	defer cancel()
	var rec Receipt
	var found bool
	lib, err := d.store.Library(j.source, dal.LaneSystem)
	if err == nil {
		err = d.again(look, func() error {
			return lib.Tx(look, func(tx *dal.LibraryTx) error {
				var err error
				rec, found, err = d.journal(look, tx, readJournalLocked, j)
				return err
			})
		})
	}
	switch {
	case errors.Is(err, ErrConflict):
		return Receipt{}, err
	case err != nil:
		return Receipt{}, &UnknownOutcomeError{Tenant: j.tenant, SagaID: j.id, Err: errors.Join(err, broken)}
	case found:
		rec.Replayed = false
		return rec, nil
	case ctx.Err() == nil && errors.Is(broken, dal.ErrOutcomeUnknown):
		return Receipt{}, fmt.Errorf("%w: %w", errAgain, broken)
	case ctx.Err() != nil:
		return Receipt{}, fmt.Errorf("saga: donate: not started: %w", errors.Join(ctx.Err(), broken))
	}
	return Receipt{}, fmt.Errorf("saga: donate: not started: %w", broken)
}

// State returns where the donation stands that the context's tenant started under player and key, from its journal row.
//
// It returns [ErrNoDonation] for one that was never started, and the errors of [Donations.Donate] for an unusable player, key or tenant.
func (d *Donations) State(ctx context.Context, player, key string) (Receipt, error) {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return Receipt{}, fmt.Errorf("saga: state: %w", err)
	}
	if err := checkFields("Key", key, "Player", player); err != nil {
		return Receipt{}, err
	}
	r, err := d.route(ctx, PlayerKeyspace, "Player", player)
	if err != nil {
		return Receipt{}, err
	}
	lib, err := d.store.Library(r.Place, dal.LaneTenant)
	if err != nil {
		return Receipt{}, fmt.Errorf("saga: state: %w", err)
	}
	rec := Receipt{SagaID: DeriveID(id, player, key), Replayed: true}
	var hash looseHash
	found, err := first(ctx, lib, d.st(readJournal), []any{string(id), rec.SagaID.bytes()}, &rec.State, &hash, &rec.Reason)
	switch {
	case err != nil:
		return Receipt{}, fmt.Errorf("saga: state: %w", err)
	case !found:
		return Receipt{}, fmt.Errorf("%w: tenant %q, donation %s", ErrNoDonation, id, rec.SagaID)
	}
	return rec, nil
}
