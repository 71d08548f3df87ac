package redisnotify

import "errors"

// ErrSilent means that the server has answered nothing for as long as [Config.HealthCheck] allows. It may be wrapped; [Notifier.Subscribe] returns it.
var ErrSilent = errors.New("redisnotify: the server does not answer")
