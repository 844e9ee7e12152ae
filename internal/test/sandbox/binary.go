package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// EnvBinary is the environment variable with a croft-sandbox binary to use instead of the
// repository's.
const EnvBinary = "CROFT_SANDBOX_BIN"

const module = "croft.dev/croft"

// FindBinary returns the path of the croft-sandbox binary.
func FindBinary() (string, error) {
	if path := os.Getenv(EnvBinary); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w: correct it, or unset it and run `make build`", EnvBinary, err)
		}
		return filepath.Abs(path)
	}
	root, err := findRepositoryRoot()
	if err != nil {
		return "", fmt.Errorf("%w: set %s to the path of a croft-sandbox binary", err, EnvBinary)
	}
	path := filepath.Join(root, "bin", "croft-sandbox")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run `make build`, or set %s", err, EnvBinary)
	}
	return path, nil
}

// FindTool returns the path of a program that `make NAME` or `make test` builds in bin.
func FindTool(name string) (string, error) {
	root, err := findRepositoryRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run `make %s`", err, name)
	}
	return path, nil
}

// findRepositoryRoot returns the directory of croft's own go.mod, at or above the working
// directory; go test starts in the directory of the package.
func findRepositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if readModule(filepath.Join(dir, "go.mod")) == module {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the repository of %s", start, module)
		}
	}
}

// readModule returns the module's path in a go.mod, or "" if there is none.
func readModule(goMod string) string {
	f, err := os.Open(goMod)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if path, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(path)
		}
	}
	return ""
}
