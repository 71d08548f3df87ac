package tenant_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
)

// Golden: jobs in this form wait in queues, and gateways read its head.
const keyedEnvelope = `{"tenant":"acme","keyspace":"guild","key":"g\u003c\"é\u003e","v":2,"kind":"mail.welcome","payload":"AAH/","meta":{"trace":"\u003c1\u003e"}}`

// refusedHeads begin with a whole tenant, and are no whole head.
var refusedHeads = []string{
	`{"tenant":"a"`, `{"tenant":"a",`, `{"tenant":"a","v":`, `{"tenant":"a","v":1`, `{"tenant":"a","v":12,`, `{"tenant":"a","v":2,"kind":"k"}`, `{"tenant":"a"}`,
	`{"tenant":"a","kind":"k","v":1}`, `{"tenant":"a","keyspace":"p"`, `{"tenant":"a","keyspace":"p","v":2}`, `{"tenant":"a","key":"7","keyspace":"p","v":2}`,
	`{"tenant":"a","keyspace":"p","key":"7`, `{"tenant":"a","keyspace":"p","key":"7"`, `{"tenant":"a","keyspace":"p","key":"7","v":1,"kind":"k"}`,
	`{"tenant":"a","keyspace":"p","key":"7","v":3,"kind":"k"}`, `{"tenant":"a","keyspace":"p","key":"","v":2,"kind":"k"}`, `{"tenant":"a","keyspace":"p","key":"0","v":2,"kind":"k"}`,
	`{"tenant":"a","keyspace":"p","key":7,"v":2,"kind":"k"}`, `{"tenant":"a","keyspace":"P","key":"7","v":2,"kind":"k"}`, `{"tenant":"a","keyspace":"","key":"7","v":2,"kind":"k"}`,
	`{"tenant":"a","keyspace":null,"key":"7","v":2,"kind":"k"}`, `{"tenant":"a","keyspace":"p","key":"` + "\xff" + `","v":2,"kind":"k"}`, `{"tenant":"a","keyspace":"p","key":"\x","v":2,"kind":"k"}`,
	`{"tenant":"a","keyspace":"p","key":"` + strings.Repeat("k", tenant.MaxKeyLen+1) + `","v":2,"kind":"k"}`, `{"tenant":"a","Keyspace":"p","key":"7","v":2,"kind":"k"}`,
	`{"tenant":"a","keyspace":"p","key":"` + "\n" + `","v":2,"kind":"k"}`,
}

func TestEnvelope_A15_KeyInTheHead(t *testing.T) {
	t.Parallel()
	const key = `g<"é>`
	plain := newEnvelope(t, "acme")
	e, err := plain.WithKey("guild", key)
	if err != nil {
		t.Fatal(err)
	}
	want := tenant.Head{Tenant: "acme", Keyspace: "guild", Key: key}
	if e.Head() != want || plain.Head() != (tenant.Head{Tenant: "acme"}) {
		t.Errorf("Head = %+v, and without a key %+v", e.Head(), plain.Head())
	}
	b, err := json.Marshal(e)
	if err != nil || string(b) != keyedEnvelope {
		t.Errorf("Marshal = %s, %v, want %s", b, err, keyedEnvelope)
	}
	if got, err := tenant.DecodeEnvelope(b); err != nil || !sameEnvelope(got, e) {
		t.Errorf("DecodeEnvelope = %+v, %v", got, err)
	}
	// A JSON column may sort the fields: the worker reads them, the gateway refuses to guess.
	sorted := `{"v": 2, "key": "7", "kind": "k", "tenant": "acme", "keyspace": "guild"}`
	if got, err := tenant.DecodeEnvelope([]byte(sorted)); err != nil || got.Head() != (tenant.Head{Tenant: "acme", Keyspace: "guild", Key: "7"}) {
		t.Errorf("DecodeEnvelope of sorted fields = %+v, %v", got, err)
	}
	if _, err := tenant.Peek([]byte(sorted)); !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("Peek of sorted fields = %v, want ErrNoTenant", err)
	}

	// Each prefix gives the whole head or an error, and never another key; the payload is not looked at.
	end := strings.Index(keyedEnvelope, `,"kind"`)
	for i := range keyedEnvelope {
		h, err := tenant.Peek([]byte(keyedEnvelope[:i]))
		if i > end && (err != nil || h != want) || i <= end && (err == nil || h != (tenant.Head{})) {
			t.Errorf("Peek(%q) = %+v, %v", keyedEnvelope[:i], h, err)
		}
	}
	if h, err := tenant.Peek([]byte(keyedEnvelope[:end] + ",\xff broken")); err != nil || h != want {
		t.Errorf("Peek before a broken payload = %+v, %v", h, err)
	}
	if h, err := tenant.Peek([]byte(goodEnvelope[:20])); err != nil || h != (tenant.Head{Tenant: "a"}) {
		t.Errorf("Peek without a key = %+v, %v", h, err)
	}
}

func TestPeek_Refused(t *testing.T) {
	t.Parallel()
	for _, in := range refusedHeads {
		if h, err := tenant.Peek([]byte(in)); !errors.Is(err, tenant.ErrInvalidEnvelope) || h != (tenant.Head{}) {
			t.Errorf("Peek(%q) = %+v, %v, want ErrInvalidEnvelope", in, h, err)
		}
		if e, err := tenant.DecodeEnvelope([]byte(in)); err == nil && e.Head().Key != "" {
			t.Errorf("DecodeEnvelope(%q) = %+v", in, e)
		}
	}
	for in, want := range map[string]error{"": tenant.ErrNoTenant, `{"v":2`: tenant.ErrNoTenant, `{"tenant":"A","v":1}`: tenant.ErrInvalidID} {
		if h, err := tenant.Peek([]byte(in)); !errors.Is(err, want) || h != (tenant.Head{}) {
			t.Errorf("Peek(%q) = %+v, %v, want %v", in, h, err, want)
		}
	}
}

func TestEnvelope_WithKeyRefused(t *testing.T) {
	t.Parallel()
	e := newEnvelope(t, "a")
	for _, c := range [][2]string{{"", "7"}, {"P", "7"}, {"7p", "7"}, {strings.Repeat("p", 64), "7"}, {"p", ""}, {"p", "0"}, {"p", "\xff"}, {"p", strings.Repeat("k", 256)}} {
		if got, err := e.WithKey(c[0], c[1]); !errors.Is(err, tenant.ErrInvalidEnvelope) || got.Tenant() != "" {
			t.Errorf("WithKey(%q, %q) = %+v, %v, want ErrInvalidEnvelope", c[0], c[1], got, err)
		}
	}
	if _, err := (tenant.Envelope{}).WithKey("p", "7"); !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("WithKey of the zero Envelope = %v, want ErrNoTenant", err)
	}
	if got, err := e.WithKey(strings.Repeat("p", 63), strings.Repeat("k", 255)); err != nil || len(got.Head().Key) != 255 {
		t.Errorf("WithKey of the longest = %v", err)
	}
}

// Peek allocates the strings that it returns.
func TestPeek_Allocations(t *testing.T) {
	data := []byte(`{"tenant":"acme","keyspace":"guild","key":"123456","v":2,"kind":"k","payload":"` + strings.Repeat("AAAA", 10_000) + `"}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := tenant.Peek(data); err != nil {
			t.Fatal(err)
		}
	}); n > 3 {
		t.Errorf("Peek allocates %v times, want 3", n)
	}
}
