// Package walls reads the state of the walls that the cluster records, with the caller's rights.
package walls

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/events"
	"croft.dev/croft/internal/observe/refusals"
)

// Repaired is the reason of the operator's events about repaired drift.
const Repaired = "Repaired"

// Snapshot contains the recorded state of the walls.
type Snapshot struct {
	Platform v1alpha1.Platform
	// Repairs are the events about repaired drift, the newest first.
	Repairs []corev1.Event
	// Refused are the workloads of all tenants whose pods are refused.
	Refused []v1alpha1.RefusedWorkload
	// Hidden are the kinds that the caller may not list.
	Hidden []string
}

// Gather reads a Snapshot by three requests. It returns an error if the caller may not read the
// Platform.
func Gather(ctx context.Context, c client.Reader, now time.Time) (*Snapshot, error) {
	s := &Snapshot{}
	if err := c.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformName}, &s.Platform); err != nil {
		return nil, err
	}
	var repairs, denials corev1.EventList
	// Events about cluster-scoped objects are in this namespace, where tenants may write none.
	if err := s.list(ctx, c, "events of repairs", &repairs, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"reason": Repaired}); err != nil {
		return nil, err
	}
	s.Repairs = repairs.Items
	slices.SortStableFunc(s.Repairs, func(a, b corev1.Event) int {
		return cmp.Or(events.LastObserved(&b).Compare(events.LastObserved(&a)), cmp.Compare(a.Name, b.Name))
	})
	if err := s.list(ctx, c, "events of refusals", &denials, client.MatchingFields{"reason": refusals.Reason}); err != nil {
		return nil, err
	}
	for _, w := range refusals.Workloads(denials.Items, now) {
		s.Refused = append(s.Refused, w.RefusedWorkload)
	}
	return s, nil
}

func (s *Snapshot) list(ctx context.Context, c client.Reader, kind string, into client.ObjectList, opts ...client.ListOption) error {
	err := c.List(ctx, into, opts...)
	if apierrors.IsForbidden(err) {
		s.Hidden = append(s.Hidden, kind)
		return nil
	}
	return err
}
