package doctor

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// gatherAPIServices reads the APIServices, which assign servers to API groups.
func (g *gatherer) gatherAPIServices(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIServiceList"})
	g.ReadList(ctx, readAPIServices, list)
	g.APIServices = dropDeleted(list.Items)
}

// checkAPIServices reports API groups whose server does not answer.
func checkAPIServices(s *Snapshot) []Finding {
	var all []Finding
	for i := range s.APIServices {
		o := &s.APIServices[i]
		reason := explainUnavailable(s.Now, o)
		if reason == "" {
			continue
		}
		namespace, _, _ := unstructured.NestedString(o.Object, "spec", "service", "namespace")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "service", "name")
		all = append(all, Finding{
			Severity: Problem, Object: "APIService/" + o.GetName(), Message: "it is not available: " + reason,
			Cause: "kube-controller-manager cannot list the group's objects in a namespace: until the group responds, no namespace is deleted",
			Fix: fmt.Sprintf("repair its Service: `kubectl -n %s describe service %s` and the pods behind it; if its component was uninstalled, `kubectl delete apiservice %s`",
				namespace, name, o.GetName()),
			Link: "https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/",
		})
	}
	return all
}

// explainUnavailable returns the reason why an APIService does not answer. It returns "" if the
// APIService is available, or if its server may be restarting.
func explainUnavailable(now time.Time, o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		since, _ := c["lastTransitionTime"].(string)
		at, _ := time.Parse(time.RFC3339, since)
		if c["type"] == "Available" && c["status"] != "True" && now.Sub(at) > soon {
			return fmt.Sprintf("%v: %v", c["reason"], c["message"])
		}
	}
	return ""
}
