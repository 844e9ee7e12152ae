package main

import (
	"context"
	"fmt"

	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/internal/test/sandbox"
)

// scaleProcesses are the components of the sandbox whose memory and CPU time are measured.
var scaleProcesses = []string{operatorComponent, "kube-apiserver", "etcd", "kube-controller-manager", karpenterComponent}

// usage is the memory and the CPU time of a process.
type usage struct {
	// Resident is its memory, and Most the maximum since its start.
	Resident float64 `json:"residentBytes"`
	Most     float64 `json:"mostBytes"`
	// CPU is its CPU time since its start.
	CPU float64 `json:"cpuSeconds"`
}

// addEnded adds the usage of a process that has ended since: its CPU time, and its maximum of memory.
func (u usage) addEnded(ended usage) usage {
	return usage{Resident: u.Resident, Most: max(u.Most, ended.Most), CPU: u.CPU + ended.CPU}
}

func readUsage(c *sandbox.Cluster, component string) (u usage, err error) {
	found, err := c.Component(component)
	if err != nil {
		return u, err
	}
	if u.Resident, u.Most, err = machine.ReadResident(found.PID); err != nil {
		return u, err
	}
	u.CPU, err = machine.ReadCPU(found.PID)
	return u, err
}

func readUsages(c *sandbox.Cluster) (map[string]usage, error) {
	all := map[string]usage{}
	for _, name := range scaleProcesses {
		u, err := readUsage(c, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = u
	}
	return all, nil
}

// measureProcesses compares each process's memory with its memory before the first apply, and the operator's with its
// target.
func (s *scaleBench) measureProcesses(context.Context) ([]comparison, error) {
	now, err := readUsages(s.cluster.Cluster)
	if err != nil {
		return nil, err
	}
	now[operatorComponent] = now[operatorComponent].addEnded(s.ended)
	return s.compareUsages(now), nil
}

func (s *scaleBench) compareUsages(now map[string]usage) []comparison {
	var found []comparison
	for _, name := range scaleProcesses {
		u, idle := now[name], s.idle[name]
		most := fmt.Sprintf("at most %s", machine.FormatBytes(u.Most))
		memory := comparison{Name: "memory of " + name, Unit: inBytes, Croft: u.Resident, Alternative: idle.Resident, Note: "compared with no tenants; " + most}
		spent := comparison{Name: "  its CPU time", Unit: inSeconds, Croft: u.CPU - idle.CPU, Note: "since the first apply"}
		if name == operatorComponent {
			memory = compareWithTarget(operatorMemory, inBytes, u.Resident, s.tenants, most, "without tenants "+machine.FormatBytes(idle.Resident))
			spent.Note += ", of all its processes"
		}
		memory.Raw = map[string]usage{"idle": idle, "tenants": u}
		found = append(found, memory, spent)
	}
	return found
}
