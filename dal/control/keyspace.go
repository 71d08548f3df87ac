package control

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// keyspaceDefinition is what the column definition holds: the keyspace as it is, and where it came from.
type keyspaceDefinition struct {
	shardrouter.Keyspace

	// Changed says that [Store.ChangeTopology] wrote the keyspace, no configuration.
	Changed bool `json:"changed,omitempty"`

	// Declared is what a configuration had declared before the first change; nil for a keyspace that a change made.
	Declared *shardrouter.Keyspace `json:"declared,omitempty"`
}

// change returns the definition with which a change replaces this one.
func (d keyspaceDefinition) change(to shardrouter.Keyspace) keyspaceDefinition {
	next := keyspaceDefinition{Keyspace: to, Changed: true, Declared: d.Declared}
	if !d.Changed {
		next.Declared = &d.Keyspace
	}
	return next
}

// fits reports whether a configuration may declare k where this is persisted.
func (d keyspaceDefinition) fits(k shardrouter.Keyspace) bool {
	switch {
	case same(d.Keyspace, k), d.Declared != nil && same(*d.Declared, k):
		return true
	case !d.Changed:
		return false
	case k.Strategy == "":
		return true
	}
	// The slots and splits of now, which changes made.
	k.Moving = d.Moving
	if len(k.Slots)+len(k.Splits) == 0 {
		k.Slots, k.Splits = d.Slots, d.Splits
	}
	return same(d.Keyspace, k)
}

// same compares two keyspaces, in whatever order slots and splits are listed.
func same(a, b shardrouter.Keyspace) bool {
	for _, k := range []*shardrouter.Keyspace{&a, &b} {
		k.Slots = slices.SortedFunc(slices.Values(k.Slots), func(x, y shardrouter.SlotRange) int {
			return cmp.Or(cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.First, y.First))
		})
		k.Splits = slices.SortedFunc(slices.Values(k.Splits), func(x, y shardrouter.Split) int {
			return cmp.Or(cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.From, y.From))
		})
	}
	return a.Equal(b)
}

// MatchKeyspaces compares the keyspaces of a configuration with those persisted, and returns a [*TopologyMismatchError] for the first that differs. One
// that is not persisted is passed over.
//
// What [Store.ChangeTopology] made of a keyspace is no difference: the configuration may declare what it declared before, or no strategy at all, or the
// strategy of now, with the slots and splits of now or none.
//
// It returns [ErrNotMigrated] and [*CorruptError] too.
func (s *Store) MatchKeyspaces(ctx context.Context, keyspaces []shardrouter.Keyspace) error {
	_, err := matchKeyspaces(ctx, s.pool, keyspaces)
	return failed("compare the keyspaces", err)
}

// matchKeyspaces returns the names of the keyspaces that are not there.
func matchKeyspaces(ctx context.Context, q querier, keyspaces []shardrouter.Keyspace) (fresh []string, err error) {
	have, err := readKeyspaces(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, k := range keyspaces {
		d, known := have[k.Name]
		switch {
		case !known:
			fresh = append(fresh, k.Name)
		case !d.fits(k):
			return nil, &TopologyMismatchError{What: "keyspace " + k.Name, Have: describe(d.Keyspace), Want: describe(k)}
		}
	}
	return fresh, nil
}

func readKeyspaces(ctx context.Context, q querier) (map[string]keyspaceDefinition, error) {
	have := map[string]keyspaceDefinition{}
	err := query(ctx, q, stKeyspaces, nil, func(rows *sql.Rows) error {
		var name, strategy, text string
		var n int64
		if err := rows.Scan(&name, &strategy, &n, &text); err != nil {
			return err
		}
		d, err := parseKeyspace(name, strategy, n, text)
		have[name] = d
		return err
	})
	return have, err
}

// parseKeyspace reads one keyspace, with its definition if it has one. [shardrouter.NewTopology] judges name and strategy; the number must fit before it can.
func parseKeyspace(name, strategy string, virtualNodes int64, text string) (keyspaceDefinition, error) {
	corrupt := func(err error) (keyspaceDefinition, error) {
		return keyspaceDefinition{}, &CorruptError{Table: "tdal_keyspaces", Err: err}
	}
	if virtualNodes < shardrouter.MinVirtualNodes || virtualNodes > shardrouter.MaxVirtualNodes {
		return corrupt(fmt.Errorf("keyspace %q has %d virtual nodes", name, virtualNodes))
	}
	k := shardrouter.Keyspace{Name: name, Strategy: strategy, VirtualNodes: int(virtualNodes)}
	if text == "" {
		return keyspaceDefinition{Keyspace: k}, nil
	}
	var d keyspaceDefinition
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return corrupt(fmt.Errorf("keyspace %q: %w", name, err))
	}
	if d.Name != k.Name || d.Strategy != k.Strategy || d.VirtualNodes != k.VirtualNodes {
		return corrupt(fmt.Errorf("keyspace %q: its definition is of another keyspace, strategy or number of virtual nodes", name))
	}
	return d, nil
}

// defineKeyspace inserts a keyspace that is not there.
func defineKeyspace(ctx context.Context, tx *sql.Tx, d keyspaceDefinition) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return execOne(ctx, tx, stKeyspaceDefine, d.Name, d.Strategy, d.VirtualNodes, string(text))
}

// writeKeyspaces writes what a change made of the keyspaces.
func writeKeyspaces(ctx context.Context, tx *sql.Tx, old, next []shardrouter.Keyspace) error {
	known := map[string]shardrouter.Keyspace{}
	for _, k := range old {
		known[k.Name] = k
	}
	var rows map[string]keyspaceDefinition // read when one is to be replaced
	for _, k := range next {
		before, had := known[k.Name]
		switch {
		case !had:
			if err := defineKeyspace(ctx, tx, keyspaceDefinition{Keyspace: k, Changed: true}); err != nil {
				return err
			}
			continue
		case before.Equal(k):
			continue
		}
		if rows == nil {
			var err error
			if rows, err = readKeyspaces(ctx, tx); err != nil {
				return err
			}
		}
		text, err := json.Marshal(rows[k.Name].change(k))
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, stKeyspaceUpdate, k.Strategy, k.VirtualNodes, string(text), k.Name); err != nil {
			return err
		}
	}
	return nil
}

// describe names what two definitions of a keyspace may differ in.
func describe(k shardrouter.Keyspace) string {
	text := fmt.Sprintf("%s with %d virtual nodes", cmp.Or(k.Strategy, shardrouter.StrategyRing), cmp.Or(k.VirtualNodes, shardrouter.DefaultVirtualNodes))
	if k.Kind != "" {
		text += fmt.Sprintf(", keys of kind %s", k.Kind)
	}
	if len(k.Splits) > 0 {
		text += fmt.Sprintf(", %d splits", len(k.Splits))
	}
	if len(k.Slots) > 0 {
		text += fmt.Sprintf(", %d runs of slots", len(k.Slots))
	}
	return text
}
