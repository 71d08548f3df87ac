package dal

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseGrant(t *testing.T) {
	t.Parallel()
	const u = "`u`@`%`"
	for line, want := range map[string]grant{
		"GRANT USAGE ON *.* TO `u`@`%`": {Rights: []string{"USAGE"}, Global: true, Account: u},
		"GRANT SELECT, PROCESS, FILE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*B69027D4'":                                                   {Rights: []string{"FILE", "PROCESS", "SELECT"}, Global: true, Account: u},
		"GRANT ALL PRIVILEGES ON *.* TO `u`@`%` IDENTIFIED VIA mysql_native_password USING 'x' OR unix_socket REQUIRE SSL WITH GRANT OPTION": {Rights: []string{"ALL PRIVILEGES"}, Global: true, Account: u, Option: true},
		"GRANT SELECT, INSERT ON `a\\_b`.* TO `u`@`%`":                                                                                       {Rights: []string{"INSERT", "SELECT"}, Database: `a\_b`, Account: u},
		"GRANT ALL PRIVILEGES ON `c`.* TO `u`@`%` WITH GRANT OPTION":                                                                         {Rights: []string{"ALL PRIVILEGES"}, Database: "c", Account: u, Option: true},
		"GRANT SELECT ON `h`.`t` TO `u`@`%`":                                                                                                 {Rights: []string{"SELECT"}, Database: "h", Below: "`t`", Account: u},
		"GRANT SELECT (`id`, `on to`), UPDATE (`x`) ON `h`.`t` TO `u`@`%`":                                                                   {Rights: []string{"SELECT", "UPDATE"}, Database: "h", Below: "`t`", Account: u},
		"GRANT EXECUTE ON PROCEDURE `h`.`p` TO `u`@`%`":                                                                                      {Rights: []string{"EXECUTE"}, Database: "h", Kind: "PROCEDURE ", Below: "`p`", Account: u},
		"GRANT EXECUTE ON PACKAGE BODY `h`.`p` TO `u`@`%`":                                                                                   {Rights: []string{"EXECUTE"}, Database: "h", Kind: "PACKAGE BODY ", Below: "`p`", Account: u},
		"GRANT PROXY ON `v`@`%` TO `u`@`%` WITH GRANT OPTION":                                                                                {Rights: []string{"PROXY"}, Proxy: true, Below: "`v`@`%`", Account: u, Option: true},
		"GRANT `r1` TO `u`@`%`":                                                 {Role: "`r1`", Account: u},
		"GRANT `r1`@`%`,`r2`@`%` TO `u`@`%` WITH ADMIN OPTION":                  {Role: "`r1`@`%`,`r2`@`%`", Account: u, Option: true},
		"GRANT SELECT ON `g`.* TO PUBLIC":                                       {Rights: []string{"SELECT"}, Database: "g", Account: "PUBLIC"},
		"GRANT SELECT ON `g`.* TO `r1`":                                         {Rights: []string{"SELECT"}, Database: "g", Account: "`r1`"},
		"GRANT BACKUP_ADMIN,SYSTEM_USER ON *.* TO `u`@`%` WITH GRANT OPTION":    {Rights: []string{"BACKUP_ADMIN", "SYSTEM_USER"}, Global: true, Account: u, Option: true},
		"GRANT CREATE TEMPORARY TABLES, LOCK TABLES ON `g`.* TO `u`@`10.0.0.1`": {Rights: []string{"CREATE TEMPORARY TABLES", "LOCK TABLES"}, Database: "g", Account: "`u`@`10.0.0.1`"},
		"GRANT SELECT ON `a``b TO c`.* TO `u`@`%`":                              {Rights: []string{"SELECT"}, Database: "a`b TO c", Account: u},
		"GRANT SELECT ON `*`.`*` TO `u`@`%`":                                    {Rights: []string{"SELECT"}, Database: "*", Below: "`*`", Account: u},
		"REVOKE SELECT ON `mysql`.* FROM `u`@`%`":                               {Revoked: true},
		"SET DEFAULT ROLE `r1` FOR `u`@`%`":                                     {Rights: []string{"USAGE"}, Global: true},
		"Something new":                                                         {Unknown: true},
		"GRANT SELECT ON `a`.`b`.`c` TO `u`@`%`":                                {Unknown: true},
		"GRANT SELECT ON `a`.*":                                                 {Unknown: true},
		"GRANT":                                                                 {Unknown: true},
		"":                                                                      {Unknown: true},
		"GRANT SELECT ON `unclosed.* TO `u`@`%`":                                {Unknown: true},
	} {
		got := parseGrant(line)
		if want.Unknown {
			if !got.Unknown {
				t.Errorf("%s: %+v, want it not understood", line, got)
			}
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", line, got, want)
		}
	}
}

func TestRights_Judge(t *testing.T) {
	t.Parallel()
	const usage, full = "GRANT USAGE ON *.* TO `u`@`%`", "GRANT SELECT, INSERT, UPDATE, DELETE ON `g\\_1`.* TO `u`@`%`"
	for name, c := range map[string]struct {
		lines []string
		own   string // what is wrong for the login of one tenant; empty: nothing
		other string // for the login of shared places
	}{
		"just right":       {[]string{usage, full}, "", ""},
		"all of its own":   {[]string{usage, "GRANT ALL PRIVILEGES ON `g\\_1`.* TO `u`@`%`"}, "", ""},
		"nothing":          {[]string{usage}, "lacks SELECT, INSERT, UPDATE, DELETE", "lacks SELECT, INSERT, UPDATE, DELETE"},
		"no lines at all":  {nil, "lacks", "lacks"},
		"no DELETE":        {[]string{usage, "GRANT SELECT, INSERT, UPDATE ON `g\\_1`.* TO `u`@`%`"}, "GRANT DELETE ON `g\\_1`.* TO `u`@`%`", "lacks DELETE"},
		"another database": {[]string{usage, full, "GRANT SELECT ON `h`.* TO `u`@`%`"}, "REVOKE SELECT ON `h`.* FROM `u`@`%`", ""},
		"another table":    {[]string{usage, full, "GRANT SELECT ON `h`.`t` TO `u`@`%`"}, "REVOKE SELECT ON `h`.`t` FROM `u`@`%`", ""},
		"a routine":        {[]string{usage, full, "GRANT EXECUTE ON PROCEDURE `h`.`p` TO `u`@`%`"}, "REVOKE EXECUTE ON PROCEDURE `h`.`p`", ""},
		"a pattern":        {[]string{usage, "GRANT SELECT, INSERT, UPDATE, DELETE ON `g_1`.* TO `u`@`%`"}, "is a pattern", ""},
		"a wide pattern":   {[]string{usage, "GRANT ALL PRIVILEGES ON `g%`.* TO `u`@`%`"}, "is a pattern", ""},
		"a foreign one":    {[]string{usage, full, "GRANT SELECT ON `h%`.* TO `u`@`%`"}, "not its database", ""},
		"global":           {[]string{"GRANT SELECT ON *.* TO `u`@`%`", full}, "REVOKE SELECT ON *.* FROM `u`@`%`", "SELECT on every database"},
		"root":             {[]string{"GRANT ALL PRIVILEGES ON *.* TO `u`@`%` WITH GRANT OPTION"}, "ALL PRIVILEGES with GRANT OPTION on every database", "ALL PRIVILEGES with GRANT OPTION"},
		"FILE":             {[]string{"GRANT FILE ON *.* TO `u`@`%`", full}, "FILE", "FILE"},
		"option":           {[]string{usage, full + " WITH GRANT OPTION"}, "REVOKE GRANT OPTION ON `g\\_1`.*", "may pass its rights"},
		"role":             {[]string{"GRANT `r` TO `u`@`%`", usage, full}, "REVOKE `r` FROM `u`@`%`", ""},
		"role alone":       {[]string{"GRANT `r` TO `u`@`%`", usage}, "role", ""},
		"public":           {[]string{usage, full, "GRANT SELECT ON `h`.* TO PUBLIC"}, "FROM PUBLIC", ""},
		"proxy":            {[]string{usage, full, "GRANT PROXY ON `v`@`%` TO `u`@`%`"}, "REVOKE PROXY ON `v`@`%`", "act as another"},
		"not understood":   {[]string{usage, full, "BESTOW SELECT"}, "not understood", "not understood"},
		"its second":       {[]string{usage, full, "GRANT ALL PRIVILEGES ON `g\\_2`.* TO `u`@`%`"}, "", ""},
		"only its second":  {[]string{usage, "GRANT ALL PRIVILEGES ON `g\\_2`.* TO `u`@`%`"}, "lacks SELECT", "lacks SELECT"},
		"a pattern again":  {[]string{usage, full, "GRANT SELECT ON `_\\_2`.* TO `u`@`%`"}, "GRANT SELECT, INSERT, UPDATE, DELETE ON `g\\_2`.*", ""},
		"table by table":   {[]string{usage, "GRANT SELECT ON `g_1`.`t` TO `u`@`%`"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var r rights
			for _, l := range c.lines {
				r = append(r, parseGrant(l))
			}
			for _, side := range []struct {
				own  bool
				want string
			}{{true, c.own}, {false, c.other}} {
				var got []string
				for _, e := range r.judge([]string{"g_1", "g_2"}, side.own) {
					got = append(got, e.Error())
				}
				all := strings.Join(got, "\n")
				if (side.want == "") != (all == "") || !strings.Contains(all, side.want) {
					t.Errorf("own %v: %q, want %q", side.own, all, side.want)
				}
			}
		})
	}
}

func TestGrant_Like(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"g", "g", true},
		{"g", "h", false},
		{"g", "", false},
		{"g", "gg", false},
		{"", "", true},
		{"%", "", true},
		{"%", "anything", true},
		{"g%", "game", true},
		{"g%e", "game", true},
		{"g%x", "game", false},
		{"g_m_", "game", true},
		{"g_", "g", false},
		{`g\_1`, "g_1", true},
		{`g\_1`, "gx1", false},
		{"g_1", "gx1", true},
		{`g\%`, "g%", true},
		{`g\%`, "gx", false},
		{`a\`, `a\`, true},
	} {
		if got := like(c.pattern, c.name); got != c.want {
			t.Errorf("like(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

func FuzzParseGrant(f *testing.F) {
	f.Add("GRANT SELECT (`a`) ON `b`.`c` TO `u`@`%` WITH GRANT OPTION")
	f.Fuzz(func(t *testing.T, line string) {
		g := parseGrant(line) // no panic, and nothing that is not a grant becomes a right
		if !strings.HasPrefix(strings.TrimLeft(line, " "), "GRANT") && !g.Unknown && !g.Revoked && !g.Global {
			t.Errorf("%q was read as %+v", line, g)
		}
	})
}
