// Package notify carries short notices between the processes of one service: "the topology has a new epoch", "rows of this table changed".
//
//	n := notify.NewLocal()
//	stop, err := n.Subscribe(ctx, "topology", func(m notify.Notice) { look() })
//	...
//	defer stop()
//	err = n.Publish(ctx, "topology", []byte("17"))
//
// A notice makes a receiver look sooner, and nothing more. It is delivered at most once, and it may be lost: a receiver that must not miss a change
// polls as well, or bounds by age what it keeps. A notice is no proof either, since whoever reaches the carrier can send one; it holds no row values.
package notify
