// Package saga carries work over several shards to one end, without a transaction over two databases. Its first saga is the donation: items leave a
// player's bag on the player's shard and arrive in a guild's warehouse on the guild's.
//
//	donations, err := saga.NewDonations(store, saga.Config{})     // store: dal.Open with saga.Tables() in dal.Config.Tables
//	err = donations.Start(ctx)                                    // from here on the relay works
//	defer donations.Close(ctx)                                    // drains
//
//	ctx = tenant.NewContext(ctx, "acme")
//	receipt, err := donations.Donate(ctx, saga.Donation{Key: "k-1", Player: "7", Guild: "12", Item: "gold", Qty: 5})
//	receipt, err = donations.State(ctx, "7", "k-1")               // pending, then settled or refunded
//
// Donate is one local transaction: the bag and a journal row, which is the outbox row too. The relay tells the guild's shard, which decides: it inserts
// one decision row for the donation, with the credit, a refusal, or a void, in one transaction. Whoever inserts that row first decides, for ever; every
// duplicate, every late message and every compensation meets it and reads what was decided. Then the relay settles the journal row, or turns it into a
// refund, in one transaction with the bag.
//
//	source: (none) -> PENDING -> SETTLED | REFUNDED      VOIDING and QUARANTINED still hold the items
//	target: (none) -> APPLIED | REJECTED | VOIDED        one row a donation, never changed
//
//	                      apply arrives       void arrives        again, late or twice
//	nothing decided       APPLIED, REJECTED   VOIDED              as the first
//	APPLIED               settle              settle              nothing
//	REJECTED or VOIDED    refund              refund              nothing
//
// A donation that takes too long is never refunded on a guess: its time over, the relay asks the guild's shard to void it. So it ends exactly once, and
// bags + pending + warehouses = minted - burned at every moment ([Donations.Conservation]).
//
// # What may fail
//
// A crash, a broken connection or a lost answer at any instruction leaves rows from which any relay of any process goes on: [Donations.Start],
// [Donations.Drain] and [Donations.Reconcile] run the same code. A COMMIT whose answer was lost is looked up in the journal, not done again. A guild's
// place that is away keeps its donations pending, with growing pauses, and delays no other place. A donation that contradicts itself, or that the
// database refuses, is quarantined after Config.MaxAttempts, with its reason: [Donations.Quarantined], [Donations.Replay].
//
// A donation that ends as it should costs five statements in three commits: two to start, two to decide, one to settle. Claims and polls, which look
// for what a crash left behind, come beside it.
//
// # Tables
//
// bag, warehouse, guild and ledger, and the saga's own saga_out (journal) and saga_in (decisions), in every place; their DDL is the set "saga" of
// package migrations/schema. Outside this package they are for reading. Whatever comes into the world or leaves it goes through [Donations.Grant],
// [Donations.Stock], [Donations.Burn] and [Donations.BurnStock], which write the ledger beside the balance, once for each id of the caller.
package saga
