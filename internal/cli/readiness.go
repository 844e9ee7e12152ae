package cli

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// readiness counts the ready objects of a set of declared objects.
type readiness struct {
	ready int
	// pending contains the reason of each object that is not ready.
	pending []string
	// stuck contains objects that may need a user's action.
	stuck []stuckObject
}

// stuckObject is an object that a user must correct, according to the operator.
type stuckObject struct {
	id, reason, message string
	// confirmed means that the current declarations make the object invalid. Without it,
	// the operator may have written the status before it observed another object of the
	// same file.
	confirmed bool
}

const (
	// rejectedFor is the minimum duration of a rejection before it counts: a CRD or a
	// policy may be in the middle of an upgrade.
	rejectedFor = 3 * time.Second
	// refusedFor is the minimum duration of the reason Invalid before it counts, if this
	// croft considers the object valid.
	refusedFor = 30 * time.Second
)

// patience records since when objects have been stuck for the same reason.
type patience map[stuckObject]time.Time

// checkStuck returns an error if waiting longer is useless.
func (p *patience) checkStuck(r readiness, now time.Time) error {
	before := *p
	*p = patience{}
	for _, s := range r.stuck {
		since, ok := before[s]
		if !ok {
			since = now
		}
		(*p)[s] = since
		limit := rejectedFor
		if s.reason == v1alpha1.ReasonInvalid {
			limit = refusedFor
		}
		if s.confirmed || now.Sub(since) >= limit {
			return fmt.Errorf("%s: %s", s.id, s.message)
		}
	}
	return nil
}

// describePending names the first object that is not ready.
func (r readiness) describePending() string {
	if len(r.pending) == 0 {
		return ""
	}
	return ", waiting for " + r.pending[0]
}

// findReady returns the condition Ready, or nil if the status is from an older generation.
func findReady(generation int64, status v1alpha1.Status) *metav1.Condition {
	if status.ObservedGeneration != generation {
		return nil
	}
	return meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
}

// dropDomainsInForce returns declarations as if no tenant had a domain that it does not declare. Such a domain is another
// tenant's as soon as the operator has observed the changes of both.
func dropDomainsInForce(live *manifest.Declaration) *manifest.Declaration {
	declared := *live
	declared.Tenants = slices.Clone(live.Tenants)
	for i := range declared.Tenants {
		declared.Tenants[i].Status.Domains = nil
	}
	return &declared
}

func evaluateReadiness(live *manifest.Declaration, objects []client.Object) readiness {
	type state struct {
		generation int64
		status     v1alpha1.Status
	}
	states := map[string]state{}
	for _, o := range live.Platforms {
		states["Platform/"+o.Name] = state{o.Generation, o.Status.Status}
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
	problems := sync.OnceValue(func() document.Problems {
		_, all := estate.Build(dropDomainsInForce(live))
		return all
	})
	var r readiness
	for _, o := range objects {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		id := kind + "/" + o.GetName()
		s := states[id]
		ready := findReady(s.generation, s.status)
		switch {
		case ready == nil:
			r.pending = append(r.pending, id)
		case ready.Status == metav1.ConditionTrue:
			r.ready++
		default:
			why := fmt.Sprintf("%s (%s: %s)", id, ready.Reason, strings.TrimSpace(ready.Message))
			r.pending = append(r.pending, why)
			switch ready.Reason {
			case v1alpha1.ReasonInvalid:
				confirmed := len(problems().ForObject(kind, o.GetName())) > 0
				r.stuck = append(r.stuck, stuckObject{id, ready.Reason, ready.Message, confirmed})
			case v1alpha1.ReasonNamespaceNotOwned, v1alpha1.ReasonRejected:
				r.stuck = append(r.stuck, stuckObject{id, ready.Reason, ready.Message, false})
			}
		}
	}
	return r
}
