package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/testutil"
)

const (
	goldenTrace    = "testdata/donations.ndjson"
	goldenExpected = "testdata/donations.expected.json"
	childEnv       = "GUILDDONATION_TEST_CHILD"
)

// TestMain lets the test binary be the program, so that it can be killed.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// output is a buffer that a process writes while the test reads.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// child starts the program as a process of its own.
func child(tb testing.TB, args ...string) (*exec.Cmd, *output) {
	tb.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out
}

// program runs the program in this process.
func program(tb testing.TB, args ...string) (code int, stdout, stderr string) {
	tb.Helper()
	var out, errs bytes.Buffer
	code = run(tb.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// must runs the program to a good end and compares its report with what the trace must give.
func must(tb testing.TB, expected *report.Expected, args ...string) *report.Report {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "report.json")
	code, _, stderr := program(tb, append(args, "-report", file)...)
	if code != 0 {
		tb.Fatalf("exit %d: %s", code, stderr)
	}
	rep := readReport(tb, file)
	if wrong := report.Compare(expected, rep); len(wrong) > 0 {
		tb.Fatalf("%d wrong: %s", len(wrong), strings.Join(wrong[:min(5, len(wrong))], "; "))
	}
	if !rep.Conserved || rep.Pending != 0 {
		tb.Fatalf("conserved %v, pending %d", rep.Conserved, rep.Pending)
	}
	return rep
}

func readReport(tb testing.TB, file string) *report.Report {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rep, err := report.Decode(f)
	if err != nil {
		tb.Fatal(err)
	}
	return rep
}

func golden(tb testing.TB) *report.Expected {
	tb.Helper()
	f, err := os.Open(goldenExpected)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	e, err := report.DecodeExpected(f)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// generated writes a trace and returns it with what it must give.
func generated(tb testing.TB, seed uint64, w trace.Workload) (file string, expected *report.Expected) {
	tb.Helper()
	tr := trace.Generate(seed, w)
	file = filepath.Join(tb.TempDir(), "trace.ndjson")
	f, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	if err := trace.Write(f, tr); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return file, trace.Expect(tr)
}

func TestOwnWorkload(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := program(t)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"donations/s", "shards touched", "conserved: yes", "pending: 0", "region_eu", "completed"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the table lacks %q:\n%s", want, stdout)
		}
	}
	code, stdout, stderr = program(t, "-json", "-shards", "sqlite:1")
	var table map[string]any
	if err := json.Unmarshal([]byte(stdout), &table); code != 0 || err != nil || table["conserved"] != true {
		t.Errorf("-json: exit %d, %v: %s %s", code, err, stdout, stderr)
	}
}

func TestTrace_SQLite(t *testing.T) {
	t.Parallel()
	for _, shards := range []string{"sqlite:1", "sqlite:3", "sqlite:5"} {
		t.Run(shards, func(t *testing.T) {
			t.Parallel()
			rep := must(t, golden(t), "-trace", goldenTrace, "-shards", shards)
			if shards == "sqlite:3" && len(rep.Shards) < 4 {
				t.Errorf("shards: %v, want three and the database tenant's own", rep.Shards)
			}
		})
	}
}

func TestTrace_MariaDB(t *testing.T) {
	t.Parallel()
	testutil.RequireMariaDB(t)
	must(t, golden(t), "-trace", goldenTrace, "-shards", "mariadb:3")
}

func TestDir_SecondRunReadsOnlyAndATamperedBagIsSeen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"-trace", goldenTrace, "-shards", "sqlite:2", "-dir", dir}
	first := must(t, golden(t), args...)
	var a, b bytes.Buffer
	if err := first.Encode(&a); err != nil {
		t.Fatal(err)
	}
	if err := must(t, golden(t), args...).Encode(&b); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Error("the second run's report differs")
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "s1.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if res, err := db.Exec("UPDATE bag SET qty = qty + 1 WHERE (tenant_id, player_id, item_id) = (SELECT tenant_id, player_id, item_id FROM bag WHERE qty BETWEEN 1 AND 1000000 ORDER BY 1, 2, 3 LIMIT 1)"); err != nil {
		t.Fatal(err)
	} else if n, _ := res.RowsAffected(); n != 1 {
		t.Fatalf("%d rows changed by hand", n)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	code, stdout, _ := program(t, append(args, "-report", file)...)
	if rep := readReport(t, file); code != 1 || rep.Conserved {
		t.Errorf("a bag changed by hand: exit %d, conserved %v", code, rep.Conserved)
	}
	if !strings.Contains(stdout, "conserved: NO") {
		t.Errorf("the table does not say so:\n%s", stdout)
	}
}

func TestDir_OfAnotherRunIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	file, expected := generated(t, 5, trace.Workload{Donations: 20, Grants: 40})
	must(t, expected, "-trace", file, "-shards", "sqlite:1", "-dir", dir)
	before := listing(t, dir)
	other, _ := generated(t, 6, trace.Workload{Donations: 20, Grants: 40})
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "precious.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"another trace":  {"-trace", other, "-shards", "sqlite:1", "-dir", dir},
		"other shards":   {"-trace", file, "-shards", "sqlite:2", "-dir", dir},
		"foreign folder": {"-trace", file, "-shards", "sqlite:1", "-dir", foreign},
		"a file":         {"-trace", file, "-shards", "sqlite:1", "-dir", filepath.Join(foreign, "precious.txt")},
	} {
		if code, _, stderr := program(t, args...); code != 2 {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
	if after := listing(t, dir); after != before {
		t.Errorf("a refused run wrote:\n%s\nwas\n%s", after, before)
	}
	if got := listing(t, foreign); strings.Count(got, "\n") != 1 {
		t.Errorf("a refused run wrote into a foreign folder:\n%s", got)
	}
}

// listing names the files of a folder with their sizes and times.
func listing(tb testing.TB, dir string) string {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintln(&b, e.Name(), info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}

func TestUsage_ExitTwoAndNothingWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	bad := filepath.Join(t.TempDir(), "bad.ndjson")
	if err := os.WriteFile(bad, []byte(`{"op":"tenant","id":"a","model":"shared"}`+"\n"+`{"op":"grant","tenant":"a","player":"7","item":"x","qty":0}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(t.TempDir(), "long.ndjson")
	if err := os.WriteFile(long, []byte(`{"op":"tenant","id":"a","model":"shared"}`+"\n"+`{"op":"grant","tenant":"a","player":"`+strings.Repeat("p", 256)+`","item":"x","qty":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		say  string
	}{
		"bad trace":       {[]string{"-trace", bad, "-dir", dir}, "bad.ndjson"},
		"long id":         {[]string{"-trace", long, "-dir", dir}, "player"},
		"no trace":        {[]string{"-trace", filepath.Join(dir, "none"), "-dir", dir}, "none"},
		"bad spec":        {[]string{"-shards", "sqlite:0", "-dir", dir}, "shards"},
		"dir with urls":   {[]string{"-shards", "mysql://u@127.0.0.1:3306/d", "-dir", dir}, "dir"},
		"password in url": {[]string{"-shards", "mysql://u:hunter2@127.0.0.1:3306/d"}, "password"},
		"unknown flag":    {[]string{"-nope"}, "flag"},
		"bad report":      {[]string{"-report", filepath.Join(dir, "no", "such", "r.json"), "-dir", dir}, "report"},
	} {
		code, _, stderr := program(t, c.args...)
		if code != 2 || !strings.Contains(stderr, c.say) || strings.Contains(stderr, "hunter2") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a refused run made its folder: %v", err)
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	file, _ := generated(t, 5, trace.Workload{Donations: 1, Grants: 1})
	code, _, stderr := program(t, "-trace", file, "-shards", "mysql://u@127.0.0.1:1/d")
	if code != 1 || !strings.Contains(stderr, "connect") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// openIn counts the open donations in a folder's files, beside the program.
func openIn(tb testing.TB, dir string) int {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		tb.Fatal(err)
	}
	open := 0
	for _, f := range files {
		db, err := sql.Open("sqlite", "file:"+f+"?mode=ro&_pragma=busy_timeout(2000)")
		if err != nil {
			tb.Fatal(err)
		}
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM saga_out WHERE ended_at = 0").Scan(&n); err == nil {
			open += n
		}
		_ = db.Close()
	}
	return open
}

func TestKill9_SQLite(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	file, expected := generated(t, seed, trace.Workload{Donations: 5000, Grants: 2500})
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"-trace", file, "-shards", "sqlite:3", "-dir", dir}
	pending := 0
	for i := range 10 {
		cmd, out := child(t, args...)
		// Four kills come at any moment, the others while donors are at work.
		if i%3 != 0 {
			donating(out)
		}
		time.Sleep(time.Duration(rnd.IntN(250)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		n := openIn(t, dir)
		if n > 0 {
			pending++
		}
		t.Logf("kill %d: %d donations pending: %s", i+1, n, lastLine(out.String()))
	}
	if pending < 5 {
		t.Errorf("only %d of 10 kills left donations pending", pending)
	}
	must(t, expected, args...)
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

func TestKill9_MariaDBServerAndProgram(t *testing.T) {
	t.Parallel()
	testutil.RequireMariaDB(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	file, expected := generated(t, seed, trace.Workload{Donations: 3000, Grants: 1500})
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"-trace", file, "-shards", "mariadb:3", "-dir", dir}
	cmd, out := child(t, args...)
	donating(out)
	time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
	killServer(t, filepath.Join(dir, "s2")) // the program brings it back
	time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil { // and leaves its servers to the next run
		t.Fatal(err)
	}
	_ = cmd.Wait()
	cmd, out = child(t, args...)
	donating(out)
	time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
	killServer(t, filepath.Join(dir, "s1"))
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the run over a killed server: %v: %s", err, out)
	}
	must(t, expected, args...)
}

// donating waits until a program has applied its setup lines.
func donating(out *output) {
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(out.String(), "setup: ") && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// killServer kills the server whose directory that is.
func killServer(tb testing.TB, dir string) {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "mariadbd.pid"))
	if err != nil {
		tb.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(data), &pid); err != nil {
		tb.Fatal(err)
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !bytes.Contains(cmdline, []byte(dir)) {
		tb.Fatalf("process %d is not the server of %s: %v", pid, dir, err)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		tb.Fatal(err)
	}
}

func TestStopped_SaysHowManyArePending(t *testing.T) {
	t.Parallel()
	file, expected := generated(t, 9, trace.Workload{Donations: 5000, Grants: 2500})
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"-trace", file, "-shards", "sqlite:3", "-dir", dir}
	ctx, cancel := context.WithCancel(t.Context())
	var stdout bytes.Buffer
	stderr := &output{}
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, &stdout, stderr) }()
	donating(stderr)
	cancel()
	if code := <-done; code != 1 || !strings.Contains(stderr.String(), "donations are pending") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	must(t, expected, args...)
}
