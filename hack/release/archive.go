package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// changed is the modification time of every file in an archive: the earliest time that a zip
// can represent. With the build time, the archive would differ after each build.
var changed = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// file is a file of an archive.
type file struct {
	name string // with slashes
	mode fs.FileMode
	from string
}

// pack writes the archive for a platform: a zip for Windows, where other tools may be missing,
// and a compressed tar for the others.
func pack(to string, a archive, version, common, binary string) (archive, error) {
	files, err := filesBelow(common)
	if err != nil {
		return a, err
	}
	files = append(files, file{name: a.Binary(), mode: 0o755, from: binary})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })

	a.Name = fmt.Sprintf("croft_%s_%s_%s", version, a.OS, a.Arch)
	write := writeTar
	if a.OS == windows {
		a.Name, write = a.Name+".zip", writeZip
	} else {
		a.Name += ".tar.gz"
	}
	path := filepath.Join(to, a.Name)
	out, err := os.Create(path)
	if err != nil {
		return a, err
	}
	defer out.Close()
	if err := write(out, files); err != nil {
		return a, err
	}
	if err := out.Close(); err != nil {
		return a, err
	}
	a.SHA256, err = checksum(path)
	return a, err
}

// filesBelow returns the files in a directory, readable for all, and executable for all if the
// owner may execute them: the umask of the build must not affect a release.
func filesBelow(dir string) ([]file, error) {
	if dir == "" {
		return nil, nil
	}
	var all []file
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		name, err := filepath.Rel(dir, path)
		all = append(all, file{name: filepath.ToSlash(name), mode: mode, from: path})
		return err
	})
	return all, err
}

// writeTar writes regular files only: krew refuses archives with links.
func writeTar(to io.Writer, files []file) error {
	// The gzip header has neither name nor time.
	compressed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(content)), ModTime: changed}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func writeZip(to io.Writer, files []file) error {
	w := zip.NewWriter(to)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: changed}
		header.SetMode(f.mode)
		part, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := part.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}
