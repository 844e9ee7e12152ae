package gitserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hub is a server with one repository, and a clone of it.
type hub struct {
	*testing.T
	server  *Server
	address string
	clone   string
	pushes  int
}

func newHub(t *testing.T) *hub {
	dir := t.TempDir()
	server, err := NewServer(filepath.Join(dir, "git"), filepath.Join(dir, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{T: t, server: server, clone: filepath.Join(dir, "clone")}
	server.pushed = func() { h.pushes++ }
	listening := httptest.NewServer(server.NewHandler())
	t.Cleanup(listening.Close)
	h.address = listening.URL
	if err := CreateRepository(server.repositories, "deploy"); err != nil {
		t.Fatal(err)
	}
	h.runGit("clone", "--quiet", h.address+RepositoryPath("deploy"), h.clone)
	return h
}

func (h *hub) runGit(args ...string) {
	h.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		h.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// pushFile commits a file and pushes it.
func (h *hub) pushFile(name string, content []byte) {
	h.Helper()
	path := filepath.Join(h.clone, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
		h.Fatal(err)
	}
	h.runGit("-C", h.clone, "add", "-A")
	h.runGit("-C", h.clone, "-c", "user.name=team", "-c", "user.email=team@example.org", "commit", "--quiet", "-m", "deploy")
	h.runGit("-C", h.clone, "push", "--quiet", "origin", "HEAD:main")
}

func (h *hub) getPath(path string) (int, []byte) {
	h.Helper()
	answer, err := http.Get(h.address + path)
	if err != nil {
		h.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		h.Fatal(err)
	}
	return answer.StatusCode, body
}

// readFiles returns the contents of an artifact's files by name.
func readFiles(t *testing.T, content []byte) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
			t.Errorf("%s is of type %q, which Flux does not read", header.Name, header.Typeflag)
		}
		if text, err := io.ReadAll(archive); err != nil {
			t.Fatal(err)
		} else if header.Typeflag == tar.TypeReg {
			all[header.Name] = string(text)
		}
	}
}

// TestPush pushes with git, and fetches the artifact as kustomize-controller does. It is of
// the first tier: it runs without a cluster. TestFlux covers the same with a cluster.
func TestPush(t *testing.T) {
	h := newHub(t)
	sources := &Sources{server: h.server, address: h.address}
	if _, err := sources.buildArtifact("deploy", "main", ""); err == nil || !strings.Contains(err.Error(), `couldn't find remote ref "refs/heads/main"`) {
		t.Errorf("before the first push: %v", err)
	}
	h.pushFile("deploy/a.yaml", []byte("kind: ConfigMap\n"))
	first, err := sources.buildArtifact("deploy", "main", "")
	if err != nil {
		t.Fatal(err)
	}
	// Larger than what git sends in one piece (http.postBuffer), and not to be compressed.
	large := make([]byte, 3<<20)
	for i := range large {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		large[i] = sum[0]
	}
	h.pushFile("large", large)
	second, err := sources.buildArtifact("deploy", "main", "")
	if err != nil {
		t.Fatal(err)
	}
	if h.pushes < 2 { // git sends one more request before a large push
		t.Errorf("the server reported %d pushes, want 2 at least", h.pushes)
	}
	for _, a := range []*artifact{first, second} {
		status, content := h.getPath(strings.TrimPrefix(a.URL, h.address))
		if status != http.StatusOK || fmt.Sprintf("sha256:%x", sha256.Sum256(content)) != a.Digest || int64(len(content)) != a.Size {
			t.Errorf("%s: status %d, %d bytes; want %+v", a.URL, status, len(content), a)
		}
		got := readFiles(t, content)
		if got["deploy/a.yaml"] != "kind: ConfigMap\n" || (a == second) != (got["large"] == string(large)) {
			t.Errorf("%s contains %d files", a.Revision, len(got))
		}
	}
	h.runGit("-C", h.clone, "tag", "v1", "HEAD~1")
	h.runGit("-C", h.clone, "push", "--quiet", "origin", "v1")
	if tagged, err := sources.buildArtifact("deploy", "main", "v1"); err != nil || tagged.Digest != first.Digest || !strings.HasPrefix(tagged.Revision, "v1@sha1:") {
		t.Errorf("the tag is %+v, %v; want %+v", tagged, err, first)
	}
}

// TestInvalidPathsAndNames requests paths that are no repositories, and creates repositories
// with invalid names. It is of the first tier.
func TestInvalidPathsAndNames(t *testing.T) {
	h := newHub(t)
	for _, path := range []string{"/other.git/info/refs?service=git-receive-pack", "/deploy/info/refs", "/..%2f.git/info/refs", "/.git/config", "/artifacts/..%2f..%2fgit/deploy.git/HEAD"} {
		if status, body := h.getPath(path); status != http.StatusNotFound && status != http.StatusBadRequest {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
	for _, name := range []string{"", "..", "a/b", "-a", "A"} {
		if err := CreateRepository(h.server.repositories, name); err == nil {
			t.Errorf("repository %q was created", name)
		}
	}
	if err := CreateRepository(h.server.repositories, "deploy"); err != nil {
		t.Errorf("again: %v", err)
	}
	sources := &Sources{server: h.server, address: h.address}
	for _, of := range [][]string{{"../git/deploy", "main", ""}, {"deploy", "--upload-pack=x", ""}, {"none", "main", ""}} {
		if a, err := sources.buildArtifact(of[0], of[1], of[2]); err == nil {
			t.Errorf("%q is %+v", of, a)
		}
	}
}
