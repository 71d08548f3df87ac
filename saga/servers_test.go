package saga_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// deadlocks counts the deadlocks of a world from now on.
func (w *world) deadlocks() *atomic.Int64 {
	var n atomic.Int64
	w.watch.onAfter(func(_ context.Context, _ wire.Event, err error) {
		if wire.Code(err) == 1213 || wire.SQLState(err) == "40P01" {
			n.Add(1)
		}
	})
	return &n
}

// Concurrent voids and applies of one saga meet at the missing decision row. Insert-first at READ COMMITTED has no gap lock to deadlock on.
func TestDecide_Q07_ConcurrentVoidsOfOneSagaNeverDeadlock(t *testing.T) {
	t.Parallel()
	onServers(t, 2, func(w *world) {
		d := w.donations(quiet())
		base := w.fresh(d, acme, 1<<40, 1)
		w.must(d.Stock(w.as(acme), "stock", base.Guild, base.Item, 1))
		deadlocks := w.deadlocks()
		credits := int64(1)
		for i := range 150 {
			don := base
			don.Key = fmt.Sprint(i)
			_, err := d.Donate(w.as(acme), don)
			w.must(err)
			outcomes := make([]saga.Outcome, 8)
			var wg sync.WaitGroup
			for n := range outcomes {
				wg.Go(func() {
					var err error
					if outcomes[n], _, err = d.DecideForTest(w.as(acme), don, n%4 != 0); err != nil {
						w.Errorf("decision: %v", err)
					}
				})
			}
			wg.Wait()
			for _, o := range outcomes {
				if o != outcomes[0] || o != saga.Applied && o != saga.Voided {
					w.Fatalf("saga %d was decided as %v: all must be one", i, outcomes)
				}
			}
			if outcomes[0] == saga.Applied {
				credits++
			}
		}
		if n := deadlocks.Load(); n > 0 {
			w.Errorf("%d deadlocks, want 0", n)
		}
		if got := w.warehouse(acme, base.Guild, base.Item); got != credits {
			w.Errorf("warehouse = %d, want %d: one for each applied saga", got, credits)
		}
		_, err := d.Drain(w.sys)
		w.must(err)
		w.wantConserved(d)
	}, everyModel[0])
}

// Distinct donations take their locks in one order, whatever they share: bags, warehouses, new cells, refunds. The one circle that there is, a donation
// started again while it is refunded, is what the retry is for.
func TestDonate_Q07_DistinctDonationsNeverDeadlock(t *testing.T) {
	t.Parallel()
	onServers(t, 2, func(w *world) {
		cfg := saga.Config{VoidAfter: saga.Never, Workers: 4, Batch: 8}
		relays := []*saga.Donations{w.donations(cfg), w.donationsOver(w.openStore(), cfg)}
		c := crowd{tenants: []tenant.ID{acme}, players: 3, guilds: 7, items: []string{"gold", "wood", "iron", "salt"}, once: true}
		c.setUp(w, relays[0])
		for _, d := range relays {
			w.must(d.Start(w.Context()))
		}
		deadlocks := w.deadlocks()
		var n atomic.Int64
		c.rush(w, 16, 1500, func(ctx context.Context, don saga.Donation) error {
			_, err := relays[n.Add(1)%2].Donate(ctx, don)
			return err
		})
		for _, d := range relays {
			_, err := d.Drain(w.sys)
			w.must(err)
		}
		if n := deadlocks.Load(); n > 0 {
			w.Errorf("%d deadlocks, want 0", n)
		}
		w.wantNothingOpen(relays[0])
		w.wantConserved(relays[0])
	}, everyModel[0])
}

// A transaction that began first and commits last: its donation is found by its state, not by a number that others have passed.
func TestRelay_Q11_Q12_LateCommitIsDelivered(t *testing.T) {
	t.Parallel()
	onServers(t, 1, func(w *world) {
		d := w.donations(quiet())
		late, early := w.fresh(d, acme, 10, 4), w.fresh(d, acme, 10, 4)
		x, hash := sagaID(acme, late), saga.BodyHash(late.Guild, late.Item, late.Qty)
		tx, err := w.raw(w.sourceOf(d, acme, late), acme).BeginTx(w.Context(), nil)
		w.must(err)
		_, err = tx.ExecContext(w.Context(), "UPDATE bag SET qty = qty - 4 WHERE tenant_id = 'acme' AND player_id = ?", []byte(late.Player))
		w.must(err)
		_, err = tx.ExecContext(w.Context(), "INSERT INTO saga_out (tenant_id, saga_id, state, player_id, request_key, guild_id, item_id, qty, body_hash, epoch, attempts, due_at, void_at,"+
			" lease_owner, lease_until, fence, reason, created_at, ended_at) VALUES ('acme', ?, 1, ?, ?, ?, ?, 4, ?, 1, 0, 1, 9000000000000000000, '', 0, 0, '', 1, 0)",
			x[:], []byte(late.Player), []byte(late.Key), []byte(late.Guild), []byte(late.Item), hash[:])
		w.must(err)
		_, err = d.Donate(w.as(acme), early)
		w.must(err)
		ended, err := d.Step(w.sys)
		if err != nil || ended.Settled != 1 {
			w.Errorf("Step beside the open transaction = %+v, %v, want the other donation settled", ended, err)
		}
		w.wantConserved(d)
		w.must(tx.Commit())
		ended, err = d.Step(w.sys)
		if err != nil || ended.Settled != 1 {
			w.Errorf("Step after the late commit = %+v, %v, want it settled", ended, err)
		}
		w.wantBalances(acme, late, 6, 4)
		w.wantConserved(d)
	}, everyModel[0])
}

// Q24 and Q25: the bag's update succeeds, the journal's insert ends by a lock wait or by the server's time limit. Both leave the transaction open with
// the update in it; nothing of it may be kept.
func TestDonate_Q24_Q25_StatementThatFailsAloneKeepsNothing(t *testing.T) {
	t.Parallel()
	server := testutil.NewMariaDBCluster(t, 1)
	for _, c := range []struct {
		name   string
		limits string
		codes  []int
	}{
		{"Q24 lock wait", "SET GLOBAL innodb_lock_wait_timeout = 1, GLOBAL max_statement_time = 0", []int{1205}},
		{"Q25 statement time", "SET GLOBAL innodb_lock_wait_timeout = 50, GLOBAL max_statement_time = 0.3", []int{1969, 1205}},
	} {
		w := open(t, dal.Config{Cluster: mariaCluster(t, server)}, everyModel[0])
		cfg := quiet()
		cfg.Retries = 1
		don := w.fresh(w.donations(quiet()), acme, 10, 4)
		raw := w.raw(dal.Place{Shard: "s1"}, acme)
		_, err := raw.ExecContext(t.Context(), c.limits)
		w.must(err)
		d := w.donationsOver(w.openStore(), cfg) // the limits hold for new connections
		x, hash := sagaID(acme, don), saga.BodyHash("other", "gold", 1)
		conn, err := raw.Conn(t.Context())
		w.must(err)
		_, err = conn.ExecContext(t.Context(), "SET SESSION max_statement_time = 0")
		w.must(err)
		tx, err := conn.BeginTx(t.Context(), nil)
		w.must(err)
		_, err = tx.ExecContext(t.Context(), "INSERT INTO saga_out (tenant_id, saga_id, state, player_id, request_key, guild_id, item_id, qty, body_hash, epoch, attempts, due_at, void_at,"+
			" lease_owner, lease_until, fence, reason, created_at, ended_at) VALUES ('acme', ?, 1, 'p', 'k', 'other', 'gold', 1, ?, 1, 0, 1, 1, '', 0, 0, '', 1, 0)", x[:], hash[:])
		w.must(err)
		_, err = d.Donate(w.as(acme), don)
		found := false
		for _, code := range c.codes {
			found = found || wire.Code(err) == code
		}
		if !found {
			t.Errorf("%s: Donate = %v, want one of the errors %v", c.name, err, c.codes)
		}
		w.must(tx.Rollback())
		w.must(conn.Close())
		w.wantBalances(acme, don, 10, 0)
		if _, err := d.State(w.as(acme), don.Player, don.Key); !errors.Is(err, saga.ErrNoDonation) {
			t.Errorf("%s: State = %v, want ErrNoDonation", c.name, err)
		}
		_, err = d.Donate(w.as(acme), don)
		w.must(err)
		w.wantBalances(acme, don, 6, 0)
		w.wantConserved(d)
	}
}

// Connections are killed while many donors work: each donation is there once or not at all, whatever its donor was told.
func TestDonate_Q21_ConnectionsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	onServers(t, 2, func(w *world) {
		d := w.donations(saga.Config{VoidAfter: saga.Never, PollMax: 200 * time.Millisecond})
		c := crowd{tenants: []tenant.ID{acme, globex, delta}, players: 10, guilds: 7, items: []string{"gold"}}
		c.setUp(w, d)
		w.must(d.Start(w.Context()))
		stop := make(chan struct{})
		var killer sync.WaitGroup
		killed := 0
		raw := w.raw(dal.Place{Shard: "s1"}, acme)
		base := w.cfg.Cluster.Shards[0].Database
		find, kill := "SELECT id FROM information_schema.processlist WHERE db LIKE ? AND db NOT LIKE '%control' AND id <> CONNECTION_ID() ORDER BY RAND() LIMIT 1", "KILL %d"
		if w.cfg.Cluster.Dialect == dal.Postgres {
			find, kill = "SELECT pid FROM pg_stat_activity WHERE datname LIKE ? AND datname NOT LIKE '%control' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1", "SELECT pg_terminate_backend(%d)"
		}
		killer.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var id int64
				err := raw.QueryRowContext(w.Context(), find, base+"%").Scan(&id)
				if errors.Is(err, sql.ErrNoRows) {
					continue
				}
				if err != nil {
					w.Errorf("find a connection: %v", err)
					return
				}
				if _, err := raw.ExecContext(w.Context(), fmt.Sprintf(kill, id)); err == nil {
					killed++
				}
			}
		})
		var failed atomic.Int64
		c.rush(w, 8, 400, func(ctx context.Context, don saga.Donation) error {
			for {
				_, err := d.Donate(ctx, don)
				if err == nil {
					return nil
				}
				if errors.Is(err, saga.ErrConflict) || errors.Is(err, saga.ErrInsufficient) {
					return err
				}
				failed.Add(1) // the caller tries again with the same key
			}
		})
		close(stop)
		killer.Wait()
		w.killed = true
		w.Logf("%d connections killed, %d calls failed", killed, failed.Load())
		if killed == 0 {
			w.Error("no connection was killed")
		}
		w.eventually("all end", func() bool {
			_, err := d.Drain(w.sys)
			w.must(err)
			all, err := d.Pending(w.sys)
			w.must(err)
			open := int64(0)
			for _, b := range all {
				open += b.Open()
			}
			return open == 0
		})
		rep, err := d.Reconcile(w.sys)
		if err != nil || len(rep.Alarms)+len(rep.Quarantine) > 0 {
			w.Errorf("Reconcile = %+v, %v", rep, err)
		}
		w.wantConserved(d)
	})
}

// What the relay reads does not grow with the finished rows, nor with another tenant's backlog, and no list of ids becomes a scan.
func TestRelay_Q40_PollsReadWhatIsDue(t *testing.T) {
	t.Parallel()
	w := onMariaDB(t, 1, everyModel[0])
	raw := w.raw(dal.Place{Shard: "s1"}, acme)
	raw.SetMaxOpenConns(1)
	run := func(text string, args ...any) {
		t.Helper()
		_, err := raw.ExecContext(t.Context(), text, args...)
		w.must(err)
	}
	const columns = "INSERT INTO saga_out (tenant_id, saga_id, state, player_id, request_key, guild_id, item_id, qty, body_hash, epoch, attempts, due_at, void_at," +
		" lease_owner, lease_until, fence, reason, created_at, ended_at) "
	// 100 tenants, 20,000 finished rows, 5,000 pending ones of one tenant and 3 of each of 50 others.
	run(columns + "SELECT CONCAT('t', seq % 100), UNHEX(MD5(seq)), 4, 'p', 'k', 'g', 'i', 1, UNHEX(MD5('h')), 1, 1, seq, 1, '', 0, 0, '', 1, 1 FROM seq_1_to_20000")
	run(columns + "SELECT 'acme', UNHEX(MD5(CONCAT('a', seq))), 1, 'p', 'k', 'g', 'i', 1, UNHEX(MD5('h')), 1, 1, seq, 9000000000000000000, '', 0, 0, '', 1, 0 FROM seq_1_to_5000")
	run(columns + "SELECT CONCAT('t', seq % 50), UNHEX(MD5(CONCAT('b', seq))), 1, 'p', 'k', 'g', 'i', 1, UNHEX(MD5('h')), 1, 1, seq, 9000000000000000000, '', 0, 0, '', 1, 0 FROM seq_1_to_150")
	run("ANALYZE TABLE saga_out")
	constants := map[string]*wire.Statement{}
	for _, st := range wire.Statements() {
		if name, ok := strings.CutSuffix(st.Name(), "/mysql"); ok && strings.HasPrefix(name, "saga.") {
			constants[name] = st
		}
	}
	id := make([]byte, 16)
	ids := func(n int, args ...any) []any {
		for range n {
			args = append(args, id)
		}
		return args
	}
	for _, c := range []struct {
		name string
		args []any
		most int64 // rows read
	}{
		{"saga.poll.tenants", nil, 4 * 52},
		{"saga.open.tenants", nil, 4 * 52},
		{"saga.poll.due", []any{1, "acme", 64}, 66},
		{"saga.claim.due.1", ids(1, id, 1, 1, "acme"), 2},
		{"saga.claim.due.64", ids(64, id, 1, 1, "acme"), 66},
		{"saga.claim.open.64", ids(64, id, 1, 1, "acme"), 66},
		{"saga.claim.rows.64", ids(64, "acme", id), 66},
		{"saga.settle.1", ids(1, "acme", 0), 2},
		{"saga.settle.64", ids(64, "acme", 0), 66},
		{"saga.postpone.64", ids(64, 1, "acme", 0), 66},
		{"saga.refund.journal", []any{"", "acme", id, 0}, 2},
		{"saga.journals.64", ids(64, "acme"), 66},
		{"saga.decisions.64", ids(64, "acme"), 66},
	} {
		st := constants[c.name]
		if st == nil {
			t.Fatalf("no statement %s", c.name)
		}
		run("FLUSH STATUS")
		rows, err := raw.QueryContext(t.Context(), st.Text(), c.args...)
		w.must(err)
		for rows.Next() {
		}
		w.must(errors.Join(rows.Err(), rows.Close()))
		var read int64
		w.must(raw.QueryRowContext(t.Context(), "SELECT SUM(variable_value) FROM information_schema.session_status WHERE variable_name LIKE 'Handler_read%'").Scan(&read))
		if read > c.most {
			t.Errorf("%s reads %d rows of 25,150, want at most %d", c.name, read, c.most)
		}
	}
}
