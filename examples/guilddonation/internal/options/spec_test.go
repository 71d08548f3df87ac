package options_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/options"
)

func TestParseSpec(t *testing.T) {
	t.Parallel()
	one := func(u options.ServerURL) options.Spec {
		return options.Spec{Kind: options.URLs, N: 1, URLs: []options.ServerURL{u}}
	}
	for _, c := range []struct {
		spec      string
		want      options.Spec
		canonical string
	}{
		{"sqlite:1", options.Spec{Kind: options.SQLite, N: 1}, "sqlite:1"},
		{"sqlite:64", options.Spec{Kind: options.SQLite, N: 64}, "sqlite:64"},
		{"mariadb:2", options.Spec{Kind: options.MariaDB, N: 2}, "mariadb:2"},
		{"mysql://app@DB1.example:3306/game", one(options.ServerURL{"app", "db1.example", 3306, "game"}), "mysql://app@db1.example:3306/game"},
		{"mysql://app@db1/game", one(options.ServerURL{"app", "db1", 3306, "game"}), "mysql://app@db1:3306/game"},
		{"mysql://app@[::1]:65535/game", one(options.ServerURL{"app", "::1", 65535, "game"}), "mysql://app@[::1]:65535/game"},
		{"mysql://app@[0:0::0:1]:1/game", one(options.ServerURL{"app", "::1", 1, "game"}), "mysql://app@[::1]:1/game"},
		{"mysql://a%3Ab%40c%2Cd@h:1/x%2Cy%40z", one(options.ServerURL{"a:b@c,d", "h", 1, "x,y@z"}), "mysql://a%3Ab%40c%2Cd@h:1/x%2Cy%40z"},
		{"mysql://u@h/a,mysql://u@h/b,mysql://v@h:3307/a,mysql://u@i/a", options.Spec{Kind: options.URLs, N: 4, URLs: []options.ServerURL{
			{"u", "h", 3306, "a"}, {"u", "h", 3306, "b"}, {"v", "h", 3307, "a"}, {"u", "i", 3306, "a"},
		}}, "mysql://u@h:3306/a,mysql://u@h:3306/b,mysql://v@h:3307/a,mysql://u@i:3306/a"},
	} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			got, err := options.ParseSpec(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("ParseSpec = %+v, want %+v", got, c.want)
			}
			if got.String() != c.canonical {
				t.Errorf("String() = %s, want %s", got, c.canonical)
			}
			if again, err := options.ParseSpec(got.String()); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("ParseSpec(String()) = %+v, %v; want an equal spec", again, err)
			}
		})
	}
}

func TestParseSpec_Refuses(t *testing.T) {
	t.Parallel()
	many := make([]string, options.MaxShards+1)
	for i := range many {
		many[i] = fmt.Sprintf("mysql://u@h/d%d", i)
	}
	for spec, reason := range map[string]string{
		"sqlite":                              "want sqlite:N",
		"sqlite:":                             "want sqlite:N",
		"sqlite:0":                            "from 1 to 64",
		"sqlite:-1":                           "from 1 to 64",
		"sqlite:x":                            "from 1 to 64",
		"sqlite:03":                           "from 1 to 64",
		"sqlite:+3":                           "from 1 to 64",
		"sqlite: 3":                           "from 1 to 64",
		"sqlite:3 ":                           "from 1 to 64",
		"sqlite:3,":                           "from 1 to 64",
		"sqlite:65":                           "from 1 to 64",
		"sqlite:1e1":                          "from 1 to 64",
		"mariadb:0":                           "want mariadb:N",
		"mariadb":                             "want sqlite:N",
		"SQLite:3":                            "want sqlite:N",
		" sqlite:3":                           "want sqlite:N",
		"postgres:3":                          "want sqlite:N",
		"mysql":                               "want sqlite:N",
		"3":                                   "want sqlite:N",
		"u:hunter2@h":                         "want sqlite:N",
		"://":                                 "URL 1 of 1: not mysql://",
		"http://u@h/d":                        "URL 1 of 1: not mysql://",
		"postgres://u:hunter2@h/d":            "URL 1 of 1: not mysql://",
		"mysql://u@h/d,":                      "URL 2 of 2: empty",
		",mysql://u@h/d":                      "URL 1 of 2: empty",
		"mysql://u@h/d,,mysql://u@h/e":        "URL 2 of 3: empty",
		"mysql://u@h/d, mysql://u@h/e":        "URL 2 of 2: not mysql://",
		"mysql://u@h/d,sqlite:3":              "URL 2 of 2: not mysql://",
		"mysql://u:hunter2@h:3306/d":          "URL 1 of 1: a password",
		"mysql://u:@h:3306/d":                 "URL 1 of 1: a password",
		"mysql://:hunter2@h:3306/d":           "URL 1 of 1: a password",
		"mysql://u@h/d,mysql://u:hunter2@h/e": "URL 2 of 2: a password",
		"mysql://u:hunter2/3@h:3306/d":        "a password",
		"mysql://u:hunter2@3@h:3306/d":        "a password",
		"mysql://u:hunter2#3@h:3306/d":        "a password",
		"mysql://u:hunter2?3@h:3306/d":        "a password",
		"mysql://u:hunter2%zz@h:3306/d":       "a password",
		"mysql://u:hunter2,3@h:3306/d":        "URL 1 of 2",
		"mysql://u:3,hunter2@h:3306/d":        "URL 1 of 2",
		"mysql://u@h:3306/d?password=hunter2": "text after the database",
		"mysql://u@h:3306/d?":                 "text after the database",
		"mysql://u@h:3306/d#hunter2":          "text after the database",
		"mysql://u@h:3306/d#":                 "text after the database",
		"mysql://h:3306/d":                    "no user",
		"mysql://@h:3306/d":                   "no user",
		"mysql://u%00@h/d":                    "not the name of a user",
		"mysql://u%ff@h/d":                    "not the name of a user",
		"mysql://u@/d":                        "no host",
		"mysql://u@:3306/d":                   "no host",
		"mysql://u@h:/d":                      "no port after the colon",
		"mysql://u@h:0/d":                     "the port is no number from 1 to 65535",
		"mysql://u@h:65536/d":                 "the port is no number from 1 to 65535",
		"mysql://u@h:03306/d":                 "the port is no number from 1 to 65535",
		"mysql://u@h:hunter2/d":               "malformed host, port or escape",
		"mysql://u@h:-1/d":                    "malformed host, port or escape",
		"mysql://u@h h/d":                     "malformed host, port or escape",
		"mysql://u@[::1/d":                    "malformed host, port or escape",
		"mysql://u@::1:1/d":                   "not the name of a host",
		"mysql://u@h!/d":                      "not the name of a host",
		"mysql://u@a!b/d":                     "not the name of a host",
		"mysql://u@bücher/d":                  "not the name of a host",
		"mysql://u@[h]:1/d":                   "URL 1 of 1",
		"mysql://u@[]:1/d":                    "URL 1 of 1",
		"mysql://u@[1.2.3.4]:1/d":             "URL 1 of 1",
		"mysql://u@[::1%25eth0]:1/d":          "no IPv6 address in the brackets",
		"mysql://u@[::1]:1/d,mysql://u@[0::1]:1/d":       "URLs 1 and 2 are one database",
		"mysql://u@h/%zz":                                "malformed host, port or escape",
		"mysql://u@h:3306":                               "no database",
		"mysql://u@h:3306/":                              "no database",
		"mysql://u@h/a/b":                                "not the name of a database",
		"mysql://u@h/a%2Fb":                              "not the name of a database",
		"mysql://u@h//a":                                 "not the name of a database",
		"mysql://u@h/a%00":                               "not the name of a database",
		"mysql://u@h/a%20":                               "not the name of a database",
		"mysql://u@h/mysql":                              "a system database",
		"mysql://u@h/Information_Schema":                 "a system database",
		"mysql://u@h/tdal_control":                       "a system database",
		"mysql://u@h/" + strings.Repeat("d", 65):         "not the name of a database",
		"mysql://u@h:1/d,mysql://u@h:1/d":                "URLs 1 and 2 are one database",
		"mysql://u@h/d,mysql://u@i/d,mysql://v@H:3306/d": "URLs 1 and 3 are one database",
		strings.Join(many, ","):                          "65 URLs, want 64 at most",
	} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			checkUsage(t, []string{"-shards", spec}, "shards", reason)
		})
	}
}

// FuzzParseSpec checks that a spec that is accepted has one canonical form, and that a refusal repeats nothing that could be a password.
func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{
		"sqlite:3", "mariadb:1", "mysql://u@h:1/d", "mysql://u:hunter2@h:1/d", "mysql://u@h:hunter2/d", "mysql://u@[::1]:1/d,mysql://hunter2@h/d", "mysql://@@::1/d", "hunter2",
		"mysql://u%3Ahunter2@h/%40", "mysql://u@h/d?hunter2", "mysql://u@h%zz/hunter2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := options.ParseSpec(s)
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Fatalf("ParseSpec(%q) = %v, which holds the secret", s, err)
			}
			return
		}
		again, err := options.ParseSpec(spec.String())
		if err != nil || !reflect.DeepEqual(again, spec) {
			t.Fatalf("ParseSpec(%q) = %+v, its String() %q reads as %+v, %v", s, spec, spec, again, err)
		}
		if spec.N < 1 || spec.N > options.MaxShards || spec.Kind == options.URLs && spec.N != len(spec.URLs) {
			t.Fatalf("ParseSpec(%q) = %+v", s, spec)
		}
	})
}
