package dal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/tenantdal/tenantdal/internal/wire"
)

var (
	// mysqlGrants has the rights of active roles and of PUBLIC too, on MariaDB.
	mysqlGrants = wire.RegisterSystem("dal/mysql grants", "SHOW GRANTS", wire.Schema)
	// mysqlVisible lists what the login can see whichever way it came by it. performance_schema is everybody's on MySQL 8.
	mysqlVisible = wire.RegisterSystem("dal/mysql visible databases", "SELECT schema_name FROM information_schema.schemata "+
		"WHERE schema_name NOT IN ('information_schema', 'performance_schema') ORDER BY schema_name", wire.Schema)
)

// dml is what a store needs of a database.
var dml = []string{"SELECT", "INSERT", "UPDATE", "DELETE"}

// checkGrants judges the login of a MySQL or MariaDB place by its rights. The login of a tenant with databases of its own may reach those and nothing
// else, since nothing but its rights keeps a raw connection from the other tenants; any right beyond is refused. The login of shared places
// and of schemas on them must be able to read and write its database; rights beyond are logged once a login, and refused under Config.StrictGrants.
func (db *database) checkGrants(ctx context.Context) error {
	names, own, err := db.loginsDatabases()
	if err != nil {
		return err
	}
	var found []*RightsError
	have, err := db.grants(ctx)
	switch {
	case err == nil:
		found = have.judge(names, own)
	case wire.Code(err) == 0 || wire.IsConnection(err):
		return fmt.Errorf("dal: place %s: read the login's grants: %w", db.place, err)
	default: // a server without a rights table, for one
		found = []*RightsError{{Account: db.user, Problem: fmt.Sprintf("the server does not show its rights (error %d)", wire.Code(err)), Mend: "let it run SHOW GRANTS", tolerable: true}}
	}
	if own && len(found) == 0 {
		if found, err = db.strangers(ctx, names, have); err != nil {
			return fmt.Errorf("dal: place %s: list the login's databases: %w", db.place, err)
		}
	}
	var refused []error
	var tolerated []string
	for _, e := range found {
		e.Place = db.place
		if e.tolerable && !own && !db.store.cfg.StrictGrants {
			tolerated = append(tolerated, e.Problem)
			continue
		}
		refused = append(refused, e)
	}
	if len(tolerated) > 0 {
		if _, said := db.store.warned.LoadOrStore(db.user+"@"+db.address, true); !said {
			db.store.log.LogAttrs(ctx, slog.LevelWarn, "login has rights beyond its databases", slog.String("shard", db.place.String()), slog.String("login", db.user), slog.Any("rights", tolerated))
		}
	}
	return errors.Join(refused...)
}

// loginsDatabases lists what the place's login serves, the place's own database first, and whether that is all it may reach. One login serves every
// shard of a tenant with databases of its own.
func (db *database) loginsDatabases() (names []string, own bool, err error) {
	names = []string{db.name}
	if db.place.Schema != "" || db.store.shared(db.place) {
		return names, false, nil
	}
	for _, shard := range db.store.snapshot().Dedicated(string(db.owner)) {
		e, err := db.store.cfg.Cluster.Endpoint(Place{Shard: shard}, db.owner)
		if err != nil {
			return nil, false, err
		}
		if e.Database != db.name && e.Address == db.address {
			names = append(names, e.Database)
		}
	}
	return names, true, nil
}

// grants reads the login's rights. The lines may hold a password's hash, so they go nowhere else.
func (db *database) grants(ctx context.Context) (rights, error) {
	var r rights
	err := db.each(ctx, mysqlGrants, nil, func(rows *sql.Rows) error {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		r = append(r, parseGrant(line))
		return nil
	})
	return r, err
}

// strangers lists databases beside its own that the login of one tenant can see, by whatever right that SHOW GRANTS does not tell.
func (db *database) strangers(ctx context.Context, names []string, have rights) ([]*RightsError, error) {
	var out []*RightsError
	err := db.each(ctx, mysqlVisible, nil, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		if !slices.Contains(names, name) {
			out = append(out, &RightsError{
				Account: have.account(), Problem: fmt.Sprintf("it can see database %q", name),
				Mend: "find the grant in SHOW GRANTS, mysql.db (an anonymous account, test databases) or a role, and revoke it",
			})
		}
		return err
	})
	return out, err
}

// grant is one line of SHOW GRANTS.
type grant struct {
	Rights   []string // upper case, sorted; "ALL PRIVILEGES" stands for all
	Global   bool     // ON *.*
	Database string   // as stored: _ and % are patterns unless a backslash stands before them
	Below    string   // a table or routine of the database, as it is written; empty for all of it
	Kind     string   // of what is below, "PROCEDURE " for one; empty for a table
	Role     string   // a role that is granted
	Proxy    bool
	Option   bool   // WITH GRANT OPTION or WITH ADMIN OPTION
	Account  string // as it is written, quoted
	Revoked  bool   // MySQL's partial revokes take from the others
	Unknown  bool   // a line that is none of these
}

// rights are all lines of a login.
type rights []grant

// account returns the login's account.
func (r rights) account() string {
	for _, g := range r {
		if strings.Contains(g.Account, "@") {
			return g.Account
		}
	}
	return "the login"
}

// judge lists what is wrong with the rights of a login that serves these databases, of which the first must be readable and writable. What is
// tolerable is marked so, for the caller to decide.
func (r rights) judge(names []string, own bool) []*RightsError {
	var out []*RightsError
	bad := func(g grant, mend, problem string, args ...any) {
		out = append(out, &RightsError{Account: g.Account, Problem: fmt.Sprintf(problem, args...), Mend: mend, tolerable: true})
	}
	name := names[0]
	missing := slices.Clone(dml)
	sure := true // that what is missing is missing
	for _, g := range r {
		what := strings.Join(g.Rights, ", ")
		switch {
		case g.Revoked:
			sure = false
		case g.Unknown:
			sure = false
			bad(g, "grant rights on its database alone", "a line of its SHOW GRANTS is not understood")
		case g.Proxy:
			bad(g, "REVOKE PROXY ON "+g.Below+" FROM "+g.Account, "it may act as another account")
		case g.Role != "":
			sure = false
			if own {
				bad(g, "REVOKE "+g.Role+" FROM "+g.Account, "it has the role %s, whose rights may reach other databases", g.Role)
			}
		case g.Global:
			if what == "USAGE" && !g.Option {
				continue
			}
			missing = without(missing, g.Rights)
			bad(g, "REVOKE "+revocable(g)+" ON *.* FROM "+g.Account, "it has %s on every database of the server", withOption(g))
		case slices.ContainsFunc(names, g.matches):
			switch {
			case !g.matches(name):
			case g.Below == "":
				missing = without(missing, g.Rights)
			default:
				sure = false
			}
			if own && g.Below == "" && g.pattern() {
				named := names[slices.IndexFunc(names, g.matches)]
				bad(g, fmt.Sprintf("REVOKE %s ON %s.* FROM %s; GRANT %s ON %s.* TO %s", what, quoted(g.Database), g.Account, strings.Join(dml, ", "), quoted(escaped(named)), g.Account),
					"its right on %s is a pattern that names other databases too", quoted(g.Database))
			}
			if g.Option {
				bad(g, "REVOKE GRANT OPTION ON "+g.object()+" FROM "+g.Account, "it may pass its rights on %s on", g.object())
			}
		case own:
			bad(g, "REVOKE "+revocable(g)+" ON "+g.object()+" FROM "+g.Account, "it has %s on %s, which is not its database", withOption(g), g.object())
		}
	}
	if len(missing) > 0 && sure {
		lacks := strings.Join(missing, ", ")
		out = append(out, &RightsError{Account: r.account(), Problem: fmt.Sprintf("it lacks %s on its database %q", lacks, name), Mend: "GRANT " + lacks + " ON " + quoted(escaped(name)) + ".* TO " + r.account()})
	}
	return out
}

// without returns the rights of want that have does not hold.
func without(want, have []string) []string {
	if slices.Contains(have, "ALL PRIVILEGES") {
		return nil
	}
	return slices.DeleteFunc(want, func(w string) bool { return slices.Contains(have, w) })
}

func withOption(g grant) string {
	s := strings.Join(g.Rights, ", ")
	if g.Option {
		s += " with GRANT OPTION"
	}
	return s
}

func revocable(g grant) string {
	s := strings.Join(g.Rights, ", ")
	if g.Option {
		s += ", GRANT OPTION"
	}
	return s
}

// object writes what the grant is on.
func (g grant) object() string {
	if g.Below == "" {
		return quoted(g.Database) + ".*"
	}
	return g.Kind + quoted(g.Database) + "." + g.Below
}

// matches reports whether the grant reaches the database. A table's or routine's grant names its database exactly.
func (g grant) matches(name string) bool {
	if g.Below != "" {
		return g.Database == name
	}
	return like(g.Database, name)
}

// pattern reports a database that is named with an unescaped _ or %.
func (g grant) pattern() bool {
	for i := 0; i < len(g.Database); i++ {
		switch g.Database[i] {
		case '\\':
			i++
		case '_', '%':
			return true
		}
	}
	return false
}

// like matches a database's name as a server matches it with the pattern in a grant.
func like(pattern, name string) bool {
	for len(pattern) > 0 {
		switch c := pattern[0]; {
		case c == '%':
			for i := range len(name) + 1 {
				if like(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		case name == "":
			return false
		case c == '\\' && len(pattern) > 1:
			if pattern[1] != name[0] {
				return false
			}
			pattern = pattern[1:]
		case c != '_' && c != name[0]:
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return name == ""
}

// escaped writes a name so that a grant takes it for no pattern.
func escaped(name string) string {
	return strings.NewReplacer(`\`, `\\`, "_", `\_`, "%", `\%`).Replace(name)
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// parseGrant reads one line of SHOW GRANTS, as MySQL 8 and MariaDB write them (sql_mode is pinned, so names stand in backticks):
//
//	GRANT SELECT, INSERT (`a`) ON `db`.`t` TO `user`@`host` IDENTIFIED ... WITH GRANT OPTION
//	GRANT EXECUTE ON PROCEDURE `db`.`p` TO `user`@`host`
//	GRANT PROXY ON `other`@`host` TO `user`@`host`
//	GRANT `role`@`host` TO `user`@`host` WITH ADMIN OPTION
//	SET DEFAULT ROLE `role` FOR `user`@`host`
func parseGrant(line string) grant {
	t := tokens(line)
	var g grant
	switch {
	case t.next("REVOKE"):
		return grant{Revoked: true}
	case t.next("SET"):
		return grant{Rights: []string{"USAGE"}, Global: true} // the role itself has a line of its own
	case !t.next("GRANT"):
		return grant{Unknown: true}
	}
	head := t.until("ON", "TO")
	if t.next("TO") {
		g.Role = head.text()
		g.Account = t.until("WITH", "IDENTIFIED", "REQUIRE").text()
		g.Option = t.has("ADMIN", "OPTION")
		g.Unknown = g.Role == "" || g.Account == ""
		return g
	}
	if !t.next("ON") {
		return grant{Unknown: true}
	}
	g.Rights = head.list()
	on := t.until("TO")
	if !t.next("TO") {
		return grant{Unknown: true}
	}
	g.Account = t.until("WITH", "IDENTIFIED", "REQUIRE").text()
	g.Option = t.has("GRANT", "OPTION")
	if slices.Equal(g.Rights, []string{"PROXY"}) {
		g.Proxy, g.Below = true, on.text()
		return g
	}
	if len(on) > 3 { // PROCEDURE, FUNCTION, PACKAGE, PACKAGE BODY, TABLE
		for len(on) > 3 && !strings.HasPrefix(on[0], "`") {
			g.Kind += on[0] + " "
			on = on[1:]
		}
	}
	switch {
	case len(on) != 3 || on[1] != "." || g.Account == "" || len(g.Rights) == 0:
		return grant{Unknown: true}
	case on[0] == "*" && on[2] == "*":
		g.Global = true
	case on[2] == "*" && g.Kind == "":
		g.Database = unquoted(on[0])
	default:
		g.Database, g.Below = unquoted(on[0]), on[2]
	}
	return g
}

// grantTokens are the words, quoted names, quoted texts and signs of a line.
type grantTokens []string

func tokens(line string) *grantTokens {
	var out grantTokens
	for i := 0; i < len(line); {
		start, c := i, line[i]
		switch {
		case c == ' ':
			i++
			continue
		case c == '`' || c == '\'' || c == '"':
			for i++; i < len(line); i++ {
				if line[i] == c {
					if i+1 < len(line) && line[i+1] == c {
						i++
						continue
					}
					break
				}
			}
			i = min(i+1, len(line))
		case isWord(c) || c > 0x7f || c == '-':
			for i < len(line) && (isWord(line[i]) || line[i] > 0x7f || line[i] == '-') {
				i++
			}
		default:
			i++
		}
		out = append(out, line[start:i])
	}
	return &out
}

// next takes a word, if it comes next.
func (t *grantTokens) next(word string) bool {
	if len(*t) == 0 || (*t)[0] != word {
		return false
	}
	*t = (*t)[1:]
	return true
}

// until takes everything before the first of the words that stands outside of parentheses.
func (t *grantTokens) until(words ...string) grantTokens {
	depth := 0
	for i, tok := range *t {
		switch {
		case tok == "(":
			depth++
		case tok == ")":
			depth--
		case depth == 0 && slices.Contains(words, tok):
			out := (*t)[:i]
			*t = (*t)[i:]
			return out
		}
	}
	out := *t
	*t = nil
	return out
}

// has reports two words in a row.
func (t *grantTokens) has(first, second string) bool {
	for i := 1; i < len(*t); i++ {
		if (*t)[i-1] == first && (*t)[i] == second {
			return true
		}
	}
	return false
}

// text writes the tokens as one.
func (t grantTokens) text() string { return strings.Join(t, "") }

// list reads a list of rights: words between commas, each perhaps with columns in parentheses.
func (t grantTokens) list() []string {
	var out []string
	depth := 0
	words := []string{}
	flush := func() {
		if len(words) > 0 {
			out = append(out, strings.ToUpper(strings.Join(words, " ")))
		}
		words = nil
	}
	for _, tok := range t {
		switch {
		case tok == "(":
			depth++
		case tok == ")":
			depth--
		case depth > 0:
		case tok == ",":
			flush()
		default:
			words = append(words, tok)
		}
	}
	flush()
	slices.Sort(out)
	return slices.Compact(out)
}

// unquoted returns the name in backticks.
func unquoted(tok string) string {
	if len(tok) >= 2 && tok[0] == '`' && tok[len(tok)-1] == '`' {
		return strings.ReplaceAll(tok[1:len(tok)-1], "``", "`")
	}
	return tok
}
