package dal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/tenantdal/tenantdal/internal/wire"
)

const (
	// probeLimit bounds how long a replica is asked for its heartbeat.
	probeLimit = 2 * time.Second
	// probePause is how long a replica's answer is believed when a newer one is wanted.
	probePause = 10 * time.Millisecond
	// downPause is how long a replica that could not be asked is left alone.
	downPause = time.Second
)

// replica is one replica of a place. Its pool connects when it is first asked for its heartbeat, so that one that is down stops nobody at start-up.
type replica struct {
	primary *database
	n       int // from 1
	zone    string
	name    string    // without a password
	db      *database // the pool of the replica alone: it has no gorm, handles are those of the primary

	asking singleflight.Group

	mu      sync.Mutex    // guards all below. No I/O under it.
	checked bool          // it is the place, and its login may do no more than it should
	known   bool          // asOf says something
	asOf    time.Duration // on the store's clock: it has what the primary had committed then
	asked   time.Duration // when it last was asked
	until   time.Duration // it is down, and left alone until then
	err     error         // why
}

// openReplicas makes the pools of the place's replicas. It does no I/O.
func (db *database) openReplicas(e Endpoint) error {
	db.zone = e.Zone
	if len(e.Replicas) == 0 {
		return nil
	}
	db.replicaState = &replicaState{}
	for i, of := range e.Replicas {
		at := e
		at.Network, at.Address = of.Network, of.Address
		if of.User != "" && !db.store.cfg.Cluster.derived(db.place) {
			at.User, at.Password = of.User, of.Password
		}
		r := &replica{primary: db, n: i + 1, zone: of.Zone, name: at.String()}
		r.db = &database{store: db.store, place: db.place, dialect: MySQL, maxOpen: db.maxOpen, owner: db.owner}
		name := fmt.Sprintf("%s replica %d", db.place, r.n)
		r.db.lanes = lanes{pool: "pool of " + name, writer: "writer of " + name, system: "system of " + name}
		// What the login can reach is judged by the primary's address, from which the names of a tenant's other databases follow.
		r.db.reached = reached{name: at.Database, user: at.User, address: e.Address}
		var err error
		r.db.writer, err = wire.OpenMySQL(at.MySQLConfig(), wire.Options{
			Shard: name, Logger: db.store.log, Observer: db.store.cfg.observer, Gate: db.store.gate, ReadOnly: true,
			Setup: []string{
				fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = %d", int64(math.Ceil(db.store.cfg.LockWait.Seconds()))),
				"SET SESSION TRANSACTION READ ONLY", // the server's own refusal, below the wire's
			},
		})
		if err != nil {
			return err
		}
		limit(r.db.writer, r.db.maxOpen+systemConns, db.store.cfg.ConnMaxLifetime)
		db.replicas = append(db.replicas, r)
	}
	return nil
}

// reader is where one read of a handle with options goes: a replica, or nil for the primary.
func (b *binding) reader(ctx context.Context, now *database) (*replica, error) {
	s, rd := b.store, b.asked
	if rd.nearest && now.zone != "" && now.zone == s.cfg.Zone { // nothing is nearer, or newer
		return nil, nil
	}
	maxLag := b.maxLag()
	var replicas []*replica
	start := 0
	if now.replicaState != nil {
		replicas, start = now.replicas, int(now.turn.Add(1))
		now.wanted.Store(int64(s.clock()))
	}
	since := sessionOf(ctx).since(s, now.place)
	var last error
	considered := 0
	for _, near := range []bool{true, false} {
		if !near && rd.nearest || near && s.cfg.Zone == "" {
			continue
		}
		for i := range replicas {
			r := replicas[(start+i)%len(replicas)]
			if (s.cfg.Zone != "" && r.zone == s.cfg.Zone) != near {
				continue
			}
			considered++
			fit, err := r.fit(ctx, maxLag, since)
			if fit {
				return r, nil
			}
			last = err
		}
	}
	if rd.strict {
		return nil, &ReplicaLagError{Place: now.place, MaxLag: maxLag, Replicas: considered, Session: since > 0, Err: last}
	}
	return nil, nil
}

// enterReads takes a permit for a read, of the server that choose names: nil for the primary.
func (b *binding) enterReads(ctx context.Context, choose func(context.Context, *database) (*replica, error)) (to target, permit wire.Permit, err error) {
	if b.store.shut() {
		return target{}, nil, ErrClosed
	}
	if err := b.serves(ctx, false); err != nil {
		return target{}, nil, err
	}
	db, permit, err := b.db.enter(ctx, func(ctx context.Context, now *database) (wire.Permit, error) {
		r, err := choose(ctx, now)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return b.permit(ctx, now, false)
		}
		to = target{DB: r.db.writer.DB, replica: r}
		return b.permit(ctx, r.db, false)
	})
	if err != nil {
		return target{}, nil, err
	}
	if err := b.stillServes(ctx, false, permit); err != nil {
		permit.Release()
		return target{}, nil, err
	}
	if to.replica == nil {
		to.DB = db.sql(false)
	}
	return to, permit, nil
}

// lost reports a read that met a replica that is gone, and notes it.
func (t target) lost(ctx context.Context, err error) bool {
	if err == nil || t.replica == nil || ctx.Err() != nil || !wire.IsConnection(err) {
		return false
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) { // the dialler saw the caller's deadline before the context did
		return false
	}
	t.replica.lost(ctx, err)
	return true
}

// instead exchanges the permit of a read whose replica is gone for one of the primary, which it has not reached yet.
func (p *pool) instead(ctx context.Context, m *wire.Mark, gone error) (target, error) {
	if p.asked.strict {
		return target{}, &ReplicaLagError{Place: p.db.place, MaxLag: p.maxLag(), Replicas: 1, Err: gone}
	}
	m.Permit.Release() // before the next: a tenant may have one at a time
	m.Permit = noPermit{}
	to, permit, err := p.enterReads(ctx, func(context.Context, *database) (*replica, error) { return nil, nil })
	if err != nil {
		return target{}, err
	}
	m.Permit = permit
	return to, nil
}

// noPermit stands where a permit was given back.
type noPermit struct{}

// Retain does nothing.
func (noPermit) Retain() {}

// Release does nothing.
func (noPermit) Release() {}

// maxLag is how far behind a replica may be that the handle reads from.
func (b *binding) maxLag() time.Duration {
	if b.asked.maxLag > 0 {
		return b.asked.maxLag
	}
	return b.store.cfg.ReplicaLag
}

// fit reports whether the replica is known to be at most maxLag behind and to have what was committed at since. It asks the replica if what is known is
// not enough, and its answer could be.
func (r *replica) fit(ctx context.Context, maxLag, since time.Duration) (bool, error) {
	enough := func(asOf time.Duration) bool { return asOf >= since && r.db.store.clock()-asOf <= maxLag }
	r.mu.Lock()
	now := r.db.store.clock()
	fit := r.known && r.until == 0 && enough(r.asOf)
	newest, beaten := r.primary.beats.newest()
	useless := !beaten || !enough(newest) || r.until > now || r.asked > 0 && now-r.asked < probePause || r.known && r.until == 0 && r.asOf == newest
	err := r.err
	r.mu.Unlock()
	if fit || useless {
		return fit, err
	}
	answer := r.asking.DoChan("", func() (any, error) { return nil, r.ask() })
	select {
	case a := <-answer:
		err = a.Err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known && r.until == 0 && enough(r.asOf), err
}

// The heartbeat is one row of each place that has replicas. Its time is for operators to look at; the library goes by its number.
var (
	heartbeatRead  = wire.RegisterSystem("dal/heartbeat read", "SELECT beat FROM tdal_heartbeat WHERE id = 1", wire.Poll)
	heartbeatWrite = wire.RegisterSystem("dal/heartbeat write", "INSERT INTO tdal_heartbeat (id, beat, written_at) VALUES (1, LAST_INSERT_ID(1), UTC_TIMESTAMP(6)) "+
		"ON DUPLICATE KEY UPDATE beat = LAST_INSERT_ID(beat + 1), written_at = UTC_TIMESTAMP(6)", wire.Poll)
)

// ask reads the heartbeat that the replica has, and at first which place it is and what its login may do.
func (r *replica) ask() error {
	s := r.db.store
	if !s.begin() {
		return ErrClosed
	}
	defer s.openers.Done()
	ctx, cancel := context.WithTimeout(s.life, probeLimit)
	defer cancel()
	beat, err := r.read(ctx)
	asOf, known := r.primary.beats.at(beat)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := s.clock()
	r.asked = now
	if err != nil {
		r.down(ctx, err, now)
		return err
	}
	if r.until != 0 {
		s.log.LogAttrs(ctx, slog.LevelInfo, "replica answers", slog.String("shard", r.db.place.String()), slog.Int("replica", r.n))
	}
	r.checked, r.until, r.err = true, 0, nil
	r.known, r.asOf = known, asOf
	return nil
}

// down leaves the replica alone for a while. The lock must be held.
func (r *replica) down(ctx context.Context, err error, now time.Duration) {
	if r.until == 0 {
		r.db.store.log.LogAttrs(ctx, slog.LevelWarn, "replica not used", slog.String("shard", r.db.place.String()), slog.Int("replica", r.n), slog.Any("err", err))
	}
	r.known, r.until, r.err = false, now+downPause, err
}

// lost notes that a read of a caller's met a replica that is gone.
func (r *replica) lost(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down(ctx, err, r.db.store.clock())
}

func (r *replica) read(ctx context.Context) (beat int64, err error) {
	permit, err := r.db.systemPermit(ctx)
	if err != nil {
		return 0, err
	}
	defer permit.Release()
	r.mu.Lock()
	checked := r.checked
	r.mu.Unlock()
	if !checked {
		if err := errors.Join(r.db.checkIdentity(ctx), r.db.checkGrants(ctx)); err != nil {
			return 0, err
		}
	}
	beat = -1
	err = r.db.each(ctx, heartbeatRead, nil, func(rows *sql.Rows) error { return rows.Scan(&beat) })
	switch {
	case err == nil && beat < 0:
		return 0, nil // nobody has written one yet
	case wire.IsMissing(err):
		return 0, fmt.Errorf("%w: place %s, replica %d has no heartbeat", ErrNotMigrated, r.db.place, r.n)
	case err != nil:
		return 0, fmt.Errorf("dal: place %s, replica %d: %w", r.db.place, r.n, err)
	}
	return beat, nil
}

// keptBeats is how many of its own heartbeats a process remembers of a place. A replica that has none of them is so far behind that its lag is unknown.
const keptBeats = 256

// beats are the heartbeats that this process has written in a place, by number. The number is the row's, which every process counts on. The lag is
// the time since this process began to write the newest of its heartbeats that the replica shows: what the primary committed before that moment is there.
// The moment is on this process's monotonic clock, so neither the servers' clocks nor their steps matter, and the bound is never too small.
type beats struct {
	mu  sync.Mutex // guards all below
	n   int        // written into the ring so far
	all [keptBeats]beat
}

type beat struct {
	number int64
	began  time.Duration // on the store's clock, before it was sent
}

// add remembers a heartbeat. One that does not count on from the last says that the primary was exchanged: nothing older holds.
func (b *beats) add(x beat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n > 0 && x.number <= b.all[(b.n-1)%keptBeats].number {
		b.n = 0
	}
	b.all[b.n%keptBeats] = x
	b.n++
}

// newest returns when the last heartbeat was begun.
func (b *beats) newest() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n == 0 {
		return 0, false
	}
	return b.all[(b.n-1)%keptBeats].began, true
}

// at returns when the newest heartbeat up to number was begun.
func (b *beats) at(number int64) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := b.n - 1; i >= max(0, b.n-keptBeats); i-- {
		if x := b.all[i%keptBeats]; x.number <= number {
			return x.began, true
		}
	}
	return 0, false
}

// Beat writes one heartbeat into every open place that has replicas: the shared ones, and of the places that belong to one tenant those that were read with
// [Replica] or [Nearest] within the last minute. Without heartbeats no replica is used: [Store.Start] calls it every Config.TopologyPoll; without Start call
// it about every second, well below the lags that are asked for.
// Each is one statement on the primary. Places without replicas cost nothing.
//
// It returns the joined errors of the places that could not be reached; the others have their heartbeat. It needs no scope: it touches no tenant's row.
func (s *Store) Beat(ctx context.Context) error {
	if s.shut() {
		return ErrClosed
	}
	var errs []error
	for _, db := range s.replicated() {
		if db.seat != nil && s.clock()-time.Duration(db.wanted.Load()) > time.Minute {
			continue
		}
		if err := db.beat(ctx); err != nil {
			errs = append(errs, fmt.Errorf("dal: heartbeat of place %s: %w", db.place, err))
		}
	}
	return errors.Join(errs...)
}

// replicated lists the open places that have replicas.
func (s *Store) replicated() []*database {
	var list []*database
	add := func(db *database) {
		if db != nil && db.replicaState != nil {
			list = append(list, db)
		}
	}
	s.places.Range(func(_, v any) bool {
		add(v.(*database))
		return true
	})
	for _, db := range s.own.all() {
		add(db)
	}
	return list
}

// beat writes one heartbeat.
func (db *database) beat(ctx context.Context) error {
	now, permit, err := db.enter(ctx, func(ctx context.Context, now *database) (wire.Permit, error) { return now.systemPermit(ctx) })
	if err != nil {
		return err
	}
	defer permit.Release()
	began := db.store.clock()
	res, err := now.writer.ExecContext(wire.With(ctx, &wire.Mark{Kind: wire.Library, Stmt: heartbeatWrite, Permit: permit, Write: true}), heartbeatWrite.Text())
	if err != nil {
		if wire.IsMissing(err) {
			return fmt.Errorf("%w: %w", ErrNotMigrated, err)
		}
		return err
	}
	number, err := res.LastInsertId()
	if err != nil || number == 0 {
		return errors.Join(err, errors.New("the server does not say the heartbeat's number"))
	}
	now.beats.add(beat{number, began})
	return nil
}

// ReplicaStatus is what is known of one replica of one place.
type ReplicaStatus struct {
	Place    Place
	Replica  int    // from 1, in the order of [Endpoint.Replicas]
	Zone     string // as configured
	Endpoint string // without its password
	// Known says that Lag is: the replica answered when it was last asked, and has a heartbeat of this process.
	Known bool
	// Lag is how far the replica may be behind, by what it last answered. It grows until the replica is asked again, which reads with options do.
	Lag time.Duration
	// Err is why it could not be asked, or is not fit; nil for none.
	Err error
	// Sent is what was sent to it, heartbeats included.
	Sent wire.Stats
}

// Replicas returns what is known of the replicas of every open place, by place and number. It does no I/O.
func (s *Store) Replicas() []ReplicaStatus {
	var list []ReplicaStatus
	for _, db := range s.replicated() {
		for _, r := range db.replicas {
			r.mu.Lock()
			st := ReplicaStatus{Place: db.place, Replica: r.n, Zone: r.zone, Endpoint: r.name, Known: r.known, Err: r.err}
			if r.known {
				st.Lag = s.clock() - r.asOf
			}
			r.mu.Unlock()
			st.Sent = r.db.writer.Stats()
			list = append(list, st)
		}
	}
	return list
}

// replicaState is the part of a database that has replicas.
type replicaState struct {
	replicas []*replica
	beats    beats
	wanted   atomic.Int64  // on the store's clock: when a read with options last came
	turn     atomic.Uint32 // whose turn it is among replicas that are equally fit
}
