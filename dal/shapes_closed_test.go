package dal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	osexec "os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
)

// TestShapes_ListIsClosed demands that docs/shapes.md names every method, field and type of gorm's by which a statement can be asked for or changed, and
// nothing that gorm lacks: a new version of gorm that brings a new one fails here until somebody has said what happens to it.
func TestShapes_ListIsClosed(t *testing.T) {
	t.Parallel()
	text := page(t, shapesPage)
	for heading, have := range map[string][]string{
		"*gorm.DB":                    methods[*gorm.DB](),
		"*gorm.Association":           methods[*gorm.Association](),
		"gorm.G":                      slices.Concat(methods[gorm.Interface[Knight]](), methods[gorm.ChainInterface[Knight]](), methods[gorm.SetUpdateOnlyInterface[Knight]](), methods[gorm.SetCreateOrUpdateInterface[Knight]]()),
		"gorm.JoinBuilder":            methods[gorm.JoinBuilder](),
		"gorm.PreloadBuilder":         methods[gorm.PreloadBuilder](),
		"gorm.Migrator":               methods[gorm.Migrator](),
		"gorm.Session":                fields[gorm.Session](),
		"gorm.Config":                 fields[gorm.Config](),
		"gorm.Statement, fields":      fields[gorm.Statement](),
		"gorm.Statement, methods":     declaredMethods(t, "gorm.io/gorm", "Statement"),
		"package gorm":                exported(t, "gorm.io/gorm"),
		"package gorm.io/gorm/clause": exported(t, "gorm.io/gorm/clause"),
	} {
		named := entries(text, heading)
		if len(named) == 0 {
			t.Errorf("docs/shapes.md has no list under %q", heading)
		}
		for _, name := range have {
			if !slices.Contains(named, name) {
				t.Errorf("docs/shapes.md does not name %s of %s", name, heading)
			}
		}
		for _, name := range named {
			if !slices.Contains(have, name) {
				t.Errorf("docs/shapes.md names %s of %s, which gorm lacks", name, heading)
			}
		}
	}
}

func methods[T any]() []string {
	of := reflect.TypeFor[T]()
	var names []string
	for i := range of.NumMethod() {
		names = append(names, of.Method(i).Name)
	}
	return names
}

func fields[T any]() []string {
	of := reflect.TypeFor[T]()
	var names []string
	for i := range of.NumField() {
		if f := of.Field(i); f.IsExported() {
			names = append(names, f.Name)
		}
	}
	return names
}

var quoted = regexp.MustCompile("`([A-Za-z]+)`")

// entries returns the names in the first column of the table under a heading.
func entries(text, heading string) []string {
	_, rest, ok := strings.Cut(text, "\n### "+heading+"\n")
	if !ok {
		return nil
	}
	rest, _, _ = strings.Cut(rest, "\n#")
	var names []string
	for _, line := range strings.Split(rest, "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 2 {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[0], -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// declarations returns the top-level declarations of a package's files, its tests left out.
func declarations(tb testing.TB, path string) []ast.Decl {
	tb.Helper()
	dir, err := osexec.Command("go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		tb.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no source of %s in %s: %v", path, dir, err)
	}
	var decls []ast.Decl
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			tb.Fatal(err)
		}
		decls = append(decls, f.Decls...)
	}
	return decls
}

// exported returns the exported types and functions of a package.
func exported(tb testing.TB, path string) []string {
	tb.Helper()
	var names []string
	for _, decl := range declarations(tb, path) {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}

// declaredMethods returns the exported methods that a type declares itself, without those of what it embeds.
func declaredMethods(tb testing.TB, path, of string) []string {
	tb.Helper()
	var names []string
	for _, decl := range declarations(tb, path) {
		d, ok := decl.(*ast.FuncDecl)
		if !ok || d.Recv == nil || !d.Name.IsExported() {
			continue
		}
		receiver := d.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if name, ok := receiver.(*ast.Ident); ok && name.Name == of {
			names = append(names, d.Name.Name)
		}
	}
	return names
}
