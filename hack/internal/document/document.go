// Package document rewrites the generated part of documents that also have a hand-written part.
package document

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// marker begins the generated part, which extends to the end.
const marker = "<!-- What follows is generated from the code by `make generate`. -->\n"

// These enclose a generated part in the middle of a page. The first names the type of the API that the
// part describes.
const (
	sectionBegins = "<!-- What follows is generated from the fields of %s by `make generate`. -->\n"
	sectionEnds   = "<!-- The generated part ends here. -->\n"
)

// ReplaceSection returns a page with another generated part about a type of the API.
func ReplaceSection(page []byte, name, text string) ([]byte, error) {
	begins := fmt.Sprintf(sectionBegins, name)
	before, rest, found := bytes.Cut(page, []byte(begins))
	if !found {
		return nil, fmt.Errorf("there is no line %q", strings.TrimSpace(begins))
	}
	_, after, found := bytes.Cut(rest, []byte(sectionEnds))
	if !found {
		return nil, fmt.Errorf("no line %q follows %q", strings.TrimSpace(sectionEnds), strings.TrimSpace(begins))
	}
	return slices.Concat(before, []byte(begins+"\n"+text+"\n"+sectionEnds), after), nil
}

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
