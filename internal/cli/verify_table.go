package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
)

const (
	// noTerminal is the width of a table in a file or a pipe.
	noTerminal = 240
	// shortest is the length of a message on the narrowest terminal.
	shortest = 24
)

// printResults shows a line for each wall or, with each, for each attack. The reasons why
// attacks were not run and the failures follow, next to the summary.
func (a *app) printResults(results []verify.Result, each bool, took time.Duration) {
	if each {
		a.printEachAttack(results)
	} else {
		printWalls(a.out, results)
	}
	printNotTried(a.out, results)
	counts, tried := map[verify.Outcome]int{}, 0
	for _, r := range results {
		counts[r.Result]++
		tried += r.CountRequests()
		if !r.IsGood() {
			printSafely(a.out, "\n%s/%s: %s\n  tried: %s\n  %s\n", r.Wall, r.Name, paintOutcome(r.Result, string(r.Result)), r.Summary, r.Message)
		}
	}
	printSafely(a.out, "\n%s\n", summarizeResults(counts, len(results), tried, took))
}

// printWalls shows for each wall how many attacks were stopped and how many mirrors were
// allowed.
func printWalls(w io.Writer, results []verify.Result) {
	var rows [][]string
	for _, wall := range listWalls(results) {
		held, tried, notTried := map[attack.Kind]int{}, map[attack.Kind]int{}, 0
		for _, r := range results {
			switch {
			case r.Wall != wall:
				continue
			case r.Result == verify.NotTried:
				notTried++
				continue
			case r.Result == verify.Held:
				held[r.Kind]++
			}
			tried[r.Kind]++
		}
		row := []string{wall}
		for _, kind := range []attack.Kind{attack.Breach, attack.Mirror} {
			row = append(row, fmt.Sprintf("%d of %d", held[kind], tried[kind]))
		}
		rows = append(rows, append(row, dashIfEmpty(strings.TrimPrefix(strconv.Itoa(notTried), "0"))))
	}
	printTable(w, []string{"WALL", "ATTACKS STOPPED", "MIRRORS ALLOWED", "NOT TRIED"}, rows)
}

// printNotTried shows each reason why attacks were not run, with their number.
func printNotTried(w io.Writer, results []verify.Result) {
	attacks := map[string][]verify.Result{}
	var reasons []string
	for _, r := range results {
		if r.Result != verify.NotTried {
			continue
		}
		if attacks[r.Message] == nil {
			reasons = append(reasons, r.Message)
		}
		attacks[r.Message] = append(attacks[r.Message], r)
	}
	for i, reason := range reasons {
		if i == 0 {
			printSafely(w, "\n")
		}
		names := listFirstNames(attacks[reason], func(r verify.Result) string { return r.Wall + "/" + r.Name })
		printSafely(w, "%s: %s: %s\n", paintOutcome(verify.NotTried, string(verify.NotTried)), reason, strings.Join(names, ", "))
	}
}

// printEachAttack shows a line for each attack.
func (a *app) printEachAttack(results []verify.Result) {
	header := []string{"WALL", "KIND", "NAME", "RESULT", "STOPPED BY", "MESSAGE"}
	const resultColumn = 3
	rows := [][]string{header}
	for _, r := range results {
		rows = append(rows, []string{r.Wall, string(r.Kind), escapeLine(r.Name), string(r.Result), escapeLine(dashIfEmpty(r.StoppedBy)), escapeLine(formatMessageCell(r))})
	}
	widths := make([]int, len(header))
	for _, row := range rows {
		for i := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	left := getWidth(a.out)
	for _, w := range widths[:len(widths)-1] {
		left -= w + gap
	}
	for n, row := range rows {
		var line strings.Builder
		for i, text := range row[:len(row)-1] {
			padded := text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+gap)
			if n > 0 && i == resultColumn {
				padded = string(paintOutcome(verify.Outcome(text), padded))
			}
			line.WriteString(padded)
		}
		line.WriteString(truncateText(row[len(row)-1], max(left, shortest)))
		printSafely(a.out, "%s\n", paintedText(strings.TrimRight(line.String(), " ")))
	}
}

// gap is the number of spaces between columns.
const gap = 3

func summarizeResults(counts map[verify.Outcome]int, results, tried int, took time.Duration) string {
	line := fmt.Sprintf("%d of %d held", counts[verify.Held], results)
	for _, other := range verify.Outcomes[1:] {
		if counts[other] > 0 {
			line += fmt.Sprintf(", %d %s", counts[other], other)
		}
	}
	return line + fmt.Sprintf("; %d requests and connections tried in %.1f s", tried, took.Seconds())
}

// formatMessageCell returns a message for a table: on one line, and without the API server's prefix
// about the policy, which has its own column. Summaries of several variants are unchanged.
func formatMessageCell(r verify.Result) string {
	message := r.Message
	for _, prefix := range []string{" denied request: ", "is forbidden: ", "Validation failed for "} {
		if _, after, ok := strings.Cut(message, prefix); ok && r.Variants < 2 {
			message = after
			break
		}
	}
	return strings.Join(strings.Fields(message), " ")
}

func truncateText(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

// getWidth returns the maximum width of output to w.
func getWidth(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return noTerminal
}

// paintOutcome colours a result's text on a terminal.
func paintOutcome(o verify.Outcome, text string) paintedText {
	switch o {
	case verify.Held:
		return green(text)
	case verify.Breached:
		return red(text)
	default:
		return yellow(text)
	}
}

func dashIfEmpty(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// listWalls returns the walls of results, in order.
func listWalls(results []verify.Result) []string {
	var walls []string
	for _, r := range results {
		if !slices.Contains(walls, r.Wall) {
			walls = append(walls, r.Wall)
		}
	}
	return walls
}
