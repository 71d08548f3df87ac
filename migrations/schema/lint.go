package schema

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
)

// reservedPrefix begins the names of the library's own tables.
const reservedPrefix = "tdal_"

// Lint returns nil when the set is one that [Up] applies, else every fault as one error of joined [*LintError]. It performs no I/O but reading the
// files.
//
// Each dialect has a folder (postgres may be left out), and the folders have the same files, named NNNN_name.sql. Each file has exactly one DDL statement below "-- +goose Up" and
// one below "-- +goose Down": CREATE, ALTER, DROP or RENAME of a table, index, view or trigger (a trigger stands between "-- +goose StatementBegin" and
// "-- +goose StatementEnd"). Tables are created IF NOT EXISTS and dropped IF EXISTS, once each, not filled from a query and not copied. No statement
// names another database or a table that begins with tdal_, has parameters, variables or executable comments. A table with tenant_id has no
// AUTO_INCREMENT, serial or identity column: two shards would hand out the same ids.
//
// Whether columns and keys keep tenants apart is judged by [dal.Open], in the database itself.
func Lint(set Set) error {
	if !control.ValidSet(set.Name) {
		return &LintError{Set: set.Name, Problem: "its name is not [a-z][a-z0-9_]{0,30}", Mend: "rename it"}
	}
	if set.FS == nil {
		return &LintError{Set: set.Name, Problem: "it has no files", Mend: "set Set.FS"}
	}
	var errs []error
	names := map[dal.Dialect]map[string]bool{}
	dialects := []dal.Dialect{dal.SQLite, dal.MySQL}
	if _, err := fs.Stat(set.FS, string(dal.Postgres)); err == nil {
		dialects = append(dialects, dal.Postgres)
	}
	for _, d := range dialects {
		files, faults := loadFiles(set, d)
		errs = append(errs, faults...)
		errs = append(errs, lintTables(set, d, files)...)
		names[d] = fileNames(set.FS, d)
	}
	for _, d := range dialects {
		for _, name := range sortedKeys(names[d]) {
			for _, other := range dialects {
				if !names[other][name] && len(names[other]) > 0 {
					errs = append(errs, &LintError{Set: set.Name, File: string(d) + "/" + name, Problem: fmt.Sprintf("there is no %s/%s", other, name), Mend: "write each step for every dialect, under one name"})
				}
			}
		}
	}
	return errors.Join(errs...)
}

// fileNames lists what the folder holds, well-formed or not: a file with a fault of its own is not reported as missing too.
func fileNames(fsys fs.FS, d dal.Dialect) map[string]bool {
	names := map[string]bool{}
	entries, _ := fs.ReadDir(fsys, string(d)) // loadFiles reports the error
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}

// lintTables follows the tables through the steps of a set.
func lintTables(set Set, d dal.Dialect, files []file) (errs []error) {
	tables := map[string]bool{} // by name: whether it has tenant_id
	for _, f := range files {
		fail := func(problem, mend string) {
			errs = append(errs, &LintError{Set: set.Name, File: string(d) + "/" + f.name, Problem: problem, Mend: mend})
		}
		if set.Name != controlName {
			for _, st := range []*statement{f.up, f.down} {
				if strings.HasPrefix(st.name, reservedPrefix) || strings.HasPrefix(st.to, reservedPrefix) {
					fail(fmt.Sprintf("%s: names that begin with %s are the library's", st, reservedPrefix), "choose another name")
				}
			}
		}
		st := f.up
		if st.object != "TABLE" {
			continue
		}
		_, known := tables[st.name]
		if st.auto && (st.tenant || tables[st.name]) {
			fail(fmt.Sprintf("table %s has tenant_id and AUTO_INCREMENT: two shards would hand out the same ids", st.name), "make the id BIGINT NOT NULL; the library fills it in")
		}
		switch st.verb {
		case "CREATE":
			if known {
				fail(fmt.Sprintf("table %s was created before, so IF NOT EXISTS would do nothing", st.name), "alter the table, or drop it first")
			}
			tables[st.name] = st.tenant
		case "DROP":
			delete(tables, st.name)
		case "ALTER":
			tables[st.name] = tables[st.name] || st.tenant
		}
		if st.to != "" {
			tables[st.to] = tables[st.name]
			delete(tables, st.name)
		}
	}
	return errs
}

// lintAll lints each set, and the sets against each other.
func lintAll(sets []Set) error {
	var errs []error
	seen := map[string]bool{}
	creator := map[string]string{} // by table: the set that creates it
	for _, set := range sets {
		if set.Name == controlName {
			errs = append(errs, &LintError{Set: set.Name, Problem: "the name is the control database's", Mend: "rename it"})
			continue
		}
		if seen[set.Name] {
			errs = append(errs, &LintError{Set: set.Name, Problem: "two sets have that name", Mend: "rename one, or pass it once"})
			continue
		}
		seen[set.Name] = true
		if err := Lint(set); err != nil {
			errs = append(errs, err)
			continue
		}
		files, _ := loadFiles(set, dal.SQLite)
		for _, f := range files {
			if f.up.verb != "CREATE" || f.up.object != "TABLE" {
				continue
			}
			if other, taken := creator[f.up.name]; taken && other != set.Name {
				errs = append(errs, &LintError{Set: set.Name, File: f.name, Problem: fmt.Sprintf("table %s is created by set %s as well, so IF NOT EXISTS would do nothing", f.up.name, other), Mend: "create it in one set"})
			}
			creator[f.up.name] = set.Name
		}
	}
	return errors.Join(errs...)
}

// read reads the files of one dialect of a set that was linted.
func read(set Set, d dal.Dialect) (loadedSet, error) {
	files, errs := loadFiles(set, d)
	if err := errors.Join(errs...); err != nil {
		return loadedSet{}, err
	}
	sub, err := fs.Sub(set.FS, string(d))
	if err != nil {
		return loadedSet{}, &LintError{Set: set.Name, File: string(d), Problem: err.Error(), Mend: "make the folder readable"}
	}
	return loadedSet{Set: set, files: files, fs: sub}, nil
}
