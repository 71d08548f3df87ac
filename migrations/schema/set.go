package schema

import (
	"embed"
	"io/fs"

	"github.com/tenantdal/tenantdal/dal"
)

// Set is a list of schema files with a history of its own. The files lie in folders, "sqlite", "mysql" and, for clusters on PostgreSQL, "postgres", which
// hold the same numbers and names; see the package's documentation for their shape.
type Set struct {
	// Name is [a-z][a-z0-9_]{0,30}. It names the set's history in every database, so it never changes. "control" is taken.
	Name string
	// FS holds the folders "sqlite" and "mysql", and "postgres" if it is needed.
	FS fs.FS
}

//go:embed sql
var embedded embed.FS

// Saga returns the set of the tables that package saga works with, named "saga".
func Saga() Set { return builtin("saga") }

// Capacity returns the set of the table that a declared table with a capacity needs in every place, named "capacity"; see [dal.Table.Capacity].
func Capacity() Set { return builtin("capacity") }

// Board returns the set of the tables that package dal/board works with, named "board".
func Board() Set { return builtin("board") }

// controlName is the name of the control database's own set.
const controlName = "control"

// controlSet returns the set of the control database's tables.
func controlSet() Set { return builtin(controlName) }

func builtin(name string) Set {
	sub, err := fs.Sub(embedded, "sql/"+name)
	if err != nil {
		panic(err) // the path is a constant and valid
	}
	return Set{Name: name, FS: sub}
}

// loadedSet is a set that was linted, with the files of one dialect. It is immutable.
type loadedSet struct {
	Set
	files []file // sorted by version, never empty
	fs    fs.FS  // the dialect's folder
}

// target is the version of the last file.
func (s loadedSet) target() int64 { return s.files[len(s.files)-1].version }

// file returns the file with that version, or nil.
func (s loadedSet) file(version int64) *file {
	for i := range s.files {
		if s.files[i].version == version {
			return &s.files[i]
		}
	}
	return nil
}

// load lints the sets and reads the files of one dialect.
func load(sets []Set, d dal.Dialect) ([]loadedSet, error) {
	if err := lintAll(sets); err != nil {
		return nil, err
	}
	loaded := make([]loadedSet, len(sets))
	for i, set := range sets {
		l, err := read(set, d)
		if err != nil {
			return nil, err
		}
		loaded[i] = l
	}
	return loaded, nil
}
