// Package gitserver is the Git server of a sandbox with Flux. It accepts pushes by HTTP, and
// replaces source-controller for its repositories: it serves the revision that a GitRepository
// names as an artifact, and writes the artifact to the object's status, for
// kustomize-controller to apply. A sandbox does not run source-controller itself, whose modules
// cannot be built everywhere.
package gitserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// largestPush is the maximum size of a push, which is buffered in memory.
const largestPush = 64 << 20

// repositoryName matches the names of the sandbox's repositories.
var repositoryName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// RepositoryPath returns the path of a repository below the server's address.
func RepositoryPath(name string) string { return "/" + name + ".git" }

// CreateRepository creates an empty bare repository with the branch main below a directory, and
// leaves an existing one unchanged.
func CreateRepository(dir, name string) error {
	if !repositoryName.MatchString(name) {
		return fmt.Errorf("repository %q: write a name of lower-case letters, digits and hyphens, such as deploy", name)
	}
	path := filepath.Join(dir, name+".git")
	if _, err := os.Stat(filepath.Join(path, "HEAD")); err == nil {
		return nil
	}
	if _, err := runGit("init", "--quiet", "--bare", "--initial-branch=main", path); err != nil {
		return err
	}
	// http-backend accepts anonymous pushes only if the repository enables them.
	_, err := runGit("--git-dir", path, "config", "http.receivepack", "true")
	return err
}

// Server serves the repositories below a directory, and their artifacts.
type Server struct {
	repositories, artifacts string
	// pushed is called after each push.
	pushed  func()
	backend *cgi.Handler
}

// NewServer returns a server of the existing repositories below a directory, and of the files
// below artifacts.
func NewServer(repositories, artifacts string) (*Server, error) {
	binary, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	return &Server{repositories: repositories, artifacts: artifacts, pushed: func() {}, backend: &cgi.Handler{
		Path: binary, Args: []string{"http-backend"}, InheritEnv: []string{"HOME", "TMPDIR"},
		Env: []string{"GIT_PROJECT_ROOT=" + repositories, "GIT_HTTP_EXPORT_ALL=1"},
	}}, nil
}

// artifactPath is the path of artifacts below the server's address.
const artifactPath = "/artifacts/"

// NewHandler returns the handler of requests by git and kustomize-controller, and of /readyz.
func (s *Server) NewHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("GET "+artifactPath, http.StripPrefix(artifactPath, http.FileServer(http.Dir(s.artifacts))))
	mux.HandleFunc("/{repository}/{rest...}", s.serveGit)
	return mux
}

func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	name, isGit := strings.CutSuffix(r.PathValue("repository"), ".git")
	if !isGit || !repositoryName.MatchString(name) {
		http.NotFound(w, r)
		return
	}
	if r.ContentLength < 0 {
		if err := bufferBody(r); err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
	}
	s.backend.ServeHTTP(w, r)
	if r.Method == http.MethodPost && r.PathValue("rest") == "git-receive-pack" {
		s.pushed()
	}
}

// bufferBody reads a request of unknown length into memory: CGI needs the length beforehand.
func bufferBody(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, largestPush+1))
	if err != nil {
		return err
	}
	if len(body) > largestPush {
		return errors.New("a push to a sandbox may have at most 64 MiB")
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return nil
}

// runGit runs git and returns its output without surrounding white space.
func runGit(args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("git", args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
