package options_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/options"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
)

func TestParse(t *testing.T) {
	t.Parallel()
	sqlite3 := options.Spec{Kind: options.SQLite, N: 3}
	for _, c := range []struct {
		name string
		args string // parted by blanks
		want options.Options
	}{
		{"Defaults", "", options.Options{Shards: sqlite3, Workers: 16}},
		{
			"All", "-trace t.ndjson -report r.json -shards mariadb:4 -dir data -workers 7 -json",
			options.Options{Trace: "t.ndjson", Report: "r.json", Shards: options.Spec{Kind: options.MariaDB, N: 4}, Dir: "data", Workers: 7, JSON: true},
		},
		{"TwoDashesAndEqualsSigns", "--trace=a=b --json=false --workers=1", options.Options{Trace: "a=b", Shards: sqlite3, Workers: 1}},
		{"LastOneCounts", "-workers 0 -workers 5 -dir a -dir b", options.Options{Shards: sqlite3, Dir: "b", Workers: 5}},
		{"URLs", "-shards mysql://app@db1:3307/game,mysql://app@db2/game -report r", options.Options{
			Report: "r", Workers: 16,
			Shards: options.Spec{Kind: options.URLs, N: 2, URLs: []options.ServerURL{{"app", "db1", 3307, "game"}, {"app", "db2", 3306, "game"}}},
		}},
		{"MostWorkers", "-workers 4096", options.Options{Shards: sqlite3, Workers: options.MaxWorkers}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var stderr strings.Builder
			got, err := options.Parse(strings.Fields(c.args), &stderr)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("Parse(%q) = %+v, want %+v", c.args, got, c.want)
			}
			if stderr.Len() > 0 {
				t.Errorf("Parse wrote %q", stderr.String())
			}
		})
	}
}

// secret stands where a password might; no message may hold it.
const secret = "hunter2"

func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   []string
		flag   string
		reason string
	}{
		{[]string{"-workers", "0"}, "workers", "from 1 to 4096"},
		{[]string{"-workers", "-1"}, "workers", "from 1"},
		{[]string{"-workers", "4097"}, "workers", "from 1"},
		{[]string{"-workers", "1.5"}, "workers", "from 1"},
		{[]string{"-workers", "+4"}, "workers", "from 1"},
		{[]string{"-workers", "0x10"}, "workers", "from 1"},
		{[]string{"-workers", "99999999999999999999"}, "workers", "from 1"},
		{[]string{"-workers", "mysql://u:" + secret + "@h/d"}, "workers", "from 1"},
		{[]string{"-workers"}, "workers", "needs a value"},
		{[]string{"-trace", ""}, "trace", "without a value"},
		{[]string{"-report="}, "report", "without a value"},
		{[]string{"-dir", ""}, "dir", "without a value"},
		{[]string{"-shards", ""}, "shards", "without a value"},
		{[]string{"-json="}, "json", "without a value"},
		{[]string{"-json=" + secret}, "json", "true or false"},
		{[]string{"-json", "true"}, "", "1 arguments after the flags"},
		{[]string{"-" + secret}, "", "unknown flag"},
		{[]string{"-password=" + secret}, "", "unknown flag"},
		{[]string{"--=" + secret}, "", "malformed flag"},
		{[]string{"---" + secret}, "", "malformed flag"},
		{[]string{"trace.ndjson"}, "", "1 arguments after the flags"},
		{[]string{"-shards", "mysql://a@h/d,", "mysql://u:" + secret + "@h/d"}, "", "1 arguments after the flags, want none (is there a blank"},
		{[]string{"-shards", "mysql://u@h/d", "-dir", "data"}, "dir", "not with URLs"},
		{[]string{"-dir", "data", "-shards", "mysql://u@h/d"}, "dir", "not with URLs"},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			t.Parallel()
			checkUsage(t, c.args, c.flag, c.reason)
		})
	}
}

func checkUsage(t *testing.T, args []string, flagName, reason string) {
	t.Helper()
	var stderr strings.Builder
	o, err := options.Parse(args, &stderr)
	usage, ok := errors.AsType[*options.UsageError](err)
	if !ok || !reflect.DeepEqual(o, options.Options{}) {
		t.Fatalf("Parse = %+v, %v; want a *UsageError", o, err)
	}
	if usage.Flag != flagName || !strings.Contains(usage.Reason, reason) {
		t.Errorf("UsageError = %+v, want flag %q and a reason with %q", usage, flagName, reason)
	}
	if flagName != "" && !strings.Contains(err.Error(), "-"+flagName) {
		t.Errorf("the message does not name the flag: %v", err)
	}
	if strings.Contains(err.Error()+stderr.String(), secret) {
		t.Errorf("the message holds the secret: %v%s", err, &stderr)
	}
	if code := options.ExitCode(err); code != 2 {
		t.Errorf("ExitCode = %d, want 2", code)
	}
}

func TestParse_Help(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"-h", "-help", "--help"} {
		var stderr strings.Builder
		_, err := options.Parse([]string{arg}, &stderr)
		if !errors.Is(err, flag.ErrHelp) || options.ExitCode(err) != 0 {
			t.Errorf("Parse(%s) = %v, exit %d; want flag.ErrHelp, exit 0", arg, err, options.ExitCode(err))
		}
		for _, want := range []string{"-trace FILE", "-report FILE", "-shards SPEC", "-dir DIR", "-workers N", "-json", "sqlite:3", "(default 16)", options.PasswordEnv} {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s does not mention %q:\n%s", arg, want, &stderr)
			}
		}
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	_, traceErr := trace.Read(strings.NewReader("x"), "t.ndjson")
	_, fileErr := trace.ReadFile("no/such/trace.ndjson")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{flag.ErrHelp, 0},
		{io.ErrUnexpectedEOF, 1},
		{&options.UsageError{Flag: "dir"}, 2},
		{fmt.Errorf("start: %w", &options.UsageError{Flag: "dir"}), 2},
		{errors.Join(io.ErrUnexpectedEOF, &options.UsageError{}), 2},
		{traceErr, 2},
		{fmt.Errorf("start: %w", fileErr), 2},
	} {
		if got := options.ExitCode(c.err); got != c.want {
			t.Errorf("ExitCode(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}
