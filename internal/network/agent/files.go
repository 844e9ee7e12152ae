package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"croft.dev/croft/internal/declare/atomicfile"
)

// files accesses the files below a directory, which is / except in tests.
type files string

// Files implements Machine.
func (f files) Files(paths []string) (map[string]string, error) {
	all := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(f.resolvePath(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[path] = string(content)
	}
	return all, nil
}

// writeFile replaces a file, and creates its directory.
func (f files) writeFile(path, content string) error {
	path = f.resolvePath(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // plugins read it
		return err
	}
	return atomicfile.Write(path, []byte(content), 0o644)
}

func (f files) resolvePath(path string) string { return filepath.Join(string(f), path) }
