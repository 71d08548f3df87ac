package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/options"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/saga"
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
	mu      sync.Mutex
	b       bytes.Buffer
	waiting map[string]chan struct{} // closed when the text is there
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.b.Write(p)
	o.tell()
	return n, err
}

// tell closes the channels of the texts that are there. Call it with mu held.
func (o *output) tell() {
	for text, done := range o.waiting {
		if strings.Contains(o.b.String(), text) {
			close(done)
			delete(o.waiting, text)
		}
	}
}

// says returns a channel that is closed when the text was written. One at a time waits for a text.
func (o *output) says(text string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := make(chan struct{})
	if o.waiting == nil {
		o.waiting = map[string]chan struct{}{}
	}
	o.waiting[text] = done
	o.tell()
	return done
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// process is the program as a process of its own.
type process struct {
	*output
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended
	err  error         // how, once gone
}

// child starts the program. It ends with the test.
func child(tb testing.TB, args ...string) *process {
	tb.Helper()
	p := &process{output: &output{}, cmd: exec.Command(os.Args[0], args...), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childEnv+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(p.gone)
		p.err = p.cmd.Wait()
	}()
	tb.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.gone
	})
	return p
}

// kill kills the program while it is at work.
func (p *process) kill(tb testing.TB) {
	tb.Helper()
	err := p.cmd.Process.Kill()
	<-p.gone
	if p.cmd.ProcessState.Exited() {
		tb.Fatalf("the program ended before it was killed (%v): %v: %s", err, p.err, p.output)
	}
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
		"report on trace": {[]string{"-trace", bad, "-report", bad, "-dir", dir}, "report"},
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

// proxy listens on a TCP port of this machine for a server that has a socket alone.
func proxy(tb testing.TB, socket string) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", socket)
			if err != nil {
				_ = in.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				conns.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_, _ = in.Close(), out.Close()
				})
			}
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return l.Addr().String()
}

// Databases of servers that run already keep notes of the trace and the shards that they belong to. With any other the program ends before it writes.
// (It sets the environment, so it is not parallel.)
func TestURLs_OfAnotherRunAreRefused(t *testing.T) {
	testutil.RequireMariaDB(t)
	server := testutil.NewMariaDBCluster(t, 1)[0]
	addr := proxy(t, server.Socket())
	t.Setenv(options.PasswordEnv, server.Password())
	url := func(database string) string { return "mysql://" + server.User() + "@" + addr + "/" + database }
	both := url("game1") + "," + url("game2")
	file, expected := generated(t, 5, trace.Workload{Tenants: 1, Donations: 50, Grants: 40})
	other, _ := generated(t, 6, trace.Workload{Tenants: 1, Donations: 50, Grants: 40})
	must(t, expected, "-trace", file, "-shards", both)

	connector, err := mysql.NewConnector(server.MySQLConfig())
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	var control string
	if err := db.QueryRow("SELECT table_schema FROM information_schema.tables WHERE table_name = 'tdal_notes'").Scan(&control); err != nil {
		t.Fatal(err)
	}
	notes := func() string {
		var all string
		if err := db.QueryRow("SELECT GROUP_CONCAT(name, '=', value ORDER BY name) FROM `" + control + "`.tdal_notes WHERE name LIKE 'guilddonation%'").Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := notes()
	for _, name := range []string{noteTrace, noteShards, noteFinished} {
		if !strings.Contains(before, name+"=") {
			t.Errorf("no note %s: %s", name, before)
		}
	}
	refused := func(name string, args ...string) {
		if code, _, stderr := program(t, args...); code != 2 || !strings.Contains(stderr, "another trace") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
	refused("another trace", "-trace", other, "-shards", both)
	refused("another second shard", "-trace", file, "-shards", url("game1")+","+url("game3"))
	refused("one shard more", "-trace", file, "-shards", both+","+url("game3"))
	refused("one shard less", "-trace", file, "-shards", url("game1"))
	if after := notes(); after != before {
		t.Errorf("a refused run wrote:\n%s\nwas\n%s", after, before)
	}
	var made int
	if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'game3%'").Scan(&made); err != nil || made != 0 {
		t.Errorf("refused runs made %d databases: %v", made, err)
	}
	must(t, expected, "-trace", file, "-shards", both)
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	file, _ := generated(t, 5, trace.Workload{Donations: 1, Grants: 1})
	code, _, stderr := program(t, "-trace", file, "-shards", "mysql://u@127.0.0.1:1/d")
	if code != 1 || !strings.Contains(stderr, "connect") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// journal is what a folder's files say about donations: how many have a journal row, and which of them are open.
type journal struct {
	rows int
	open map[string]bool
}

// journalIn reads the journal rows of a folder's files, beside the program or behind it. Files without the table hold none.
func journalIn(ctx context.Context, dir string) (journal, error) {
	j := journal{open: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		return j, err
	}
	for _, f := range files {
		if err := j.read(ctx, f); err != nil {
			return j, fmt.Errorf("%s: %w", filepath.Base(f), err)
		}
	}
	return j, nil
}

// read adds the rows of one file.
func (j *journal) read(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(2000)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	tables, rows := 0, 0
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'saga_out'").Scan(&tables); err != nil || tables == 0 {
		return err
	}
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM saga_out").Scan(&rows); err != nil {
		return err
	}
	j.rows += rows
	found, err := db.QueryContext(ctx, "SELECT tenant_id, hex(saga_id) FROM saga_out WHERE ended_at = 0")
	if err != nil {
		return err
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		var tenant, id string
		if err := found.Scan(&tenant, &id); err != nil {
			return err
		}
		j.open[tenant+" "+id] = true
	}
	return found.Err()
}

// journaled waits until a folder's files hold that many journal rows, written by a program at work.
func (p *process) journaled(tb testing.TB, dir string, want int) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		j, err := journalIn(ctx, dir) // fails while the files are being made
		if err == nil && j.rows >= want {
			return
		}
		select {
		case <-p.gone:
			tb.Fatalf("the program ended before it had %d donations in its journals: %v: %s", want, p.err, p.output)
		case <-ctx.Done():
			tb.Fatalf("%d donations in the journals, want %d (%v): %s", j.rows, want, err, p.output)
		case <-tick.C:
		}
	}
}

// accepted is the number of donations that a trace leaves in the journals.
func accepted(tr *trace.Trace, expected *report.Expected) int {
	state := map[int]report.State{}
	for _, o := range expected.Outcomes {
		state[o.Line] = o.State
	}
	ids := map[donation]bool{}
	for _, l := range tr.Donations {
		if state[l.No] != report.Rejected {
			ids[donation{l.Tenant, l.Player, l.Key}] = true
		}
	}
	return len(ids)
}

// Ten kills at random moments, spread over the donations so that none comes when all is done: each while its run is at work on donations that no run had
// started before, and half of them at least with some of these pending. Then the trace ends as if nothing had been killed.
func TestKill9_SQLite(t *testing.T) {
	t.Parallel()
	const kills = 10
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	file, expected := generated(t, seed, trace.Workload{Donations: 2500, Grants: 1200})
	tr, err := trace.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := accepted(tr, expected)
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"-trace", file, "-shards", "sqlite:3", "-dir", dir, "-workers", "4"}
	for range 2 { // two more come while folder, tables and setup lines are made
		p := child(t, args...)
		time.Sleep(time.Duration(rnd.IntN(250)) * time.Millisecond)
		p.kill(t)
	}
	pending := 0
	before := journal{}
	for k := range kills {
		p := child(t, args...)
		// The k-th slice of the donations, of kills + 1: the last one is left to the end.
		moment := (float64(k) + rnd.Float64()) / (kills + 1)
		p.journaled(t, dir, max(int(moment*float64(all)), before.rows+1))
		p.kill(t)
		after, err := journalIn(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		own := 0
		for id := range after.open {
			if !before.open[id] {
				own++
			}
		}
		t.Logf("kill %d: %d of %d donations started, %d pending, %d of them by this run: %s", k+1, after.rows, all, len(after.open), own, lastLine(p.String()))
		if after.rows <= before.rows || after.rows >= all {
			t.Errorf("kill %d: %d journal rows after %d of %d, want more, and not all", k+1, after.rows, before.rows, all)
		}
		if own > 0 {
			pending++
		}
		before = after
	}
	if pending < kills/2 {
		t.Errorf("only %d of %d kills left donations pending", pending, kills)
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
	p := child(t, args...)
	donating(t, p.output, p.gone)
	time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
	killServer(t, filepath.Join(dir, "s2")) // the program brings it back
	time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
	p.kill(t) // and leaves its servers to the next run
	p = child(t, args...)
	donating(t, p.output, p.gone)
	time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
	killServer(t, filepath.Join(dir, "s1"))
	<-p.gone
	if p.err != nil {
		t.Fatalf("the run over a killed server: %v: %s", p.err, p.output)
	}
	must(t, expected, args...)
}

// donating waits until a program has applied its setup lines, and fails the test when it ends first.
func donating(tb testing.TB, out *output, gone <-chan struct{}) {
	tb.Helper()
	select {
	case <-out.says("setup: "):
	case <-gone:
		tb.Fatalf("the program ended before it was donating: %s", out)
	case <-time.After(2 * time.Minute):
		tb.Fatalf("the program does not come to donating: %s", out)
	}
	select {
	case <-gone:
		tb.Fatalf("the program ended before the test could disturb it: %s", out)
	default:
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
	code, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		code = run(ctx, args, &stdout, stderr)
	}()
	donating(t, stderr, done)
	cancel()
	<-done
	if code != 1 || !strings.Contains(stderr.String(), "donations are pending") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	must(t, expected, args...)
}

// Donations that only an operator can end are no reason to wait: the run says which they are, and reports.
func TestQuarantined_EndTheRunAtOnce(t *testing.T) {
	t.Parallel()
	const forged = maxTold + 2
	file, expected := generated(t, 9, trace.Workload{Donations: 300, Grants: 300})
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"-trace", file, "-shards", "sqlite:1", "-dir", dir}
	must(t, expected, args...)
	// Rows that contradict themselves, of a run that has not ended.
	change := func(name, statement string, want int64) {
		t.Helper()
		db, err := sql.Open("sqlite", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		res, err := db.Exec(statement)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := res.RowsAffected(); err != nil || n != want {
			t.Fatalf("%s: %d rows changed, want %d: %v", statement, n, want, err)
		}
	}
	change("s1.db", fmt.Sprintf(`UPDATE saga_out SET state = %d, ended_at = 0, body_hash = zeroblob(16) WHERE (tenant_id, saga_id) IN
		(SELECT tenant_id, saga_id FROM saga_out WHERE state = %d ORDER BY 1, 2 LIMIT %d)`, saga.Pending, saga.Settled, forged), forged)
	change("control.db", "DELETE FROM tdal_notes WHERE name = '"+noteFinished+"'", 1)
	for _, run := range []string{"the run that finds them", "a later run"} {
		reported := filepath.Join(t.TempDir(), "report.json")
		start := time.Now()
		code, stdout, stderr := program(t, append(args, "-report", reported)...)
		if took := time.Since(start); code != 1 || took > patience {
			t.Errorf("%s: exit %d after %v, want 1 long before %v: %s", run, code, took, patience, stderr)
		}
		for _, want := range []string{fmt.Sprintf("%d donations are quarantined", forged), string(saga.ReasonBadRow), "and 2 more"} {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: stderr lacks %q: %s", run, want, stderr)
			}
		}
		if n := strings.Count(stderr, string(saga.ReasonBadRow)); n != maxTold {
			t.Errorf("%s: %d donations named, want %d: %s", run, n, maxTold, stderr)
		}
		if rep := readReport(t, reported); rep.Pending != forged {
			t.Errorf("%s: %d pending in the report, want %d\n%s", run, rep.Pending, forged, stdout)
		}
	}
}
