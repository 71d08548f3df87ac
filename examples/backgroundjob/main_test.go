package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

func Example() {
	main()
	// Output:
	// level=INFO msg="job done" match=1 player=7 tenant=acme shard=s2
	// level=INFO msg="job done" match=1 player=7 tenant=globex shard=s1/t_globex
	// level=INFO msg="job done" match=2 player=7 tenant=acme shard=s2
	// level=ERROR msg="job refused" reason="no tenant"
	// level=INFO msg="job done" match=2 player=8 tenant=globex shard=s1/t_globex
	// level=INFO msg="job done before" match=2 player=8 tenant=globex shard=s1/t_globex
	// dead letter "no tenant": tenant: no tenant: bind one with tenant.NewContext, or tenant.Extract in a worker
	// acme: player 7 has 30 gold of 2 matches, 2 notes
	// globex: player 7 has 500 gold of 1 matches, 1 notes
	// globex: player 8 has 700 gold of 1 matches, 1 notes
}

// bundle is the program's parts over databases of the test's own.
type bundle struct {
	store        *dal.Store
	queue        *Queue
	game         *Game
	worker       *Worker
	log          *bytes.Buffer // read it when nothing runs
	acme, globex context.Context
}

func setup(t *testing.T) *bundle {
	t.Helper()
	cfg, err := config(dal.Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := sets()
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{
		store: testutil.NewSQLiteStore(t, cfg, set), queue: &Queue{}, log: &bytes.Buffer{},
		acme: tenant.NewContext(t.Context(), "acme"), globex: tenant.NewContext(t.Context(), "globex"),
	}
	log := slog.New(tenant.NewLogHandler(slog.NewTextHandler(b.log, nil)))
	b.game = NewGame(b.store, b.queue, log)
	b.worker = NewWorker(log, map[string]Handler{kindReward: NewRewards(b.store, log).Handle})
	return b
}

// rewards returns the matches that a tenant's player was rewarded for.
func (b *bundle) rewards(t *testing.T, ctx context.Context, player string) []int64 {
	t.Helper()
	ids := []int64{}
	if err := b.store.On(ctx, dal.Key("player", player)).Model(&Reward{}).Where("player_id = ?", player).Order("id").Pluck("id", &ids).Error; err != nil {
		t.Fatal(err)
	}
	return ids
}

// notes returns what was noted about a tenant's player.
func (b *bundle) notes(t *testing.T, ctx context.Context, player string) []string {
	t.Helper()
	var notes []Note
	if err := b.store.On(ctx, dal.Key("player", player)).Where("player_id = ?", player).Order("id").Find(&notes).Error; err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, n := range notes {
		texts = append(texts, string(n.TenantID)+": "+n.Text)
	}
	return texts
}

// job returns an encoded job for the context's tenant.
func job(t *testing.T, ctx context.Context, kind string, payload any) []byte {
	t.Helper()
	p, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	env, err := tenant.NewEnvelope(ctx, kind, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Each job that follows acme's and names no tenant of its own is refused. Not even a worker whose own context is acme's, by mistake, runs it as acme.
func TestWorker_T35_NeverRunsAsThePreviousTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const payload = `"payload":"eyJwbGF5ZXIiOiI3IiwibnVtYmVyIjozLCJnb2xkIjo5OTl9"`
	for name, c := range map[string]struct {
		body   string
		reason string
		want   error
	}{
		"absent":       {`{"v":1,"kind":"match.reward",` + payload + `}`, "no tenant", tenant.ErrNoTenant},
		"empty":        {`{"tenant":"","v":1,"kind":"match.reward",` + payload + `}`, "no tenant", tenant.ErrNoTenant},
		"null":         {`{"tenant":null,"v":1,"kind":"match.reward",` + payload + `}`, "unreadable", tenant.ErrInvalidEnvelope},
		"in the meta":  {`{"v":1,"kind":"match.reward",` + payload + `,"meta":{"tenantdal-tenant":"acme"}}`, "no tenant", tenant.ErrNoTenant},
		"ill-formed":   {`{"tenant":"Acme","v":1,"kind":"match.reward",` + payload + `}`, "unreadable", tenant.ErrInvalidID},
		"twice":        {`{"tenant":"globex","tenant":"acme","v":1,"kind":"match.reward",` + payload + `}`, "unreadable", tenant.ErrInvalidEnvelope},
		"broken":       {`{"v":1,`, "unreadable", tenant.ErrInvalidEnvelope},
		"nothing":      {``, "unreadable", tenant.ErrInvalidEnvelope},
		"unknown":      {`{"tenant":"nobody","v":1,"kind":"match.reward",` + payload + `}`, "failed", tenant.ErrUnknownTenant},
		"suspended":    {`{"tenant":"sleepy","v":1,"kind":"match.reward",` + payload + `}`, "failed", tenant.ErrSuspended},
		"no such kind": {`{"tenant":"globex","v":1,"kind":"match.undo",` + payload + `}`, "unknown kind", errNoHandler},
		"no match":     {`{"tenant":"globex","v":1,"kind":"match.reward","payload":"eyJwbGF5ZXIiOiI3In0="}`, "failed", errNoMatch},
	} {
		t.Run(name, func(t *testing.T) {
			b.log.Reset()
			b.worker = NewWorker(b.worker.log, b.worker.handlers)
			b.queue.Push(job(t, b.acme, kindReward, Match{Player: "7", Number: 1, Gold: 10}))
			b.queue.Push([]byte(c.body))
			b.queue.Push(job(t, b.acme, kindReward, Match{Player: "7", Number: 2, Gold: 10}))
			if err := b.worker.Drain(b.acme, b.queue); err != nil {
				t.Fatal(err)
			}
			dead := b.worker.Dead()
			if len(dead) != 1 || dead[0].Reason != c.reason || !errors.Is(dead[0].Err, c.want) || string(dead[0].Body) != c.body {
				t.Errorf("dead letters: %q, want one: %s, %v, %s", dead, c.reason, c.want, c.body)
			}
			if got := b.rewards(t, b.acme, "7"); !slices.Equal(got, []int64{1, 2}) {
				t.Errorf("acme was rewarded for the matches %v, want 1 and 2", got)
			}
			if got := b.rewards(t, b.globex, "7"); len(got) != 0 {
				t.Errorf("globex was rewarded for the matches %v, want none", got)
			}
			for line := range strings.Lines(b.log.String()) {
				if strings.Contains(line, "job refused") && strings.Contains(line, "tenant=acme") {
					t.Errorf("the refusal is logged as acme's: %s", line)
				}
			}
		})
	}
}

// Jobs of two tenants in any order: each rewards its own tenant's player alone.
func TestWorker_T35_Interleaved(t *testing.T) {
	t.Parallel()
	const seed = 35
	b := setup(t)
	var jobs [][]byte
	for n := int64(1); n <= 20; n++ {
		ctx := b.acme
		if n%2 == 0 {
			ctx = b.globex
		}
		jobs = append(jobs, job(t, ctx, kindReward, Match{Player: "7", Number: n, Gold: n}))
		if n%5 == 0 {
			jobs = append(jobs, []byte(`{"v":1,"kind":"match.reward","payload":"eyJwbGF5ZXIiOiI3IiwibnVtYmVyIjo5OSwiZ29sZCI6OTl9"}`))
		}
	}
	r := rand.New(rand.NewPCG(seed, seed))
	r.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	for _, j := range jobs {
		b.queue.Push(j)
	}
	if err := b.worker.Drain(t.Context(), b.queue); err != nil {
		t.Fatal(err)
	}
	if dead := b.worker.Dead(); len(dead) != 4 {
		t.Errorf("seed %d: %d dead letters, want 4", seed, len(dead))
	}
	acme, globex := b.rewards(t, b.acme, "7"), b.rewards(t, b.globex, "7")
	if len(acme) != 10 || len(globex) != 10 {
		t.Errorf("seed %d: %d rewards of acme, %d of globex, want 10 each", seed, len(acme), len(globex))
	}
	for i := range min(len(acme), len(globex)) {
		if acme[i]%2 != 1 || globex[i]%2 != 0 {
			t.Errorf("seed %d: match %d is acme's and match %d globex's", seed, acme[i], globex[i])
		}
	}
}

// The handler's context is of the job's tenant and of nothing else: no system scope, no shard and no other tenant of the worker's.
func TestWorker_T35_ContextOfTheJob(t *testing.T) {
	t.Parallel()
	var saw []string
	w := NewWorker(slog.New(slog.DiscardHandler), map[string]Handler{"look": func(ctx context.Context, _ []byte) error {
		id, err := tenant.FromContext(ctx)
		_, bypass := tenant.BypassFromContext(ctx)
		_, shard := tenant.ShardFromContext(ctx)
		saw = append(saw, fmt.Sprintf("%s %v %t %t", id, err, errors.Is(bypass, tenant.ErrNotSystem), shard))
		return nil
	}})
	q := &Queue{}
	for _, id := range []tenant.ID{"acme", "globex", "acme"} {
		q.Push(job(t, tenant.NewContext(t.Context(), id), "look", nil))
	}
	worker := tenant.WithShard(tenant.System(t.Context(), "a worker that should not be under it", "rewards"), "s9")
	if err := w.Drain(worker, q); err != nil {
		t.Fatal(err)
	}
	if want := []string{"acme <nil> true false", "globex <nil> true false", "acme <nil> true false"}; !slices.Equal(saw, want) {
		t.Errorf("the handlers saw %q, want %q", saw, want)
	}
}

// A note is written after its request is over: under the request's tenant, without its deadline.
func TestGame_T33_NoteOutlivesTheRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	request, cancel := context.WithTimeout(b.acme, time.Minute)
	// While this transaction is open nobody else writes in acme's database, so the note is written after the request is cancelled.
	err := b.store.Transaction(b.acme, dal.Key("player", "7"), func(context.Context, *gorm.DB) error {
		if err := b.game.Finish(request, Match{Player: "7", Number: 1, Gold: 10}); err != nil {
			t.Error(err)
		}
		cancel()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.game.Wait()
	if got := b.notes(t, b.acme, "7"); !slices.Equal(got, []string{"acme: match 1 finished"}) {
		t.Errorf("notes of acme: %q; log:\n%s", got, b.log)
	}
	if got := b.notes(t, b.globex, "7"); len(got) != 0 {
		t.Errorf("notes of globex: %q", got)
	}

	// What the note would be under the request's own context, and under nobody's.
	if err := b.game.note(request, Match{Player: "7", Number: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("under the request: %v", err)
	}
	if err := b.game.note(context.Background(), Match{Player: "7", Number: 2}); !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("under context.Background: %v", err)
	}
	detached := tenant.Detach(request)
	if id, err := tenant.FromContext(detached); id != "acme" || err != nil {
		t.Errorf("the detached context is of %q, %v", id, err)
	}
	if _, limited := detached.Deadline(); limited || detached.Err() != nil {
		t.Errorf("the detached context has the request's deadline, or its end: %v", detached.Err())
	}
	if got := b.notes(t, b.acme, "7"); len(got) != 1 {
		t.Errorf("notes of acme: %q", got)
	}
}

func TestGame_WithoutATenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		ctx  context.Context
		want error
	}{
		"none":   {t.Context(), tenant.ErrNoTenant},
		"system": {tenant.System(t.Context(), "a test", "rewards"), tenant.ErrSystemScope},
	} {
		if err := b.game.Finish(c.ctx, Match{Player: "7", Number: 1}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	b.game.Wait()
	if m, ok := b.queue.Pop(); ok {
		t.Errorf("a job was queued: %s", m.Body)
	}
	if b.log.Len() != 0 {
		t.Errorf("a note was tried: %s", b.log)
	}
}

// A note that cannot be written is said in the log, with its tenant.
func TestGame_NoteLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.game.Finish(tenant.NewContext(t.Context(), "sleepy"), Match{Player: "7", Number: 1}); err != nil {
		t.Fatal(err)
	}
	b.game.Wait()
	if line := b.log.String(); !strings.Contains(line, "note lost") || !strings.Contains(line, "tenant=sleepy") {
		t.Errorf("log: %q", line)
	}
}

// A refusal that passes is tried again after the time that it names, and given up after maxAttempts.
func TestWorker_TriesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failures int
		dead     int
		took     time.Duration
	}{
		"once":     {1, 0, 2 * time.Second},
		"for ever": {maxAttempts, 1, (maxAttempts - 1) * 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ran := map[tenant.ID]int{}
				w := NewWorker(slog.New(slog.DiscardHandler), map[string]Handler{"work": func(ctx context.Context, _ []byte) error {
					id, err := tenant.FromContext(ctx)
					if err != nil {
						return err
					}
					if ran[id]++; id == "acme" && ran[id] <= c.failures {
						return fmt.Errorf("work: %w", &quota.ExceededError{Tenant: id, Limit: quota.LimitRate, RetryAfter: 2 * time.Second})
					}
					return nil
				}})
				q := &Queue{}
				q.Push(job(t, tenant.NewContext(t.Context(), "acme"), "work", nil))
				q.Push(job(t, tenant.NewContext(t.Context(), "globex"), "work", nil))
				start := time.Now()
				if err := w.Drain(t.Context(), q); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if dead := w.Dead(); len(dead) != c.dead || c.dead > 0 && !dal.IsQuota(dead[0].Err) {
					t.Errorf("dead letters: %+v, want %d", dead, c.dead)
				}
				if ran["globex"] != 1 || ran["acme"] != min(c.failures+1, maxAttempts) {
					t.Errorf("runs: %v", ran)
				}
			})
		})
	}
}

// A worker that is told to stop leaves the rest in the queue.
func TestWorker_Stops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w := NewWorker(slog.New(slog.DiscardHandler), map[string]Handler{"work": func(context.Context, []byte) error { cancel(); return nil }})
	q := &Queue{}
	for range 2 {
		q.Push(job(t, tenant.NewContext(t.Context(), "acme"), "work", nil))
	}
	if err := w.Drain(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain: %v", err)
	}
	if _, ok := q.Pop(); !ok {
		t.Error("the second job is gone")
	}
}
