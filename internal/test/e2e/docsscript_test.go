package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of a document.
type block struct {
	head  string
	lines []string
}

// readBlocks returns the blocks of one language in a document.
func readBlocks(t testing.TB, file, language string) []block {
	t.Helper()
	var all []block
	head, inside, matches := "", false, false
	for line := range strings.Lines(readRepositoryFile(t, file)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
			if matches = inside && line == "```"+language; matches {
				all = append(all, block{head: head})
			}
		case inside && matches:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		case !inside && strings.HasPrefix(line, "#"):
			head = strings.TrimLeft(line, "# ")
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no block of %s", file, language)
	}
	return all
}

// mark precedes a command's output, done follows it, and leftOut replaces a command that is not
// run.
const mark, done, leftOut = "@@@ $ ", "@@@ exit ", "@@@ left out: "

// buildScript returns a shell script that prints and runs each command, and exits at the first
// command with an unexpected status.
func buildScript(t testing.TB, commands []string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("set -o pipefail\nfinished() { rc=$?; echo; echo '" + done + "'$rc; [ $rc -eq $1 ] || exit 1; }\n")
	for _, command := range commands {
		why, status := "", 0
		for _, e := range elsewhere {
			if strings.HasPrefix(command, e.prefix) {
				why = e.why
			}
		}
		for _, f := range fails {
			if strings.HasPrefix(command, f.prefix) {
				status = f.status
			}
		}
		switch {
		case strings.TrimSpace(command) == "" || strings.HasPrefix(command, "#"):
		case why != "":
			fmt.Fprintf(&b, "echo %s\n", quoteText(leftOut+command+": "+why))
		default:
			fmt.Fprintf(&b, "echo %s\n%s\nfinished %d\n", quoteText(mark+command), command, status)
		}
	}
	return b.String()
}

func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var exits = regexp.MustCompile(`(?m)^` + done + `(\d+)$`)

// countFinished counts the commands that exited with the expected status.
func countFinished(stdout string) int {
	n := 0
	for range exits.FindAllString(stdout, -1) {
		n++
	}
	return n
}
