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

	"croft.dev/croft/internal/declare/atomicfile"
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
		path := filepath.Join(directory, name)
		if err := atomicfile.Write(path, contents[name], 0o644); err != nil {
			return toFailure(explainFileError(path, err))
		}
	}
	return nil
}
