package wire

import "sync/atomic"

// Stats counts what one pool sent since it was opened. Each number only grows.
type Stats struct {
	Statements uint64 // that read or change rows for a caller
	Polls      uint64 // that look for work, claim it or renew a lease
	Sessions   uint64 // SET and SAVEPOINT
	Schemas    uint64 // the migrator's and the start-up check's
	Begins     uint64
	Commits    uint64 // COMMIT, and each autocommitted statement that may change rows
	Rollbacks  uint64
	Refused    uint64 // operations that had no mark; nothing was sent for them
	Connects   uint64
	Floors     uint64 // PostgreSQL: set_config statements of the floor, each in one round trip with its BEGIN
	Wraps      uint64 // PostgreSQL: statements outside a transaction that got BEGIN and COMMIT of their own for the floor
}

// Add returns the sum of s and o.
func (s Stats) Add(o Stats) Stats { return s.combine(o, func(a, b uint64) uint64 { return a + b }) }

// Sub returns s - o, for the count between two readings.
func (s Stats) Sub(o Stats) Stats { return s.combine(o, func(a, b uint64) uint64 { return a - b }) }

func (s Stats) combine(o Stats, f func(a, b uint64) uint64) Stats {
	return Stats{
		Statements: f(s.Statements, o.Statements), Polls: f(s.Polls, o.Polls), Sessions: f(s.Sessions, o.Sessions),
		Schemas: f(s.Schemas, o.Schemas), Begins: f(s.Begins, o.Begins), Commits: f(s.Commits, o.Commits),
		Rollbacks: f(s.Rollbacks, o.Rollbacks), Refused: f(s.Refused, o.Refused), Connects: f(s.Connects, o.Connects),
		Floors: f(s.Floors, o.Floors), Wraps: f(s.Wraps, o.Wraps),
	}
}

type counters struct {
	statements, polls, sessions, schemas, begins, commits, rollbacks, refused, connects atomic.Uint64
}

func (c *counters) statement(class Class) {
	switch class {
	case Poll:
		c.polls.Add(1)
	case Session:
		c.sessions.Add(1)
	case Schema:
		c.schemas.Add(1)
	default:
		c.statements.Add(1)
	}
}

func (c *counters) snapshot() Stats {
	return Stats{
		Statements: c.statements.Load(), Polls: c.polls.Load(), Sessions: c.sessions.Load(), Schemas: c.schemas.Load(),
		Begins: c.begins.Load(), Commits: c.commits.Load(), Rollbacks: c.rollbacks.Load(), Refused: c.refused.Load(),
		Connects: c.connects.Load(),
	}
}
