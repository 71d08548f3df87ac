package options

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is the kind of shards that a [Spec] asks for. The zero value is invalid.
type Kind uint8

// The three kinds of shards.
const (
	SQLite  Kind = iota + 1 // embedded, one file a shard
	MariaDB                 // local servers that the program starts
	URLs                    // databases of servers that run already
)

// String returns the word that a spec of this kind begins with; for [URLs], "urls".
func (k Kind) String() string {
	switch k {
	case SQLite:
		return "sqlite"
	case MariaDB:
		return "mariadb"
	case URLs:
		return "urls"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// MaxShards is the largest number of shards in a spec.
const MaxShards = 64

const (
	defaultSpec = "sqlite:3"
	urlForm     = "mysql://user@host:port/database"
	defaultPort = 3306
)

// Spec says where the shards are.
type Spec struct {
	Kind Kind
	// N is the number of shards, 1 to [MaxShards]; of [URLs], their number.
	N int
	// URLs holds the databases for [URLs], one a shard, in the given order; no two of them are one database.
	URLs []ServerURL
}

// String returns the spec in the one form that [ParseSpec] reads as an equal spec. It holds no password.
func (s Spec) String() string {
	if s.Kind != URLs {
		return s.Kind.String() + ":" + strconv.Itoa(s.N)
	}
	list := make([]string, len(s.URLs))
	for i, u := range s.URLs {
		list[i] = u.String()
	}
	return strings.Join(list, ",")
}

// ServerURL is a database on a server that runs already. It holds no password: that comes from [PasswordEnv].
type ServerURL struct {
	User string
	// Host is a name in lower case, or an address; an IPv6 address stands without brackets.
	Host string
	// Port is 1 to 65535; 3306 if the URL has none.
	Port     int
	Database string
}

// Addr returns host:port, with brackets around an IPv6 address.
func (u ServerURL) Addr() string {
	return net.JoinHostPort(u.Host, strconv.Itoa(u.Port))
}

// String returns the URL, with the port.
func (u ServerURL) String() string {
	out := url.URL{Scheme: "mysql", User: url.User(u.User), Host: u.Addr(), Path: "/" + u.Database}
	// A comma would end the URL in a list, and an "@" in the database would look like the end of a password.
	head, path, _ := strings.Cut(strings.TrimPrefix(out.String(), "mysql://"), "/")
	return "mysql://" + strings.ReplaceAll(head+"/"+strings.ReplaceAll(path, "@", "%40"), ",", "%2C")
}

// ParseSpec reads the value of -shards: sqlite:N, mariadb:N, or a comma-separated list of URLs.
//
// Every error is a [*UsageError] that names the place of a faulty URL in the list and repeats nothing of it.
func ParseSpec(s string) (Spec, error) {
	for _, kind := range []Kind{SQLite, MariaDB} {
		count, found := strings.CutPrefix(s, kind.String()+":")
		if !found {
			continue
		}
		n, ok := number(count, MaxShards)
		if !ok {
			return Spec{}, shardsError("want %v:N with a whole number N from 1 to %d", kind, MaxShards)
		}
		return Spec{Kind: kind, N: n}, nil
	}
	if !strings.Contains(s, "://") {
		return Spec{}, shardsError("want sqlite:N, mariadb:N, or a comma-separated list of %s", urlForm)
	}
	list := strings.Split(s, ",")
	if len(list) > MaxShards {
		return Spec{}, shardsError("%d URLs, want %d at most", len(list), MaxShards)
	}
	spec := Spec{Kind: URLs, N: len(list)}
	for i, text := range list {
		u, err := parseURL(text)
		if err != nil {
			return Spec{}, shardsError("URL %d of %d: %v; want %s, the password in %s", i+1, len(list), err, urlForm, PasswordEnv)
		}
		same := func(v ServerURL) bool { return v.Addr() == u.Addr() && v.Database == u.Database }
		if first := slices.IndexFunc(spec.URLs, same); first >= 0 {
			return Spec{}, shardsError("URLs %d and %d are one database; every shard needs its own", first+1, i+1)
		}
		spec.URLs = append(spec.URLs, u)
	}
	return spec, nil
}

func shardsError(format string, args ...any) error {
	return &UsageError{"shards", fmt.Sprintf(format, args...)}
}

// systemDatabases belong to the server or to the control database, and hold no shard.
var systemDatabases = []string{"mysql", "sys", "information_schema", "performance_schema", "tdal_control"}

// maxDatabaseLen is the largest length of a database name in characters, on MySQL and MariaDB.
const maxDatabaseLen = 64

// parseURL reads one URL. Its errors repeat nothing of it, so what net/url says is not wrapped.
func parseURL(s string) (ServerURL, error) {
	if s == "" {
		return ServerURL{}, errors.New("empty")
	}
	rest, found := strings.CutPrefix(s, "mysql://")
	if !found {
		return ServerURL{}, errors.New("not mysql://")
	}
	// Looked for in the bare text: a password may hold what makes net/url read the URL otherwise, or not at all.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 && strings.ContainsRune(rest[:at], ':') {
		return ServerURL{}, errors.New("a password is not taken from the command line, where others can read it")
	}
	u, err := url.Parse(s)
	if err != nil {
		return ServerURL{}, errors.New("malformed host, port or escape")
	}
	if _, has := u.User.Password(); has {
		return ServerURL{}, errors.New("a password is not taken from the command line, where others can read it")
	}
	if u.User.Username() == "" {
		return ServerURL{}, errors.New("no user")
	}
	if !printable(u.User.Username()) {
		return ServerURL{}, errors.New("not the name of a user")
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.ContainsRune(s, '#') {
		return ServerURL{}, errors.New("text after the database")
	}
	out := ServerURL{User: u.User.Username(), Port: defaultPort, Database: strings.TrimPrefix(u.Path, "/")}
	if out.Host, err = parseHost(u); err != nil {
		return ServerURL{}, err
	}
	if strings.HasSuffix(u.Host, ":") {
		return ServerURL{}, errors.New("no port after the colon")
	}
	if port := u.Port(); port != "" {
		var ok bool
		if out.Port, ok = number(port, 65535); !ok {
			return ServerURL{}, errors.New("the port is no number from 1 to 65535")
		}
	}
	switch {
	case out.Database == "":
		return ServerURL{}, errors.New("no database")
	case !printable(out.Database) || strings.ContainsAny(out.Database, `/\`) || strings.HasSuffix(out.Database, " ") || utf8.RuneCountInString(out.Database) > maxDatabaseLen:
		return ServerURL{}, errors.New("not the name of a database")
	case slices.Contains(systemDatabases, strings.ToLower(out.Database)):
		return ServerURL{}, errors.New("a system database holds no shard")
	}
	return out, nil
}

// parseHost returns the host of u, so written that equal hosts are equal texts.
func parseHost(u *url.URL) (string, error) {
	host := strings.ToLower(u.Hostname())
	if host == "" {
		return "", errors.New("no host")
	}
	if strings.HasPrefix(u.Host, "[") {
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", errors.New("no IPv6 address in the brackets")
		}
		return addr.String(), nil
	}
	if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return "", errors.New("not the name of a host")
	}
	return host, nil
}

// printable says whether s is UTF-8 without control characters and the like.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
