package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

func Example() {
	main()
	// Output: acme has a sword
}

func TestMain_IsShortAndInTheReadme(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "main.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var body []string
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "main" {
			text := string(source[fset.Position(fn.Body.Lbrace).Offset+1 : fset.Position(fn.Body.Rbrace).Offset])
			body = strings.Split(strings.Trim(text, "\n"), "\n")
		}
	}
	if len(body) == 0 || len(body) > 15 {
		t.Errorf("main has %d lines, want 1 to 15", len(body))
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range body {
		body[i] = strings.TrimPrefix(line, "\t")
	}
	if !strings.Contains(string(readme), "```go\n"+strings.Join(body, "\n")+"\n```") {
		t.Error("the README's quick start is not main's body")
	}
}
