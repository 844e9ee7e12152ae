package home

import (
	"errors"
	"fmt"
	"io/fs"
)

// kind marks the configuration file as this program's.
const kind = "croft-sandbox"

// Config are the options of `up`. It is stored, so that a later `up` in the same
// directory resumes the same sandbox.
type Config struct {
	Kind       string   `json:"kind"`
	Components []string `json:"components"`
	// Zones are the zones that offer instances for nodes.
	Zones []string `json:"zones"`
	// Croft is the absolute path of the croft binary that is run, too.
	Croft string `json:"croft,omitempty"`
	// Gatekeeper is the absolute path of the gatekeeper binary that is run, too.
	Gatekeeper string `json:"gatekeeper,omitempty"`
	// Flux is the absolute path of the kustomize-controller binary that is run, too.
	Flux string `json:"flux,omitempty"`
	// ControllerQPS is kube-controller-manager's rate limit of requests a second; 300 if
	// zero.
	ControllerQPS int `json:"controllerQPS,omitempty"`
	// TypeChecks has kube-controller-manager check the types in admission policies.
	TypeChecks bool `json:"typeChecks,omitempty"`
	// Unaudited runs only the operations of Gatekeeper's webhook pods, without those of
	// its audit pod: the audit, and the status of enforced objects.
	Unaudited bool `json:"unaudited,omitempty"`
	// Nodes is the absolute path of the sandbox-nodes binary, which runs real nodes; if empty,
	// kwok simulates nodes.
	Nodes string `json:"nodes,omitempty"`
	// Enforced runs a network plugin on real nodes that enforces NetworkPolicies.
	Enforced bool `json:"enforced,omitempty"`
	// AWS is a simulated account; if nil, Karpenter's kwok provider creates the nodes.
	AWS *AWS `json:"aws,omitempty"`
	// AuditPolicy is the absolute path of the API server's audit policy; if empty, the API
	// server writes no audit log.
	AuditPolicy string `json:"auditPolicy,omitempty"`
	// APIServers and EtcdMembers are the numbers of API servers and of members of etcd; one
	// of each if zero.
	APIServers  int `json:"apiServers,omitempty"`
	EtcdMembers int `json:"etcdMembers,omitempty"`
	// APIServerPrograms are the absolute paths of a kube-apiserver of another version for each API
	// server; the last one is also for further API servers. For an empty path, and without any,
	// this program runs its own. APIServerArgs are added to the API servers' arguments.
	APIServerPrograms []string `json:"apiServerPrograms,omitempty"`
	APIServerArgs     []string `json:"apiServerArgs,omitempty"`
	// Without are the features that the API server turns off.
	Without []string `json:"without,omitempty"`
}

// AWS is a simulated account.
type AWS struct {
	// Karpenter is the absolute path of the karpenter-aws binary, which is run instead of
	// Karpenter with its kwok provider.
	Karpenter string `json:"karpenter"`
	// Cluster is the name of the cluster in the account.
	Cluster string `json:"cluster"`
	// Speed is the factor by which the account's instances are faster than real ones.
	Speed float64 `json:"speed"`
}

// ReadConfig reads the configuration; ErrNone if the directory contains no sandbox.
func (h Home) ReadConfig() (Config, error) {
	var c Config
	err := readJSON(h.Path(marker), &c)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, ErrNone
	case err != nil:
		return c, err
	case c.Kind != kind:
		return c, fmt.Errorf("%s was not written by croft-sandbox: %w", h.Path(marker), ErrNone)
	}
	return c, nil
}

// SaveConfig writes the configuration. It refuses a directory that contains other
// files and no sandbox.
func (h Home) SaveConfig(c Config) error {
	if _, err := h.ReadConfig(); errors.Is(err, ErrNone) {
		empty, err := isEmpty(h.Dir)
		if err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf("%s is neither empty nor a sandbox: choose another directory with --dir", h.Dir)
		}
	}
	if err := h.Create(); err != nil {
		return err
	}
	c.Kind = kind
	return writeJSON(h.Path(marker), c)
}
