package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

func Example() {
	main()
	// Output: acme has a sword
}

// The README shows main as it is.
func TestMain_IsShort(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "main.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "main" {
			lines = fset.Position(fn.Body.Rbrace).Line - fset.Position(fn.Body.Lbrace).Line - 1
		}
	}
	if lines == 0 || lines > 15 {
		t.Errorf("main has %d lines, want 1 to 15", lines)
	}
}
