package machine

import (
	"os"
	"testing"
)

func TestParseCPU(t *testing.T) {
	for _, test := range []struct {
		name, stat string
		seconds    float64
		bad        bool
	}{
		{name: "a process", stat: "42 (croft) S 1 42 42 0 -1 4194560 5 0 0 0 250 50 0 0 20 0 12 0 100 1000 200", seconds: 3},
		{name: "a name with spaces and parentheses", stat: "42 (a) 7 (b) S 1 42 42 0 -1 4194560 5 0 0 0 100 25 0 0 20", seconds: 1.25},
		{name: "a truncated file", stat: "42 (croft) S 1", bad: true},
		{name: "an empty file", bad: true},
		{name: "a word instead of a time", stat: "42 (croft) S 1 42 42 0 -1 4194560 5 0 0 0 much 50 0", bad: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			seconds, err := parseCPU(test.stat)
			if seconds != test.seconds || (err != nil) != test.bad {
				t.Errorf("%g s: %v", seconds, err)
			}
		})
	}
	if _, err := ReadCPU(os.Getpid()); err != nil {
		t.Error(err)
	}
}
