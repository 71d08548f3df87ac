package testutil

import (
	"cmp"
	"fmt"
	"strings"
)

// NotInstalledError reports that a program of a server was not found on this machine. Its message names the Debian
// package that brings it and the make target that installs that package.
type NotInstalledError struct {
	Program  string   // the program that is missing, for example "mariadbd"
	Searched []string // where it was looked for, in order; never empty
	Packages string   // the Debian packages that bring it; empty: those of MariaDB
}

// Error names the program, the places searched and the cure.
func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("testutil: %s is not installed (looked in %s); "+
		"install the Debian packages %s, or run `make test`, which does that",
		e.Program, strings.Join(e.Searched, ", "), cmp.Or(e.Packages, debianPackages))
}

// SocketPathError reports a unix socket path that is longer than the operating system takes.
type SocketPathError struct {
	Path  string // the path that would be needed
	Limit int    // the longest path possible, in bytes
}

// Error names the path, its length and the limit.
func (e *SocketPathError) Error() string {
	return fmt.Sprintf("testutil: socket path %q has %d bytes, the limit is %d: choose a shorter MariaDBConfig.SocketDir",
		e.Path, len(e.Path), e.Limit)
}

// SocketDirError reports a directory that cannot hold a server's socket, since others could reach the socket in it.
type SocketDirError struct {
	Dir    string // the directory
	Reason string // what is wrong with it
}

// Error names the directory and the reason.
func (e *SocketDirError) Error() string {
	return fmt.Sprintf("testutil: socket directory %q: %s", e.Dir, e.Reason)
}

// DataDirError reports a directory that should hold a server's data and holds something else. Nothing in it was touched.
type DataDirError struct {
	Dir    string // the directory
	Reason string // what is wrong with it
}

// Error names the directory and the reason.
func (e *DataDirError) Error() string {
	return fmt.Sprintf("testutil: data directory %q: %s", e.Dir, e.Reason)
}

// DirInUseError reports that another [MariaDB], of this process or of another one, runs a server on the same directory.
type DirInUseError struct {
	Dir string // MariaDBConfig.Dir of both
}

// Error names the directory.
func (e *DirInUseError) Error() string {
	return fmt.Sprintf("testutil: %q is in use: another process, or another handle of this one, runs the server there", e.Dir)
}

// StartError reports that a server could not be made or did not come up.
type StartError struct {
	Server string // "PostgreSQL", "Redis"; empty: MariaDB
	Dir    string // the server's directory
	Op     string // what was being done, for example "start"
	Err    error  // why; never nil
	Log    string // the last lines that the server or the installer wrote during this attempt; may be empty
}

// Error names the directory, the reason and the last lines of the server's log.
func (e *StartError) Error() string {
	msg := fmt.Sprintf("testutil: %s %s in %q: %v", e.Op, cmp.Or(e.Server, "MariaDB"), e.Dir, e.Err)
	if e.Log != "" {
		msg += "; its log ends with:\n" + e.Log
	}
	return msg
}

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// AccessError reports a server that is up and refuses the login: the data directory was made with another secret than
// MariaDBConfig.Secret. It never holds the secret.
type AccessError struct {
	Dir  string // MariaDBConfig.Dir
	User string // the login
	Err  error  // the server's answer
}

// Error names the directory and the login.
func (e *AccessError) Error() string {
	return fmt.Sprintf("testutil: MariaDB in %q refuses the login %q: "+
		"its data directory was made with another secret: %v", e.Dir, e.User, e.Err)
}

// Unwrap returns the server's answer, a *mysql.MySQLError.
func (e *AccessError) Unwrap() error { return e.Err }

// ExitError reports a server that ended though nobody stopped it through its [MariaDB].
type ExitError struct {
	Dir      string // MariaDBConfig.Dir
	State    string // how it ended, for example "signal: killed"; "gone" for a server that was adopted
	Restarts int    // how often it was restarted in vain before giving up; 0 without MariaDBConfig.Restart
	Err      error  // why the last restart failed; nil if none did
}

// Error names the directory and how the server ended.
func (e *ExitError) Error() string {
	msg := fmt.Sprintf("testutil: MariaDB in %q ended by itself (%s)", e.Dir, e.State)
	if e.Restarts > 0 {
		msg += fmt.Sprintf(" and was restarted %d times in vain", e.Restarts)
	}
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Unwrap returns why the last restart failed, or nil.
func (e *ExitError) Unwrap() error { return e.Err }

// KilledError reports that [MariaDB.Stop] had to kill a server which did not end before the caller's context did. The server
// is down, and its data is what a crash leaves: every commit is there.
type KilledError struct {
	Dir string // MariaDBConfig.Dir
	Err error  // the cause that ended the context
}

// Error names the directory and the cause.
func (e *KilledError) Error() string {
	return fmt.Sprintf("testutil: MariaDB in %q did not stop in time and was killed: %v", e.Dir, e.Err)
}

// Unwrap returns the cause that ended the context.
func (e *KilledError) Unwrap() error { return e.Err }
