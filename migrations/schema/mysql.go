package schema

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// openMySQL opens a database with the operator's login. One that does not exist is [errMissing]. owned is for the wording of a missing right.
func (r *run) openMySQL(ctx context.Context, p dal.Place, e dal.Endpoint, owned bool) (*database, error) {
	pool, err := r.poolMySQL(e, poolName(p))
	if err != nil {
		return nil, err
	}
	db := &database{place: p, dialect: dal.MySQL, name: e.String(), pool: pool, grants: grants{server: e, account: account(e.User, "%"), owned: owned}}
	err = pool.PingContext(ctx)
	switch {
	case err == nil:
		db.grants.account = currentAccount(ctx, pool, e.User)
		return db, nil
	case wire.Code(err) == 1049:
		err = errMissing
	case wire.Code(err) == 1044:
		err = db.grants.missing("open database "+e.Database, err)
	}
	db.close()
	return nil, err
}

// poolMySQL opens a pool whose statements wait no longer than the lock does for transactions that use their table: a waiting ALTER TABLE holds up every
// later statement on it.
func (r *run) poolMySQL(e dal.Endpoint, name string) (*wire.Pool, error) {
	opts := r.options(name)
	opts.Setup = []string{
		fmt.Sprintf("SET SESSION lock_wait_timeout = %d", seconds(r.LockWait)),
		// The connection that holds the lock is idle while the others work.
		"SET SESSION wait_timeout = 604800",
	}
	pool, err := wire.OpenMySQL(e.MySQLConfig(), opts)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(2) // one holds the lock
	return pool, nil
}

// seconds rounds up to what a server's setting can hold.
func seconds(d time.Duration) int64 {
	return min(max(int64(math.Ceil(d.Seconds())), 1), 31536000)
}

const (
	existsMySQL = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?"
	whoMySQL    = "SELECT CURRENT_USER()"
)

// createMySQL makes the database, and for a dedicated one the tenant's login, where they are missing. Nothing that is there needs a right.
func (r *run) createMySQL(ctx context.Context, server, target dal.Endpoint, dedicated bool) error {
	server.Database, server.Dialect = "", dal.MySQL
	admin, err := r.poolMySQL(server, "server "+server.Address)
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }()
	exists, err := databaseExists(ctx, admin, target.Database)
	if err != nil {
		return err
	}
	at := server
	at.Database = target.Database
	g := grants{server: at, owned: dedicated}
	if !exists {
		text := "CREATE DATABASE IF NOT EXISTS " + quoteName(target.Database) + " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
		if _, err := admin.ExecContext(mark(ctx), text); err != nil {
			g.account = currentAccount(ctx, admin, server.User)
			return g.missing("create database "+target.Database, err)
		}
	}
	if dedicated {
		return r.createLogin(ctx, server, target, g)
	}
	return nil
}

// databaseExists compares the name itself: the server's own comparison folds case.
func databaseExists(ctx context.Context, pool *wire.Pool, name string) (bool, error) {
	rows, err := pool.QueryContext(mark(ctx), existsMySQL, name)
	if err != nil {
		return false, err
	}
	found := false
	for err == nil && rows.Next() {
		var s string
		err = rows.Scan(&s)
		found = found || s == name
	}
	return found, errors.Join(err, rows.Err(), rows.Close())
}

// createLogin makes the login of a tenant with a database of its own, unless it works already. It may read and write rows in that database and
// nothing else; DDL is the operator's.
func (r *run) createLogin(ctx context.Context, server, target dal.Endpoint, g grants) error {
	if err := tryLogin(ctx, target); err == nil || !isLoginFault(err) {
		return err
	}
	// These texts hold the password, so this pool has no logger, and what the server says about them is reported by number.
	admin, err := wire.OpenMySQL(server.MySQLConfig(), wire.Options{Shard: "server " + server.Address})
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }()
	g.account = currentAccount(ctx, admin, server.User)
	who := account(target.User, "%")
	password := " IDENTIFIED BY " + quoteText(target.Password)
	for _, step := range []struct{ op, text, right string }{
		{"create", "CREATE USER IF NOT EXISTS " + who + password, "CREATE USER ON *.*"},
		{"set the password of", "ALTER USER " + who + password, "CREATE USER ON *.*"},
		{"give rights to", "GRANT " + loginRights + " ON " + grantName(target.Database) + ".* TO " + who, ""},
	} {
		_, err := admin.ExecContext(mark(ctx), step.text)
		switch {
		case err == nil:
		case isDenied(err) && step.right != "":
			return &GrantError{Server: g.server.String(), Op: step.op + " login " + target.User, Grant: "GRANT " + step.right + " TO " + g.account, Err: err}
		case isDenied(err):
			return g.missing(step.op+" login "+target.User, err)
		case wire.Code(err) != 0:
			return &LoginError{Server: server.String(), User: target.User, Op: step.op, Code: wire.Code(err)}
		default:
			return err
		}
	}
	if err := tryLogin(ctx, target); err != nil {
		if !isLoginFault(err) {
			return err
		}
		return &LoginError{Server: server.String(), User: target.User, Op: "connect with", Code: wire.Code(err)}
	}
	return nil
}

// loginRights are what a store needs of a tenant's database.
const loginRights = "SELECT, INSERT, UPDATE, DELETE"

// isLoginFault reports a server that refuses a login or its database, as against one that cannot be reached or is full.
func isLoginFault(err error) bool {
	switch wire.Code(err) {
	case 1044, 1045, 1049, 1130, 1698, 1820, 1862, 3118, 4151: // rights, password, no database, host, plugin, expired, locked
		return true
	}
	return false
}

// tryLogin connects as the tenant's own login to its database.
func tryLogin(ctx context.Context, e dal.Endpoint) error {
	pool, err := wire.OpenMySQL(e.MySQLConfig(), wire.Options{Shard: e.Database})
	if err != nil {
		return err
	}
	return errors.Join(pool.PingContext(ctx), pool.Close())
}

// grants words the statements that give missing rights.
type grants struct {
	server  dal.Endpoint
	account string // quoted
	owned   bool   // a tenant's own database, whose rights are passed on to the tenant's login
}

// missing returns a [*GrantError] for a refusal that a right on the database would mend, and err itself otherwise.
func (g grants) missing(op string, err error) error {
	if !isDenied(err) {
		return err
	}
	if g.server.Dialect == dal.Postgres {
		return g.owner(op, err)
	}
	text := "GRANT ALL PRIVILEGES ON " + grantName(g.server.Database) + ".* TO " + g.account
	if g.owned {
		text += " WITH GRANT OPTION"
	}
	return &GrantError{Server: g.server.String(), Op: op, Grant: text, Err: err}
}

// owner is the refusal that an owner of a PostgreSQL database would not meet.
func (g grants) owner(op string, err error) error {
	return &GrantError{Server: g.server.String(), Op: op, Grant: "ALTER DATABASE " + quotePostgres(g.server.Database) + " OWNER TO " + g.account, Err: err}
}

// isDenied reports a server that refused for want of a right.
func isDenied(err error) bool {
	switch wire.Code(err) {
	case 1044, 1045, 1142, 1143, 1227, 1410:
		return true
	}
	return wire.SQLState(err) == "42501"
}

// currentAccount asks the server which account the login was taken for, and quotes it.
func currentAccount(ctx context.Context, pool *wire.Pool, user string) string {
	var who string
	if err := pool.QueryRowContext(mark(ctx), whoMySQL).Scan(&who); err != nil {
		return account(user, "%") // for a message only, so the login's own name will do
	}
	at := strings.LastIndexByte(who, '@')
	if at < 0 {
		return account(who, "%")
	}
	return account(who[:at], who[at+1:])
}

// account quotes the name of an account.
func account(user, host string) string { return quoteText(user) + "@" + quoteText(host) }

// quoteName quotes an identifier.
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// grantName quotes a database's name for GRANT, which reads _ and % in it as patterns.
func grantName(name string) string {
	return quoteName(strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`).Replace(name))
}

// quoteText quotes a literal. sql_mode is pinned, so a backslash escapes.
func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}
