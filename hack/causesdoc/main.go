// Command causesdoc writes the part of docs/troubleshooting.md that is generated:
// the catalogue of causes. It reads the document from the first argument and writes
// it to the second. `make generate` calls it.
package main

import (
	"fmt"
	"strings"

	"croft.dev/croft/hack/internal/document"
	"croft.dev/croft/internal/catalog"
)

func main() { document.Main(generate) }

func generate() (string, error) {
	var b strings.Builder
	by := map[catalog.Means]int{}
	for _, row := range catalog.Rows() {
		by[row.Produced.Means]++
	}
	fmt.Fprintf(&b, "\n# The catalogue of causes\n\n%d causes. Tests bring %d of them about with the real Karpenter, scheduler and API server, and %d by the texts\nthat those write who would; %d cannot be brought about.\n",
		len(catalog.Rows()), by[catalog.BySandbox], by[catalog.ByRecord], by[catalog.ByNobody])
	for _, chapter := range catalog.Chapters() {
		fmt.Fprintf(&b, "\n## %s\n", chapter.Title)
		for _, row := range chapter.Rows {
			section(&b, row)
		}
	}
	return b.String(), nil
}

func section(b *strings.Builder, row catalog.Row) {
	fmt.Fprintf(b, "\n### %s\n\nSeen in: %s.\n", row.ID, row.Sees)
	if len(row.Texts) > 0 {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.Join(row.Texts, "\n"))
	}
	who := "the team"
	if row.Who == catalog.Platform {
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
