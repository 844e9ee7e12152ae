// Package document rewrites the generated part of documents that also have a hand-written part.
package document

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// marker begins the generated part, which extends to the end.
const marker = "<!-- What follows is generated from the code by `make generate`. -->\n"

// Main is the main function of a command that reads a document from its first argument and
// writes it to its second, with a new generated part.
func Main(generate func() (string, error)) {
	if err := rewriteDocument(os.Args[1:], generate); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

func rewriteDocument(args []string, generate func() (string, error)) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: %s FROM TO", filepath.Base(os.Args[0]))
	}
	document, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	written, _, found := bytes.Cut(document, []byte(marker))
	if !found {
		return fmt.Errorf("%s has no line %q", args[0], strings.TrimSpace(marker))
	}
	generated, err := generate()
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], []byte(string(written)+marker+generated), 0o600)
}
