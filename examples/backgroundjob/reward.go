package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// Reward is what a player won in a match. Its id is the match's number, so that a job which is delivered twice rewards once.
type Reward struct {
	dal.Model
	PlayerID string
	Gold     int64
}

// errNoMatch reports a job that does not say for which match it rewards.
var errNoMatch = errors.New("the match has no number")

// Rewards handles the jobs of kind [kindReward]. It is safe for concurrent use.
type Rewards struct {
	store *dal.Store
	log   *slog.Logger
}

// NewRewards returns the handler on a store.
func NewRewards(store *dal.Store, log *slog.Logger) *Rewards { return &Rewards{store, log} }

// Handle rewards the player for the context's tenant. It is idempotent.
func (r *Rewards) Handle(ctx context.Context, payload []byte) error {
	var m Match
	if err := json.Unmarshal(payload, &m); err != nil {
		return fmt.Errorf("read the match: %w", err)
	}
	if m.Number <= 0 { // the store would make an id of its own, another one at each delivery
		return errNoMatch
	}
	key := dal.Key("player", m.Player)
	route, err := r.store.Route(ctx, key)
	if err != nil {
		return fmt.Errorf("reward match %d: %w", m.Number, err)
	}
	ctx = tenant.WithShard(ctx, route.Place.String()) // for the log
	err = r.store.On(ctx, key).Create(&Reward{Model: dal.Model{ID: m.Number}, PlayerID: m.Player, Gold: m.Gold}).Error
	switch {
	case dal.IsDuplicateKey(err):
		r.log.InfoContext(ctx, "job done before", "match", m.Number, "player", m.Player)
		return nil
	case err != nil:
		return fmt.Errorf("reward match %d: %w", m.Number, err)
	}
	r.log.InfoContext(ctx, "job done", "match", m.Number, "player", m.Player)
	return nil
}
