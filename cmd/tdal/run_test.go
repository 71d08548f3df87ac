package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun_ExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", "tenant: [items]\n")
	for _, c := range []struct {
		name, in string
		args     []string
		code     int
		stderr   string // a part of it; empty for none at all
	}{
		{"Scoped", "SELECT 1", []string{"sql", "check", "--schema", good}, 0, ""},
		{"Rewritten", "SELECT id FROM items", []string{"sql", "check", "--schema", good}, 0, ""},
		{"Refused", "SELECT 1; DROP TABLE items; SELECT 2", []string{"sql", "check", "--schema", good}, 1, ""},
		{"Nothing", " ; ", []string{"sql", "check", "--schema", good}, 0, "no statements"},
		{"NoSchema", "SELECT 1", []string{"sql", "check"}, 2, "--schema FILE is missing"},
		{"NoSchemaFile", "SELECT 1", []string{"sql", "check", "--schema", filepath.Join(dir, "absent.yaml")}, 2, "absent.yaml"},
		{"NoFile", "SELECT 1", []string{"sql", "check", "--schema", good, filepath.Join(dir, "absent.sql")}, 2, "absent.sql"},
		{"Dialect", "SELECT 1", []string{"sql", "check", "--schema", good, "--dialect", "oracle"}, 2, "mysql, sqlite or postgres"},
		{"Flag", "SELECT 1", []string{"sql", "check", "--schema", good, "--colour"}, 2, "--colour"},
		{"Verb", "", []string{"sql", "chek"}, 2, "chek"},
		{"Noun", "", []string{"sqll"}, 2, "sqll"},
		{"UnknownField", "SELECT 1", []string{"sql", "check", "--schema", file("field.yaml", "tenant: [items]\ntennant: [x]\n")}, 2, "tennant"},
		{"NoTenantList", "SELECT 1", []string{"sql", "check", "--schema", file("global.yaml", "global: [catalog]\n")}, 2, "tenant: no table is listed"},
		{"EmptyTenantList", "SELECT 1", []string{"sql", "check", "--schema", file("none.yaml", "tenant: []\n")}, 2, "tenant: no table is listed"},
		{"EmptySchema", "SELECT 1", []string{"sql", "check", "--schema", file("empty.yaml", "")}, 2, "tenant: no table is listed"},
		{"Twice", "SELECT 1", []string{"sql", "check", "--schema", file("twice.yaml", "tenant: [items, items]\n")}, 2, "listed twice"},
		{"TwiceClasses", "SELECT 1", []string{"sql", "check", "--schema", file("classes.yaml", "tenant: [items]\nglobal: [Items]\n")}, 2, "listed twice"},
		{"FieldTwice", "SELECT 1", []string{"sql", "check", "--schema", file("fields.yaml", "tenant: [items]\ntenant: [x]\n")}, 2, "tenant"},
		{"NotYAML", "SELECT 1", []string{"sql", "check", "--schema", file("not.yaml", "tenant: [items")}, 2, "not.yaml"},
		{"NotAList", "SELECT 1", []string{"sql", "check", "--schema", file("text.yaml", "tenant: items\n")}, 2, "text.yaml"},
		{"TwoDocuments", "SELECT 1", []string{"sql", "check", "--schema", file("two.yaml", "tenant: [items]\n---\ntenant: [x]\n")}, 2, "more than one"},
		{"Column", "SELECT 1", []string{"sql", "check", "--schema", file("column.yaml", "tenant_column: a b\ntenant: [items]\n")}, 2, "a b"},
		{"TableName", "SELECT 1", []string{"sql", "check", "--schema", file("name.yaml", "tenant: [other.items]\n")}, 2, "other.items"},
		{"ShardKey", "SELECT 1", []string{"sql", "check", "--schema", file("key.yaml", "tenant: [items]\nshard_keys: {x: y}\n")}, 2, "shard_keys"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			if code := run(c.args, strings.NewReader(c.in), &out, &errs); code != c.code {
				t.Fatalf("run(%q) = %d, want %d; stderr %q", c.args, code, c.code, errs.String())
			}
			if c.stderr == "" && errs.Len() > 0 || !strings.Contains(errs.String(), c.stderr) {
				t.Errorf("run(%q): stderr %q, want %q in it", c.args, errs.String(), c.stderr)
			}
			if c.code == exitUsage && out.Len() > 0 {
				t.Errorf("run(%q) prints %q", c.args, out.String())
			}
		})
	}
}
