package saga

import "fmt"

// State is where a donation stands, as its journal row says. The zero value is no state.
type State uint8

// The states of a donation. The first three still hold the items; the last two are final.
const (
	Pending     State = iota + 1 // "pending": out of the bag, not decided or not ended yet
	Voiding                      // "voiding": its time is over, and the guild's shard is asked to void it
	Quarantined                  // "quarantined": it cannot be carried out; only Replay moves it on
	Settled                      // "settled": in the warehouse
	Refunded                     // "refunded": back in the bag
)

var stateWords = [...]string{Pending: "pending", Voiding: "voiding", Quarantined: "quarantined", Settled: "settled", Refunded: "refunded"}

// String returns the state's word, or "State(n)".
func (s State) String() string {
	if s < Pending || s > Refunded {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateWords[s]
}

// Final reports whether the donation has ended: [Settled] or [Refunded].
func (s State) Final() bool { return s == Settled || s == Refunded }

// Outcome is what the guild's shard decided about a donation. It never changes. The zero value is no outcome.
type Outcome uint8

// The outcomes of a decision.
const (
	Applied  Outcome = iota + 1 // "applied": credited to the warehouse
	Rejected                    // "rejected": refused, with a reason
	Voided                      // "voided": it will never be credited
)

var outcomeWords = [...]string{Applied: "applied", Rejected: "rejected", Voided: "voided"}

// String returns the outcome's word, or "Outcome(n)".
func (o Outcome) String() string {
	if o < Applied || o > Voided {
		return fmt.Sprintf("Outcome(%d)", uint8(o))
	}
	return outcomeWords[o]
}

// Reason says why a donation was refunded or quarantined; empty otherwise.
type Reason string

// The reasons of refunds.
const (
	ReasonNoGuild  Reason = "no_guild"     // no such guild
	ReasonClosed   Reason = "guild_closed" // the guild takes no donations
	ReasonOverflow Reason = "overflow"     // the warehouse's cell would pass 2^63-1
	ReasonTimeout  Reason = "timeout"      // Config.VoidAfter passed before a decision
)

// The reasons of quarantines.
const (
	ReasonBodyMismatch Reason = "body_mismatch" // a decision of the same id stands for another guild, item, quantity or player
	ReasonBadRow       Reason = "bad_row"       // the journal row contradicts itself
	ReasonBadRoute     Reason = "bad_route"     // the guild cannot be routed: its key or its tenant is unusable
	ReasonBadData      Reason = "bad_data"      // the database refuses the values
	ReasonBagFull      Reason = "bag_full"      // the refund would take the bag's cell past 2^63-1
)
