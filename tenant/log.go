package tenant

import (
	"context"
	"log/slog"
	"slices"
)

// The attributes that [NewLogHandler] adds.
const (
	LogKeyTenant = "tenant"
	LogKeyShard  = "shard"
	LogKeyReason = "reason"
)

// NewLogHandler returns a handler that adds to each record, before it goes to next, what its context says: "tenant",
// the tenant's id, and "shard", the one noted by [WithShard]. Under [System] it adds tenant="system" and "reason". A
// context without a scope, or with one that is refused, adds no tenant; the message is logged all the same.
//
// The attributes stand at the top level of the record, also below WithGroup: one name to search for, whichever logger
// wrote it. An attribute of that name which the record or the handler already has at the top level stays, and none is
// added beside it.
//
// Only the methods that take a context reach it: slog.InfoContext, not slog.Info. The handler is safe for concurrent use
// when next is. It panics when next is nil.
func NewLogHandler(next slog.Handler) slog.Handler {
	if next == nil {
		panic("tenant: NewLogHandler needs a handler to pass records on to")
	}
	return &logHandler{next: next}
}

// logHandler passes attributes given at the top level on to next at once, so that next formats them once. From the first
// group on it holds groups and attributes back and nests them into the record itself: next never has an open group, and
// so what is added stays at the top level.
type logHandler struct {
	next   slog.Handler
	has    hasKeys
	groups []logGroup // the open groups, outermost first
}

type logGroup struct {
	name  string
	attrs []slog.Attr
}

// hasKeys notes which of our attributes are already there at the top level.
type hasKeys struct{ tenant, shard, reason bool }

func (h *hasKeys) note(a slog.Attr) {
	switch a.Key {
	case LogKeyTenant:
		h.tenant = true
	case LogKeyShard:
		h.shard = true
	case LogKeyReason:
		h.reason = true
	case "": // a group without a name stands for its members
		if v := a.Value.Resolve(); v.Kind() == slog.KindGroup {
			for _, member := range v.Group() {
				h.note(member)
			}
		}
	}
}

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	has := h.has
	if len(h.groups) == 0 {
		r.Attrs(func(a slog.Attr) bool { has.note(a); return true })
	}
	var add [3]slog.Attr
	attrs := contextAttrs(ctx, has, add[:0])
	if len(h.groups) > 0 {
		r = h.nest(r)
	} else if len(attrs) > 0 {
		r = r.Clone()
	}
	r.AddAttrs(attrs...)
	return h.next.Handle(ctx, r)
}

// contextAttrs appends what ctx says and the record lacks.
func contextAttrs(ctx context.Context, has hasKeys, attrs []slog.Attr) []slog.Attr {
	if s := scopeOf(ctx); s != nil {
		switch {
		case s.err == nil:
			if !has.tenant {
				attrs = append(attrs, slog.String(LogKeyTenant, string(s.id)))
			}
		case s.bypass != nil:
			if !has.tenant {
				attrs = append(attrs, slog.String(LogKeyTenant, "system"))
			}
			if !has.reason {
				attrs = append(attrs, slog.String(LogKeyReason, s.bypass.Reason))
			}
		}
	}
	if shard, ok := ShardFromContext(ctx); ok && !has.shard {
		attrs = append(attrs, slog.String(LogKeyShard, shard))
	}
	return attrs
}

// nest returns the record with its attributes inside the open groups.
func (h *logHandler) nest(r slog.Record) slog.Record {
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	for _, g := range slices.Backward(h.groups) {
		inner := slices.Concat(g.attrs, attrs)
		attrs = []slog.Attr{{Key: g.name, Value: slog.GroupValue(inner...)}}
	}
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	out.AddAttrs(attrs...)
	return out
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	c := *h
	if len(h.groups) == 0 {
		for _, a := range attrs {
			c.has.note(a)
		}
		c.next = h.next.WithAttrs(attrs)
		return &c
	}
	c.groups = slices.Clone(h.groups)
	last := &c.groups[len(c.groups)-1]
	last.attrs = slices.Concat(last.attrs, attrs)
	return &c
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.groups = append(slices.Clone(h.groups), logGroup{name: name})
	return &c
}
