// Command names counts how functions are named: how many names have one lower-case word, and how
// many begin with a verb. CONTRIBUTING.md has the targets.
//
//	go run ./hack/names            # the sum
//	go run ./hack/names -packages  # each package, too
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

//go:embed verbs.txt
var verbList string

// count is the numbers of functions.
type count struct{ all, single, verbFirst int }

func main() {
	packages := flag.Bool("packages", false, "list packages")
	flag.Parse()
	if err := printCounts(*packages); err != nil {
		fmt.Fprintln(os.Stderr, "names:", err)
		os.Exit(1)
	}
}

func printCounts(packages bool) error {
	verbs := map[string]bool{}
	for _, verb := range strings.Fields(verbList) {
		verbs[verb] = true
	}
	var total count
	counts := map[string]*count{}
	var order []string
	for _, root := range []string{"api", "cmd", "internal", "hack", "sandbox"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") ||
				strings.HasSuffix(path, "_test.go") || strings.Contains(path, "zz_generated") {
				return err
			}
			names, err := listFunctions(path)
			if err != nil {
				return err
			}
			dir := filepath.Dir(path)
			if counts[dir] == nil {
				counts[dir], order = &count{}, append(order, dir)
			}
			for _, name := range names {
				for _, c := range []*count{&total, counts[dir]} {
					c.add(name, verbs)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if packages {
		for _, dir := range order {
			fmt.Printf("%-44s %s\n", dir, counts[dir])
		}
	}
	fmt.Println(&total)
	return nil
}

// listFunctions returns the names of a file's functions and methods.
func listFunctions(path string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.Name != "main" && f.Name.Name != "init" {
			names = append(names, f.Name.Name)
		}
	}
	return names, nil
}

func (c *count) add(name string, verbs map[string]bool) {
	c.all++
	if strings.ToLower(name) == name {
		c.single++
	}
	first := name
	if i := strings.IndexFunc(name[1:], unicode.IsUpper); i >= 0 {
		first = name[:i+1]
	}
	if verbs[strings.ToLower(first)] {
		c.verbFirst++
	}
}

func (c *count) String() string {
	percent := func(n int) float64 { return 100 * float64(n) / float64(max(c.all, 1)) }
	return fmt.Sprintf("%5d functions, one lower-case word: %4.1f %%, verb first: %4.1f %%", c.all, percent(c.single), percent(c.verbFirst))
}
