// Command e2e lists the end-to-end tests, for `make e2e`: the tests that call sandbox.EndToEnd.
// Each line has the directory of a test and its name.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := listTests("internal"); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

func listTests(root string) error {
	files := token.NewFileSet()
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			at := findCall(declaration)
			if at == token.NoPos {
				continue
			}
			test, ok := declaration.(*ast.FuncDecl)
			if !ok || test.Recv != nil || !strings.HasPrefix(test.Name.Name, "Test") {
				return fmt.Errorf("%s: call EndToEnd in the function of the test itself: `make e2e` finds the test by this call", files.Position(at))
			}
			fmt.Printf("./%s %s\n", filepath.ToSlash(filepath.Dir(path)), test.Name.Name)
		}
		return nil
	})
}

// findCall returns the position of the first call of EndToEnd, or NoPos.
func findCall(in ast.Node) token.Pos {
	at := token.NoPos
	ast.Inspect(in, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || at != token.NoPos {
			return at == token.NoPos
		}
		switch called := call.Fun.(type) {
		case *ast.SelectorExpr:
			ok = called.Sel.Name == "EndToEnd"
		case *ast.Ident:
			ok = called.Name == "EndToEnd"
		default:
			ok = false
		}
		if ok {
			at = call.Pos()
		}
		return true
	})
	return at
}
