// Command addonsdoc writes the generated part of docs/reference/addons.md: the catalogue of add-ons. It
// reads the document from the first argument and writes it to the second. `make generate` calls
// it.
package main

import (
	"fmt"
	"strings"

	"croft.dev/croft/hack/internal/document"
	"croft.dev/croft/internal/declare/addons"
)

func main() { document.Main(generate) }

func generate() (string, error) {
	var b strings.Builder
	all := addons.All()
	n := 0
	for i := range all {
		for _, names := range all[i].Names {
			n += len(names.Names)
		}
	}
	fmt.Fprintf(&b, "\n# The catalogue of add-ons\n\n%d add-ons, %d annotations. \"Others\" are annotations of the same prefixes that are not listed.\n", len(all), n)
	for i := range all {
		writeSection(&b, &all[i])
	}
	b.WriteString("\n## Labels\n\n| add-on | label | on | why it is refused |\n|---|---|---|---|\n")
	for _, l := range addons.Labels(addons.Every) {
		fmt.Fprintf(&b, "| [%s](%s) | `%s` | %s | %s |\n", l.Addon, l.Source, l.Key, formatKinds(l.Kinds), l.Harm)
	}
	return b.String(), nil
}

func writeSection(b *strings.Builder, a *addons.Addon) {
	fmt.Fprintf(b, "\n## %s\n\n[Documentation](%s). Read on %s.", a.Name, a.Source, formatKinds(a.Kinds))
	if len(a.Prefixes) > 0 {
		fmt.Fprintf(b, " Prefixes: `%s/`.", strings.Join(a.Prefixes, "/`, `"))
	}
	b.WriteString("\n\n| class | annotations | why |\n|---|---|---|\n")
	for _, n := range a.Names {
		class := string(n.Class)
		if len(n.Values) > 0 {
			class += ": " + strings.Join(n.Values, ", ")
		}
		why := n.Harm
		if n.Source != "" {
			why += " (" + n.Source + ")"
		}
		fmt.Fprintf(b, "| %s | `%s` | %s |\n", class, strings.Join(n.Names, "`, `"), why)
	}
	rest := a.DefaultClass
	if rest == "" {
		rest = addons.Unknown
	}
	if len(a.Prefixes) > 0 {
		fmt.Fprintf(b, "| %s | others | |\n", rest)
	}
}

func formatKinds(on addons.Kinds) string {
	var all []string
	for _, g := range addons.Groups {
		if g.Kinds&on != 0 {
			all = append(all, g.Name)
		}
	}
	return strings.Join(all, "; ")
}
