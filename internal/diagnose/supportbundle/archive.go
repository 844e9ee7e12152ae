package supportbundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"
)

// Write writes the bundle as a compressed archive. All files are in one directory and have
// the modification time at.
func (b *Bundle) Write(w io.Writer, directory string, at time.Time) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, f := range b.Files {
		header := &tar.Header{
			Name: directory + "/" + f.Name, Mode: 0o644, Size: int64(len(f.Content)), ModTime: at, Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if _, err := archive.Write(f.Content); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}
