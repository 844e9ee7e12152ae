package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	nodesKwok = "kwok"
	nodesReal = "real"
)

// nodePrograms are the programs of a real node, in the directory node next to sandbox-nodes.
var nodePrograms = []string{"containerd", "containerd-shim-runc-v2", "runc", "ptp", "host-local", "loopback", "probe"}

// findNodes returns the path of the program that runs real nodes, after a check that it can;
// "" for kwok's nodes.
func findNodes(kind string) (string, error) {
	switch kind {
	case nodesKwok:
		return "", nil
	case nodesReal:
	default:
		return "", usageError{fmt.Errorf("--nodes: there is no %q: choose from %s, %s", kind, nodesKwok, nodesReal)}
	}
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return "", usageError{errors.New("--nodes real: it needs root on Linux, for namespaces and control groups")}
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "sandbox-nodes")
	var missing []string
	for _, program := range append([]string{path}, nodePrograms...) {
		if program != path {
			program = filepath.Join(filepath.Dir(path), "node", program)
		}
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return "", usageError{fmt.Errorf("--nodes real: %s: build them with `make nodes`", strings.Join(missing, ", "))}
	}
	// The kubelet mounts volumes by it, kube-proxy routes Services by it.
	for program, pkg := range map[string]string{"mount": "mount", "nft": "nftables"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", usageError{fmt.Errorf("--nodes real: there is no program %s: install the package %s", program, pkg)}
		}
	}
	return path, nil
}
