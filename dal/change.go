package dal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Change changes the topology, under a system scope whose reason is kept in the history beside by. It returns the new topology, by which this store routes
// from then on; others do within their Config.TopologyPoll, or sooner with a Notifier. The scope names tables since every system scope does; it need not
// open those that are looked at.
//
// A change that moves keys is refused with [*shardrouter.NeedsReshardError] and its plan unless nothing is there to be moved: a key that moves by itself
// (a pin, a room) has no rows in the declared tables of its keyspace on the shard that it leaves; for anything else, no place holds a row of the keyspace.
//
// The look is no fence: a row that a transaction of the old topology commits after it stays behind on the old shard, where nobody finds it. The databases
// are looked at once more after the change; rows found then are reported by a [*LeftBehindError] while the change stands. What a process writes that has
// not seen the new epoch yet, later than that, is not noticed. So move only keys that nobody writes just now.
//
// It returns [tenant.ErrNotSystem], the errors of [control.Store.ChangeTopology], those of the databases, and an error for a store of [OpenFixed].
func (s *Store) Change(ctx context.Context, by string, changes ...shardrouter.Change) (*shardrouter.Topology, error) {
	bypass, err := tenant.BypassFromContext(ctx)
	if err != nil {
		return nil, err
	}
	if s.control == nil {
		return nil, errors.New("dal: Change: the topology of a fixed store never changes")
	}
	if s.shut() {
		return nil, ErrClosed
	}
	top, err := s.control.Topology(ctx)
	if err != nil {
		return nil, migrated("read the topology", err)
	}
	_, plan, err := top.Apply(changes...)
	if err != nil {
		return nil, err
	}
	held, err := s.holds(ctx, plan)
	if err != nil {
		return nil, err
	}
	if held != "" {
		return nil, fmt.Errorf("dal: table %q has rows: %w", held, plan.Refuse())
	}
	// The epoch says that the plan is still this one.
	looked := func(*shardrouter.Plan) error { return nil }
	next, plan, err := s.control.ChangeTopology(ctx, top.Epoch(), by, bypass.Reason, looked, changes...)
	if err != nil {
		return nil, err
	}
	s.adopt(next)
	if s.cfg.Notifier != nil {
		if err := s.cfg.Notifier.Publish(ctx, TopologyTopic, strconv.AppendUint(nil, uint64(next.Epoch()), 10)); err != nil {
			s.log.Warn("dal: the change of the topology was not told, others learn of it by polling", "epoch", uint64(next.Epoch()), "err", err)
		}
	}
	if held, err = s.holds(ctx, plan); err != nil || held != "" {
		return next, &LeftBehindError{Table: held, Plan: plan, Err: err}
	}
	return next, nil
}

// TopologyLog returns the newest changes of the topology, at most limit of them, the newest first, with who made them and why. It needs a system scope.
//
// It returns [tenant.ErrNotSystem], the errors of [control.Store.TopologyLog], and an error for a store of [OpenFixed].
func (s *Store) TopologyLog(ctx context.Context, limit int) ([]control.TopologyChange, error) {
	if _, err := tenant.BypassFromContext(ctx); err != nil {
		return nil, err
	}
	if s.control == nil {
		return nil, errors.New("dal: TopologyLog: the topology of a fixed store never changes")
	}
	if s.shut() {
		return nil, ErrClosed
	}
	return s.control.TopologyLog(ctx, limit)
}

// holds returns the name of a table with a row that the plan moves, or "".
func (s *Store) holds(ctx context.Context, plan *shardrouter.Plan) (string, error) {
	if plan.Empty() {
		return "", nil
	}
	places, err := s.known(ctx)
	if err != nil {
		return "", err
	}
	type whole struct{ keyspace, tenant string }
	looked := map[whole]bool{} // a ring moves in many parts, and one look is for all of them
	for _, m := range plan.Moves {
		single := m.Kind == shardrouter.MoveKey
		if part := (whole{m.Keyspace, m.Tenant}); !single && looked[part] {
			continue
		} else if !single {
			looked[part] = true
		}
		for _, p := range places {
			if single && p.Shard != m.From || p.owner != "" && m.Tenant != "" && string(p.owner) != m.Tenant {
				continue
			}
			for _, t := range s.tables.all {
				if t.Class != TenantClass || t.Keyspace != m.Keyspace {
					continue
				}
				if found, err := s.hasRow(ctx, p.Place, t, m); err != nil {
					return "", fmt.Errorf("dal: look for rows of table %q in place %s: %w", t.name, p.Place, err)
				} else if found {
					return t.name, nil
				}
			}
		}
	}
	return "", nil
}

// hasRow looks for one row of the tenant and key of the move, soft-deleted ones too. Primary key (tenant_id, ...) or the index on the shard key.
func (s *Store) hasRow(ctx context.Context, p Place, t *table, m shardrouter.Move) (bool, error) {
	var key any
	if m.Kind == shardrouter.MoveKey {
		var ok bool
		if key, ok = t.keyValue(ctx, m.Key); !ok {
			return false, nil
		}
	}
	scope := tenant.System(ctx, "look for rows before the topology changes", t.name)
	db := s.OnPlace(scope, p).Session(&gorm.Session{SkipHooks: true}).Unscoped()
	if m.Tenant != "" {
		db = db.Where(clause.Eq{Column: clause.Column{Name: TenantColumn}, Value: m.Tenant})
	}
	if m.Kind == shardrouter.MoveKey {
		db = db.Where(clause.Eq{Column: clause.Column{Name: t.ShardKey}, Value: key})
	}
	found := db.Limit(1).Find(reflect.New(reflect.SliceOf(t.model)).Interface())
	return found.RowsAffected > 0, found.Error
}
