package redisnotify

import "github.com/tenantdal/tenantdal/dal/notify"

// subscription is one call of Subscribe.
type subscription struct {
	queue chan notify.Notice
	ready chan error // holds one: nil once it is live, or why it will not be
	quit  chan struct{}
	done  chan struct{}

	// Under Notifier.mu:
	live bool // it was confirmed once: whatever it misses from then on is a loss
	lost bool // a notice did not fit into the queue
}

func newSubscription(queue int) *subscription {
	return &subscription{queue: make(chan notify.Notice, queue), ready: make(chan error, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

// confirm is called when the server has said that it will send the topic's notices from now on: for the first time, or after a gap. The caller holds mu.
func (s *subscription) confirm() {
	if s.live {
		s.put(notify.Notice{Lost: true})
		return
	}
	s.live = true
	s.ready <- nil
}

// put makes a notice wait, or notes that it is lost. The caller holds mu.
func (s *subscription) put(notice notify.Notice) {
	select {
	case s.queue <- notice:
	default:
		s.lost = true
	}
}

// deliver calls fn for what waits, until the subscription is stopped or the Notifier closed. That notices did not fit is told once the queue is empty: they
// came after those that waited in it.
func (n *Notifier) deliver(s *subscription, fn func(notify.Notice)) {
	defer close(s.done)
	for {
		select {
		case <-s.quit:
			return
		case <-n.life.Done():
			return
		case notice := <-s.queue:
			select {
			case <-s.quit: // what still waits is not delivered after stop
				return
			case <-n.life.Done():
				return
			default:
			}
			fn(notice)
		}
		n.mu.Lock()
		tell := s.lost && len(s.queue) == 0
		if tell {
			s.lost = false
		}
		n.mu.Unlock()
		if tell {
			fn(notify.Notice{Lost: true})
		}
	}
}
