package tenant_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
)

func newEnvelope(t *testing.T, id tenant.ID) tenant.Envelope {
	t.Helper()
	e, err := tenant.NewEnvelope(tenant.NewContext(t.Context(), id), "mail.welcome", []byte{0, 1, 255}, map[string]string{"trace": "<1>"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func sameEnvelope(a, b tenant.Envelope) bool {
	return a.Head() == b.Head() && a.Kind() == b.Kind() && bytes.Equal(a.Payload(), b.Payload()) && maps.Equal(a.Meta(), b.Meta())
}

func TestEnvelope_RoundTrip(t *testing.T) {
	t.Parallel()
	e := newEnvelope(t, "acme")
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	// Golden: jobs in this form wait in queues.
	const want = `{"tenant":"acme","v":1,"kind":"mail.welcome","payload":"AAH/","meta":{"trace":"\u003c1\u003e"}}`
	if string(b) != want {
		t.Errorf("Marshal = %s, want %s", b, want)
	}
	got, err := tenant.DecodeEnvelope(b)
	if err != nil || !sameEnvelope(got, e) {
		t.Errorf("DecodeEnvelope = %+v, %v", got, err)
	}
	var field struct{ Job tenant.Envelope }
	if err := json.Unmarshal([]byte(`{"Job":`+want+`}`), &field); err != nil || !sameEnvelope(field.Job, e) {
		t.Errorf("as a field: %+v, %v", field.Job, err)
	}
	// A JSON column may sort the fields and add blanks.
	got, err = tenant.DecodeEnvelope([]byte(" {\n\"v\": 1, \"meta\": {}, \"kind\": \"k\", \"tenant\": \"acme\"} \n"))
	if err != nil || got.Tenant() != "acme" || got.Kind() != "k" || got.Payload() != nil || got.Meta() != nil {
		t.Errorf("DecodeEnvelope of sorted fields = %+v, %v", got, err)
	}
}

func TestEnvelope_Immutable(t *testing.T) {
	t.Parallel()
	payload, meta := []byte("abc"), map[string]string{"k": "v"}
	e, err := tenant.NewEnvelope(tenant.NewContext(t.Context(), "a"), "k", payload, meta)
	if err != nil {
		t.Fatal(err)
	}
	payload[0], meta["k"] = 'x', "x"
	e.Payload()[1], e.Meta()["k"] = 'y', "y"
	if string(e.Payload()) != "abc" || e.Meta()["k"] != "v" {
		t.Errorf("the envelope changed: %q, %v", e.Payload(), e.Meta())
	}
}

func TestNewEnvelope_Refused(t *testing.T) {
	t.Parallel()
	a := tenant.NewContext(t.Context(), "a")
	for name, c := range map[string]struct {
		ctx  context.Context
		kind string
		meta map[string]string
		want error
	}{
		"no tenant":      {t.Context(), "k", nil, tenant.ErrNoTenant},
		"nil":            {nil, "k", nil, tenant.ErrNoTenant},
		"ill-formed":     {tenant.NewContext(a, "A"), "k", nil, tenant.ErrInvalidID},
		"system":         {tenant.System(a, "why", "bag"), "k", nil, tenant.ErrSystemScope},
		"no kind":        {a, "", nil, tenant.ErrInvalidEnvelope},
		"kind not UTF-8": {a, "k\xff", nil, tenant.ErrInvalidEnvelope},
		"meta not UTF-8": {a, "k", map[string]string{"x": "\xff"}, tenant.ErrInvalidEnvelope},
		"other tenant":   {a, "k", map[string]string{"Tenantdal-Tenant": "b"}, tenant.ErrCarrierConflict},
	} {
		e, err := tenant.NewEnvelope(c.ctx, c.kind, nil, c.meta)
		if !errors.Is(err, c.want) || e.Tenant() != "" {
			t.Errorf("%s: NewEnvelope = %+v, %v, want %v", name, e, err, c.want)
		}
	}
	if e, err := tenant.NewEnvelope(a, "k", nil, map[string]string{tenant.CarrierKey: "a"}); err != nil || e.Tenant() != "a" {
		t.Errorf("NewEnvelope with the same tenant in meta = %+v, %v", e, err)
	}
}

func TestEnvelope_Zero(t *testing.T) {
	t.Parallel()
	var e tenant.Envelope
	if b, err := json.Marshal(e); !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("Marshal of the zero Envelope = %s, %v, want ErrNoTenant", b, err)
	}
	ctx, err := e.Context(tenant.NewContext(t.Context(), "a"))
	if !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("Context of the zero Envelope = %v, want ErrNoTenant", err)
	}
	wantNone(t, "beside the error", ctx, tenant.ErrNoTenant)
	if e.Kind() != "" || e.Payload() != nil || e.Meta() != nil {
		t.Errorf("the zero Envelope holds %+v", e)
	}
}

func TestEnvelope_ContextIsExactlyThisTenant(t *testing.T) {
	t.Parallel()
	e := newEnvelope(t, "b")
	for name, parent := range map[string]context.Context{
		"worker":       t.Context(),
		"last job":     tenant.WithShard(tenant.NewContext(t.Context(), "a"), "s9"),
		"system":       tenant.System(t.Context(), "claim jobs", "jobs"),
		"after a fail": first(tenant.Envelope{}.Context(t.Context())),
	} {
		ctx, err := e.Context(parent)
		if err != nil {
			t.Errorf("%s: Context = %v", name, err)
			continue
		}
		wantTenant(t, name, ctx, "b")
		if shard, ok := tenant.ShardFromContext(ctx); ok {
			t.Errorf("%s: the shard %q of an earlier job is kept", name, shard)
		}
	}
}

const goodEnvelope = `{"tenant":"a","v":1,"kind":"k","payload":"AAH/","meta":{"x":"y"}}`

// refusedEnvelopes are encoded forms that do not say in one way only for whom they are.
var refusedEnvelopes = map[string]struct {
	in   string
	want error
}{
	"missing tenant":     {`{"v":1,"kind":"k","payload":""}`, tenant.ErrNoTenant},
	"empty tenant":       {`{"tenant":"","v":1,"kind":"k"}`, tenant.ErrNoTenant},
	"empty object":       {`{}`, tenant.ErrNoTenant},
	"null tenant":        {`{"tenant":null,"v":1,"kind":"k"}`, tenant.ErrInvalidEnvelope},
	"number":             {`{"tenant":0,"v":1,"kind":"k"}`, tenant.ErrInvalidEnvelope},
	"list":               {`{"tenant":["a"],"v":1,"kind":"k"}`, tenant.ErrInvalidEnvelope},
	"upper case":         {`{"tenant":"A","v":1,"kind":"k"}`, tenant.ErrInvalidID},
	"blank":              {`{"tenant":"a ","v":1,"kind":"k"}`, tenant.ErrInvalidID},
	"system":             {`{"tenant":"__system__","v":1,"kind":"k"}`, tenant.ErrInvalidID},
	"surrogate":          {`{"tenant":"\ud800","v":1,"kind":"k"}`, tenant.ErrInvalidID},
	"no version":         {`{"tenant":"a","kind":"k"}`, tenant.ErrInvalidEnvelope},
	"old version":        {`{"tenant":"a","v":0,"kind":"k"}`, tenant.ErrInvalidEnvelope},
	"new version":        {`{"tenant":"a","v":2,"kind":"k"}`, tenant.ErrInvalidEnvelope},
	"version text":       {`{"tenant":"a","v":"1","kind":"k"}`, tenant.ErrInvalidEnvelope},
	"no kind":            {`{"tenant":"a","v":1}`, tenant.ErrInvalidEnvelope},
	"two tenants":        {`{"tenant":"a","v":1,"kind":"k","tenant":"b"}`, tenant.ErrInvalidEnvelope},
	"two tenants, equal": {`{"tenant":"a","v":1,"kind":"k","tenant":"a"}`, tenant.ErrInvalidEnvelope},
	"escaped twin":       {`{"tenant":"a","v":1,"kind":"k","\u0074enant":"b"}`, tenant.ErrInvalidEnvelope},
	"other case":         {`{"Tenant":"a","v":1,"kind":"k"}`, tenant.ErrInvalidEnvelope},
	"unknown field":      {`{"tenant":"a","v":1,"kind":"k","x":1}`, tenant.ErrInvalidEnvelope},
	"payload null":       {`{"tenant":"a","v":1,"kind":"k","payload":null}`, tenant.ErrInvalidEnvelope},
	"payload array":      {`{"tenant":"a","v":1,"kind":"k","payload":[1,2]}`, tenant.ErrInvalidEnvelope},
	"payload no base64":  {`{"tenant":"a","v":1,"kind":"k","payload":"A"}`, tenant.ErrInvalidEnvelope},
	"payload loose bits": {`{"tenant":"a","v":1,"kind":"k","payload":"AB=="}`, tenant.ErrInvalidEnvelope},
	"payload newline":    {`{"tenant":"a","v":1,"kind":"k","payload":"AAH/\n"}`, tenant.ErrInvalidEnvelope},
	"meta number":        {`{"tenant":"a","v":1,"kind":"k","meta":{"x":1}}`, tenant.ErrInvalidEnvelope},
	"meta nested":        {`{"tenant":"a","v":1,"kind":"k","meta":{"x":{}}}`, tenant.ErrInvalidEnvelope},
	"meta twice":         {`{"tenant":"a","v":1,"kind":"k","meta":{"x":"1","x":"2"}}`, tenant.ErrInvalidEnvelope},
	"meta list":          {`{"tenant":"a","v":1,"kind":"k","meta":[]}`, tenant.ErrInvalidEnvelope},
	"meta other tenant":  {`{"tenant":"a","v":1,"kind":"k","meta":{"TENANTDAL-tenant":"b"}}`, tenant.ErrCarrierConflict},
	"trailing":           {goodEnvelope + `{}`, tenant.ErrInvalidEnvelope},
	"two envelopes":      {goodEnvelope + goodEnvelope, tenant.ErrInvalidEnvelope},
	"trailing bytes":     {goodEnvelope + `x`, tenant.ErrInvalidEnvelope},
	"cut":                {goodEnvelope[:len(goodEnvelope)-1], tenant.ErrInvalidEnvelope},
	"trailing comma":     {`{"tenant":"a","v":1,"kind":"k",}`, tenant.ErrInvalidEnvelope},
	"null":               {`null`, tenant.ErrInvalidEnvelope},
	"array":              {`[]`, tenant.ErrInvalidEnvelope},
	"string":             {`"a"`, tenant.ErrInvalidEnvelope},
	"empty":              {``, tenant.ErrInvalidEnvelope},
	"not UTF-8":          {"{\"tenant\":\"a\",\"v\":1,\"kind\":\"\xff\"}", tenant.ErrInvalidEnvelope},
}

func TestDecodeEnvelope_Refused(t *testing.T) {
	t.Parallel()
	if _, err := tenant.DecodeEnvelope([]byte(goodEnvelope)); err != nil {
		t.Fatalf("the good envelope is refused: %v", err)
	}
	for name, c := range refusedEnvelopes {
		e, err := tenant.DecodeEnvelope([]byte(c.in))
		if !errors.Is(err, c.want) || e.Tenant() != "" || e.Kind() != "" {
			t.Errorf("%s: DecodeEnvelope(%s) = %+v, %v, want %v", name, c.in, e, err, c.want)
		}
		reused := newEnvelope(t, "last-job")
		if err := reused.UnmarshalJSON([]byte(c.in)); !errors.Is(err, c.want) || reused.Tenant() != "" {
			t.Errorf("%s: UnmarshalJSON = %v and left the tenant %q", name, err, reused.Tenant())
		}
		var env *tenant.EnvelopeError
		if errors.As(err, &env) && (len(err.Error()) > 500 || strings.Contains(err.Error(), "AAH/")) {
			t.Errorf("%s: the message is long or shows the payload: %v", name, err)
		}
	}
}

// A worker pool handles a job of tenant a, then one that names nobody.
func TestWorker_T35_EnvelopeWithoutTenant(t *testing.T) {
	t.Parallel()
	good, err := json.Marshal(newEnvelope(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	jobs := [][]byte{good, []byte(`{"v":1,"kind":"k"}`), []byte(`{"tenant":null,"v":1,"kind":"k"}`), []byte(`{"kind":`), good}
	var ran []tenant.ID
	var dead []error
	// The worst worker: it reuses its variable and its context, and drops no job.
	env, ctx := tenant.Envelope{}, t.Context()
	for _, job := range jobs {
		var err error
		if env, err = tenant.DecodeEnvelope(job); err != nil {
			dead = append(dead, err)
		}
		ctx, _ = env.Context(ctx)
		if id, err := tenant.FromContext(ctx); err == nil {
			ran = append(ran, id)
		} else if !errors.Is(err, tenant.ErrNoTenant) {
			t.Errorf("FromContext = %v, want ErrNoTenant", err)
		}
	}
	if len(ran) != 2 || ran[0] != "a" || ran[1] != "a" || len(dead) != 3 {
		t.Errorf("ran %v, dead-lettered %v, want the two jobs of a and three refusals", ran, dead)
	}
	for _, err := range dead {
		if !errors.Is(err, tenant.ErrNoTenant) && !errors.Is(err, tenant.ErrInvalidEnvelope) {
			t.Errorf("dead letter without a reason: %v", err)
		}
	}
}

func TestPeekTenant(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]tenant.ID{
		goodEnvelope:                  "a",
		goodEnvelope[:13]:             "a", // the head alone
		" { \"tenant\" :\n\"a-b\" , ": "a-b",

		`{"tenant":"` + strings.Repeat("z", 63) + `"`: tenant.ID(strings.Repeat("z", 63)),
	} {
		if got, err := tenant.PeekTenant([]byte(in)); err != nil || got != want {
			t.Errorf("PeekTenant(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]error{
		"":                                      tenant.ErrNoTenant,
		"{}":                                    tenant.ErrNoTenant,
		`{"v":1,"tenant":"a"}`:                  tenant.ErrNoTenant,
		`{"Tenant":"a"}`:                        tenant.ErrNoTenant,
		`{"tenant":""}`:                         tenant.ErrNoTenant,
		`{"tenant":null}`:                       tenant.ErrNoTenant,
		`{"tenant":"A"}`:                        tenant.ErrInvalidID,
		`{"tenant":"`:                           tenant.ErrNoTenant,
		`{"tenant":"a`:                          tenant.ErrNoTenant,
		`{"tenant":"\u0061"}`:                   tenant.ErrInvalidID,
		`{"tenant":"` + strings.Repeat("z", 64): tenant.ErrInvalidID,
	} {
		if got, err := tenant.PeekTenant([]byte(in)); !errors.Is(err, want) || got != "" {
			t.Errorf("PeekTenant(%q) = %q, %v, want %v", in, got, err, want)
		}
	}
}

func FuzzDecodeEnvelope(f *testing.F) {
	f.Add([]byte(goodEnvelope))
	f.Add([]byte(keyedEnvelope))
	for _, in := range refusedHeads {
		f.Add([]byte(in))
	}
	for _, c := range refusedEnvelopes {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := tenant.DecodeEnvelope(b)
		peeked, peekErr := tenant.PeekTenant(b)
		head, headErr := tenant.Peek(b)
		if headErr == nil && (peekErr != nil || head.Tenant != peeked) || headErr != nil && head != (tenant.Head{}) {
			t.Fatalf("Peek(%q) = %+v, %v, and PeekTenant %q, %v", b, head, headErr, peeked, peekErr)
		}
		if err != nil {
			if e.Tenant() != "" || e.Kind() != "" || e.Payload() != nil || e.Meta() != nil {
				t.Fatalf("beside %v the envelope holds %+v", err, e)
			}
			return
		}
		if !json.Valid(b) || e.Tenant().Validate() != nil || e.Kind() == "" {
			t.Fatalf("DecodeEnvelope(%q) = %+v", b, e)
		}
		if peekErr == nil && peeked != e.Tenant() {
			t.Fatalf("a gateway sees %q and the worker %q in %q", peeked, e.Tenant(), b)
		}
		if headErr == nil && head != e.Head() {
			t.Fatalf("a gateway sees %+v and the worker %+v in %q", head, e.Head(), b)
		}
		// A lenient reader of the same bytes never sees another tenant.
		var lenient struct{ Tenant string }
		if err := json.Unmarshal(b, &lenient); err != nil || lenient.Tenant != string(e.Tenant()) {
			t.Fatalf("another reader sees %q, %v, and we %q in %q", lenient.Tenant, err, e.Tenant(), b)
		}
		out, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		back, err := tenant.DecodeEnvelope(out)
		if err != nil || !sameEnvelope(back, e) {
			t.Fatalf("%q came back as %+v, %v, want %+v", out, back, err, e)
		}
		if id, err := tenant.PeekTenant(out); err != nil || id != e.Tenant() {
			t.Fatalf("PeekTenant(%q) = %q, %v", out, id, err)
		}
		if h, err := tenant.Peek(out); err != nil || h != e.Head() {
			t.Fatalf("Peek(%q) = %+v, %v", out, h, err)
		}
	})
}
