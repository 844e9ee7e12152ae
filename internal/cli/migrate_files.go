package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// writeFiles writes files into a directory. If one exists with other content, it may have
// been edited, and none is written, unless force is set.
func writeFiles(directory string, files map[string]func(io.Writer) error, force bool) error {
	contents := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var content bytes.Buffer
		if err := files[name](&content); err != nil {
			return err
		}
		contents[name] = content.Bytes()
		path := filepath.Join(directory, name)
		there, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return explainFileError(path, err)
		case !force && !bytes.Equal(there, contents[name]):
			return fmt.Errorf("%s: the file exists with other content, so nothing was written: move it, or overwrite it with --force", path)
		}
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return toFailure(explainFileError(directory, err))
	}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		if err := replaceFile(filepath.Join(directory, name), contents[name]); err != nil {
			return toFailure(err)
		}
	}
	return nil
}

// replaceFile writes a file atomically: a reader gets the old content or the new one, also
// after a crash.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return explainFileError(path, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return explainFileError(path, err)
	}
	return nil
}
