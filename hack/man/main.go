// Command man writes a man page for each of croft's commands. `make release` calls it.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"croft.dev/croft/internal/cli"
)

func main() {
	version := flag.String("version", "devel", "the version at the foot of each page")
	to := flag.String("o", "man", "the directory to write into")
	flag.Parse()
	if err := writePages(*to, *version); err != nil {
		fmt.Fprintf(os.Stderr, "man: %v\n", err)
		os.Exit(1)
	}
}

// writePages writes the pages. Their date is SOURCE_DATE_EPOCH or, if that is not set, the month of
// the build.
func writePages(to, version string) error {
	if err := os.MkdirAll(to, 0o750); err != nil {
		return err
	}
	root := cli.Tree()
	root.InitDefaultCompletionCmd()
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "croft " + version, Manual: "croft"}, to)
}
