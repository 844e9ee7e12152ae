package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates is the path of the certificate authorities, as on Debian.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// file is a file in a layer.
type file struct {
	name    string
	mode    int64
	content []byte
}

// epoch is the modification time of every file. With the build time, the image would differ
// after each build.
var epoch = time.Unix(0, 0).UTC()

// baseLayer returns a layer with the files that a Go program reads at run time: certificate
// authorities (those of Mozilla's program as the Go project publishes them), time zones, and
// the name of the user.
func baseLayer(zones string) (v1.Layer, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		// A PEM file cannot express the date until which a root is trusted.
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	files := []file{
		{name: "etc/passwd", mode: 0o644, content: []byte("nonroot:x:65532:65532::/:/sbin/nologin\n")},
		{name: certificates, mode: 0o644, content: roots.Bytes()},
	}
	archive, err := zip.OpenReader(zones)
	if err != nil {
		return nil, err
	}
	defer func() { _ = archive.Close() }() // it was only read
	for _, zone := range archive.File {
		if strings.HasSuffix(zone.Name, "/") {
			continue
		}
		content, err := fs.ReadFile(archive, zone.Name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: path.Join("usr/share/zoneinfo", zone.Name), mode: 0o644, content: content})
	}
	return layerOf(files)
}

// layerOf returns a layer with files and their parent directories.
func layerOf(files []file) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	directories := map[string]bool{".": true}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for _, f := range files {
		var missing []string
		for dir := path.Dir(f.name); !directories[dir]; dir = path.Dir(dir) {
			directories[dir] = true
			missing = append(missing, dir)
		}
		slices.Reverse(missing)
		for _, dir := range missing {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: epoch}); err != nil {
				return nil, err
			}
		}
		if err := add(w, f); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

func add(w *tar.Writer, f file) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: epoch}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(f.content)
	return err
}

// archive writes the files of a directory as a tar archive.
func archive(to, dir string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	// WalkDir visits the files in lexical order.
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return add(w, file{name: filepath.ToSlash(name), mode: 0o644, content: content})
	}); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}
