package saga_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// A slow transaction of a game's own holds one tenant's row: that tenant waits, and nobody else. First a warehouse's row, then a bag's.
func TestRelay_LockedRowCostsItsOwnTenantAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open bool // the guilds take donations
		lock string
		end  saga.State
	}{
		"warehouse": {true, "SELECT qty FROM warehouse WHERE tenant_id = 'acme' FOR UPDATE", saga.Settled},
		"bag":       {false, "SELECT qty FROM bag WHERE tenant_id = 'acme' FOR UPDATE", saga.Refunded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, dal.Config{Cluster: mariaCluster(t, testutil.SharedMariaDB(t, 1)), LockWait: time.Second},
				tenant.Tenant{ID: acme, Model: tenant.SharedTable}, tenant.Tenant{ID: globex, Model: tenant.SharedTable})
			d := w.donations(saga.Config{VoidAfter: saga.Never})
			for _, id := range []tenant.ID{acme, globex} {
				w.must(d.SetGuild(w.as(id), "g", c.open))
				w.must(d.Stock(w.as(id), "s", "g", "gold", 1))
				w.must(d.Grant(w.as(id), "g", "p", "gold", 1000))
				for i := range 4 {
					_, err := d.Donate(w.as(id), saga.Donation{Key: fmt.Sprint(i), Player: "p", Guild: "g", Item: "gold", Qty: 1})
					w.must(err)
				}
			}
			tx, err := w.raw(dal.Place{Shard: "s1"}, "").BeginTx(t.Context(), nil)
			w.must(err)
			defer func() { _ = tx.Rollback() }()
			var qty int64
			w.must(tx.QueryRow(c.lock).Scan(&qty))
			_, _ = d.Step(w.sys) // acme's part fails
			for i := range 4 {
				r, err := d.State(w.as(globex), "p", fmt.Sprint(i))
				w.must(err)
				if r.State != c.end {
					t.Errorf("globex's donation %d is %v, want %v", i, r.State, c.end)
				}
				r, err = d.State(w.as(acme), "p", fmt.Sprint(i))
				w.must(err)
				if r.State != saga.Pending {
					t.Errorf("acme's donation %d is %v while its row is locked", i, r.State)
				}
			}
			w.must(tx.Rollback())
			_, err = d.Drain(w.sys)
			w.must(err)
			r, err := d.State(w.as(acme), "p", "0")
			w.must(err)
			if r.State != c.end {
				t.Errorf("acme's donation is %v after the lock, want %v", r.State, c.end)
			}
			w.wantConserved(d)
		})
	}
}
