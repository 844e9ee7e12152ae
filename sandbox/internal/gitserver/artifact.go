package gitserver

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"croft.dev/croft/sandbox/internal/home"
)

// artifact is a revision of a repository as kustomize-controller downloads it.
type artifact struct {
	Path     string `json:"path"`
	URL      string `json:"url"`
	Revision string `json:"revision"`
	Digest   string `json:"digest"`
	Size     int64  `json:"size"`
	// LastUpdateTime is the time at which this revision was stored.
	LastUpdateTime string `json:"lastUpdateTime"`
}

// resolveRef returns the commit of a branch or tag, and the revision as Flux writes it.
func (s *Server) resolveRef(repository, branch, tag string) (commit, revision string, _ error) {
	ref, short := "refs/heads/"+branch, branch
	if tag != "" {
		ref, short = "refs/tags/"+tag, tag
	}
	path := filepath.Join(s.repositories, repository+".git")
	if _, err := os.Stat(path); err != nil {
		return "", "", fmt.Errorf("repository %s not found", repository)
	}
	commit, err := runGit("--git-dir", path, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err != nil {
		return "", "", fmt.Errorf("couldn't find remote ref %q", ref)
	}
	return commit, short + "@sha1:" + commit, nil
}

// storeArtifact writes the files of a commit as an artifact, unless it exists. It archives the
// tree, not the commit, whose header Flux cannot read.
func (s *Server) storeArtifact(repository, commit, revision string) (*artifact, error) {
	name := repository + "/" + commit + ".tar.gz"
	path := filepath.Join(s.artifacts, filepath.FromSlash(name))
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		content, err = s.archiveCommit(repository, commit)
		if err == nil {
			// Requests may read the file at the same time.
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), home.Write(path, content))
		}
	}
	if err != nil {
		return nil, err
	}
	return &artifact{
		Path: name, Revision: revision, Size: int64(len(content)),
		Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(content)),
	}, nil
}

func (s *Server) archiveCommit(repository, commit string) ([]byte, error) {
	var content, stderr bytes.Buffer
	zipped := gzip.NewWriter(&content)
	cmd := exec.Command("git", "--git-dir", filepath.Join(s.repositories, repository+".git"), "archive", "--format=tar", commit+"^{tree}")
	cmd.Stdout, cmd.Stderr = zipped, &stderr
	if err := errors.Join(cmd.Run(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("git archive: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return content.Bytes(), nil
}
