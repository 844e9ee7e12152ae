// Package home defines the directory of a sandbox: its files, and their permissions. Only
// the owner may read it, since most files are keys or give access.
package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// EnvDir is the environment variable with the default of --dir. Without both, the directory is
// DefaultDir.
const (
	EnvDir     = "CROFT_SANDBOX_DIR"
	DefaultDir = ".sandbox"
)

// marker is the file by which a sandbox directory is recognised.
const marker = "sandbox.json"

// ErrNone is returned for a directory that contains no sandbox.
var ErrNone = errors.New("no sandbox here")

// Home is the directory of one sandbox.
type Home struct {
	Dir string // absolute
}

// FindHome returns the home at a path, which need not exist yet.
func FindHome(dir string) (Home, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Home{}, err
	}
	return Home{Dir: abs}, nil
}

// Path joins elements to the directory.
func (h Home) Path(elem ...string) string {
	return filepath.Join(append([]string{h.Dir}, elem...)...)
}

// PKI returns the path of the certificate authorities and keys.
func (h Home) PKI(elem ...string) string { return h.Path(append([]string{"pki"}, elem...)...) }

// Etc returns the path of the files that components read at start.
func (h Home) Etc(elem ...string) string { return h.Path(append([]string{"etc"}, elem...)...) }

// Data returns the path of etcd's directory.
func (h Home) Data() string { return h.Path("etcd") }

// Git returns the path of the Git repositories.
func (h Home) Git() string { return h.Path("git") }

// Nodes returns the path of the real nodes' files.
func (h Home) Nodes() string { return h.Path("nodes") }

// Log returns the path of the log of a component, or of the supervisor.
func (h Home) Log(component string) string { return h.Path("logs", component+".log") }

// Kubeconfig returns the path of the kubeconfig of one of the sandbox's own identities.
func (h Home) Kubeconfig(identity string) string { return h.Path(identity + ".kubeconfig") }

// Create creates the directories.
func (h Home) Create() error {
	for _, dir := range []string{h.Dir, h.PKI(), h.Etc(), h.Data(), h.Path("logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes the directory with its content. It refuses a directory that is not a
// sandbox's.
func (h Home) Delete() error {
	if _, err := h.ReadConfig(); err != nil {
		return fmt.Errorf("%s is not deleted: %w", h.Dir, err)
	}
	return os.RemoveAll(h.Dir)
}

// Write replaces a file atomically. Only the owner may read the file.
func Write(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func writeJSON(path string, v any) error {
	content, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return Write(path, append(content, '\n'))
}

func readJSON(path string, v any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// isEmpty reports whether a directory is empty or does not exist.
func isEmpty(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0, err
}
