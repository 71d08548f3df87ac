package trace_test

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestWrite_Golden(t *testing.T) {
	t.Parallel()
	tr := readGolden(t)
	data := written(t, tr)
	back, err := trace.Read(bytes.NewReader(data), golden)
	if err != nil {
		t.Fatal(err)
	}
	back.SHA256 = tr.SHA256 // the file may escape what need not be escaped
	if !reflect.DeepEqual(back, tr) {
		t.Error("the golden trace, written and read again, differs")
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := bytes.Cut(data, []byte("\n")); !bytes.HasPrefix(want, first) {
		t.Errorf("the first line is %s, want as in the file", first)
	}
}

func TestWrite_OrderOfTheFile(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"op": "donate", "tenant": "pub", "key": "<k>", "player": "7", "guild": "1", "item": "é\"\\", "qty": -5}`,
		`{"op": "tenant", "id": "pub", "model": "schema"}`,
		`{"op": "donate", "tenant": "", "key": "", "player": "", "guild": "", "item": "", "qty": 0}`,
		`{"op": "guild", "tenant": "pub", "guild": "1", "status": "closed"}`,
		`{"op": "stock", "tenant": "pub", "guild": "1", "item": "gold ", "qty": 9223372036854775807}`,
		`{"op": "grant", "tenant": "pub", "player": "007", "item": "🗡️", "qty": 1}`,
	}
	if got, want := string(written(t, mustParse(t, lines...))), strings.Join(lines, "\n")+"\n"; got != want {
		t.Errorf("Write wrote\n%swant\n%s", got, want)
	}
}

func TestWrite_Refuses(t *testing.T) {
	t.Parallel()
	line := func(no int) trace.Line {
		return trace.Line{No: no, Op: trace.OpTenant, Tenant: "pub", Model: tenant.SharedTable}
	}
	bad := line(1)
	bad.Tenant = "a\xff"
	op := line(1)
	op.Op = "burn"
	donate := line(1)
	donate.Op = trace.OpDonate
	for name, tr := range map[string]*trace.Trace{
		"GapAtTheStart": {Setup: []trace.Line{line(2)}}, "Gap": {Setup: []trace.Line{line(1), line(3)}}, "Twice": {Setup: []trace.Line{line(1)}, Donations: []trace.Line{donate}},
		"Falling": {Setup: []trace.Line{line(2), line(1)}}, "Zero": {Donations: []trace.Line{{Op: trace.OpDonate}}},
		"NotUTF8": {Setup: []trace.Line{bad}}, "UnknownOp": {Setup: []trace.Line{op}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := trace.Write(new(bytes.Buffer), tr); err == nil {
				t.Errorf("Write(%+v) = nil", tr)
			}
		})
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestWrite_ErrorIsReturned(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	for _, tr := range []*trace.Trace{mustParse(t, pub), readGolden(t)} {
		if err := trace.Write(brokenWriter{broken}, tr); !errors.Is(err, broken) {
			t.Errorf("Write = %v, want the writer's error", err)
		}
	}
}
