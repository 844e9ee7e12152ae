package terminating_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/observe/terminating"
)

func TestFinalizer(t *testing.T) {
	for name, want := range map[string]string{
		"kubernetes.io/pvc-protection":       "when no pod uses the claim",
		"foregroundDeletion":                 "dependents",
		"karpenter.sh/termination":           "drained the node",
		"croft.dev/pool":                     "croft's operator",
		"external-attacher/ebs-csi-aws-com":  "detached the volume",
		"group.ingress.k8s.aws/shop.web":     "load balancer",
		"example.org/x":                      "the controller that set it",
		"example.org/external-attacher/lies": "the controller that set it",
	} {
		if got := terminating.ExplainFinalizer(name); !strings.HasPrefix(got, "finalizer "+name+": ") || !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// These are messages of the namespace controller of Kubernetes v1.36.
const (
	unserved  = "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1, custom.metrics.k8s.io/v1: the server is currently unable to handle the request"
	remaining = "Some resources are remaining: pods. has 1 resource instances, widgets.example.org has 2 resource instances"
	held      = "Some content in the namespace has finalizers remaining: example.org/x in 2 resource instances"
)

func newNamespace(conditions ...corev1.NamespaceCondition) *corev1.Namespace {
	return &corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: conditions}}
}

func TestNamespace(t *testing.T) {
	n := newNamespace(
		corev1.NamespaceCondition{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionTrue, Message: unserved},
		corev1.NamespaceCondition{Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse, Message: "All content successfully deleted"},
		corev1.NamespaceCondition{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: remaining},
		corev1.NamespaceCondition{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: held},
	)
	n.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes, "example.org/spec"}
	n.ObjectMeta = metav1.ObjectMeta{Finalizers: []string{"example.org/meta"}}
	want := []string{
		"NamespaceDeletionDiscoveryFailure: " + unserved, "NamespaceContentRemaining: " + remaining, "NamespaceFinalizersRemaining: " + held,
		terminating.ExplainFinalizer("example.org/spec"), terminating.ExplainFinalizer("example.org/meta"),
	}
	if got := terminating.ExplainNamespace(n); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := fmt.Sprint(terminating.ListRemaining(n)); got != "[pods widgets.example.org]" {
		t.Errorf("remaining: %s", got)
	}
	if got := terminating.ListUnserved(n); !slices.Equal(got, []string{"v1beta1.metrics.k8s.io", "v1.custom.metrics.k8s.io"}) {
		t.Errorf("unserved: %q", got)
	}
	over := newNamespace(corev1.NamespaceCondition{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionFalse, Message: remaining})
	if got := terminating.ListRemaining(over); got != nil {
		t.Errorf("a condition that is False counts: %v", got)
	}
}
