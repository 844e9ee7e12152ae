package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"croft.dev/croft/sandbox/internal/supervisor"
)

// progress prints progress messages, with colour on terminals. It ignores write errors: a
// message that cannot be printed does not stop the command.
type progress struct {
	out        io.Writer
	green, off string
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" {
		p.green, p.off = "\x1b[32m", "\x1b[0m"
	}
	return p
}

func (p *progress) printLine(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

func (p *progress) printReady(s supervisor.Status) {
	_, _ = fmt.Fprintf(p.out, "%-24s %sready%s  %5.1f s\n", s.Name, p.green, p.off, s.Took.Seconds())
}
