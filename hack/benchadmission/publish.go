package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// These are the files in the directory of benchmarks.
const (
	textFile = "README.md"
	plotFile = "admission.svg"
	dataFile = "admission.json"
)

// publish writes the text between these lines.
const (
	begins = "<!-- What follows is written by `make bench-admission`. -->"
	ends   = "<!-- What was written by `make bench-admission` ends here. -->"
)

// publish rewrites the files. It keeps the hand-written part of the text.
func (r report) publish(dir string) error {
	path := filepath.Join(dir, textFile)
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := replaceBetween(string(old), r.renderMarkdown())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	plot, err := r.renderPlot()
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	for name, content := range map[string]string{textFile: text, plotFile: plot, dataFile: string(data) + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replaceBetween replaces the text between the two lines.
func replaceBetween(text, generated string) (string, error) {
	head, rest, found := strings.Cut(text, begins)
	_, tail, also := strings.Cut(rest, ends)
	if !found || !also {
		return "", fmt.Errorf("the file lacks the lines %q and %q, between which the results are written", begins, ends)
	}
	return head + begins + "\n\n" + generated + "\n" + ends + tail, nil
}
