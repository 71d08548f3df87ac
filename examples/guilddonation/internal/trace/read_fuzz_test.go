package trace_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
)

// FuzzRead checks that Read never panics, that each refusal names a line, and that what it accepts is what the JSON says, is written back as the same
// trace, and ends in one outcome a donation.
func FuzzRead(f *testing.F) {
	data, err := os.ReadFile(golden)
	if err != nil {
		f.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	f.Add([]byte(strings.Join(lines[:20], "")))
	f.Add([]byte(lines[0] + lines[1456]))
	for _, s := range []string{
		"", "\n", pub + "\n\n", text("donate", "item", `"\ud83d\ude00"`), text("donate", "item", `"\ud83d"`), text("donate", "qty", "1e3"), pub + "\r\n" + guild,
		pub + "\n" + text("grant", "qty", "9223372036854775807") + "\n" + text("grant", "qty", "1"), `{"op":"tenant","\u0069d":"a","model":"database"}`, "\xff", `[{}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := trace.Read(bytes.NewReader(data), "t.ndjson")
		if err != nil {
			var line *trace.LineError
			if !errors.Is(err, trace.ErrUnusable) || !errors.As(err, &line) {
				t.Fatalf("Read = %v, want a LineError", err)
			}
			if line.Line < 1 || line.Line > bytes.Count(data, []byte("\n"))+1 || line.Reason == "" || !utf8.ValidString(line.Error()) {
				t.Fatalf("Read = %+v", line)
			}
			return
		}
		if tr.SHA256 != sha256.Sum256(data) {
			t.Error("the hash is not that of the text")
		}
		texts := strings.Split(string(data), "\n")
		for _, l := range append(tr.Setup[:len(tr.Setup):len(tr.Setup)], tr.Donations...) {
			checkAgainstJSON(t, l, texts[l.No-1])
		}
		back, err := trace.Read(bytes.NewReader(written(t, tr)), "t.ndjson")
		if err != nil {
			t.Fatalf("Read of what Write wrote: %v", err)
		}
		back.SHA256 = tr.SHA256 // the text may have been written otherwise
		if !reflect.DeepEqual(back, tr) {
			t.Fatalf("written and read again:\n%+v\nwant\n%+v", back, tr)
		}
		if e := trace.Expect(tr); len(e.Outcomes) != len(tr.Donations) {
			t.Errorf("%d outcomes of %d donations", len(e.Outcomes), len(tr.Donations))
		}
		n := 0
		for _, chain := range trace.Chains(tr.Donations) {
			n += len(chain)
		}
		if n != len(tr.Donations) {
			t.Errorf("%d lines in chains, want %d", n, len(tr.Donations))
		}
	})
}

// checkAgainstJSON reads the line's text with encoding/json alone.
func checkAgainstJSON(t *testing.T, l trace.Line, line string) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(line))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		t.Fatalf("line %d: %v", l.No, err)
	}
	got := map[string]any{"op": string(l.Op)}
	for name, value := range map[string]string{"guild": l.Guild, "status": l.Status, "item": l.Item, "player": l.Player, "key": l.Key, "tenant": l.Tenant} {
		if _, has := fields[name]; has {
			got[name] = value
		} else if value != "" && name != "tenant" {
			t.Errorf("line %d: %s = %q, which the text lacks", l.No, name, value)
		}
	}
	if _, has := fields["qty"]; has {
		got["qty"] = json.Number(jsonInt(l.Qty, fields["qty"]))
	}
	if l.Op == trace.OpTenant {
		got["id"], got["model"] = l.Tenant, l.Model.String()
	}
	if !reflect.DeepEqual(got, fields) {
		t.Errorf("line %d: read %v, the text says %v", l.No, got, fields)
	}
}

// jsonInt is n as JSON; 0 may be written as -0 as well.
func jsonInt(n int64, as any) string {
	if n == 0 && as == json.Number("-0") {
		return "-0"
	}
	b, _ := json.Marshal(n)
	return string(b)
}
