package boot

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"croft.dev/croft/sandbox/internal/cloud/account"
)

const (
	// retry is after what time something that failed in the cluster is tried again.
	retry = 2 * time.Second
	// heartbeat is how often a node that does not get ready says so.
	heartbeat = 15 * time.Second
)

// managed is the annotation of the nodes that kwok keeps.
const managed = `{"metadata":{"annotations":{"kwok.x-k8s.io/node":"fake"}}}`

// Booter lets the account's instances come and go as nodes.
type Booter struct {
	Account *account.Account
	// Cloud is the cluster for the cloud's own controllers, which may delete nodes.
	Cloud kubernetes.Interface
	// As is the cluster for a kubelet of the given name.
	As func(node string) (kubernetes.Interface, error)
}

// Run does what is due, until the context ends.
func (b *Booter) Run(ctx context.Context) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for ctx.Err() == nil {
		changed := b.Account.Change()
		failed := b.advance(ctx)
		wait := time.Hour
		if next := b.Account.Next(); !next.IsZero() {
			wait = max(0, time.Until(next))
		}
		if failed {
			wait = retry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-beat.C:
			b.beat(ctx)
		case <-timer.C:
		}
		timer.Stop()
		if failed {
			// A change may be this one's own; it should not make it hurry.
			sleep(ctx, retry)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
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
	var err error
	var note func(*account.Instance)
	switch {
	case i.State == account.Terminated:
		err, note = b.remove(ctx, name, i.ProviderID()), func(i *account.Instance) { i.Left = true }
	case !i.Registered:
		err, note = b.register(ctx, i), func(i *account.Instance) { i.Registered = true }
	default:
		_, err = b.Cloud.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(managed), metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			err = nil // somebody deleted it; its kubelet is not told
		}
		note = func(i *account.Instance) { i.Ready = true }
	}
	if err != nil {
		return err
	}
	return b.Account.Note(i.ID, note)
}

func (b *Booter) register(ctx context.Context, i *account.Instance) error {
	node, err := Node(i, b.Account.Region)
	if err != nil {
		return err
	}
	kubelet, err := b.As(node.Name)
	if err != nil {
		return err
	}
	if _, err := kubelet.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("register: %w", err)
	}
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

// beat is the heartbeat of the nodes that nobody else keeps: those that never get
// ready. Without it the cluster would say of them only that nothing is heard.
func (b *Booter) beat(ctx context.Context) {
	for _, i := range b.Account.Instances(account.Filters{"instance-state-name": {string(account.Running)}}) {
		if !i.Unready {
			continue
		}
		kubelet, err := b.As(i.DNSName(b.Account.Region))
		if err == nil {
			err = heartbeatOf(ctx, kubelet, i.DNSName(b.Account.Region))
		}
		if err != nil {
			slog.Error("heartbeat", "instance", i.ID, "error", err)
		}
	}
}

func heartbeatOf(ctx context.Context, kubelet kubernetes.Interface, name string) error {
	node, err := kubelet.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	fresh := notReady(metav1.Now())[0]
	for n, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == fresh.Status {
				fresh.LastTransitionTime = condition.LastTransitionTime
			}
			node.Status.Conditions[n] = fresh
		}
	}
	_, err = kubelet.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
