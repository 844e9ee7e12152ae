// Package cgroup creates and deletes the control groups of a sandbox's real nodes. The kernel
// removes a node's other resources with its processes.
package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// hierarchies is the directory in which control groups are mounted: version 1 has a directory
// for each controller, version 2 one for all.
const hierarchies = "/sys/fs/cgroup"

// Groups is the path of the control groups of a sandbox's nodes below each hierarchy.
type Groups string

// listRoots returns the mounted hierarchies.
func listRoots() ([]string, error) {
	if _, err := os.Stat(filepath.Join(hierarchies, "cgroup.controllers")); err == nil {
		return []string{hierarchies}, nil
	}
	all, err := filepath.Glob(filepath.Join(hierarchies, "*", "cgroup.procs"))
	for i := range all {
		all[i] = filepath.Dir(all[i])
	}
	return all, err
}

// Create creates the control group of a node, and returns its path below the hierarchies.
func (g Groups) Create(node string) (string, error) {
	roots, err := listRoots()
	if err != nil {
		return "", err
	}
	path := filepath.Join(string(g), node)
	for _, root := range roots {
		dir := root
		for _, part := range strings.Split(path, "/") {
			if err := delegateControllers(dir); err != nil {
				return "", err
			}
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return "", err
			}
			if err := inheritCPUSets(parent, dir); err != nil {
				return "", err
			}
		}
	}
	return "/" + path, nil
}

// delegateControllers enables all controllers of a group for its children, which version 2 requires.
func delegateControllers(dir string) error {
	all, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // version 1
	}
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(all)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// inheritCPUSets copies the CPUs and memory nodes of the parent, which version 1 requires: a group
// without them accepts no process.
func inheritCPUSets(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// patience is the time in which the kernel removes killed processes.
const patience = 10 * time.Second

// Remove deletes the groups of a node, or of all nodes for "". It waits until their processes,
// which must have been killed, have ended.
func (g Groups) Remove(node string) error {
	roots, err := listRoots()
	if err != nil {
		return err
	}
	var all []error
	deadline := time.Now().Add(patience)
	for _, root := range roots {
		dir := filepath.Join(root, string(g), node)
		err := removeTree(dir)
		for errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
			err = removeTree(dir)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// removeTree deletes a group after its children. The kernel deletes its files with it.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}
