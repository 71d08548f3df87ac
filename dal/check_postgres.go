package dal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// floor is what PostgreSQL says of a table's row-level security.
type floor struct {
	roles
	Kind            string // pg_class.relkind
	Enabled, Forced bool
	Rules           bool
	Truncates       bool // the tenants' login has a right that no policy narrows
	Policies        []policy
	Views           []view // every view over the table, over such a view included
}

type policy struct {
	Name       string
	Permissive bool
	Command    string // "*" for all
	Roles      string // sorted, with commas; empty for PUBLIC
	Using      string
	Check      string
}

type view struct {
	Name, Kind, Options string
}

// Names of tables are bound as texts and looked up in the one schema that every connection uses.
var (
	postgresColumns = wire.RegisterSystem("dal/postgres columns", "SELECT a.attname, t.typname, CASE WHEN t.typname IN ('varchar', 'bpchar') AND a.atttypmod > 4 THEN a.atttypmod - 4 ELSE 0 END, "+
		"NOT a.attnotnull, COALESCE(c.collname, ''), NOT COALESCE(c.collisdeterministic, true), a.attidentity <> '' OR COALESCE(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false) "+
		"FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation "+
		"LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "+
		"WHERE a.attrelid = to_regclass('public.' || quote_ident(?)) AND a.attnum > 0 AND NOT a.attisdropped", wire.Schema)
	postgresIndexes = wire.RegisterSystem("dal/postgres indexes", "SELECT i.relname, x.indisunique, x.indisprimary, COALESCE(a.attname, ''), NOT COALESCE(c.collisdeterministic, true) "+
		"FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid CROSS JOIN LATERAL unnest(x.indkey::int2[], x.indcollation::oid[]) WITH ORDINALITY k(attnum, coll, ord) "+
		"LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum AND k.attnum > 0 LEFT JOIN pg_collation c ON c.oid = k.coll "+
		"WHERE x.indrelid = to_regclass('public.' || quote_ident(?)) AND k.ord <= x.indnkeyatts ORDER BY i.relname, k.ord", wire.Schema)
	postgresKeys = wire.RegisterSystem("dal/postgres foreign keys", "SELECT n.conname, r.relname, f.attname, t.attname FROM pg_constraint n JOIN pg_class r ON r.oid = n.confrelid "+
		"CROSS JOIN LATERAL unnest(n.conkey, n.confkey) WITH ORDINALITY k(f, t, ord) JOIN pg_attribute f ON f.attrelid = n.conrelid AND f.attnum = k.f "+
		"JOIN pg_attribute t ON t.attrelid = n.confrelid AND t.attnum = k.t "+
		"WHERE n.contype = 'f' AND n.conrelid = to_regclass('public.' || quote_ident(?)) ORDER BY n.conname, k.ord", wire.Schema)
	postgresTable = wire.RegisterSystem("dal/postgres table", "SELECT relkind::text, relrowsecurity, relforcerowsecurity, EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = pg_class.oid), "+
		"has_table_privilege(oid, 'TRUNCATE, REFERENCES, TRIGGER') FROM pg_class WHERE oid = to_regclass('public.' || quote_ident(?))", wire.Schema)
	postgresPolicies = wire.RegisterSystem("dal/postgres policies", "SELECT p.polname, p.polpermissive, p.polcmd::text, "+
		"array_to_string(ARRAY(SELECT r.rolname FROM pg_roles r WHERE r.oid = ANY(p.polroles) ORDER BY r.rolname), ','), "+
		"COALESCE(pg_get_expr(p.polqual, p.polrelid), ''), COALESCE(pg_get_expr(p.polwithcheck, p.polrelid), '') "+
		"FROM pg_policy p WHERE p.polrelid = to_regclass('public.' || quote_ident(?)) ORDER BY p.polname", wire.Schema)
	postgresViews = wire.RegisterSystem("dal/postgres views", "WITH RECURSIVE over(oid) AS (SELECT to_regclass('public.' || quote_ident(?))::oid "+
		"UNION SELECT w.ev_class FROM over JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = over.oid AND d.classid = 'pg_rewrite'::regclass "+
		"JOIN pg_rewrite w ON w.oid = d.objid) "+
		"SELECT v.relname, v.relkind::text, COALESCE(array_to_string(v.reloptions, ','), '') FROM over JOIN pg_class v ON v.oid = over.oid WHERE v.relkind IN ('v', 'm') ORDER BY v.relname", wire.Schema)
	// Every role whose rights the present one has or can take, itself included.
	postgresRoles = wire.RegisterSystem("dal/postgres roles", "SELECT r.rolname, r.rolsuper, r.rolbypassrls, r.rolcreaterole, "+
		"EXISTS (SELECT 1 FROM pg_class t WHERE t.relowner = r.oid AND t.relnamespace = 'public'::regnamespace), "+
		"EXISTS (SELECT 1 FROM pg_database d WHERE d.datdba = r.oid AND d.datname = current_database()), r.rolname = ? "+
		"FROM pg_roles r WHERE pg_has_role(current_user, r.oid, 'MEMBER') ORDER BY r.rolname <> current_user, r.rolname", wire.Schema)
	// What a connection says before anybody has set it: the default of a role or database would be everybody's tenant.
	postgresDefault = wire.RegisterSystem("dal/postgres default", "SELECT COALESCE(current_setting(?, true), '') <> ''", wire.Schema)
	postgresCreates = wire.RegisterSystem("dal/postgres create", "SELECT has_schema_privilege(current_user, 'public', 'CREATE') WHERE ? <> ''", wire.Schema)
)

func (db *database) inspectPostgres(ctx context.Context, name string) (shape, error) {
	s := shape{Columns: map[string]column{}}
	err := db.each(ctx, postgresColumns, name, func(rows *sql.Rows) error {
		var c column
		err := rows.Scan(&c.Name, &c.Type, &c.Size, &c.Nullable, &c.Collation, &c.Loose, &c.Auto)
		s.Columns[c.Name] = c
		return err
	})
	if err != nil || len(s.Columns) == 0 {
		return s, err
	}
	err = db.each(ctx, postgresIndexes, name, func(rows *sql.Rows) error {
		var ix index
		var col string
		var loose bool
		if err := rows.Scan(&ix.Name, &ix.Unique, &ix.Primary, &col, &loose); err != nil {
			return err
		}
		if n := len(s.Indexes); n == 0 || s.Indexes[n-1].Name != ix.Name {
			s.Indexes = append(s.Indexes, ix)
		}
		last := &s.Indexes[len(s.Indexes)-1]
		last.Columns = append(last.Columns, col)
		if loose {
			last.Loose = append(last.Loose, col)
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	if s.Keys, err = db.foreignKeys(ctx, postgresKeys, name); err != nil {
		return s, err
	}
	s.Floor = &floor{roles: db.roles}
	err = db.each(ctx, postgresTable, name, func(rows *sql.Rows) error {
		return rows.Scan(&s.Floor.Kind, &s.Floor.Enabled, &s.Floor.Forced, &s.Floor.Rules, &s.Floor.Truncates)
	})
	if err != nil {
		return s, err
	}
	err = db.each(ctx, postgresPolicies, name, func(rows *sql.Rows) error {
		var p policy
		err := rows.Scan(&p.Name, &p.Permissive, &p.Command, &p.Roles, &p.Using, &p.Check)
		s.Floor.Policies = append(s.Floor.Policies, p)
		return err
	})
	if err != nil {
		return s, err
	}
	err = db.each(ctx, postgresViews, name, func(rows *sql.Rows) error {
		var v view
		err := rows.Scan(&v.Name, &v.Kind, &v.Options)
		s.Floor.Views = append(s.Floor.Views, v)
		return err
	})
	return s, err
}

// compare lists what keeps the floor from holding under a tenant's table.
func (f *floor) compare(bad func(mend, problem string, args ...any)) {
	const up = "run schema.Up with this table declared"
	if f.Kind != "r" && f.Kind != "p" {
		bad("declare the table itself", "it is no table (pg_class.relkind %q)", f.Kind)
	}
	if !f.Enabled {
		bad(up, "row-level security is not enabled")
	}
	if !f.Forced {
		bad(up, "row-level security is not forced, so the table's owner sees every tenant's rows")
	}
	if f.Rules {
		bad("drop its rules", "it has rules, which run with the owner's rights")
	}
	if f.Truncates {
		bad(up, "role %q may truncate it, refer to it or put triggers on it, which no policy narrows", f.tenant)
	}
	want := map[string]string{wire.TenantPolicyName: f.tenant, wire.SystemPolicyName: f.system}
	for _, p := range f.Policies {
		role, known := want[p.Name]
		if !known {
			bad("drop it", "policy %q is not the library's", p.Name)
			continue
		}
		delete(want, p.Name)
		right := p.Using == wire.SystemPolicy
		if p.Name == wire.TenantPolicyName {
			right = wire.IsTenantPolicy(p.Using)
		}
		if !right || p.Check != p.Using || !p.Permissive || p.Command != "*" || p.Roles != role {
			bad("drop it and run schema.Up", "policy %q is not what schema.Up makes", p.Name)
		}
	}
	for _, name := range []string{wire.TenantPolicyName, wire.SystemPolicyName} {
		if _, missing := want[name]; missing {
			bad(up, "it lacks the policy %q", name)
		}
	}
	for _, v := range f.Views {
		if v.Kind == "m" {
			bad("drop it", "materialized view %q holds every tenant's rows, and has no policies", v.Name)
		} else if !invokes(v.Options) {
			bad("ALTER VIEW "+v.Name+" SET (security_invoker = true)", "view %q reads it with the rights of the view's owner", v.Name)
		}
	}
}

// invokes reports a view that reads with the rights of whoever asks.
func invokes(options string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if name, value, _ := strings.Cut(o, "="); name == "security_invoker" {
			switch strings.ToLower(value) {
			case "true", "on", "yes", "1":
				return true
			}
		}
	}
	return false
}

// checkRoles refuses logins to which policies do not apply, or that could take rights of one to which they do not.
func (db *database) checkRoles(ctx context.Context) error {
	var errs []error
	for _, who := range []struct {
		pool   *wire.Pool
		other  string // may not be its too
		wanted string
	}{{db.writer, db.roles.system, db.roles.tenant}, {db.system, "", db.roles.system}} {
		bad := func(problem string, args ...any) {
			errs = append(errs, &RoleError{Place: db.place, Role: who.wanted, Problem: fmt.Sprintf(problem, args...)})
		}
		all := false // a superuser counts as a member of every role
		err := eachOf(ctx, who.pool.DB, postgresRoles, who.other, func(rows *sql.Rows) error {
			var name string
			var super, bypass, creates, owns, ownsAll, other bool
			if err := rows.Scan(&name, &super, &bypass, &creates, &owns, &ownsAll, &other); err != nil {
				return err
			}
			as := ""
			if name != who.wanted {
				as = " as a member of " + name
			}
			switch {
			case all:
			case super:
				all = as == ""
				bad("it is a superuser%s, to whom no policy applies", as)
			case bypass:
				bad("it has BYPASSRLS%s", as)
			case creates:
				bad("it has CREATEROLE%s, and so can take the rights of others", as)
			case owns || ownsAll:
				bad("it owns the tables or the database%s, and so can end their policies", as)
			case other:
				bad("it is a member of %s, to which every tenant's rows are open", name)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("dal: place %s: read the rights of %s: %w", db.place, who.wanted, err)
		}
		err = eachOf(ctx, who.pool.DB, postgresCreates, "public", func(rows *sql.Rows) error {
			var creates bool
			err := rows.Scan(&creates)
			if creates {
				bad("it may create tables and functions in the schema public")
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("dal: place %s: read the rights of %s: %w", db.place, who.wanted, err)
		}
		err = eachOf(ctx, who.pool.DB, postgresDefault, wire.TenantSetting, func(rows *sql.Rows) error {
			var set bool
			err := rows.Scan(&set)
			if set {
				bad("the role or the database sets %s, so that a statement without a tenant would have one", wire.TenantSetting)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("dal: place %s: read the settings of %s: %w", db.place, who.wanted, err)
		}
	}
	return errors.Join(errs...)
}
