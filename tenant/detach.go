package tenant

import "context"

// Detach returns a context for work that outlives the call it was started from: a goroutine, an audit record, a cache
// refresh. It keeps the scope of ctx (its tenant, or the system scope), the shard, and the values under the keys listed
// in keep, such as a trace. It drops the deadline, the cancellation and every other value, and holds no reference to
// ctx, so that a framework may recycle it.
//
// Where ctx has no scope the result has none either: [FromContext] returns [ErrNoTenant]. Keys in keep that ctx has no
// value for are passed over. Detach panics when ctx is nil or when a key is not comparable.
//
// Source: context.WithoutCancel, which keeps all values, and with them whatever the request had.
func Detach(ctx context.Context, keep ...any) context.Context {
	parent(ctx)
	out := context.Background()
	for _, key := range keep {
		if key == nil {
			continue
		}
		if v := ctx.Value(key); v != nil {
			out = context.WithValue(out, key, v)
		}
	}
	if s := scopeOf(ctx); s != nil {
		out = &scopedCtx{Context: out, scope: *s}
	}
	if shard, ok := ShardFromContext(ctx); ok {
		out = WithShard(out, shard)
	}
	return out
}
