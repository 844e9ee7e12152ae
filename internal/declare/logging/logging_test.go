package logging_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"croft.dev/croft/internal/declare/logging"
)

// TestLevels expects each level to be parsed and formatted, and one line with the allowed
// values for bad input.
func TestLevels(t *testing.T) {
	for _, test := range []struct{ text, want, refused string }{
		{text: "info", want: "info"},
		{text: "warn,tenant=debug,interfaces=error", want: "warn,interfaces=error,tenant=debug"},
		{text: "tenant=debug", want: "info,tenant=debug"},
		{text: "tenant=debug,error", want: "error,tenant=debug"},
		{text: "loud", refused: `"loud" is no level: the levels are debug, info, warn and error`},
		{text: "INFO", refused: `"INFO" is no level`},
		{text: "", refused: `"" is no level`},
		{text: "info,", refused: `"" is no level`},
		{text: "info,tenant=", refused: `"" is no level`},
		{text: "info,tenant=loud", refused: `"loud" is no level`},
		{text: "=debug", refused: "names no subsystem"},
	} {
		t.Run(test.text, func(t *testing.T) {
			var l logging.Levels
			err := l.Set(test.text)
			if test.refused == "" {
				if err != nil || l.String() != test.want {
					t.Errorf("%s, %v; want %s", &l, err, test.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.refused) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want %s", err, test.refused)
			}
			if l.String() != "info" {
				t.Errorf("the levels are %s after bad input", &l)
			}
		})
	}
}

func TestFormats(t *testing.T) {
	var f logging.Format
	if err := f.Set("yaml"); err == nil || !strings.Contains(err.Error(), "json and text") || f.String() != "json" {
		t.Errorf("%s, %v", &f, err)
	}
	if err := f.Set("text"); err != nil || f.String() != "text" {
		t.Errorf("%s, %v", &f, err)
	}
}

// TestSubsystems logs as controllers, named loggers and log/slog do, and expects the lines
// that the level of their subsystem allows.
func TestSubsystems(t *testing.T) {
	for _, test := range []struct {
		levels    string
		verbosity uint
		want      string
	}{
		{levels: "info", want: "info pod-info rights-info slog-info failure"},
		{levels: "debug", want: "debug info pod-debug pod-info rights-info slog-info failure"},
		{levels: "error", want: "failure"},
		{levels: "info,pod=debug", want: "info pod-debug pod-info rights-info slog-info failure"},
		{levels: "error,rights=info", want: "rights-info failure"},
		{levels: "info,agent=error", want: "info pod-info rights-info failure"},
		{levels: "error", verbosity: 6, want: "debug info request pod-debug pod-info rights-info slog-info failure"},
	} {
		t.Run(test.levels, func(t *testing.T) {
			var b bytes.Buffer
			o := logging.Options{Format: "text", Verbosity: test.verbosity}
			if err := o.Levels.Set(test.levels); err != nil {
				t.Fatal(err)
			}
			h := o.NewHandler(&b)
			l := logr.FromSlogHandler(h)
			pod, rights := l.WithValues("controller", "pod"), l.WithName("rights").WithName("check")
			l.V(1).Info("debug")
			l.Info("info")
			l.V(6).Info("request")
			pod.V(1).Info("pod-debug")
			pod.Info("pod-info")
			rights.Info("rights-info")
			slog.New(h).With("logger", "agent").Info("slog-info")
			l.Error(errors.New("no"), "failure")
			var got []string
			for line := range strings.Lines(b.String()) {
				_, rest, _ := strings.Cut(line, " msg=")
				got = append(got, strings.Fields(rest)[0])
				if strings.Contains(line, "DEBUG+") || strings.Contains(line, "DEBUG-") {
					t.Errorf("a level without a name: %s", line)
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("logged %s\nwant %s", strings.Join(got, " "), test.want)
			}
		})
	}
}

// TestJSON expects values that JSON cannot encode to be logged by their String method.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	l := logr.FromSlogHandler((&logging.Options{}).NewHandler(&b))
	l.Info("started", "source", unencodable{}, "after", time.Second)
	if line := b.String(); !strings.HasPrefix(line, "{") || !strings.Contains(line, `"source":"kind source"`) {
		t.Error(line)
	}
}

type unencodable struct{ Func func() }

func (unencodable) String() string { return "kind source" }
