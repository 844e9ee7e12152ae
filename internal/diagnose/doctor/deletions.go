package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/terminating"
)

// owner is a declared object with the operator's conditions.
type owner struct {
	// name is the kind and name, in the format of the walls' owners.
	name string
	client.Object
	status v1alpha1.Status
}

// listOwners returns all declared objects.
func (s *Snapshot) listOwners() []owner {
	if s.Declared == nil {
		return nil
	}
	var all []owner
	for i := range s.Declared.Platforms {
		o := &s.Declared.Platforms[i]
		all = append(all, owner{"Platform/" + o.Name, o, o.Status.Status})
	}
	for i := range s.Declared.Pools {
		o := &s.Declared.Pools[i]
		all = append(all, owner{"Pool/" + o.Name, o, o.Status.Status})
	}
	for i := range s.Declared.Tenants {
		o := &s.Declared.Tenants[i]
		all = append(all, owner{"Tenant/" + o.Name, o, o.Status.Status})
	}
	for i := range s.Declared.Networks {
		o := &s.Declared.Networks[i]
		all = append(all, owner{"SecondaryNetwork/" + o.Name, o, o.Status})
	}
	return all
}

// checkDeletions reports declared objects and namespaces whose deletion takes long.
func checkDeletions(s *Snapshot) []Finding {
	var all []Finding
	for _, o := range s.listOwners() {
		if took := s.measureDeletion(o); took > stays {
			all = append(all, Finding{
				Severity: Warning, Object: o.name, Message: fmt.Sprintf("its deletion has taken %s so far: %s", duration.HumanDuration(took), explainAwaited(o)),
				Fix: "remove the objects that it waits for, or start the operator: see the check operator",
			})
		}
	}
	for i := range s.Namespaces {
		n := &s.Namespaces[i]
		took := s.measureDeletion(n)
		if took <= stays {
			continue
		}
		reason := cmp.Or(strings.Join(terminating.ExplainNamespace(n), "; "), "kube-controller-manager has not reported why")
		all = append(all, Finding{
			Severity: Problem, Object: "Namespace/" + n.Name, Message: fmt.Sprintf("its deletion has taken %s so far: %s", duration.HumanDuration(took), reason),
			Fix: "for an API group that does not respond see the check api-services; for a finalizer, run the controller that removes it, " +
				"or remove it from the objects if that controller was uninstalled",
			Run: "kubectl get namespace " + n.Name + " -o jsonpath='{.status.conditions}'",
		})
	}
	return all
}

// measureDeletion returns the time since an object's deletion, or 0 if it is not being deleted.
func (s *Snapshot) measureDeletion(o client.Object) time.Duration {
	if o.GetDeletionTimestamp() == nil {
		return 0
	}
	return s.Now.Sub(o.GetDeletionTimestamp().Time)
}

// explainAwaited returns the operator's reason why the deletion of a declared object is not
// complete.
func explainAwaited(o owner) string {
	ready := meta.FindStatusCondition(o.status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Message == "" {
		return "it has the finalizers " + strings.Join(o.GetFinalizers(), ", ")
	}
	return ready.Message
}
