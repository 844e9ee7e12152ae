package machine

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/network/agent"
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/journal"
)

// Machines are the machines of an account's instances.
type Machines struct {
	Account *account.Account
	// Dir is the directory of their disks, each in a directory named by the instance's ID.
	Dir string

	mu      sync.Mutex
	running map[string]context.CancelFunc
	all     sync.WaitGroup
}

// Start runs the machine of an instance that has registered as a node, until Stop or until ctx
// ends. The config is its kubelet's. Start does nothing if the machine runs already.
func (m *Machines) Start(ctx context.Context, i *account.Instance, system journal.System, node *corev1.Node, config *rest.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == nil {
		m.running = map[string]context.CancelFunc{}
	}
	if m.running[i.ID] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	m.running[i.ID] = cancel
	h := &hardware{account: m.Account, instance: i.ID, root: m.diskPath(i.ID), links: map[string]*agent.Link{}}
	boot := journal.Boot{System: system, Instance: i.ID, Node: node.Name, Kernel: i.RunsAt, Registers: i.RegistersAt, Ready: i.ReadyAt}
	if i.Unready {
		boot.Ready = time.Time{}
	}
	m.all.Go(func() { h.keepJournal(ctx, boot) })
	// Only nodes with this label have a pod of croft's agent.
	if node.Labels[v1alpha1.NodeNetworksLabel] != "true" {
		return
	}
	own := &pods{node: node.Name, config: config, machine: h, running: map[types.UID]context.CancelFunc{}}
	m.all.Go(func() {
		if err := own.run(ctx); err != nil {
			slog.Error("run an instance's pods", "instance", i.ID, "error", err)
		}
	})
}

// Stop ends an instance's machine, and deletes its disk.
func (m *Machines) Stop(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cancel := m.running[id]; cancel != nil {
		cancel()
		delete(m.running, id)
	}
	return os.RemoveAll(m.diskPath(id))
}

// Wait returns when all machines have ended, after the end of the context of Start.
func (m *Machines) Wait() { m.all.Wait() }

func (m *Machines) diskPath(id string) string { return filepath.Join(m.Dir, id) }
