package trace

import (
	"errors"
	"fmt"
	"math"

	"github.com/tenantdal/tenantdal/tenant"
)

// checker checks what the lines say, one after the other, against the lines before.
type checker struct {
	tenants map[string]bool
	guilds  map[[2]string]string // (tenant, guild) to status
	// cells sums what stock and grant lines mint into each (op, tenant, owner, item): a guild and a player of one id are two owners.
	cells map[[4]string]int64
}

func newChecker() *checker {
	return &checker{make(map[string]bool), make(map[[2]string]string), make(map[[4]string]int64)}
}

// line checks l, whose form is known to be right. In a donate line everything else is an outcome, not an error.
func (c *checker) line(l *Line) *fault {
	switch l.Op {
	case OpTenant:
		return c.tenant(l)
	case OpGuild:
		return c.guild(l)
	case OpStock:
		return c.mint(l, "guild", l.Guild)
	case OpGrant:
		return c.mint(l, "player", l.Player)
	default:
		return nil
	}
}

func (c *checker) tenant(l *Line) *fault {
	if f := tenantID("id", l.Tenant); f != nil {
		return f
	}
	if c.tenants[l.Tenant] {
		return &fault{"id", fmt.Sprintf("tenant %q is declared twice", l.Tenant)}
	}
	c.tenants[l.Tenant] = true
	return nil
}

func (c *checker) guild(l *Line) *fault {
	if f := c.owner(l, "guild", l.Guild); f != nil {
		return f
	}
	if l.Status != Open && l.Status != Closed {
		return &fault{"status", fmt.Sprintf("unknown status %q: want open or closed", clip(l.Status))}
	}
	id := [2]string{l.Tenant, l.Guild}
	if was, again := c.guilds[id]; again && was != l.Status {
		return &fault{"status", fmt.Sprintf("guild %q of tenant %q is %s by an earlier line", clip(l.Guild), l.Tenant, was)}
	}
	c.guilds[id] = l.Status
	return nil
}

// mint checks a stock or grant line, whose owner is the guild or player named by the field.
func (c *checker) mint(l *Line, field, id string) *fault {
	if f := c.owner(l, field, id); f != nil {
		return f
	}
	if l.Item == "" {
		return &fault{"item", "empty"}
	}
	if l.Qty <= 0 {
		return &fault{"qty", fmt.Sprintf("%d is not above 0", l.Qty)}
	}
	cell := [4]string{string(l.Op), l.Tenant, id, l.Item}
	if sum := c.cells[cell]; sum > math.MaxInt64-l.Qty {
		return &fault{"qty", fmt.Sprintf("the %s lines of %s %q and item %q add up to more than 2^63-1: %d + %d", l.Op, field, clip(id), clip(l.Item), sum, l.Qty)}
	}
	c.cells[cell] += l.Qty
	return nil
}

// owner checks the tenant of a setup line, and the guild or player named by the field.
func (c *checker) owner(l *Line, field, id string) *fault {
	if f := tenantID("tenant", l.Tenant); f != nil {
		return f
	}
	if !c.tenants[l.Tenant] {
		return &fault{"tenant", fmt.Sprintf("no line before this one declares tenant %q", l.Tenant)}
	}
	switch id {
	case "":
		return &fault{field, "empty"}
	case "0":
		return &fault{field, fmt.Sprintf("%q is no %s", id, field)}
	}
	return nil
}

func tenantID(field, id string) *fault {
	_, err := tenant.ParseID(id)
	if err == nil {
		return nil
	}
	reason := err.Error()
	if invalid, ok := errors.AsType[*tenant.InvalidIDError](err); ok {
		reason = invalid.Reason
	}
	return &fault{field, fmt.Sprintf("%q is no tenant id: %s", clip(id), reason)}
}
