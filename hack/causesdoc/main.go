// Command causesdoc writes the part of docs/troubleshooting.md that is generated:
// the catalogue of causes. It reads the document from the first argument and writes
// it to the second. `make generate` calls it.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"croft.dev/croft/internal/cause"
)

// marker begins the generated part, which goes on to the end.
const marker = "<!-- What follows is generated from the code by `make generate`. -->\n"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "causesdoc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: causesdoc FROM TO")
	}
	document, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	written, _, found := bytes.Cut(document, []byte(marker))
	if !found {
		return fmt.Errorf("%s has no line %q", args[0], strings.TrimSpace(marker))
	}
	return os.WriteFile(args[1], []byte(string(written)+marker+generate()), 0o600)
}

func generate() string {
	var b strings.Builder
	by := map[cause.Means]int{}
	for _, row := range cause.Rows() {
		by[row.Produced.Means]++
	}
	fmt.Fprintf(&b, "\n# The catalogue of causes\n\n%d causes. Tests bring %d of them about with the real Karpenter, scheduler and API server, and %d by the texts\nthat those write who would; %d cannot be brought about.\n",
		len(cause.Rows()), by[cause.BySandbox], by[cause.ByRecord], by[cause.ByNobody])
	for _, chapter := range cause.Chapters() {
		fmt.Fprintf(&b, "\n## %s\n", chapter.Title)
		for _, row := range chapter.Rows {
			section(&b, row)
		}
	}
	return b.String()
}

func section(b *strings.Builder, row cause.Row) {
	fmt.Fprintf(b, "\n### %s\n\nSeen in: %s.\n", row.ID, row.Sees)
	if len(row.Texts) > 0 {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.Join(row.Texts, "\n"))
	}
	who := "the team"
	if row.Who == cause.Platform {
		who = "a platform admin"
	}
	cure := row.Cure
	if row.Run != "" {
		cure += ": `" + row.Run + "`"
	}
	fmt.Fprintf(b, "\n- **Cause**: %s.\n- **What mends it** (%s): %s. [More](%s).\n- In tests: %s: %s.\n",
		row.Cause, who, cure, link(row.Link), row.Produced.Means, row.Produced.How)
}

// link is from docs/, where the document is.
func link(to string) string {
	return strings.TrimPrefix(to, "docs/")
}
