package cli

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/heartbeat"
)

const (
	// grace is the time that apply waits for a sign of an operator. It is longer than the
	// operator's start and the interval between two heartbeats.
	grace = 15 * time.Second
	// fixOperator is the remedy for a missing operator.
	fixOperator = "`croft install --image IMAGE` deploys an operator, `croft operator` runs it on this machine; " +
		"without an operator, use `croft render -f FILE | kubectl apply --server-side -f -`"
)

// listener detects whether an operator acts on declared objects.
type listener struct {
	client client.Reader
	// since is the start of listening, and first the heartbeat at that time.
	since time.Time
	first heartbeat.Beat
	last  heartbeat.Beat
	// readAt is the time of the last read of the heartbeat.
	readAt time.Time
	// changed reports that a declared object changed after the start of listening.
	changed bool
}

func newListener(ctx context.Context, c client.Reader) (*listener, error) {
	beat, err := heartbeat.Read(ctx, c)
	now := time.Now()
	return &listener{client: c, since: now, first: beat, last: beat, readAt: now}, explainUnreachable(err)
}

// isOperatorRunning reports whether an operator runs. An operator with a different clock is detected by
// its next heartbeat.
func (l *listener) isOperatorRunning(ctx context.Context) bool {
	if time.Since(l.readAt) > time.Second {
		l.readAt = time.Now()
		if beat, err := heartbeat.Read(ctx, l.client); err == nil {
			l.last = beat
		}
	}
	return l.changed || l.last.IsBelievable(time.Now()) || l.last.Holder != "" && l.last.At.After(l.first.At)
}

// checkOperator returns an error if waiting is useless, and nil while an operator runs or may
// still start.
func (l *listener) checkOperator(ctx context.Context, p *progress) error {
	if l.isOperatorRunning(ctx) || time.Since(l.since) < grace {
		return nil
	}
	if coming := l.describeDeployment(ctx); coming != "" {
		p.printOnce("waiting for the operator: " + coming)
		return nil
	}
	return l.errNoOperator()
}

// errNoOperator returns the error for a missing operator.
func (l *listener) errNoOperator() error {
	return fmt.Errorf("the objects were written, but have no effect yet: %s: %s", l.last.Describe(time.Now()), fixOperator)
}

// describeDeployment describes the operator's Deployment, if it exists and is not available yet.
func (l *listener) describeDeployment(ctx context.Context) string {
	var d appsv1.Deployment
	err := l.client.Get(ctx, client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: v1alpha1.ManagedBy}, &d)
	if err != nil || d.Spec.Replicas != nil && *d.Spec.Replicas == 0 || d.Status.AvailableReplicas > 0 {
		return ""
	}
	return fmt.Sprintf("Deployment %s/%s has no pod available yet (kubectl -n %s describe pods)", d.Namespace, d.Name, d.Namespace)
}
