package schema

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// poolPostgres opens a pool with the operator's login, whose statements wait no longer than the lock does.
func (r *run) poolPostgres(e dal.Endpoint, name string, opts wire.Options) (*wire.Pool, error) {
	pool, err := wire.OpenPostgres(wire.Postgres{
		Network: e.Network, Address: e.Address, User: e.User, Password: e.Password, Database: e.Database, LockTimeout: r.LockWait,
	}, opts)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(2) // one holds the lock
	return pool, nil
}

// openPostgres opens a database with the operator's login, and makes it first when create is set. Without create one that does not exist is [errMissing].
func (r *run) openPostgres(ctx context.Context, p dal.Place, server, target dal.Endpoint, create bool) (*database, error) {
	operator := server
	operator.Dialect, operator.Database = dal.Postgres, target.Database
	db := &database{place: p, dialect: dal.Postgres, name: operator.String(), target: target, grants: grants{server: operator, account: quotePostgres(operator.User)}}
	open := func() (err error) {
		if db.pool, err = r.poolPostgres(operator, poolName(p), r.options(poolName(p))); err != nil {
			return err
		}
		return db.pool.PingContext(ctx)
	}
	err := open()
	if wire.SQLState(err) == "3D000" && create {
		db.close()
		if err = r.createPostgres(ctx, operator); err == nil {
			err = open()
		}
	}
	if wire.SQLState(err) == "3D000" {
		err = errMissing
	}
	if err != nil {
		if db.pool != nil {
			db.close()
		}
		if errors.Is(err, ErrGrant) {
			return nil, err
		}
		return nil, db.grants.missing("open database "+target.Database, err)
	}
	return db, nil
}

// createPostgres makes a database, from one that every server has. Texts are compared byte by byte in it.
func (r *run) createPostgres(ctx context.Context, operator dal.Endpoint) error {
	name := operator.Database
	var errs []error
	for _, from := range []string{"postgres", "template1"} {
		operator.Database = from
		admin, err := r.poolPostgres(operator, "server "+operator.Address, r.options("server "+operator.Address))
		if err != nil {
			return err
		}
		_, err = admin.ExecContext(mark(ctx), "CREATE DATABASE "+quotePostgres(name)+" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C'")
		_ = admin.Close()
		switch state := wire.SQLState(err); {
		case err == nil, state == "42P04", state == "23505": // another run made it meanwhile
			return nil
		case isDenied(err) && state == "42501":
			return &GrantError{Server: operator.String(), Op: "create database " + name, Grant: "ALTER ROLE " + quotePostgres(operator.User) + " CREATEDB", Err: err}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

const roleExists = "SELECT COUNT(*) FROM pg_roles WHERE rolname = ?"

// role is one of a database's two logins.
type role struct{ name, password string }

// roles are the logins of the database: a place's two, or the one of the control database.
func (d *database) roles() []role {
	system := role{d.target.SystemUser, d.target.SystemPassword}
	if d.place == (dal.Place{}) {
		return []role{system}
	}
	return []role{{d.target.User, d.target.Password}, system}
}

// createRoles makes the database's logins where they are missing, and sets their passwords where they do not work. A login has no right but to
// connect; what [run.secure] grants comes on top. The texts hold a hash of the password, and what the server says about them is reported by its code.
func (r *run) createRoles(ctx context.Context, db *database) error {
	for _, who := range db.roles() {
		var n int
		if err := db.pool.QueryRowContext(mark(ctx), wire.Dollars(roleExists), who.name).Scan(&n); err != nil {
			return err
		}
		verifier, err := scram(who.password)
		if err != nil {
			return err
		}
		set := quotePostgres(who.name) + " WITH LOGIN NOINHERIT PASSWORD '" + verifier + "'"
		if n == 0 {
			if err = db.rolesError("create", who, db.exec(ctx, "CREATE ROLE "+set)); errors.Is(err, errTaken) {
				n = 1
			} else if err != nil {
				return err
			}
		}
		let := unless{
			"has_database_privilege(" + textPostgres(who.name) + ", current_database(), 'CONNECT')",
			"GRANT CONNECT ON DATABASE " + quotePostgres(db.target.Database) + " TO " + quotePostgres(who.name),
		}
		if err := db.ensure(ctx, "let in login "+who.name, let); err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if err = r.tryPostgres(ctx, db.target, who); err == nil {
			continue
		}
		if !isPostgresLoginFault(err) {
			return err
		}
		if err := db.rolesError("set the password of", who, db.exec(ctx, "ALTER ROLE "+set)); err != nil {
			return err
		}
		if err := r.tryPostgres(ctx, db.target, who); isPostgresLoginFault(err) {
			return &LoginError{Server: db.grants.server.String(), User: who.name, Op: "connect with", Code: wire.Code(err), State: wire.SQLState(err)}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// errTaken says that another run made a role meanwhile.
var errTaken = errors.New("schema: the role exists")

// rolesError words what the server says about a login without its message, which may repeat the text.
func (d *database) rolesError(op string, who role, err error) error {
	switch state := wire.SQLState(err); {
	case err == nil:
		return nil
	case state == "42710", state == "23505":
		return errTaken
	case state == "42501":
		return &GrantError{Server: d.grants.server.String(), Op: op + " login " + who.name, Grant: "ALTER ROLE " + d.grants.account + " CREATEROLE", Err: err}
	case state != "":
		return &LoginError{Server: d.grants.server.String(), User: who.name, Op: op, Code: wire.Code(err), State: state}
	}
	return err
}

// isPostgresLoginFault reports a server that refuses a login, as against one that cannot be reached or is full.
func isPostgresLoginFault(err error) bool {
	state := wire.SQLState(err)
	return state == "28P01" || state == "28000" || state == "42501"
}

// tryPostgres connects as one of the database's own logins.
func (r *run) tryPostgres(ctx context.Context, e dal.Endpoint, who role) error {
	e.User, e.Password = who.name, who.password
	pool, err := r.poolPostgres(e, "", wire.Options{Shard: e.Database})
	if err != nil {
		return err
	}
	return errors.Join(pool.PingContext(ctx), pool.Close())
}

// scramIterations is the server's own default.
const scramIterations = 4096

// scram returns what the server stores for a password, so that the password itself is in no statement and in no log of the server's.
//
// Source: RFC 5802 with SHA-256 (RFC 7677), in the form of PostgreSQL's pg_authid.rolpassword.
func scram(password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	key, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	sign := func(text string) []byte {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramIterations, encode(salt), encode(stored[:]), encode(sign("Server Key"))), nil
}

// quotePostgres quotes an identifier.
func quotePostgres(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// The migrator's lock belongs to one database, as PostgreSQL's advisory locks do.
const (
	postgresLockKey  = 0x74656e616e74646c // "tenantdl"
	postgresGetLock  = "SELECT pg_advisory_lock(?)"
	postgresHaveLock = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted" +
		" AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND (classid::bigint << 32 | objid::bigint) = ?)"
	postgresWhoLocks = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted" +
		" AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND (classid::bigint << 32 | objid::bigint) = ? LIMIT 1"
	postgresDropLock = "SELECT pg_advisory_unlock(?)"
)

// lockPostgres waits for the lock of a database: of the session, so that it ends with the connection whatever becomes of the process.
func (r *run) lockPostgres(ctx context.Context, db *database) (*lock, error) {
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	l := &lock{conn: conn, have: wire.Dollars(postgresHaveLock), drop: wire.Dollars(postgresDropLock), arg: int64(postgresLockKey)}
	rows, err := conn.QueryContext(mark(ctx), wire.Dollars(postgresGetLock), l.arg)
	if err == nil {
		err = errors.Join(rows.Close(), rows.Err())
	}
	if err == nil {
		return l, nil
	}
	if wire.SQLState(err) == "55P03" {
		e := &LockedError{What: db.name, Waited: r.LockWait}
		_ = conn.QueryRowContext(mark(ctx), wire.Dollars(postgresWhoLocks), l.arg).Scan(&e.Holder) // for the message only
		err = e
	}
	_ = conn.Close()
	return nil, err
}

// rowRights are what a login may do with rows. TRUNCATE is not among them: no policy applies to it.
const rowRights = "SELECT, INSERT, UPDATE, DELETE"

// rightsOf are the rights of the two logins on a declared table.
func rightsOf(c dal.Class) (app, system string) {
	switch c {
	case dal.TenantClass, dal.LocalClass:
		return rowRights, rowRights
	case dal.GlobalClass:
		return "SELECT", rowRights
	}
	return "", rowRights
}

// hasAll asks whether a role, a literal, has all of the rights on a table.
func hasAll(role, table, rights string) string {
	var parts []string
	for right := range strings.SplitSeq(rights, ", ") {
		parts = append(parts, "has_table_privilege("+role+", "+table+", '"+right+"')")
	}
	return strings.Join(parts, " AND ")
}

// hasOnly asks whether it has these rights and no other.
func hasOnly(role, table, rights string) string {
	var parts []string
	for _, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"} {
		not := "NOT "
		if strings.Contains(rights, right) {
			not = ""
		}
		parts = append(parts, not+"has_table_privilege("+role+", "+table+", '"+right+"')")
	}
	return strings.Join(parts, " AND ")
}

// textPostgres quotes a literal. Strings are standard, so a backslash is one.
func textPostgres(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// unless is a statement that is sent unless what it would bring about is so already: rights are rows of the catalogue, and rewriting them at every start
// would meet whoever else writes them.
type unless struct{ so, text string }

// ensure asks once what is so already, sends the rest in one transaction, and asks again: to give or take a right that is not one's own to give is a
// warning to the server, and no error.
func (d *database) ensure(ctx context.Context, op string, list ...unless) error {
	texts, err := d.lacking(ctx, list)
	if err != nil || len(texts) == 0 {
		return err
	}
	if err := d.inOne(ctx, op, texts); err != nil {
		return err
	}
	if texts, err = d.lacking(ctx, list); err != nil || len(texts) == 0 {
		return err
	}
	return d.grants.owner(op, fmt.Errorf("schema: %s: the server took %q and did nothing", op, texts[0]))
}

// lacking returns the statements whose outcome is not so yet.
func (d *database) lacking(ctx context.Context, list []unless) (texts []string, err error) {
	asked := make([]string, len(list))
	so := make([]bool, len(list))
	into := make([]any, len(list))
	for i, u := range list {
		asked[i], into[i] = "COALESCE("+u.so+", true)", &so[i]
	}
	err = d.query(ctx, "SELECT "+strings.Join(asked, ", "), func(rows *sql.Rows) error { return rows.Scan(into...) })
	for i, u := range list {
		if !so[i] {
			texts = append(texts, u.text)
		}
	}
	return texts, err
}

// secure puts the floor under the declared tables, once their files have run: row-level security, forced, with the library's two policies, and the rights
// of the two logins. A table that is not there yet is left out, and a store refuses the place then. What is there already is not done again, since ALTER
// TABLE waits for everybody who uses the table. The caller holds the lock.
func (r *run) secure(ctx context.Context, db *database) error {
	if db.dialect != dal.Postgres {
		return nil
	}
	base := quotePostgres(db.target.Database)
	// First, since what everybody may do the logins need no grant for.
	err := db.ensure(ctx, "take rights on the database from everybody",
		// Whoever may connect could be anybody's tenant, and a table or function of another's making could stand in front of one.
		unless{"NOT has_database_privilege('public', current_database(), 'CONNECT')", "REVOKE CONNECT ON DATABASE " + base + " FROM PUBLIC"},
		unless{"NOT has_database_privilege('public', current_database(), 'TEMPORARY')", "REVOKE TEMPORARY ON DATABASE " + base + " FROM PUBLIC"},
		unless{"NOT has_schema_privilege('public', 'public', 'CREATE')", "REVOKE CREATE ON SCHEMA public FROM PUBLIC"},
	)
	if err == nil {
		err = r.createRoles(ctx, db)
	}
	if err != nil {
		return err
	}
	var list []unless
	for _, who := range db.roles() {
		role := textPostgres(who.name)
		list = append(list, unless{"has_schema_privilege(" + role + ", 'public', 'USAGE')", "GRANT USAGE ON SCHEMA public TO " + quotePostgres(who.name)})
		if db.place == (dal.Place{}) { // the control database's tables, and not those of the migrator
			own, err := read(controlSet(), dal.Postgres)
			if err != nil {
				return err
			}
			for _, f := range own.files {
				if f.up.verb == "CREATE" && f.up.object == "TABLE" {
					list = append(list, unless{hasAll(role, textPostgres(f.up.name), rowRights), "GRANT " + rowRights + " ON " + f.up.name + " TO " + quotePostgres(who.name)})
				}
			}
		} else {
			list = append(list, unless{"has_table_privilege(" + role + ", '" + placeTable + "', 'SELECT')", "GRANT SELECT ON " + placeTable + " TO " + quotePostgres(who.name)})
		}
	}
	if err := db.ensure(ctx, "set the rights on the database", list...); err != nil || db.place == (dal.Place{}) {
		return err
	}
	for _, t := range r.cfg.Tables {
		if err := db.secureTable(ctx, t.TableName(), t.Class); err != nil {
			return err
		}
	}
	return db.secureTable(ctx, capacityTable, dal.LocalClass)
}

// capacityTable is the table of the set [Capacity], which no model stands for.
const capacityTable = "capacity_turns"

const (
	securedTable    = "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = to_regclass('public.' || quote_ident(?)) AND relkind IN ('r', 'p')"
	securedPolicies = "SELECT p.polname, p.polpermissive AND p.polcmd = '*', array_to_string(ARRAY(SELECT r.rolname FROM pg_roles r WHERE r.oid = ANY(p.polroles)), ',')," +
		" COALESCE(pg_get_expr(p.polqual, p.polrelid), ''), COALESCE(pg_get_expr(p.polwithcheck, p.polrelid), '')" +
		" FROM pg_policy p WHERE p.polrelid = to_regclass('public.' || quote_ident(?))"
)

// secureTable puts the floor under one table.
func (d *database) secureTable(ctx context.Context, name string, class dal.Class) error {
	found, enabled, forced := false, false, false
	err := d.query(ctx, securedTable, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&enabled, &forced)
	}, name)
	if err != nil || !found {
		return err
	}
	table, app, system := quotePostgres(name), quotePostgres(d.target.User), quotePostgres(d.target.SystemUser)
	appRights, systemRights := rightsOf(class)
	right := false
	err = d.query(ctx, "SELECT "+hasOnly(textPostgres(d.target.User), "oid", appRights)+" AND "+hasOnly(textPostgres(d.target.SystemUser), "oid", systemRights)+
		" FROM pg_class WHERE oid = to_regclass('public.' || quote_ident(?))", func(rows *sql.Rows) error { return rows.Scan(&right) }, name)
	if err != nil {
		return err
	}
	var texts []string
	if !right {
		texts = append(texts, "REVOKE ALL ON "+table+" FROM PUBLIC, "+app+", "+system, "GRANT "+systemRights+" ON "+table+" TO "+system)
		if appRights != "" {
			texts = append(texts, "GRANT "+appRights+" ON "+table+" TO "+app)
		}
	}
	if class == dal.TenantClass || class == dal.LocalClass {
		if !enabled {
			texts = append(texts, "ALTER TABLE "+table+" ENABLE ROW LEVEL SECURITY")
		}
		if !forced {
			texts = append(texts, "ALTER TABLE "+table+" FORCE ROW LEVEL SECURITY")
		}
		have := map[string]bool{} // by name: whether it is as it should be
		err := d.query(ctx, securedPolicies, func(rows *sql.Rows) error {
			var policy, role, using, check string
			var plain bool
			if err := rows.Scan(&policy, &plain, &role, &using, &check); err != nil {
				return err
			}
			have[policy] = plain && using == check &&
				(policy == wire.TenantPolicyName && role == d.target.User && wire.IsTenantPolicy(using) ||
					policy == wire.SystemPolicyName && role == d.target.SystemUser && using == wire.SystemPolicy)
			return nil
		}, name)
		if err != nil {
			return err
		}
		for _, p := range []struct{ name, role, condition string }{
			{wire.TenantPolicyName, app, wire.TenantPolicy}, {wire.SystemPolicyName, system, wire.SystemPolicy},
		} {
			right, there := have[p.name]
			if there && !right {
				texts = append(texts, "DROP POLICY "+p.name+" ON "+table)
			}
			if !right {
				texts = append(texts, "CREATE POLICY "+p.name+" ON "+table+" FOR ALL TO "+p.role+" USING ("+p.condition+") WITH CHECK ("+p.condition+")")
			}
		}
	}
	return d.inOne(ctx, "set the policies of table "+name, texts)
}

// inOne sends texts of this package in one transaction.
func (d *database) inOne(ctx context.Context, op string, texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	tx, err := d.pool.BeginTx(mark(ctx), nil)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if _, err := tx.ExecContext(mark(ctx), text); err != nil {
			return d.grants.missing(op, errors.Join(fmt.Errorf("schema: %s: %w", op, err), tx.Rollback()))
		}
	}
	return tx.Commit()
}
