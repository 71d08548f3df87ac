// Package redisnotify carries the notices of package notify over Redis's pub/sub, between all processes that reach one server.
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379"})
//	n, err := redisnotify.New(redisnotify.Config{Client: client, Prefix: "game:"})
//	...
//	defer n.Close(ctx) // and then the client
//	store, err := dal.Open(ctx, dal.Config{Notifier: n, ...})
//
// Pub/sub keeps nothing: what is published while a subscriber's connection is broken never reaches it. Such a gap, and a queue that overflows, is told by
// [notify.Notice.Lost], once the connection is back or the queue is empty.
//
// The numbered databases of a server share their channels: services that share a server keep apart by [Config.Prefix]. Whoever may publish there can send
// a notice; it makes a receiver look sooner and decides nothing.
package redisnotify
