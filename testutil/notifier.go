package testutil

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenantdal/tenantdal/dal/notify"
)

// notifyLimit bounds each wait for a notice that must come.
const notifyLimit = 10 * time.Second

// CheckNotifier fails tb where an implementation breaks what [notify.Notifier] promises. a and b are two instances that reach each other, as two processes
// would; they may be the same. Topics begin with "check-notifier.".
func CheckNotifier(tb TB, a, b notify.Notifier) {
	tb.Helper()
	ctx := tb.Context()
	checkNotifierRefusals(tb, a)

	const topic, other = "check-notifier.one", "check-notifier.two"
	if err := a.Publish(ctx, topic, []byte("before anybody listens")); err != nil {
		tb.Errorf("Publish without subscribers = %v", err)
	}
	var gots [3]chan notify.Notice
	var stops [3]func()
	for i, n := range []notify.Notifier{a, b, b} {
		gots[i] = make(chan notify.Notice, 64)
		stop, err := n.Subscribe(ctx, topic, func(m notify.Notice) { gots[i] <- m })
		if err != nil {
			tb.Fatalf("Subscribe = %v", err)
		}
		stops[i] = stop
	}
	defer stops[0]()
	defer stops[1]()
	if err := a.Publish(ctx, other, []byte("of another topic")); err != nil {
		tb.Errorf("Publish = %v", err)
	}
	var want []string
	payload := make([]byte, 0, 16)
	for i := range 20 {
		payload = fmt.Appendf(payload[:0], "n%d", i) // reused: Publish keeps no hold of it
		want = append(want, string(payload))
		if err := a.Publish(ctx, topic, payload); err != nil {
			tb.Fatalf("Publish = %v", err)
		}
	}
	for i, got := range gots {
		if have := receive(tb, got, len(want)); !slices.Equal(have, want) {
			tb.Errorf("subscription %d received %q, want %q", i, have, want)
		}
	}

	stops[2]()
	stops[2]()
	if err := b.Publish(ctx, topic, nil); err != nil {
		tb.Errorf("Publish of nothing = %v", err)
	}
	for _, got := range gots[:2] {
		if have := receive(tb, got, 1); !slices.Equal(have, []string{""}) {
			tb.Errorf("an empty notice came as %q", have)
		}
	}
	select {
	case m := <-gots[2]:
		tb.Errorf("after stop the subscription received %+v", m)
	default:
	}
}

func checkNotifierRefusals(tb TB, n notify.Notifier) {
	tb.Helper()
	ctx := tb.Context()
	refused := func(m notify.Notice) { tb.Errorf("a refused subscription received %+v", m) }
	for _, topic := range []string{"", "two words", "star*", "line\n", strings.Repeat("t", notify.MaxTopicLen+1)} {
		if err := n.Publish(ctx, topic, nil); !errors.Is(err, notify.ErrTopic) {
			tb.Errorf("Publish on topic %q = %v, want ErrTopic", topic, err)
		}
		if stop, err := n.Subscribe(ctx, topic, refused); !errors.Is(err, notify.ErrTopic) || stop != nil {
			tb.Errorf("Subscribe on topic %q = %v, want ErrTopic and no stop", topic, err)
		}
	}
	if err := n.Publish(ctx, "check-notifier.one", make([]byte, notify.MaxPayload+1)); !errors.Is(err, notify.ErrPayload) {
		tb.Errorf("Publish of a long payload = %v, want ErrPayload", err)
	}
	if err := n.Publish(ctx, "check-notifier.one", make([]byte, notify.MaxPayload)); err != nil {
		tb.Errorf("Publish of the longest payload = %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := n.Publish(ended, "check-notifier.one", nil); !errors.Is(err, context.Canceled) {
		tb.Errorf("Publish under an ended context = %v, want context.Canceled", err)
	}
	if stop, err := n.Subscribe(ended, "check-notifier.one", refused); !errors.Is(err, context.Canceled) || stop != nil {
		tb.Errorf("Subscribe under an ended context = %v, want context.Canceled and no stop", err)
	}
}

// receive waits for count notices.
func receive(tb TB, got <-chan notify.Notice, count int) []string {
	tb.Helper()
	limit := time.NewTimer(notifyLimit)
	defer limit.Stop()
	var have []string
	for range count {
		select {
		case m := <-got:
			if m.Lost {
				tb.Errorf("a loss was told where nothing can be lost")
			}
			have = append(have, string(m.Payload))
		case <-limit.C:
			tb.Errorf("%d of %d notices came within %s: %q", len(have), count, notifyLimit, have)
			return have
		}
	}
	return have
}
