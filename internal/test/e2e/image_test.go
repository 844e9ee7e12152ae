package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/test/sandbox"
)

// TestImage fails if the image depends on anything but its sources; if it contains more than
// one binary, certificates and time zones; if it runs as root; or if it differs from its bill
// of materials.
func TestImage(t *testing.T) {
	sandbox.Thorough(t) // it builds croft twice, which takes minutes
	t.Parallel()
	path, err := sandbox.FindTool("croft-image.tar")
	if err != nil {
		t.Fatal(err)
	}
	first := readImage(t, path)
	for _, architecture := range []string{"amd64", "arm64"} {
		t.Run(architecture, func(t *testing.T) { first.expectImage(t, architecture, first.readManifest(t, architecture)) })
	}
	t.Run("runs", func(t *testing.T) {
		out := runCommand(t, exec.CommandContext(t.Context(), extractBinary(t), "version"), "").expectExit(t, 0)
		if out.stdout == "" {
			t.Errorf("%s", out)
		}
	})
	t.Run("bill of materials", func(t *testing.T) { expectBillOfMaterials(t, path+".spdx.json", extractBinary(t)) })

	t.Run("again", func(t *testing.T) { expectReproducible(t, first) })
}

// expectReproducible builds the image again, later and in another directory with an empty build
// cache, and fails if it differs from the first.
func expectReproducible(t *testing.T, first image) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	copyTree(t, elsewhere)
	cmd := exec.CommandContext(t.Context(), "make", "-C", elsewhere, "image", "IMAGE_ARCHITECTURES="+runtime.GOARCH)
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(t.TempDir(), "cache"))
	runCommand(t, cmd, "").expectExit(t, 0)
	second := readImage(t, filepath.Join(elsewhere, "bin", "croft-image.tar"))
	if a, b := first.readManifest(t, runtime.GOARCH).digest, second.readManifest(t, runtime.GOARCH).digest; a != b {
		t.Errorf("the image is %s, and %s the second time", a, b)
	}
}

// image is the content of an OCI layout that `make image` has written as an archive.
type image map[string][]byte

// imageManifest is the manifest of the image for one architecture.
type imageManifest struct {
	digest string
	Config struct{ Digest string }
	Layers []struct{ Digest string }
}

func readImage(t testing.TB, path string) image {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return readArchive(t, bytes.NewReader(content))
}

// readArchive returns the regular files of an archive.
func readArchive(t testing.TB, from io.Reader) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if header.Uid != 0 || header.ModTime.Unix() != 0 {
			t.Errorf("%s is of %d, at %s", header.Name, header.Uid, header.ModTime)
		}
		if all[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// readBlob returns the blob with a digest, and checks the digest.
func (i image) readBlob(t testing.TB, digest string, into any) []byte {
	t.Helper()
	content := i["blobs/"+strings.ReplaceAll(digest, ":", "/")]
	if sum := sha256.Sum256(content); "sha256:"+hex.EncodeToString(sum[:]) != digest {
		t.Fatalf("%s is not in the archive, or is another", digest)
	}
	if into != nil {
		if err := json.Unmarshal(content, into); err != nil {
			t.Fatal(err)
		}
	}
	return content
}

func (i image) readManifest(t testing.TB, architecture string) imageManifest {
	t.Helper()
	type index struct {
		Manifests []struct {
			Digest   string
			Platform struct{ Architecture string }
		}
	}
	var outer, inner index
	if err := json.Unmarshal(i["index.json"], &outer); err != nil || len(outer.Manifests) != 1 {
		t.Fatalf("the archive has %d images: %v", len(outer.Manifests), err)
	}
	i.readBlob(t, outer.Manifests[0].Digest, &inner)
	for _, of := range inner.Manifests {
		if of.Platform.Architecture == architecture {
			m := imageManifest{digest: of.Digest}
			i.readBlob(t, of.Digest, &m)
			return m
		}
	}
	t.Fatalf("there is no image for %s", architecture)
	return imageManifest{}
}

// readLayer returns the files of a layer.
func (i image) readLayer(t testing.TB, digest string) map[string][]byte {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(i.readBlob(t, digest, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return readArchive(t, compressed)
}

// expectImage fails unless the image has exactly the expected content.
func (i image) expectImage(t testing.TB, architecture string, m imageManifest) {
	t.Helper()
	var config struct {
		Architecture string
		Config       struct {
			User       string
			Entrypoint []string
		}
	}
	i.readBlob(t, m.Config.Digest, &config)
	if config.Architecture != architecture || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/croft"}) {
		t.Errorf("the image for %s is configured as %+v", architecture, config)
	}
	all := map[string][]byte{}
	for _, layer := range m.Layers {
		for name, content := range i.readLayer(t, layer.Digest) {
			all[name] = content
		}
	}
	for _, name := range []string{"croft", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/share/zoneinfo/Europe/Berlin"} {
		if len(all[name]) == 0 {
			t.Errorf("the image for %s has no %s", architecture, name)
		}
	}
	if !x509.NewCertPool().AppendCertsFromPEM(all["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("no program can read the certificates")
	}
	for name := range all {
		if name != "croft" && !strings.HasPrefix(name, "etc/") && !strings.HasPrefix(name, "usr/share/zoneinfo/") {
			t.Errorf("the image has %s", name)
		}
	}
}

// extractBinary extracts the croft binary of the image to a file, and returns its path.
func extractBinary(t testing.TB) string {
	t.Helper()
	archive, err := sandbox.FindTool("croft-image.tar")
	if err != nil {
		t.Fatal(err)
	}
	i := readImage(t, archive)
	layers := i.readManifest(t, runtime.GOARCH).Layers
	path := filepath.Join(t.TempDir(), "croft")
	if err := os.WriteFile(path, i.readLayer(t, layers[len(layers)-1].Digest)["croft"], 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return path
}

// expectBillOfMaterials compares a bill of materials with the modules that `go version -m` lists
// for the binary.
func expectBillOfMaterials(t *testing.T, path, binary string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		SpdxVersion string
		Packages    []struct {
			SPDXID, Name, VersionInfo string
		}
		Relationships []struct{ RelatedSpdxElement string }
	}
	if err := json.Unmarshal(content, &bill); err != nil {
		t.Fatal(err)
	}
	if bill.SpdxVersion != "SPDX-2.3" || len(bill.Relationships) != len(bill.Packages) {
		t.Errorf("%s with %d packages and %d relationships", bill.SpdxVersion, len(bill.Packages), len(bill.Relationships))
	}
	has := map[string]bool{}
	for _, p := range bill.Packages {
		has[p.Name+" "+p.VersionInfo] = true
	}
	out := runCommand(t, exec.CommandContext(t.Context(), "go", "version", "-m", binary), "").expectExit(t, 0).stdout
	modules := 0
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[0] == "dep" {
			modules++
			if !has[fields[1]+" "+fields[2]] {
				t.Errorf("the bill lacks %s %s", fields[1], fields[2])
			}
		}
	}
	if modules < 20 {
		t.Errorf("the binary has only %d modules", modules)
	}
}

// copyTree copies the repository's sources.
func copyTree(t testing.TB, to string) {
	t.Helper()
	listed := runCommand(t, exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "").expectExit(t, 0)
	for name := range strings.SplitSeq(strings.TrimRight(listed.stdout, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, but the deletion is not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
