package cli

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"croft.dev/croft/internal/verify"
)

// The elements of a JUnit report, as CI systems read them.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Skipped *junitSkipped `xml:"skipped,omitempty"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// printJUnit writes a suite for each wall and a case for each attack. What was
// stopped by something else than its wall is a failure too: it proves nothing.
func printJUnit(w io.Writer, results []verify.Result, took time.Duration) error {
	report := junitSuites{Name: "croft verify", Time: fmt.Sprintf("%.3f", took.Seconds())}
	for _, wall := range wallsOf(results) {
		suite := junitSuite{Name: wall}
		for _, r := range results {
			if r.Wall != wall {
				continue
			}
			c := junitCase{Name: r.Name, Class: "croft." + wall + "." + string(r.Kind)}
			switch r.Result {
			case verify.Held:
			case verify.NotTried:
				suite.Skipped++
				c.Skipped = &junitSkipped{Message: r.Message}
			default:
				suite.Failures++
				c.Failure = &junitFailure{
					Type: string(r.Result), Message: r.Summary + ": " + string(r.Result),
					Text: fmt.Sprintf("should be stopped by: %s\n%s", dash(r.StoppedBy), r.Message),
				}
			}
			suite.Cases = append(suite.Cases, c)
		}
		suite.Tests = len(suite.Cases)
		report.Tests += suite.Tests
		report.Failures += suite.Failures
		report.Skipped += suite.Skipped
		report.Suites = append(report.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return failed(err)
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(report); err != nil {
		return failed(err)
	}
	say(w, "\n")
	return nil
}
