package realnode

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// images is a registry that serves the same image for every name: the test program, with the
// command serve. For names that end in "pause", the command is pause, and "coredns" is the DNS
// server.
type images struct {
	probe, pause, dns v1.Image
	blobs             map[string]func() (io.ReadCloser, error)
}

// newImages reads the programs probe and coredns of a directory.
func newImages(programs string) (*images, error) {
	i := &images{blobs: map[string]func() (io.ReadCloser, error){}}
	for _, image := range []struct {
		to      *v1.Image
		program string
		command []string
	}{{&i.probe, "probe", []string{"serve"}}, {&i.pause, "probe", []string{"pause"}}, {&i.dns, "coredns", nil}} {
		content, err := os.ReadFile(filepath.Join(programs, image.program))
		if err != nil {
			return nil, err
		}
		if *image.to, err = i.addImage(content, image.program, image.command); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func (i *images) addImage(content []byte, program string, command []string) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return buildLayer(program, content), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file.OS, file.Architecture = "linux", architecture
	file.Config = v1.Config{Entrypoint: []string{"/" + program}, Cmd: command, User: "65532:65532"}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, err
	}
	config, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	digest, err := layer.Digest()
	if err != nil {
		return nil, err
	}
	i.blobs[config.String()] = func() (io.ReadCloser, error) {
		raw, err := image.RawConfigFile()
		return io.NopCloser(bytes.NewReader(raw)), err
	}
	i.blobs[digest.String()] = layer.Compressed
	return image, nil
}

// buildLayer returns a file system with the program and a directory for temporary files.
func buildLayer(name string, program []byte) io.ReadCloser {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))},
	} {
		_ = w.WriteHeader(h) // writing into memory does not fail
		if h.Name == name {
			_, _ = w.Write(program)
		}
	}
	_ = w.Close()
	return io.NopCloser(&b)
}

// Paths of the distribution specification: https://github.com/opencontainers/distribution-spec
var registryPath = regexp.MustCompile(`^/v2/(.+)/(manifests|blobs)/([^/]+)$`)

func (i *images) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v2/" {
		return
	}
	m := registryPath.FindStringSubmatch(r.URL.Path)
	if m == nil {
		http.NotFound(w, r)
		return
	}
	if err := i.serveImage(w, r, m[1], m[2], m[3]); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (i *images) serveImage(w http.ResponseWriter, r *http.Request, name, kind, reference string) error {
	if kind == "blobs" {
		open, ok := i.blobs[reference]
		if !ok {
			http.NotFound(w, r)
			return nil
		}
		blob, err := open()
		if err != nil {
			return err
		}
		defer blob.Close()
		content, err := io.ReadAll(blob)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		if r.Method != http.MethodHead {
			_, err = w.Write(content)
		}
		return err
	}
	image := i.probe
	switch path.Base(name) {
	case "pause":
		image = i.pause
	case "coredns":
		image = i.dns
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return err
	}
	media, err := image.MediaType()
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", string(media))
	w.Header().Set("Docker-Content-Digest", digest.String())
	w.Header().Set("Content-Length", fmt.Sprint(len(manifest)))
	if r.Method != http.MethodHead {
		_, err = w.Write(manifest)
	}
	return err
}
