package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
)

// progress shows the progress of a command: on a terminal as one line that changes,
// elsewhere as a line from time to time.
type progress struct {
	w        io.Writer
	terminal bool
	last     string
	// shown is the last final line.
	shown   string
	printed time.Time
	hinted  bool
}

// between is the interval between lines on an output that is no terminal.
const between = 5 * time.Second

func newProgress(w io.Writer) *progress {
	file, ok := w.(*os.File)
	return &progress{w: w, terminal: ok && isatty.IsTerminal(file.Fd())}
}

func (p *progress) update(format string, args ...any) {
	line := inline(strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(format, args...)), "\n", "; "))
	if line == p.last {
		return
	}
	p.last = line
	switch {
	case p.terminal:
		say(p.w, "\r\x1b[K%s", shorten(line))
	case time.Since(p.printed) >= between:
		p.printed, p.shown = time.Now(), line
		say(p.w, "%s\n", line)
	}
}

// hint prints a line, once.
func (p *progress) hint(line string) {
	if p.hinted {
		return
	}
	p.hinted = true
	if p.terminal {
		say(p.w, "\r\x1b[K")
	}
	say(p.w, "%s\n", line)
}

// done prints the last line permanently, unless it was printed already.
func (p *progress) done() {
	if p.last == "" || p.last == p.shown {
		return
	}
	p.shown = p.last
	if p.terminal {
		say(p.w, "\r\x1b[K")
	}
	say(p.w, "%s\n", p.last)
}

// shorten shortens a changing line, so that it stays on one row of any usual terminal.
func shorten(line string) string {
	const width = 118
	if runes := []rune(line); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return line
}
