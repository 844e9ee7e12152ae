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

// retry is after what time something that failed in the cluster is tried again.
const retry = 2 * time.Second

// Booter lets the account's instances come and go as nodes.
type Booter struct {
	Account *account.Account
	// Cloud is the cluster for the cloud's own controllers, which may delete nodes.
	Cloud kubernetes.Interface
	// As is the cluster for a kubelet of the given name.
	As func(node string) (*rest.Config, error)
	// Machines are those of the instances that are nodes.
	Machines *machine.Machines
}

// Run does what is due, until the context ends. It returns when all machines have ended.
func (b *Booter) Run(ctx context.Context) {
	defer b.Machines.Wait()
	b.resume(ctx)
	for ctx.Err() == nil {
		changed := b.Account.Change()
		if failed := b.advance(ctx); failed {
			changed = nil // it may be this one's own, and should not make it hurry
		}
		wait := time.Hour
		if changed == nil {
			wait = retry
		} else if next := b.Account.Next(); !next.IsZero() {
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

// resume starts the machines of an account that was kept.
func (b *Booter) resume(ctx context.Context) {
	for _, i := range b.Account.Instances(nil) {
		if !i.Registered || i.State != account.Running {
			continue
		}
		if err := b.start(ctx, &i); err != nil {
			slog.Error("an instance's machine", "instance", i.ID, "error", err)
		}
	}
}

// start starts an instance's machine.
func (b *Booter) start(ctx context.Context, i *account.Instance) error {
	node, system, err := Node(i, b.Account.Region)
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

// advance does what is due, and tells whether something failed.
func (b *Booter) advance(ctx context.Context) (failed bool) {
	due, err := b.Account.Advance()
	if err != nil {
		slog.Error("the account cannot be kept", "error", err)
		return true
	}
	for _, i := range due {
		if err := b.do(ctx, &i); err != nil {
			slog.Error("an instance's node", "instance", i.ID, "error", err)
			failed = true
		}
	}
	return failed
}

func (b *Booter) do(ctx context.Context, i *account.Instance) error {
	name := i.DNSName(b.Account.Region)
	if i.State == account.Terminated {
		if err := b.remove(ctx, name, i.ProviderID()); err != nil {
			return err
		}
		if err := b.Machines.Stop(i.ID); err != nil {
			return err
		}
		return b.Account.Note(i.ID, func(i *account.Instance) { i.Left = true })
	}
	if err := b.register(ctx, i); err != nil {
		return err
	}
	return b.Account.Note(i.ID, func(i *account.Instance) { i.Registered = true })
}

func (b *Booter) register(ctx context.Context, i *account.Instance) error {
	node, system, err := Node(i, b.Account.Region)
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

// remove is what the cloud's controllers do with the node of an instance that is
// no more.
func (b *Booter) remove(ctx context.Context, name, providerID string) error {
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
