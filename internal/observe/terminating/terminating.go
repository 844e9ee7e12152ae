// Package terminating explains why an object that is being deleted still exists: by its
// finalizers, and for a namespace by the namespace controller's conditions. It does no I/O.
package terminating

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
)

// finalizers maps well-known finalizers to the conditions for their removal.
var finalizers = map[string]string{
	"kubernetes.io/pvc-protection":                        "Kubernetes removes it when no pod uses the claim",
	"kubernetes.io/pv-protection":                         "Kubernetes removes it when no claim is bound to the volume",
	metav1.FinalizerDeleteDependents:                      "the garbage collector removes it when it has deleted the object's dependents",
	metav1.FinalizerOrphanDependents:                      "the garbage collector removes it when it has released the object's dependents",
	"batch.kubernetes.io/job-tracking":                    "the job controller removes it when it has counted the pod",
	"service.kubernetes.io/load-balancer-cleanup":         "the cloud's service controller removes it when it has deleted the load balancer",
	"external-provisioner.volume.kubernetes.io/finalizer": "the CSI driver's provisioner removes it when it has deleted the volume",
	"karpenter.sh/termination":                            "Karpenter removes it when it has drained the node and ended its instance",
	"karpenter.k8s.aws/termination":                       "Karpenter removes it when no NodeClaim uses the node class",
	v1alpha1.TenantFinalizer:                              "croft's operator removes it",
	v1alpha1.PoolFinalizer:                                "croft's operator removes it",
	"finalizers.fluxcd.io":                                "Flux removes it when it has deleted what it applied",
	"resources-finalizer.argocd.argoproj.io":              "Argo CD removes it when it has deleted what it applied",
	"foregroundDeletion.argocd.argoproj.io":               "Argo CD removes it when it has deleted what it applied",
	"service.k8s.aws/resources":                           "the AWS Load Balancer Controller removes it when it has deleted the load balancer",
	"ingress.k8s.aws/resources":                           "the AWS Load Balancer Controller removes it when it has deleted the load balancer",
	"elbv2.k8s.aws/resources":                             "the AWS Load Balancer Controller removes it when it has deregistered the targets",
}

// prefixes is like finalizers, for finalizers that end in a generated name.
var prefixes = map[string]string{
	"external-attacher/":      "the CSI driver's attacher removes it when it has detached the volume",
	"group.ingress.k8s.aws/":  "the AWS Load Balancer Controller removes it when it has deleted the load balancer",
	"snapshot.storage.":       "the snapshot controller removes it",
	"wait-for-delete-volume.": "the CSI driver removes it",
}

// ExplainFinalizer names a finalizer and the component that removes it.
func ExplainFinalizer(name string) string {
	text, ok := finalizers[name]
	for prefix, other := range prefixes {
		if !ok && strings.HasPrefix(name, prefix) {
			text, ok = other, true
		}
	}
	if !ok {
		text = "the controller that set it has to remove it"
	}
	return "finalizer " + name + ": " + text
}

// ExplainNamespace returns the reasons why the content of a namespace is not deleted, from the
// namespace controller's conditions, and the namespace's own finalizers.
func ExplainNamespace(n *corev1.Namespace) []string {
	var all []string
	for _, c := range n.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			all = append(all, strings.TrimSuffix(string(c.Type)+": "+c.Message, ": "))
		}
	}
	for _, f := range n.Spec.Finalizers {
		if f != corev1.FinalizerKubernetes {
			all = append(all, ExplainFinalizer(string(f)))
		}
	}
	for _, f := range n.Finalizers {
		all = append(all, ExplainFinalizer(f))
	}
	return all
}

// remaining matches one kind in the condition NamespaceContentRemaining.
var remaining = regexp.MustCompile(`([a-z0-9-]+)\.([a-z0-9.-]*) has \d+ resource instances`)

// ListRemaining returns the resources whose objects still exist in a namespace that is being
// deleted.
func ListRemaining(n *corev1.Namespace) []schema.GroupResource {
	var all []schema.GroupResource
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NamespaceContentRemaining || c.Status != corev1.ConditionTrue {
			continue
		}
		for _, m := range remaining.FindAllStringSubmatch(c.Message, -1) {
			all = append(all, schema.GroupResource{Group: m[2], Resource: m[1]})
		}
	}
	return all
}

// failedGroup matches a group and version in the condition
// NamespaceDeletionDiscoveryFailure.
var failedGroup = regexp.MustCompile(`([a-z0-9.-]+\.[a-z0-9-]+)/(v[0-9]+(?:(?:alpha|beta)[0-9]+)?)\b`)

// ListUnserved returns the names of the APIServices whose resources the namespace controller
// cannot list. Until they answer, it completes the deletion of no namespace.
func ListUnserved(n *corev1.Namespace) []string {
	var all []string
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NamespaceDeletionDiscoveryFailure || c.Status != corev1.ConditionTrue {
			continue
		}
		for _, m := range failedGroup.FindAllStringSubmatch(c.Message, -1) {
			if name := m[2] + "." + m[1]; !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}
