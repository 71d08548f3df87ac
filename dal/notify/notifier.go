package notify

import "context"

const (
	// MaxTopicLen is the largest length of a topic in bytes.
	MaxTopicLen = 128
	// MaxPayload is the largest length of a payload in bytes.
	MaxPayload = 4096
)

// Notice is what a subscriber receives.
type Notice struct {
	// Payload is what was published, empty if that was. It belongs to the receiver.
	Payload []byte
	// Lost says that notices on this topic are known to have been lost before this one, by a full queue or a broken connection; Payload is then empty. The
	// receiver looks at everything the topic is about.
	Lost bool
}

// Notifier publishes and delivers notices. Implementations are safe for concurrent use.
//
// What each of them keeps:
//
//   - A notice is delivered at most once to each subscription, and may be lost. A loss that the implementation knows of is told by [Notice.Lost].
//   - What one goroutine publishes on one topic arrives in that order, with gaps. Nothing is said of the order between publishers.
//   - A subscription sees what is published after Subscribe returned, from this process as well, and nothing of other topics.
//   - Publish never waits for a receiver.
type Notifier interface {
	// Publish sends payload to the present subscriptions of topic, in all processes. That nobody listens is no error, and nil does not mean that anybody
	// received it.
	//
	// It returns [ErrTopic], [ErrPayload], the cause of a ctx that has ended, or an error of the carrier.
	Publish(ctx context.Context, topic string, payload []byte) error

	// Subscribe calls fn for the notices of topic until stop is called, one at a time; a slow fn loses notices. ctx bounds the call alone, not the subscription.
	//
	// stop returns when fn runs no more and will not again; it may be called twice, but not from fn. Beside an error stop is nil. It returns [ErrTopic], the cause
	// of a ctx that has ended, or an error of the carrier.
	Subscribe(ctx context.Context, topic string, fn func(Notice)) (stop func(), err error)
}

// Check returns [ErrTopic] or [ErrPayload] for what no Notifier accepts. Implementations call it first.
func Check(topic string, payload []byte) error {
	if topic == "" || len(topic) > MaxTopicLen {
		return ErrTopic
	}
	for i := range len(topic) {
		switch c := topic[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == ':', c == '-':
		default:
			return ErrTopic
		}
	}
	if len(payload) > MaxPayload {
		return ErrPayload
	}
	return nil
}
