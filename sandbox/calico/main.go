// Command calico-selector evaluates selectors as Calico does. Its argument is a JSON array of
// sets of labels. It reads selectors, one JSON string each. For each it writes one line: a JSON
// array that has true for each set that the selector selects, or null if Calico refuses the
// selector.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/projectcalico/calico/libcalico-go/lib/selector"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "calico-selector:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("name one argument: a JSON array of sets of labels")
	}
	var samples []map[string]string
	if err := json.Unmarshal([]byte(args[0]), &samples); err != nil {
		return err
	}
	selectors, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var text string
		if err := selectors.Decode(&text); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(evaluateSelector(text, samples)); err != nil {
			return err
		}
	}
}

// evaluateSelector reports for each sample whether the selector selects it; nil if the selector is
// invalid.
func evaluateSelector(text string, samples []map[string]string) []bool {
	s, err := selector.Parse(text)
	if err != nil {
		return nil
	}
	all := make([]bool, len(samples))
	for i, labels := range samples {
		all[i] = s.Evaluate(labels)
	}
	return all
}
