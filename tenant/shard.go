package tenant

import "context"

// shardCtx notes a shard in a context.
type shardCtx struct {
	context.Context
	shard string
}

func (c *shardCtx) Value(key any) any {
	if _, ok := key.(shardKey); ok {
		return c
	}
	return c.Context.Value(key)
}

// WithShard returns a context that notes the shard which serves it. The note is for logs and spans ([NewLogHandler]);
// routing never reads it. A scope made later ([NewContext], [System]) starts without it. WithShard panics when ctx is
// nil.
func WithShard(ctx context.Context, shard string) context.Context {
	return &shardCtx{Context: parent(ctx), shard: shard}
}

// ShardFromContext returns the shard noted by [WithShard], and false when none, or the empty one, is noted.
func ShardFromContext(ctx context.Context) (string, bool) {
	if isNil(ctx) {
		return "", false
	}
	c, ok := ctx.Value(shardKey{}).(*shardCtx)
	if !ok || c.shard == "" {
		return "", false
	}
	return c.shard, true
}
