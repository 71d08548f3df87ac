package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/testutil"
)

func Example() {
	if err := start(context.Background(), "", os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// acme, best 10 of 30:
	//   1. player-27 99
	//   2. player-18 98
	//   3. player-08 96
	//   4. player-13 93
	//   5. player-16 92
	//   6. player-24 88
	//   7. player-26 86
	//   8. player-05 85
	//   9. player-03 83
	//  10. player-21 81
	// player-04 is number 23 with 48
	// globex, best 5 of 5:
	//   1. player-03 83
	//   2. player-02 74
	//   3. player-01 61
	//   4. player-04 48
	//   5. player-00 0
	// player-04 is number 4 with 48
}

// The same program on three MariaDB servers, twice: a second run finds its board and changes nothing.
func TestRun_OnMariaDB(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	if err := start(t.Context(), "", &want); err != nil {
		t.Fatal(err)
	}
	servers := testutil.SharedMariaDB(t, 3)
	shards := make([]dal.Endpoint, len(servers))
	for i, s := range servers {
		db := testutil.NewDatabase(t, s)
		shards[i] = dal.Endpoint{Network: db.Net, Address: db.Addr, User: db.User, Password: db.Passwd, Database: "x" + db.DBName[2:14]}
	}
	cluster := dal.MySQLCluster(shards...)
	cluster.LoginSecret = "of the tests"
	for range 2 {
		var got bytes.Buffer
		if err := run(t.Context(), cluster, &got); err != nil || got.String() != want.String() {
			t.Fatalf("%v, %s, want %s", err, got.String(), want.String())
		}
	}
}

func TestStart_RefusesURLsThatAreNone(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := start(t.Context(), "nowhere", &out); err == nil || out.Len() > 0 {
		t.Errorf("%v, %s", err, out.String())
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := testutil.StopSharedMariaDB(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
