package testutil

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// MariaDBConfig says how [StartMariaDB] runs one server. The zero value of a field means its documented default; Dir alone
// is required.
type MariaDBConfig struct {
	// Dir is the server's own directory. It is made if it is missing, readable by this user only, and kept when the server
	// stops: starting on it again finds the data of the last run. It holds data (the data directory), tmp, mariadbd.log,
	// mariadbd.pid, socket (the path of the socket) and lock. Two handles cannot use one directory at a time.
	Dir string

	// SocketDir is where the server's socket lies, in a folder of its own that only this user can enter. The kernel limits
	// the path to 107 bytes (103 on BSD and macOS); a longer one is refused with [*SocketPathError].
	//
	// Empty means a new folder with a short name in the system's temporary directory, removed by [MariaDB.Stop].
	SocketDir string

	// Secret is the password of the login, set when the data directory is made. A later start needs the same one, or fails
	// with [*AccessError]. It is never written down: the server keeps a hash.
	//
	// Empty means that the login has no password, so that the private socket folder alone keeps others out.
	Secret string

	// Logger receives what happens to the server: at debug what was asked for, at warn what happens by itself.
	//
	// Nil means no logging.
	Logger *slog.Logger

	// ExtraArgs are options of mariadbd that are added after the ones chosen here, and so win over them. Options that say
	// where the server lies (datadir, socket, pid-file, port, bind-address, defaults files) are refused.
	ExtraArgs []string

	// Restart makes a server that ends by itself come back, after a pause that grows from 0.1 to 5 s. Ten failures in a row
	// end that; see [MariaDB.Wait]. [MariaDB.Stop] and [MariaDB.Kill] are never undone.
	Restart bool

	// loopbackPort is where the server listens on the loopback interface too; zero: nowhere. A replica cannot be told a socket's path.
	loopbackPort int
}

// reservedArgs are the options of mariadbd that the handle itself depends on. The server takes any unambiguous beginning of a
// name, so beginnings are refused too.
var reservedArgs = []string{
	"datadir", "socket", "pid-file", "port", "bind-address", "skip-networking", "bootstrap",
	"no-defaults", "defaults-file", "defaults-extra-file", "defaults-group-suffix",
}

// WithDefaults returns a copy in which every field has a value that can be used.
func (c MariaDBConfig) WithDefaults() MariaDBConfig {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.ExtraArgs = slices.Clone(c.ExtraArgs)
	return c
}

// Validate returns all that is wrong with the configuration, joined, each part naming its field; nil if nothing is. It does
// no I/O.
func (c MariaDBConfig) Validate() error {
	var problems []error
	if c.Dir == "" {
		problems = append(problems, errors.New("testutil: MariaDBConfig.Dir: is empty"))
	}
	for _, dir := range []struct{ field, path string }{{"Dir", c.Dir}, {"SocketDir", c.SocketDir}} {
		if strings.ContainsAny(dir.path, "\x00\n") {
			problems = append(problems, fmt.Errorf("testutil: MariaDBConfig.%s: %q holds a line break or a zero byte", dir.field, dir.path))
		}
	}
	for i, arg := range c.ExtraArgs {
		name, isOption := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(name, "=")
		name = strings.TrimPrefix(strings.ReplaceAll(name, "_", "-"), "loose-")
		switch {
		case !isOption || name == "" || strings.ContainsRune(arg, 0):
			problems = append(problems, fmt.Errorf("testutil: MariaDBConfig.ExtraArgs[%d]: %q is no option of the form --name=value", i, arg))
		case slices.ContainsFunc(reservedArgs, func(reserved string) bool { return strings.HasPrefix(reserved, name) }):
			problems = append(problems, fmt.Errorf("testutil: MariaDBConfig.ExtraArgs[%d]: --%s is set by testutil itself", i, name))
		}
	}
	return errors.Join(problems...)
}
