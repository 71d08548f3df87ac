package dal_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
)

func TestParseURLs_Postgres(t *testing.T) {
	t.Parallel()
	c, err := dal.ParseURLs("postgres://op@db1:5432/game, postgres://op@db2:5433/game", "secret")
	if err != nil || c.Dialect != dal.Postgres || len(c.Shards) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	want := dal.Endpoint{Dialect: dal.Postgres, Network: "tcp", Address: "db2:5433", User: "op", Password: "secret", Database: "game"}
	if !reflect.DeepEqual(c.Shards[1], want) {
		t.Errorf("got %+v, want %+v", c.Shards[1], want)
	}
	if got := c.Shards[0].String(); got != "postgres://op@tcp(db1:5432)/game" {
		t.Errorf("String: %s", got)
	}
	for name, list := range map[string]string{
		"a password":     "postgres://op:secret@db1:5432/game",
		"another scheme": "postgresql://op@db1:5432/game",
		"two kinds":      "postgres://op@db1:5432/game,mysql://op@db1:3306/game",
		"no database":    "postgres://op@db1:5432/",
		"options":        "postgres://op@db1:5432/game?options=-csearch_path=x",
		"no port":        "postgres://op@db1/game",
		"a long name":    "postgres://op@db1:5432/" + strings.Repeat("g", 41),
	} {
		_, err := dal.ParseURLs(list, "secret")
		var ue *dal.URLError
		if !errors.As(err, &ue) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each database has two logins of its own: no login, and no password, opens two of them.
func TestPostgresCluster_LoginsAreTheDatabasesOwn(t *testing.T) {
	t.Parallel()
	c := dal.PostgresCluster(
		dal.Endpoint{Network: "tcp", Address: "h:1", User: "op", Password: "p", Database: "game"},
		dal.Endpoint{Network: "tcp", Address: "other:1", User: "op", Password: "p", Database: "game"}, // the same name on another server
	)
	seen := map[string]string{"op": "the operator", "p": "the operator's password"}
	claim := func(what, value string) {
		t.Helper()
		if value == "" || seen[value] != "" {
			t.Errorf("%s is %q, as is %s", what, value, seen[value])
		}
		seen[value] = what
	}
	for _, at := range []struct {
		place dal.Place
		owner string
	}{
		{dal.Place{Shard: "s1"}, ""},
		{dal.Place{Shard: "s2"}, ""},
		{dal.Place{Shard: "s1", Schema: "t_zeta"}, "zeta"},
		{dal.Place{Shard: "big-s1"}, "big"},
	} {
		e, err := c.Endpoint(at.place, "big")
		if err != nil {
			t.Fatal(err)
		}
		claim(at.place.String()+"'s login", e.User)
		claim(at.place.String()+"'s password", e.Password)
		claim(at.place.String()+"'s system login", e.SystemUser)
		claim(at.place.String()+"'s system password", e.SystemPassword)
		if len(e.User) > 63 || len(e.SystemUser) > 63 || len(e.Database) > 63 {
			t.Errorf("%+v: a name has more than PostgreSQL's 63 bytes", e)
		}
		again, _ := c.Endpoint(at.place, "big")
		if !reflect.DeepEqual(again, e) {
			t.Error("the logins differ from call to call")
		}
	}
	control := c.Control()
	claim("the control login", control.User)
	claim("the control password", control.Password)
	if control.Database != "game_tdal_control" {
		t.Errorf("control database %q", control.Database)
	}
	c.Shards[0].Password, c.Shards[1].Password = "", ""
	if err := c.Validate(); !errors.Is(err, dal.ErrNoLoginSecret) {
		t.Errorf("without a secret: %v", err)
	}
	c.LoginSecret = "s"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Shards[1].Database = strings.Repeat("x", 41)
	if err := c.Validate(); err == nil {
		t.Error("a name that leaves no room was let in")
	}
}
