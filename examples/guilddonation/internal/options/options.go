package options

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// PasswordEnv is the environment variable that holds the password for URLs.
const PasswordEnv = "TENANTDAL_PASSWORD"

// The default and the largest number of concurrent donors.
const (
	DefaultWorkers = 16
	MaxWorkers     = 4096
)

// Options is the command line.
type Options struct {
	// Trace is the file to read; empty means that the program makes its own workload.
	Trace string
	// Report is the file to write; empty means none.
	Report string
	// Shards says where data lives.
	Shards Spec
	// Dir is the folder that keeps the data; empty means a temporary one. It is empty when Shards are URLs.
	Dir string
	// Workers is the number of concurrent donors, 1 to [MaxWorkers].
	Workers int
	// JSON asks for the closing table as JSON.
	JSON bool
}

// Parse reads the command line without the program's name. It checks everything that can be checked without touching a file.
//
// It returns a [*UsageError] for what cannot be used. For -h and -help it writes the flags to stderr and returns [flag.ErrHelp]; it writes nothing
// else. As usual, a flag given twice has its last value.
func Parse(args []string, stderr io.Writer) (Options, error) {
	var traceFile, reportFile, dir text
	workers, shards := text(strconv.Itoa(DefaultWorkers)), text(defaultSpec)
	var asJSON boolean
	fs := flag.NewFlagSet("guilddonation", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the package's own messages repeat values
	fs.Var(&traceFile, "trace", "read the trace in `FILE`; without it the program makes its own workload and checks it itself")
	fs.Var(&reportFile, "report", "write a report to `FILE`")
	fs.Var(&shards, "shards", "`SPEC` of the shards: sqlite:N, mariadb:N (starts its own servers), or a comma-separated list of "+urlForm+", the password in "+PasswordEnv)
	fs.Var(&dir, "dir", "keep data in `DIR`, and continue what lies there; without it a temporary folder, removed at the end; not with URLs")
	fs.Var(&workers, "workers", "`N` concurrent donors")
	fs.Var(&asJSON, "json", "print the closing table as JSON")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(stderr)
			fmt.Fprintln(stderr, "usage: guilddonation [flags]")
			fs.PrintDefaults()
			return Options{}, err
		}
		return Options{}, usageOf(err)
	}
	if n := fs.NArg(); n > 0 {
		return Options{}, &UsageError{"", fmt.Sprintf("%d arguments after the flags, want none (is there a blank in a list of URLs?)", n)}
	}
	var empty error
	fs.Visit(func(f *flag.Flag) {
		// An unset variable in a script should not silently mean the default.
		if f.Value.String() == "" && empty == nil {
			empty = &UsageError{f.Name, "given without a value"}
		}
	})
	if empty != nil {
		return Options{}, empty
	}
	o := Options{Trace: string(traceFile), Report: string(reportFile), Dir: string(dir)}
	var err error
	if o.Shards, err = ParseSpec(string(shards)); err != nil {
		return Options{}, err
	}
	if o.Shards.Kind == URLs && o.Dir != "" {
		return Options{}, &UsageError{"dir", "not with URLs in -shards: the data lives on their servers"}
	}
	var ok bool
	if o.Workers, ok = number(string(workers), MaxWorkers); !ok {
		return Options{}, &UsageError{"workers", fmt.Sprintf("want a whole number from 1 to %d", MaxWorkers)}
	}
	if o.JSON, err = strconv.ParseBool(asJSON.value()); err != nil {
		return Options{}, &UsageError{"json", "want -json alone, or true or false after the equals sign"}
	}
	return o, nil
}

// usageOf makes an error of ours of one of package flag, which quotes arguments. Since our flags take any text, three are left: an unknown flag, one
// without a value, and an argument such as --=x.
func usageOf(err error) error {
	message := err.Error()
	if name, found := strings.CutPrefix(message, "flag needs an argument: -"); found {
		return &UsageError{name, "needs a value"}
	}
	if strings.HasPrefix(message, "flag provided but not defined: ") {
		return &UsageError{"", "unknown flag; -help lists the flags"}
	}
	return &UsageError{"", "malformed flag; -help lists the flags"}
}

// number reads a whole number from 1 to most, in the one form in which [strconv.Itoa] writes it.
func number(s string, most int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= most && strconv.Itoa(n) == s
}

// text is a flag that takes any text, so that package flag finds nothing to complain about.
type text string

// String returns the text.
func (t *text) String() string { return string(*t) }

// Set keeps s as it is.
func (t *text) Set(s string) error { *t = text(s); return nil }

// boolean is a text flag that may stand without a value.
type boolean struct{ text }

// IsBoolFlag tells package flag that -json alone means -json=true.
func (b *boolean) IsBoolFlag() bool { return true }

func (b *boolean) value() string {
	if b.text == "" {
		return "false"
	}
	return string(b.text)
}
