package tenant_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
)

func TestModel(t *testing.T) {
	t.Parallel()
	for want, word := range map[tenant.Model]string{tenant.SharedTable: "shared", tenant.OwnSchema: "schema", tenant.OwnDatabase: "database"} {
		got, err := tenant.ParseModel(word)
		if err != nil || got != want || got.String() != word || got.Validate() != nil {
			t.Errorf("ParseModel(%q) = %v, %v, want %v", word, got, err, want)
		}
		b, err := json.Marshal(want)
		if err != nil || string(b) != `"`+word+`"` {
			t.Errorf("Marshal(%v) = %s, %v", want, b, err)
		}
		var back tenant.Model
		if err := json.Unmarshal(b, &back); err != nil || back != want {
			t.Errorf("Unmarshal(%s) = %v, %v, want %v", b, back, err, want)
		}
	}
	for _, word := range []string{"", "Shared", "shared ", "1", "Model(1)", strings.Repeat("x", 1000)} {
		if m, err := tenant.ParseModel(word); err == nil || m != 0 || len(err.Error()) > 400 {
			t.Errorf("ParseModel(%.20q) = %v, %v, want a short error", word, m, err)
		}
	}
	for _, m := range []tenant.Model{0, 4, 255} {
		if _, err := m.MarshalText(); err == nil || m.Validate() == nil || !strings.HasPrefix(m.String(), "Model(") {
			t.Errorf("Model %d is taken for valid: %v", uint8(m), m)
		}
	}
	kept := tenant.OwnSchema
	if err := kept.UnmarshalText([]byte("x")); err == nil || kept != tenant.OwnSchema {
		t.Errorf("UnmarshalText(x) = %v and changed the model to %v", err, kept)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for want, word := range map[tenant.Status]string{tenant.Active: "active", tenant.Suspended: "suspended", tenant.Deleting: "deleting"} {
		got, err := tenant.ParseStatus(word)
		if err != nil || got != want || got.String() != word || got.Validate() != nil {
			t.Errorf("ParseStatus(%q) = %v, %v, want %v", word, got, err, want)
		}
		b, err := want.MarshalText()
		var back tenant.Status
		if err2 := back.UnmarshalText(b); err != nil || err2 != nil || back != want {
			t.Errorf("text round trip of %v = %v, %v, %v", want, back, err, err2)
		}
	}
	for _, word := range []string{"", "Active", "active\n", "gone"} {
		if s, err := tenant.ParseStatus(word); err == nil || s != 0 {
			t.Errorf("ParseStatus(%q) = %v, %v, want an error", word, s, err)
		}
	}
	for _, s := range []tenant.Status{0, 4, 255} {
		if _, err := s.MarshalText(); err == nil || s.Validate() == nil || !strings.HasPrefix(s.String(), "Status(") {
			t.Errorf("Status %d is taken for valid: %v", uint8(s), s)
		}
	}
}

func TestTenant_CheckStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[tenant.Status]error{tenant.Active: nil, tenant.Suspended: tenant.ErrSuspended, tenant.Deleting: tenant.ErrDeleting} {
		err := tenant.Tenant{ID: "a", Status: status}.CheckStatus()
		if !errors.Is(err, want) {
			t.Errorf("%v: CheckStatus = %v, want %v", status, err, want)
		}
		var se *tenant.StatusError
		if want != nil && (!errors.As(err, &se) || se.Tenant != "a" || se.Status != status || !strings.Contains(err.Error(), `"a"`)) {
			t.Errorf("%v: CheckStatus = %#v", status, err)
		}
	}
	if err := (tenant.Tenant{ID: "a"}).CheckStatus(); err == nil || errors.Is(err, tenant.ErrSuspended) {
		t.Errorf("the zero status: CheckStatus = %v, want refused by no named status", err)
	}
}

func TestLimits_Validate(t *testing.T) {
	t.Parallel()
	for _, l := range []tenant.Limits{{}, {Rate: -1, MaxConns: -1, MaxQueue: -1}, {Rate: 0.5, Burst: 1, MaxConns: 1, MaxQueue: 1}} {
		if err := l.Validate(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	for field, l := range map[string]tenant.Limits{
		"Rate":     {Rate: -2},
		"Rate ":    {Rate: math.NaN()},
		"Rate  ":   {Rate: math.Inf(1)},
		"Rate   ":  {Rate: -0.5},
		"Burst":    {Burst: -1},
		"Burst ":   {Burst: math.MaxInt},
		"MaxConns": {MaxConns: -2},
		"MaxQueue": {MaxQueue: -2},
	} {
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), "Limits."+strings.TrimSpace(field)) {
			t.Errorf("%+v: Validate = %v, want an error that names %s", l, err, field)
		}
	}
	all := tenant.Limits{Rate: -2, Burst: -1, MaxConns: -2, MaxQueue: -2}.Validate()
	if n := strings.Count(all.Error(), "Limits."); n != 4 {
		t.Errorf("Validate names %d fields, want all 4: %v", n, all)
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in     tenant.Tenant
		shards []string
		schema string
	}{
		"shared":          {tenant.Tenant{ID: "a", Model: tenant.SharedTable}, nil, ""},
		"schema":          {tenant.Tenant{ID: "a", Model: tenant.OwnSchema}, nil, "t_a"},
		"schema by hand":  {tenant.Tenant{ID: "a", Model: tenant.OwnSchema, Placement: tenant.Placement{Schema: "acme_2024"}}, nil, "acme_2024"},
		"database":        {tenant.Tenant{ID: "a", Model: tenant.OwnDatabase}, []string{"a-s1"}, ""},
		"database, three": {tenant.Tenant{ID: "a", Model: tenant.OwnDatabase, Placement: tenant.Placement{Shards: []string{"x2", "x1", "x3"}}}, []string{"x2", "x1", "x3"}, ""},
		"empty is none":   {tenant.Tenant{ID: "a", Model: tenant.SharedTable, Placement: tenant.Placement{Shards: []string{}}}, nil, ""},
	} {
		got, err := tenant.Place(c.in)
		if err != nil || !slices.Equal(got.Placement.Shards, c.shards) || got.Placement.Schema != c.schema || got.Status != tenant.Active {
			t.Errorf("%s: Place = %+v, %v", name, got, err)
		}
		if (got.Placement.Shards == nil) != (c.shards == nil) {
			t.Errorf("%s: Shards = %#v, want nil to mean the default shards", name, got.Placement.Shards)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: Validate after Place = %v", name, err)
		}
		again, err := tenant.Place(got)
		if err != nil || !slices.Equal(again.Placement.Shards, got.Placement.Shards) || again.Placement.Schema != got.Placement.Schema {
			t.Errorf("%s: Place is not idempotent: %+v, %v", name, again, err)
		}
	}

	in := tenant.Tenant{ID: "a", Model: tenant.OwnDatabase, Status: tenant.Suspended, Placement: tenant.Placement{Shards: []string{"x1"}}}
	got, err := tenant.Place(in)
	if err != nil || got.Status != tenant.Suspended {
		t.Fatalf("Place = %+v, %v, want the status kept", got, err)
	}
	got.Placement.Shards[0] = "y"
	if in.Placement.Shards[0] != "x1" {
		t.Error("Place shares memory with its argument")
	}
}

func TestPlace_Refused(t *testing.T) {
	t.Parallel()
	place := func(m tenant.Model, p tenant.Placement) tenant.Tenant {
		return tenant.Tenant{ID: "a", Model: m, Placement: p}
	}
	for name, c := range map[string]struct {
		in   tenant.Tenant
		want string
	}{
		"no id":                {tenant.Tenant{Model: tenant.SharedTable}, "invalid tenant id"},
		"ill-formed id":        {tenant.Tenant{ID: "A", Model: tenant.OwnSchema}, "invalid tenant id"},
		"ill-formed id, shard": {tenant.Tenant{ID: "../x", Model: tenant.OwnDatabase}, "invalid tenant id"},
		"no model":             {tenant.Tenant{ID: "a"}, "isolation model"},
		"unknown model":        {tenant.Tenant{ID: "a", Model: 9}, "isolation model"},
		"unknown status":       {tenant.Tenant{ID: "a", Model: tenant.SharedTable, Status: 9}, "status"},
		"limits":               {tenant.Tenant{ID: "a", Model: tenant.SharedTable, Limits: tenant.Limits{Burst: -1}}, "Limits.Burst"},
		"shared with schema":   {place(tenant.SharedTable, tenant.Placement{Schema: "x"}), "Placement.Schema"},
		"shared with shards":   {place(tenant.SharedTable, tenant.Placement{Shards: []string{"s1"}}), "Placement.Shards"},
		"schema with shards":   {place(tenant.OwnSchema, tenant.Placement{Shards: []string{"s1"}}), "Placement.Shards"},
		"database with schema": {place(tenant.OwnDatabase, tenant.Placement{Schema: "x"}), "Placement.Schema"},
		"ill-formed shard":     {place(tenant.OwnDatabase, tenant.Placement{Shards: []string{"a/b"}}), "invalid shard"},
		"long shard":           {place(tenant.OwnDatabase, tenant.Placement{Shards: []string{strings.Repeat("x", 65)}}), "invalid shard"},
		"empty shard":          {place(tenant.OwnDatabase, tenant.Placement{Shards: []string{""}}), "invalid shard"},
		"shard twice":          {place(tenant.OwnDatabase, tenant.Placement{Shards: []string{"x", "y", "x"}}), "listed twice"},
	} {
		got, err := tenant.Place(c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) || got.ID != "" {
			t.Errorf("%s: Place = %+v, %v, want an error with %q", name, got, err, c.want)
		}
	}
	if err := (tenant.Tenant{ID: "a", Model: tenant.OwnSchema, Status: tenant.Active}).Validate(); err == nil {
		t.Error("Validate takes a schema tenant without a schema for complete")
	}
	if err := (tenant.Tenant{ID: "a", Model: tenant.OwnDatabase, Status: tenant.Active}).Validate(); err == nil {
		t.Error("Validate takes a database tenant without shards for complete")
	}
}

func TestPlace_T46_SchemaIsAnIdentifier(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`x"; DROP SCHEMA public; --`, "x`", "x'y", "a.b", "a b", "A", "é", "x\x00", "1a", "-a", "$a", "x;", "../x", strings.Repeat("x", 64),
		"mysql", "sys", "information_schema", "performance_schema", "public", "pg_catalog", "pg_temp_1", "tdal_control", "main", "sqlite_x",
	} {
		_, err := tenant.Place(tenant.Tenant{ID: "a", Model: tenant.OwnSchema, Placement: tenant.Placement{Schema: schema}})
		if err == nil || !strings.Contains(err.Error(), "Placement.Schema") {
			t.Errorf("Place with the schema %q = %v, want it refused", schema, err)
		}
	}
}
