package dal

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
)

// Capacity returns the table with a limit on the rows of one shard key: the members of a guild, the players of a room. It needs the set schema.Capacity
// in every place, and an index that begins with tenant_id and the shard key, since each INSERT counts the key's rows and locks them.
//
// Every INSERT is checked in its own transaction: the key's row in capacity_turns is locked, the rows are inserted, and counted; one too many is
// [*CapacityError], and the transaction cannot be committed any more. So the limit is exact, whatever writes at the same time, for batches, upserts,
// associations and texts. Writers of one key wait for each other until the transaction ends. Two keys in one transaction may meet as a deadlock,
// which is [IsRetryable].
//
// Refused with [*ShapeError]: an INSERT outside any transaction, one whose keys come from a SELECT, one that returns rows to a text, and one
// beside gorm or under a system scope. A limit below 1, or a table that deletes softly or has no shard key, is a [*ModelError] at Open, and a
// place without the set [ErrNotMigrated].
func (t Table) Capacity(limit int) Table {
	t.limited, t.limit = true, limit
	return t
}

// capacityFault says why the declared table can have no capacity.
func (t *table) capacityFault() (problem, mend string) {
	switch {
	case !t.limited:
	case t.limit < 1:
		return fmt.Sprintf("its capacity is %d", t.limit), "a capacity is 1 or more"
	case t.shardKey == nil:
		return "it has a capacity and no shard key", "declare it with dal.Tenant"
	case len(t.schema.DeleteClauses) > 0:
		return "it has a capacity and deletes softly", "drop DeletedAt: a row that comes back would not be counted"
	}
	return "", ""
}

// capacityTable has a row for each key of a table with a capacity; its DDL is the set schema.Capacity.
const capacityTable = "capacity_turns"

// capacityLocks takes the row that stands for a key, and with it the turn to add rows under the key.
var capacityLocks = func() map[Dialect]*wire.Statement {
	conflict := "INSERT INTO capacity_turns (tenant_id, of_table, shard_key, turns) VALUES (?, ?, ?, 1) ON CONFLICT (tenant_id, of_table, shard_key) DO UPDATE SET turns = capacity_turns.turns + 1"
	return map[Dialect]*wire.Statement{
		MySQL:    wire.Register("dal.capacity/mysql", "INSERT INTO capacity_turns (tenant_id, of_table, shard_key, turns) VALUES (?, ?, ?, 1) ON DUPLICATE KEY UPDATE turns = turns + 1", wire.Rows, 0),
		SQLite:   wire.Register("dal.capacity/sqlite", conflict, wire.Rows, 0),
		Postgres: wire.Register("dal.capacity/postgres", conflict, wire.Rows, 0),
	}
}()

// capped is an INSERT into a table with a capacity, between its admission and its count.
type capped struct {
	b    *binding
	tx   *txPool
	of   *table
	keys []cappedKey // sorted by text: two statements lock in one order
}

type cappedKey struct {
	text  shardrouter.Key
	value any // as it is bound
}

// capped returns what must be counted once the admitted statement has run, with its keys locked; nil for a statement that adds no row to such a table.
func (b *binding) capped(ctx context.Context, stmt *gorm.Statement, v verb) (*capped, error) {
	if !b.store.tables.limited {
		return nil, nil
	}
	if b.bypass != nil {
		return nil, b.store.refuseCapped(b.store.gate.SystemVerdict(stmt.SQL.String()), "an INSERT into a table with a capacity under a system scope", "insert as the tenant")
	}
	seen := b.store.gate.Verdict(stmt.SQL.String())
	t := b.store.limitedTable(seen)
	if t == nil {
		return nil, nil
	}
	tx, inside := unprepared(stmt.ConnPool).(*txPool)
	switch {
	case v != verbCreate && v != verbRaw:
		return nil, &ShapeError{Shape: "an INSERT that returns rows, into a table with a capacity", Table: t.name, Hint: "use Create, or Exec"}
	case seen.KeyColumn:
		return nil, &ShapeError{Shape: "INSERT ... SELECT of shard keys into a table with a capacity", Table: t.name, Hint: "bind the key"}
	case !inside:
		return nil, &ShapeError{Shape: "an INSERT into a table with a capacity outside a transaction", Table: t.name, Hint: "use Store.Transaction"}
	}
	c := &capped{b: b, tx: tx, of: t}
	for _, s := range seen.ShardValues {
		value := any(s.Text)
		if s.Arg >= 0 {
			value = stmt.Vars[s.Arg]
		}
		if err := c.add(value); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.keys, func(x, y cappedKey) int { return strings.Compare(string(x.text), string(y.text)) })
	c.keys = slices.CompactFunc(c.keys, func(x, y cappedKey) bool { return x.text == y.text })
	for _, k := range c.keys {
		if err := c.lock(ctx, k); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// limitedTable returns the table with a capacity that the text inserts into, or nil.
func (s *Store) limitedTable(v *gate.Verdict) *table {
	if v.Inserts == nil {
		return nil
	}
	if t := s.tables.byName[v.Inserts.Name]; t != nil && t.limited {
		return t
	}
	return nil
}

// refuseCapped refuses an INSERT into a table with a capacity where none can be checked.
func (s *Store) refuseCapped(v *gate.Verdict, shape, hint string) error {
	if t := s.limitedTable(v); t != nil {
		return &ShapeError{Shape: shape, Table: t.name, Hint: hint}
	}
	return nil
}

func (c *capped) add(value any) error {
	plain := value
	if valuer, ok := plain.(driver.Valuer); ok {
		var err error
		if plain, err = valuer.Value(); err != nil {
			return err
		}
	}
	key, err := shardrouter.KeyOf(plainKey(plain))
	if err != nil {
		return err
	}
	c.keys = append(c.keys, cappedKey{key, value})
	return nil
}

// lock waits for every other transaction that adds rows under the key.
func (c *capped) lock(ctx context.Context, k cappedKey) error {
	st := capacityLocks[c.b.db.dialect]
	id := string(c.b.tenant.ID)
	key := any(string(k.text))
	if c.b.db.dialect == Postgres {
		key = []byte(k.text)
	}
	marked := wire.With(ctx, &wire.Mark{Kind: wire.Library, Tenant: c.b.tenant.ID, Stmt: st, TenantArgs: st.Owners(), Write: true})
	if _, err := c.tx.tx.ExecContext(marked, st.Text(), id, c.of.name, key); err != nil {
		return fmt.Errorf("dal: table %q: lock a key's capacity (needs the set schema.Capacity): %w", c.of.name, c.tx.note(err))
	}
	return nil
}

// count counts the rows of each key, and poisons the transaction over one that has too many.
func (c *capped) count(ctx context.Context) error {
	for _, k := range c.keys {
		var n int64
		q := handle(ctx, c.b, c.tx).Model(reflect.New(c.of.schema.ModelType).Interface())
		if c.b.db.dialect == MySQL { // the transaction may have begun to read before others committed
			q = q.Clauses(clause.Locking{Strength: "UPDATE"})
		}
		err := q.Where(clause.Eq{Column: clause.Column{Table: c.of.name, Name: c.of.shardKey.DBName}, Value: k.value}).Count(&n).Error
		if err == nil && n > int64(c.of.limit) {
			err = &CapacityError{Table: c.of.name, Key: k.text, Limit: c.of.limit}
		}
		if err != nil {
			c.tx.poison(err)
			return err
		}
	}
	return nil
}

// poison forbids a commit: rows that nobody has counted, or too many, were written.
func (t *transaction) poison(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = err
	}
}
