package wire_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tenantdal/tenantdal/internal/wire"
)

func TestDollars(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"SELECT 1": "SELECT 1",
		"SELECT x FROM t WHERE tenant_id = ? AND y IN (?, ?)":  "SELECT x FROM t WHERE tenant_id = $1 AND y IN ($2, $3)",
		`SELECT '?', "?" FROM t WHERE x = ? AND y = 'it''s ?'`: `SELECT '?', "?" FROM t WHERE x = $1 AND y = 'it''s ?'`,
		"?????????? ?": "$1$2$3$4$5$6$7$8$9$10 $11",
	} {
		if got := wire.Dollars(in); got != want {
			t.Errorf("Dollars(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestFault_SQLStates(t *testing.T) {
	t.Parallel()
	type kinds struct{ duplicate, deadlock, connection, timeout, missing, poisons bool }
	for state, want := range map[string]kinds{
		"23505": {duplicate: true},
		"40P01": {deadlock: true, poisons: true},
		"40001": {deadlock: true, poisons: true},
		"55P03": {deadlock: true, timeout: true, poisons: true},
		"57014": {timeout: true, poisons: true},
		"57P01": {connection: true, poisons: true},
		"57P03": {connection: true, poisons: true},
		"08006": {connection: true, poisons: true},
		"53300": {poisons: true},
		"3D000": {missing: true},
		"42P01": {missing: true},
		"42703": {missing: true},
		"42501": {},
		"23514": {},
		"25P02": {},
		"22012": {},
	} {
		err := fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: state, Message: "m"})
		got := kinds{wire.IsDuplicateKey(err), wire.IsDeadlock(err), wire.IsConnection(err), wire.IsTimeout(err), wire.IsMissing(err), wire.PoisonsPostgres(err)}
		if got != want || wire.SQLState(err) != state {
			t.Errorf("%s: got %+v, want %+v", state, got, want)
		}
		// Numbers of other servers are below.
		if wire.Code(err) < 1<<16-20000 {
			t.Errorf("%s is %d, which may be another server's", state, wire.Code(err))
		}
	}
	stale := &pgconn.PgError{Code: "0A000", Message: "cached plan must not change result type"}
	if !wire.IsDeadlock(stale) || wire.IsDeadlock(&pgconn.PgError{Code: "0A000", Message: "not supported"}) {
		t.Error("a statement prepared before the table was changed is to be run again, another feature is not")
	}
	if wire.SQLState(errors.New("x")) != "" || wire.SQLState(driver.ErrBadConn) != "" || wire.PoisonsPostgres(errors.New("x")) {
		t.Error("an error of no server's has a state")
	}
}
