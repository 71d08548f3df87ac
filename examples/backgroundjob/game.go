package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// kindReward is the kind of the job that rewards a player for a match. Its payload is a [Match].
const kindReward = "match.reward"

// Match is a finished match.
type Match struct {
	Player string `json:"player"`
	Number int64  `json:"number"` // of the tenant's matches; not 0
	Gold   int64  `json:"gold"`
}

// Note is a line that support reads when a player asks.
type Note struct {
	dal.Model
	PlayerID string
	Text     string
}

// noteLimit bounds the work of a note, whatever the request's deadline was.
const noteLimit = 5 * time.Second

// Game is the side of the requests. It is safe for concurrent use.
type Game struct {
	store *dal.Store
	queue *Queue
	log   *slog.Logger
	notes sync.WaitGroup // every goroutine of the game's
}

// NewGame returns a game that puts its jobs into the queue.
func NewGame(store *dal.Store, queue *Queue, log *slog.Logger) *Game {
	return &Game{store: store, queue: queue, log: log}
}

// Finish ends a match for the context's tenant: it queues the reward, notes it in the background, and returns. Without a tenant it returns
// [tenant.ErrNoTenant] and does neither.
func (g *Game) Finish(ctx context.Context, m Match) error {
	payload, err := json.Marshal(m)
	if err != nil {
		return err
	}
	env, err := tenant.NewEnvelope(ctx, kindReward, payload, nil)
	if err != nil {
		return fmt.Errorf("queue the reward of match %d: %w", m.Number, err)
	}
	job, err := json.Marshal(env)
	if err != nil {
		return err
	}
	g.queue.Push(job)

	// The note is nothing that the player waits for. Under ctx it would be cut off when the request is answered; under context.Background it would be
	// nobody's, and refused.
	background := tenant.Detach(ctx)
	g.notes.Go(func() {
		if err := g.note(background, m); err != nil {
			g.log.ErrorContext(background, "note lost", "match", m.Number, "err", err)
		}
	})
	return nil
}

// note writes one line for the context's tenant.
func (g *Game) note(ctx context.Context, m Match) error {
	ctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	n := Note{PlayerID: m.Player, Text: fmt.Sprintf("match %d finished", m.Number)}
	return g.store.On(ctx, dal.Key("player", m.Player)).Create(&n).Error
}

// Wait returns when all notes are written, or lost.
func (g *Game) Wait() { g.notes.Wait() }
