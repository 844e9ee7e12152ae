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

	networkOpen     = "open"
	networkEnforced = "enforced"
)

// nodePrograms are the programs of a real node, in the directory node next to sandbox-nodes.
var nodePrograms = []string{"containerd", "containerd-shim-runc-v2", "runc", "ptp", "host-local", "loopback", "probe"}

// findNodeProgram returns the path of the program that runs real nodes, or "" for kwok's nodes. It
// returns an error if this machine cannot run real nodes.
func findNodeProgram(kind string) (string, error) {
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
	// The kubelet mounts volumes with mount, kube-proxy routes Services with nft.
	for program, pkg := range map[string]string{"mount": "mount", "nft": "nftables"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", usageError{fmt.Errorf("--nodes real: there is no program %s: install the package %s", program, pkg)}
		}
	}
	return path, nil
}

// parseNetwork reports whether real nodes enforce NetworkPolicies. It returns an error if they
// must and cannot.
func parseNetwork(kind, nodes string) (bool, error) {
	switch {
	case kind == networkOpen:
		return false, nil
	case kind != networkEnforced:
		return false, usageError{fmt.Errorf("--network: there is no %q: choose from %s, %s", kind, networkOpen, networkEnforced)}
	case nodes == "":
		return false, usageError{errors.New("--network enforced: kwok's pods send no packets: add --nodes real")}
	}
	enforcer := filepath.Join(filepath.Dir(nodes), "node", "enforcer")
	if _, err := exec.LookPath(enforcer); err != nil {
		return false, usageError{fmt.Errorf("--network enforced: %w: build it with `make nodes`", err)}
	}
	if _, err := exec.LookPath("iptables"); err != nil {
		return false, usageError{errors.New("--network enforced: there is no program iptables: install the package iptables")}
	}
	return true, nil
}
