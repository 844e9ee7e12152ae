package cli

import (
	"fmt"

	"croft.dev/croft/internal/prove/verify"
)

// buildVerifySuites returns a suite for each wall and a case for each attack. An attack that another
// wall stopped is a failure too: it does not test its own wall.
func buildVerifySuites(results []verify.Result) []junitSuite {
	var suites []junitSuite
	for _, wall := range listWalls(results) {
		suite := junitSuite{Name: wall}
		for _, r := range results {
			if r.Wall != wall {
				continue
			}
			r.Summary, r.Message = escapeControls(r.Summary), escapeControls(r.Message)
			c := junitCase{Name: escapeLine(r.Name), Class: "croft." + wall + "." + string(r.Kind)}
			switch r.Result {
			case verify.Held:
			case verify.NotTried:
				c.Skipped = &junitSkipped{Message: r.Message}
			default:
				c.Failure = &junitFailure{
					Type: string(r.Result), Message: r.Summary + ": " + string(r.Result),
					Text: fmt.Sprintf("should be stopped by: %s\n%s", escapeControls(dashIfEmpty(r.StoppedBy)), r.Message),
				}
			}
			suite.Cases = append(suite.Cases, c)
		}
		suites = append(suites, suite)
	}
	return suites
}
