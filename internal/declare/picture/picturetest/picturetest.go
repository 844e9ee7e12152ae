// Package picturetest compares pictures with the files of the documentation.
package picturetest

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// ExpectFile expects a file to have a picture. With update, it writes the file first.
func ExpectFile(t *testing.T, svg, path string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(svg), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if svg != string(want) {
		t.Errorf("%s is stale: run `go test -update` in this package, and look at it", path)
	}
	ExpectWellFormed(t, svg)
}

// ExpectWellFormed expects a picture to be XML.
func ExpectWellFormed(t *testing.T, svg string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v: %s", err, svg)
		}
	}
}
