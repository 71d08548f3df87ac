//go:build linux

package testutil_test

import (
	"context"
	"testing"

	"github.com/tenantdal/tenantdal/testutil"
)

func TestMariaDBReplica_CopiesStopsAndCatchesUp(t *testing.T) {
	t.Parallel()
	pair := testutil.NewMariaDBReplica(t)
	execAll(t, pair.Primary, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)")
	must(t, pair.Sync(t.Context()))
	if got := query(t, pair.Replica, "SELECT COUNT(*) FROM d.t"); got != "1" {
		t.Errorf("rows on the replica = %s, want 1", got)
	}
	must(t, pair.StopSQL())
	execAll(t, pair.Primary, "INSERT INTO d.t VALUES (2)")
	if got := query(t, pair.Replica, "SELECT COUNT(*) FROM d.t"); got != "1" {
		t.Errorf("rows on a replica that applies nothing = %s, want 1", got)
	}
	must(t, pair.StartSQL())
	must(t, pair.Sync(t.Context()))
	if got := query(t, pair.Replica, "SELECT COUNT(*) FROM d.t"); got != "2" {
		t.Errorf("rows after it caught up = %s, want 2", got)
	}

	must(t, pair.Replica.Kill())
	execAll(t, pair.Primary, "INSERT INTO d.t VALUES (3)")
	must(t, pair.Replica.Start(context.Background()))
	must(t, pair.Sync(t.Context()))
	if got := query(t, pair.Replica, "SELECT COUNT(*) FROM d.t"); got != "3" {
		t.Errorf("rows after a crash of the replica = %s, want 3", got)
	}
}
