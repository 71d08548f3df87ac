package notify

import "errors"

// The states that callers test with errors.Is; all may be wrapped.
var (
	// ErrTopic means that a topic is empty, longer than [MaxTopicLen], or holds other bytes than [A-Za-z0-9._:-].
	ErrTopic = errors.New("notify: invalid topic: want 1 to 128 bytes of [A-Za-z0-9._:-]")

	// ErrPayload means that a payload is longer than [MaxPayload]. A notice says that something changed, and does not carry it.
	ErrPayload = errors.New("notify: payload too long: want at most 4096 bytes")

	// ErrClosed means that the Notifier was closed. Notifiers that have no Close never return it.
	ErrClosed = errors.New("notify: the notifier is closed")
)
