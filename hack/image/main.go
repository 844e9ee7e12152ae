// Command image writes croft's container image: one static binary on an empty base, with
// certificate authorities and time zones, for several architectures. `make image` builds the
// binaries and calls it.
//
// Its output depends on its inputs only, and not on the time, the place or the user of the
// build.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user and group that croft runs as; the chart's pods set the same numbers.
const user = "65532:65532"

func main() {
	to := flag.String("o", "croft-image.tar", "the archive to write, an OCI layout; the SBOM gets the same name with the suffix .spdx.json")
	version := flag.String("version", "devel", "the version in the image's labels and in the SBOM")
	zones := flag.String("zoneinfo", "", "the time zones, Go's lib/time/zoneinfo.zip")
	name := flag.String("name", "croft", "the image's name in the archive, with a tag or without")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: image [flags] ARCHITECTURE=BINARY...")
		flag.PrintDefaults()
	}
	flag.Parse()
	digest, err := write(*to, *zones, *name, *version, flag.Args())
	if err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

// write writes the archive and the SBOM, and returns the digest of the image's index.
func write(to, zones, name, version string, binaries []string) (string, error) {
	if len(binaries) == 0 {
		return "", fmt.Errorf("no binary: write ARCHITECTURE=BINARY")
	}
	common, err := baseLayer(zones)
	if err != nil {
		return "", err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var boms []bom
	for _, each := range binaries {
		architecture, path, ok := strings.Cut(each, "=")
		if !ok {
			return "", fmt.Errorf("%q: write ARCHITECTURE=BINARY", each)
		}
		image, err := imageOf(architecture, path, version, common)
		if err != nil {
			return "", fmt.Errorf("%s: %w", each, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
		found, err := bomOf(path)
		if err != nil {
			return "", err
		}
		boms = append(boms, found)
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	if err := writeLayout(to, name, index); err != nil {
		return "", err
	}
	return digest.String(), writeSPDX(to+".spdx.json", version, digest.String(), boms)
}

// imageOf returns the image for one architecture.
func imageOf(architecture, binary, version string, common v1.Layer) (v1.Image, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf([]file{{name: "croft", mode: 0o755, content: content}})
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
		OS: "linux", Architecture: architecture, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: user, Entrypoint: []string{"/croft"}, WorkingDir: "/",
			Env:    []string{"PATH=/", "SSL_CERT_FILE=/" + certificates},
			Labels: map[string]string{"org.opencontainers.image.title": "croft", "org.opencontainers.image.version": version},
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(mutate.ConfigMediaType(image, types.OCIConfigJSON),
		mutate.Addendum{Layer: common, History: v1.History{CreatedBy: "certificate authorities and time zones"}},
		mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "croft"}})
}

// writeLayout writes an OCI layout as an archive.
func writeLayout(to, name string, index v1.ImageIndex) error {
	dir, err := os.MkdirTemp(filepath.Dir(to), ".image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // remains of a killed build are named .image-…
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name,
	})); err != nil {
		return err
	}
	return archive(to, dir)
}
