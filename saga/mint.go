package saga

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// The sides and kinds of ledger rows, and the statuses of guilds.
const (
	bagSide       int8 = 1
	warehouseSide int8 = 2

	kindMint  int8 = 1
	kindBurn  int8 = 2
	kindGuild int8 = 3

	guildOpen   int8 = 1
	guildClosed int8 = 2
)

// cell is one balance: an item in a player's bag or a guild's warehouse.
type cell struct {
	tenant tenant.ID
	side   int8
	owner  string
	item   string
}

// args returns the cell's key as arguments.
func (d *Donations) args(c cell) []any {
	return []any{string(c.tenant), d.text(c.owner), d.text(c.item)}
}

// fits reports whether have + add is at most 2^63-1.
func fits(have, add int64) bool { return have <= math.MaxInt64-add }

// entry is one ledger row: what makes its effect happen once.
type entry struct {
	cell
	mintID string
	kind   int8
	qty    int64
}

// Grant mints items into a player's bag. mintID names the grant for that player: the same grant again does nothing, however often and in whatever
// process, since its ledger row is written in the transaction that fills the bag.
//
// Errors: [*QuantityError] and [*FieldError] before anything is sent, [*OverflowError], [*MintConflictError] and [*ContendedError] with nothing
// changed, and the tenant's as for [Donations.Donate]. Any error of the database may be answered by the same call again.
func (d *Donations) Grant(ctx context.Context, mintID, player, item string, qty int64) error {
	return d.enter(ctx, entry{cell{side: bagSide, owner: player, item: item}, mintID, kindMint, qty})
}

// Stock is [Donations.Grant] for a guild's warehouse. The guild's own row and status do not matter.
func (d *Donations) Stock(ctx context.Context, mintID, guild, item string, qty int64) error {
	return d.enter(ctx, entry{cell{side: warehouseSide, owner: guild, item: item}, mintID, kindMint, qty})
}

// Burn takes items out of a player's bag and out of the world. It is [Donations.Grant] the other way round: its mintID shares their names, and a bag that
// is too small is an [*InsufficientError] that leaves nothing behind.
func (d *Donations) Burn(ctx context.Context, mintID, player, item string, qty int64) error {
	return d.enter(ctx, entry{cell{side: bagSide, owner: player, item: item}, mintID, kindBurn, qty})
}

// BurnStock is [Donations.Burn] for a guild's warehouse.
func (d *Donations) BurnStock(ctx context.Context, mintID, guild, item string, qty int64) error {
	return d.enter(ctx, entry{cell{side: warehouseSide, owner: guild, item: item}, mintID, kindBurn, qty})
}

// SetGuild makes the guild known, and open to donations or closed. It is the same however often it is called. Errors as for [Donations.Grant].
func (d *Donations) SetGuild(ctx context.Context, guild string, open bool) error {
	return d.enter(ctx, entry{cell: cell{side: warehouseSide, owner: guild}, kind: kindGuild, qty: status(open)})
}

// SetGuildOnce is [Donations.SetGuild] that happens once for its mintID: again, after others have changed the guild since, it does nothing.
func (d *Donations) SetGuildOnce(ctx context.Context, mintID, guild string, open bool) error {
	if err := checkFields("MintID", mintID); err != nil {
		return err
	}
	return d.enter(ctx, entry{cell{side: warehouseSide, owner: guild}, mintID, kindGuild, status(open)})
}

// status returns the quantity of a guild's ledger row.
func status(open bool) int64 {
	if open {
		return 1
	}
	return 0
}

// enter checks an entry and carries it out once.
func (d *Donations) enter(ctx context.Context, e entry) error {
	lib, err := d.admit(ctx, &e)
	if err != nil {
		return err
	}
	err = d.again(ctx, func() error {
		complete := false
		err := lib.Tx(ctx, func(tx *dal.LibraryTx) error {
			if err := d.book(ctx, tx, e); err != nil {
				return err
			}
			complete = true
			return nil
		})
		switch {
		case errors.Is(err, errExists):
			return d.booked(ctx, lib, e)
		case complete && errors.Is(err, dal.ErrOutcomeUnknown):
			return fmt.Errorf("%w: %w", errAgain, err) // its row tells the next try
		}
		return err
	})
	if err == nil || errors.Is(err, ErrConflict) || errors.Is(err, ErrInsufficient) || errors.Is(err, ErrOverflow) {
		return err
	}
	return fmt.Errorf("saga: ledger: %w", err)
}

// admit checks an entry's fields, fills in its tenant and returns the place of its owner.
func (d *Donations) admit(ctx context.Context, e *entry) (*dal.Library, error) {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("saga: ledger: %w", err)
	}
	e.tenant = id
	keyspace, field := PlayerKeyspace, "Player"
	if e.side == warehouseSide {
		keyspace, field = GuildKeyspace, "Guild"
	}
	if e.kind != kindGuild {
		if e.qty <= 0 {
			return nil, &QuantityError{Qty: e.qty}
		}
		if err := checkFields("MintID", e.mintID, "Item", e.item); err != nil {
			return nil, err
		}
	}
	if err := checkFields(field, e.owner); err != nil {
		return nil, err
	}
	r, err := d.route(ctx, keyspace, field, e.owner)
	if err != nil {
		return nil, err
	}
	return d.store.Library(r.Place, dal.LaneTenant)
}

// book writes the ledger row, which a second time is a duplicate, and then the effect.
func (d *Donations) book(ctx context.Context, tx *dal.LibraryTx, e entry) error {
	if e.mintID != "" {
		_, err := tx.Exec(ctx, d.st(insertLedger), string(e.tenant), d.text(e.mintID), e.side, d.text(e.owner), e.kind, d.text(e.item), e.qty)
		if dal.IsDuplicateKey(err) {
			return errExists
		}
		if err != nil {
			return err
		}
	}
	switch e.kind {
	case kindMint:
		return d.add(ctx, tx, e.cell, e.qty)
	case kindBurn:
		return d.remove(ctx, tx, e.cell, e.qty)
	}
	return d.setGuild(ctx, tx, e)
}

// booked compares an entry with the row that stands.
func (d *Donations) booked(ctx context.Context, lib *dal.Library, e entry) error {
	var kind int8
	var item string
	var qty int64
	found, err := first(ctx, lib, d.st(readLedger), []any{string(e.tenant), d.text(e.mintID), e.side, d.text(e.owner)}, &kind, &item, &qty)
	switch {
	case err != nil:
		return err
	case !found:
		return errAgain
	case kind != e.kind || item != e.item || qty != e.qty:
		return &MintConflictError{Tenant: e.tenant, MintID: e.mintID, Owner: e.owner}
	}
	return nil
}

// add adds to a cell and makes it when it is not there. It returns an [*OverflowError]; [errAgain] when somebody made the cell meanwhile.
func (d *Donations) add(ctx context.Context, tx *dal.LibraryTx, c cell, qty int64) error {
	more, read, create := addToBag, readBag, insertBag
	if c.side == warehouseSide {
		more, read, create = stockWarehouse, readWarehouse, insertWarehouse
	}
	n, err := changed(ctx, tx, d.st(more), qty, string(c.tenant), d.text(c.owner), d.text(c.item), qty)
	if err != nil || n > 0 {
		return err
	}
	var have int64
	found, err := first(ctx, tx, d.st(read), d.args(c), &have)
	switch {
	case err != nil:
		return err
	case found && !fits(have, qty):
		return &OverflowError{Tenant: c.tenant, Owner: c.owner, Item: c.item, Qty: qty}
	case found:
		return errAgain
	}
	_, err = tx.Exec(ctx, d.st(create), append(d.args(c), qty)...)
	if dal.IsDuplicateKey(err) {
		return errAgain
	}
	return err
}

// remove takes from a cell. It returns an [*InsufficientError].
func (d *Donations) remove(ctx context.Context, tx *dal.LibraryTx, c cell, qty int64) error {
	st := takeFromBag
	if c.side == warehouseSide {
		st = takeFromWarehouse
	}
	n, err := changed(ctx, tx, d.st(st), qty, string(c.tenant), d.text(c.owner), d.text(c.item), qty)
	if err == nil && n == 0 {
		return &InsufficientError{Tenant: c.tenant, Owner: c.owner, Item: c.item, Qty: qty}
	}
	return err
}

// setGuild writes the guild's row.
func (d *Donations) setGuild(ctx context.Context, tx *dal.LibraryTx, e entry) error {
	to := guildClosed
	if e.qty == 1 {
		to = guildOpen
	}
	n, err := changed(ctx, tx, d.st(updateGuild), to, string(e.tenant), d.text(e.owner))
	if err != nil || n > 0 {
		return err
	}
	_, err = tx.Exec(ctx, d.st(insertGuild), string(e.tenant), d.text(e.owner), to)
	if wire.IsDuplicateKey(err) {
		return errAgain
	}
	return err
}
