// Package picture writes SVG pictures in croft's style, for readers on light and on dark pages. It does no I/O.
package picture

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode"
)

// Width is the width of all pictures, in their own units.
const Width = 1000

const fonts = "ui-sans-serif, system-ui, Segoe UI, Helvetica, Arial, sans-serif"

// style sets the picture's own background, so that it is readable on light and on dark pages.
const style = `.bg{fill:#fff}.ink{fill:#1f2328}.dim{fill:#59636e}.grid{stroke:#d1d9e0}.known{fill:#d1d9e0}` +
	`@media(prefers-color-scheme:dark){.bg{fill:#0d1117}.ink{fill:#f0f6fc}.dim{fill:#9198a1}` +
	`.grid{stroke:#3d444d}.known{fill:#3d444d}}`

// Picture is the content of a picture. Its zero value is empty.
type Picture struct{ strings.Builder }

// Draw adds elements of SVG. Texts in them must be escaped.
func (p *Picture) Draw(format string, args ...any) { fmt.Fprintf(&p.Builder, format, args...) }

// DrawText adds a text of a class of the style: ink or dim.
func (p *Picture) DrawText(class, anchor string, x float64, y int, text string) {
	p.Draw("<text class=%q text-anchor=%q x=\"%.1f\" y=\"%d\">%s</text>\n", class, anchor, x, y, Escape(text))
}

// DrawHeading adds a heading at the top.
func (p *Picture) DrawHeading(text string) {
	p.Draw("<text class=\"ink\" x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"700\">%s</text>\n", Escape(text))
}

// Finish returns the picture with its title, which browsers and screen readers use.
func (p *Picture) Finish(title string, height int) string {
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family=%q `, Width, height, fonts)
	fmt.Fprintf(&svg, "font-size=\"12\" role=\"img\" aria-labelledby=\"t\"><title id=\"t\">%s</title>\n<style>%s</style>\n", Escape(title), style)
	fmt.Fprintf(&svg, "<rect class=\"bg\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n%s</svg>\n", Width, height, p.String())
	return svg.String()
}

// ShortenMiddle shortens a text in the middle: names differ at their ends.
func ShortenMiddle(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	head := limit / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(limit-head-1):])
}

// Escape escapes XML markup, and removes invisible characters.
func Escape(text string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(visible)); err != nil {
		return "" // a strings.Builder returns no error
	}
	return b.String()
}
