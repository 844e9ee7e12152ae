package boot

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/machine"
)

// retry is the pause before a failed request to the cluster is retried.
const retry = 2 * time.Second

// Booter registers and removes the nodes of the account's instances.
type Booter struct {
	Account *account.Account
	// Cloud is a client with the rights of the cloud's own controllers, which may delete nodes.
	Cloud kubernetes.Interface
	// As returns the configuration of a client with the rights of a node's kubelet.
	As func(node string) (*rest.Config, error)
	// Machines are the machines of the instances that are nodes.
	Machines *machine.Machines
}

// Run registers and removes nodes when they are due, until the context ends. It returns when
// all machines have ended.
func (b *Booter) Run(ctx context.Context) {
	defer b.Machines.Wait()
	b.resumeMachines(ctx)
	for ctx.Err() == nil {
		changed := b.Account.WatchChange()
		if failed := b.handleDue(ctx); failed {
			changed = nil // the failed step may have changed the account itself: the pause must still pass
		}
		wait := time.Hour
		if changed == nil {
			wait = retry
		} else if next := b.Account.FindNextDue(); !next.IsZero() {
			wait = max(0, time.Until(next))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// resumeMachines starts the machines of an account that an earlier process saved.
func (b *Booter) resumeMachines(ctx context.Context) {
	for _, i := range b.Account.ListInstances(nil) {
		if !i.Registered || i.State != account.Running {
			continue
		}
		if err := b.startMachine(ctx, &i); err != nil {
			slog.Error("start an instance's machine", "instance", i.ID, "error", err)
		}
	}
}

// startMachine starts an instance's machine.
func (b *Booter) startMachine(ctx context.Context, i *account.Instance) error {
	node, system, err := BuildNode(i, b.Account.Region)
	if err != nil {
		return err
	}
	kubelet, err := b.As(node.Name)
	if err != nil {
		return err
	}
	b.Machines.Start(ctx, i, system, node, kubelet)
	return nil
}

// handleDue handles all due instances, and reports whether one failed.
func (b *Booter) handleDue(ctx context.Context) (failed bool) {
	due, err := b.Account.Advance()
	if err != nil {
		slog.Error("save the account", "error", err)
		return true
	}
	for _, i := range due {
		if err := b.handleInstance(ctx, &i); err != nil {
			slog.Error("update an instance's node", "instance", i.ID, "error", err)
			failed = true
		}
	}
	return failed
}

func (b *Booter) handleInstance(ctx context.Context, i *account.Instance) error {
	name := i.DNSName(b.Account.Region)
	if i.State == account.Terminated {
		if err := b.deleteNode(ctx, name, i.ProviderID()); err != nil {
			return err
		}
		if err := b.Machines.Stop(i.ID); err != nil {
			return err
		}
		return b.Account.UpdateInstance(i.ID, func(i *account.Instance) { i.Left = true })
	}
	if err := b.registerNode(ctx, i); err != nil {
		return err
	}
	return b.Account.UpdateInstance(i.ID, func(i *account.Instance) { i.Registered = true })
}

func (b *Booter) registerNode(ctx context.Context, i *account.Instance) error {
	node, system, err := BuildNode(i, b.Account.Region)
	if err != nil {
		return err
	}
	config, err := b.As(node.Name)
	if err != nil {
		return err
	}
	kubelet, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err := kubelet.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("register: %w", err)
	}
	b.Machines.Start(ctx, i, system, node, config)
	slog.Info("registered", "instance", i.ID, "node", node.Name, "type", i.Type)
	return nil
}

// deleteNode deletes the node of a terminated instance, as the cloud's controllers do.
func (b *Booter) deleteNode(ctx context.Context, name, providerID string) error {
	node, err := b.Cloud.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && node.Spec.ProviderID != providerID {
		return nil
	}
	if err != nil {
		return err
	}
	err = b.Cloud.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
