package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fatih/color"
	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
)

// evil is text that a tenant may write into an event, a message or a name. It clears the
// screen, hides the rest, also with the 8-bit form of the sequence, returns to the line's
// start, reverses text, and contains invalid UTF-8 and invisible characters.
const evil = "a\x1b[2Jb\x1b[8mc\u009b31md\re\u202ef\u2066g\x07h\x7fi\xffj\u2028k\u200bl\U000e0041m"

// TestTerminalOutputIsEscaped prints evil in every output that contains text from other
// sources, with colours on, as on a terminal.
func TestTerminalOutputIsEscaped(t *testing.T) {
	noColor := color.NoColor
	color.NoColor = false
	t.Cleanup(func() { color.NoColor = noColor })
	var out bytes.Buffer
	a := &app{out: &out, err: &out}
	story := why.Story{Target: why.Target{Kind: "pod", Namespace: "shop", Name: evil}, Summary: evil}
	story.First = &catalog.Finding{Cause: evil, Fix: evil, Run: evil, Link: evil}
	story.Steps = []why.Step{{Link: "pod", Object: evil, Observation: evil, Verdict: why.Bad}}
	checks := []doctor.Result{{Check: "others", Summary: evil, Unreadable: []string{evil}, Findings: []doctor.Finding{{Object: evil, Message: evil, Fix: evil, Run: evil}}}}
	tried := []verify.Result{
		{Wall: "nodes", Kind: attack.Breach, Name: evil, Result: verify.Breached, Summary: evil, Message: evil},
		{Wall: "nodes", Kind: attack.Breach, Name: "b", Result: verify.NotTried, Message: evil},
	}
	for name, show := range map[string]func(){
		"text":     func() { printSafely(&out, "%s, %v, %q\n", evil, failuref("%s", evil), evil) },
		"table":    func() { printTable(&out, []string{"A", "B"}, [][]string{{evil, "b"}, {"a", evil}}) },
		"progress": func() { p := newProgress(&out); p.update("%s", evil); p.finish(); p.printOnce(evil) },
		"why":      func() { printStory(&out, story) },
		"doctor":   func() { a.printCheckup(checks) },
		"verify":   func() { a.printResults(tried, true, 0); a.printResults(tried, false, 0) },
		"junit":    func() { _ = printJUnit(&out, "croft verify", buildVerifySuites(tried), 0) },
		"json":     func() { _ = formatJSON.print(&out, map[string]string{evil: evil}) },
		"yaml":     func() { _ = formatYAML.print(&out, map[string]string{evil: evil}) },
	} {
		t.Run(name, func(t *testing.T) {
			out.Reset()
			show()
			text := out.String()
			for _, own := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m", "\x1b[0;22;0;0;0m", "\x1b[22m", "\x1b[0;0m"} {
				text = strings.ReplaceAll(text, own, "") // croft's own colours
			}
			for i, r := range text {
				raw := r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == '\u202e' || r == '\u2066' || r == '\u2028' || r == '\u200b' || r == '\U000e0041'
				if raw || r == '\uFFFD' && text[i] == 0xff {
					t.Fatalf("%U is printed raw: %q", r, out.String())
				}
			}
			if !strings.Contains(text, "[2Jb") {
				t.Errorf("the text itself is lost: %q", text)
			}
		})
	}
	out.Reset()
	printTable(&out, []string{"NAME"}, [][]string{{"one\nforged   line"}})
	if lines := strings.Count(out.String(), "\n"); lines != 2 {
		t.Errorf("a name with a line break in it makes %d lines of 2: %q", lines, out.String())
	}
	out.Reset()
	_ = formatJSON.print(&out, corev1.Event{Message: evil})
	var back corev1.Event
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Message != strings.ToValidUTF8(evil, "\uFFFD") {
		t.Errorf("data is changed: %v: %q", err, back.Message)
	}
}
