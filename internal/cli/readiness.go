package cli

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
)

// readiness is how far a set of declared objects is.
type readiness struct {
	ready int
	// pending says of each object that is not ready what keeps it.
	pending []string
	// hopeless is set if an object waits for a person, not for time.
	hopeless error
}

// waitingFor names the first object that is not ready.
func (r readiness) waitingFor() string {
	if len(r.pending) == 0 {
		return ""
	}
	return ", waiting for " + r.pending[0]
}

// readyOf is what Ready says of the generation that the cluster has; nil if it
// says nothing of that one yet.
func readyOf(generation int64, status v1alpha1.Status) *metav1.Condition {
	if status.ObservedGeneration != generation {
		return nil
	}
	return meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
}

func readinessOf(live *estate.Declaration, objects []client.Object) readiness {
	type state struct {
		generation int64
		status     v1alpha1.Status
	}
	states := map[string]state{}
	for _, o := range live.Platforms {
		states["Platform/"+o.Name] = state{o.Generation, o.Status}
	}
	for _, o := range live.Pools {
		states["Pool/"+o.Name] = state{o.Generation, o.Status.Status}
	}
	for _, o := range live.Tenants {
		states["Tenant/"+o.Name] = state{o.Generation, o.Status.Status}
	}
	for _, o := range live.Networks {
		states["SecondaryNetwork/"+o.Name] = state{o.Generation, o.Status}
	}
	var r readiness
	for _, o := range objects {
		id := o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetName()
		s := states[id]
		ready := readyOf(s.generation, s.status)
		switch {
		case ready == nil:
			r.pending = append(r.pending, id)
		case ready.Status == metav1.ConditionTrue:
			r.ready++
		default:
			why := fmt.Sprintf("%s (%s: %s)", id, ready.Reason, strings.TrimSpace(ready.Message))
			r.pending = append(r.pending, why)
			if r.hopeless == nil && (ready.Reason == v1alpha1.ReasonInvalid || ready.Reason == v1alpha1.ReasonNamespaceNotOwned) {
				r.hopeless = fmt.Errorf("%s: %s", id, ready.Message)
			}
		}
	}
	return r
}
