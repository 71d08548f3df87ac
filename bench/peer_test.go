package bench_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/bench"
)

// Every peer really sends the tenant with each case, so that what is compared does the same work for its user.
func TestPeers_SendTheTenant(t *testing.T) {
	t.Parallel()
	for _, p := range bench.Peers() {
		for _, c := range bench.Cases() {
			t.Run(p.Name+"/"+string(c), func(t *testing.T) {
				t.Parallel()
				d := &bench.NullDriver{Rows: c.Rows()}
				d.Watch()
				ops, closer, err := p.Open(d)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := closer(); err != nil {
						t.Error(err)
					}
				}()
				if err := ops[c](); err != nil {
					t.Fatal(err)
				}
				sent := d.Last()
				if sent == nil {
					t.Fatal("nothing was sent")
				}
				t.Log(sent.Text, sent.Args)
				if !strings.Contains(sent.Text, "tenant_id") || !slices.Contains(sent.Args, any("acme")) {
					t.Errorf("sent %q with %v: it does not name the tenant", sent.Text, sent.Args)
				}
			})
		}
	}
}
