package tenant_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
)

var idShape = regexp.MustCompile(`\A[a-z0-9][a-z0-9_-]{0,62}\z`)

func TestParseID(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"a", "0", "acme", "a-b_c", "a--", "a__", "0-", "system", strings.Repeat("z", 63)} {
		id, err := tenant.ParseID(s)
		if err != nil || string(id) != s || id.String() != s || id.Validate() != nil {
			t.Errorf("ParseID(%q) = %q, %v, want the same bytes", s, id, err)
		}
	}
}

// refusedIDs are forms that a database, a file system or a reader may take for another tenant's id.
var refusedIDs = map[string][]string{
	"T38 case":       {"Acme", "ACME", "aCme", "acmE"},
	"T38 accents":    {"acmé", "acme\u0301", "äcme", "ﬁ", "ａｃｍｅ", "аcme" /* Cyrillic a */, "ss\u00df"},
	"T39 blanks":     {"acme ", " acme", "ac me", "acme\t", "acme\n", "\nacme", "acme\r", "acme\v"},
	"T39 NUL":        {"acme\x00", "\x00", "\x00acme", "ac\x00me"},
	"T39 NBSP":       {"acme\u00a0", "\u00a0acme", "acme\u2007", "acme\u202f", "acme\u3000"},
	"T39 zero width": {"acme\u200b", "acme\u200d", "acme\ufeff", "\ufeffacme", "acme\u00ad", "acme\u2060", "acme\u202e"},
	"T46 identifier": {`x"; DROP SCHEMA public; --`, "x`", "x'", `x"`, "x;", "x--y;", "a.b", "../a", "a/b", `a\b`, "a$b", "%", "a*", "a,b", "a=b", "a:b", "a@b", "a#1"},
	"T45 reserved":   {"__system__", "_system", "-a", "-", "_", "*"},
	"T36 zero":       {""},
	"length":         {strings.Repeat("a", 64), strings.Repeat("a", 1<<20)},
	"bytes":          {"\xff", "a\xffb", "\xc3", "a\x7f", "a\x80"},
}

func TestParseID_T36_T38_T39_T45_T46_Refused(t *testing.T) {
	t.Parallel()
	for name, values := range refusedIDs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, s := range values {
				id, err := tenant.ParseID(s)
				var invalid *tenant.InvalidIDError
				if id != "" || !errors.Is(err, tenant.ErrInvalidID) || !errors.As(err, &invalid) {
					t.Errorf("ParseID(%.70q) = %q, %v, want ErrInvalidID", s, id, err)
					continue
				}
				if got := tenant.ID(s).Validate(); !errors.Is(got, tenant.ErrInvalidID) {
					t.Errorf("ID(%.70q).Validate() = %v, want ErrInvalidID", s, got)
				}
				if len(invalid.Value) > 64 || !strings.HasPrefix(s, invalid.Value) {
					t.Errorf("ParseID(%.70q): the error keeps %d bytes, want at most 64", s, len(invalid.Value))
				}
				// 64 bytes of the value, each at most \xff when quoted, beside a fixed text.
				if msg := err.Error(); len(msg) > 64*4+200 || strings.ContainsAny(msg, "\x00\n\r\v") || strings.Contains(msg, "\u202e") {
					t.Errorf("ParseID(%.70q): the message is too long or not quoted: %q", s, msg)
				}
			}
		})
	}
}

func TestParseID_NeverCoerces(t *testing.T) {
	t.Parallel()
	// Each of these would be "acme" after one of the usual repairs.
	for _, s := range []string{"ACME", " acme", "acme ", "acme\u200b", "ａcme"} {
		if id, err := tenant.ParseID(s); err == nil {
			t.Errorf("ParseID(%q) = %q, want it refused, not repaired", s, id)
		}
	}
}

func TestMustParseID(t *testing.T) {
	t.Parallel()
	if got := tenant.MustParseID("acme"); got != "acme" {
		t.Errorf("MustParseID(acme) = %q", got)
	}
	defer func() {
		err, ok := recover().(error)
		if !ok || !errors.Is(err, tenant.ErrInvalidID) {
			t.Errorf("MustParseID(Acme) panicked with %v, want ErrInvalidID", err)
		}
	}()
	tenant.MustParseID("Acme")
}

func FuzzParseID(f *testing.F) {
	for _, values := range refusedIDs {
		for _, s := range values {
			f.Add(s)
		}
	}
	f.Add("acme")
	f.Add("a-b_c0")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := tenant.ParseID(s)
		if want := idShape.MatchString(s); (err == nil) != want {
			t.Fatalf("ParseID(%q) = %v, the shape says %v", s, err, want)
		}
		if err == nil && string(id) != s {
			t.Fatalf("ParseID(%q) = %q, want the same bytes", s, id)
		}
		if err != nil && (id != "" || !errors.Is(err, tenant.ErrInvalidID) || len(err.Error()) > 64*4+200) {
			t.Fatalf("ParseID(%q) = %q, %v", s, id, err)
		}
	})
}
