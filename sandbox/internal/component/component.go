// Package component defines how each component of a sandbox is run: its identity, its
// arguments and its readiness check.
package component

import (
	"fmt"
	"slices"
	"strings"
)

// The components.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	Gatekeeper        = "gatekeeper"
	Flux              = "flux"
	Git               = "git"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Cloud             = "aws"
	Karpenter         = "karpenter"
	Kwok              = "kwok"
	Nodes             = "nodes"
	Croft             = "croft"
)

// All are the default components of a sandbox, in start order. Options of `up` add Gatekeeper,
// Flux with its Git server, the AWS account and croft.
var All = []string{Etcd, APIServer, ControllerManager, Scheduler, Karpenter, Kwok}

// needs are each component's dependencies.
var needs = map[string][]string{
	APIServer:         {Etcd},
	Gatekeeper:        {APIServer},
	Flux:              {APIServer},
	Git:               {APIServer},
	ControllerManager: {APIServer},
	Scheduler:         {APIServer},
	Cloud:             {APIServer},
	Karpenter:         {APIServer},
	Kwok:              {APIServer},
	Nodes:             {APIServer},
	Croft:             {APIServer},
}

// Select checks a choice of components and returns it in start order.
func Select(names []string) ([]string, error) {
	for _, name := range names {
		if name == Croft {
			return nil, fmt.Errorf("component %q is not built in: give its binary with --croft PATH instead", name)
		}
		if name == Git {
			return nil, fmt.Errorf("component %q runs only with Flux: add it with --with %s instead", name, Flux)
		}
		if name == Gatekeeper || name == Flux {
			return nil, fmt.Errorf("component %q is not built in: add it with --with %s instead", name, name)
		}
		if name == Nodes {
			return nil, fmt.Errorf("component %q is not built in: add it with --nodes real instead", name)
		}
		if name == Cloud {
			return nil, fmt.Errorf("component %q is optional: add it with --with %s instead", name, name)
		}
		if !slices.Contains(All, name) {
			return nil, fmt.Errorf("unknown component %q: choose from %s", name, strings.Join(All, ", "))
		}
		for _, need := range needs[name] {
			if !slices.Contains(names, need) {
				return nil, fmt.Errorf("component %q needs %q: add it to --components", name, need)
			}
		}
	}
	var out []string
	for _, name := range All {
		if slices.Contains(names, name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no component chosen: choose from %s", strings.Join(All, ", "))
	}
	return out, nil
}
