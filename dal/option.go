package dal

import (
	"fmt"
	"time"
)

// Option changes where the reads of one handle of [Store.On] go. Without one they go to the primary; nothing is ever guessed from a statement's text.
type Option func(*reads) error

// reads says where the reads of a handle may go. It is immutable.
type reads struct {
	nearest bool
	maxLag  time.Duration // zero: Config.ReplicaLag
	strict  bool
}

// Nearest lets a handle read from a replica in this process's zone, Config.Zone, when the place's primary is in another one. A replica is used while it is
// at most Config.ReplicaLag behind, or as [Replica] says beside it; else the primary is.
func Nearest() Option {
	return func(r *reads) error {
		r.nearest = true
		return nil
	}
}

// Replica lets a handle read from a replica that is at most maxLag behind its primary, one in this process's zone before others. A replica that is further
// behind, down, or of which nothing is known is not used: the primary is.
//
// A maxLag that is not above zero is refused with [*OptionError].
func Replica(maxLag time.Duration) Option {
	return func(r *reads) error {
		if maxLag <= 0 {
			return &OptionError{Option: "Replica", Reason: fmt.Sprintf("maxLag is %v: a replica is always behind", maxLag)}
		}
		r.maxLag = maxLag
		return nil
	}
}

// OrRefuse makes a read that finds no fit replica fail with [*ReplicaLagError] where it would go to the primary instead: for reports that a primary must
// never be asked for. It is refused with [*OptionError] without [Replica] or [Nearest]. With [Nearest], a primary in this process's zone is fit.
func OrRefuse() Option {
	return func(r *reads) error {
		r.strict = true
		return nil
	}
}

// readsOf puts the options together; nil for none.
func readsOf(opts []Option) (*reads, error) {
	if len(opts) == 0 {
		return nil, nil
	}
	r := &reads{}
	for _, o := range opts {
		if o == nil {
			return nil, &OptionError{Option: "nil", Reason: "it is no option"}
		}
		if err := o(r); err != nil {
			return nil, err
		}
	}
	if r.strict && !r.nearest && r.maxLag == 0 {
		return nil, &OptionError{Option: "OrRefuse", Reason: "it stands alone: name Replica or Nearest"}
	}
	return r, nil
}
