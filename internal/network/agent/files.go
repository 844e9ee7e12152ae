package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// writeFile replaces a file atomically: a concurrent reader gets the old or the new content.
// The new file is on disk before it is renamed.
func (f files) writeFile(path, content string) (err error) {
	path = f.resolvePath(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // plugins read it
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".croft-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func (f files) resolvePath(path string) string { return filepath.Join(string(f), path) }
