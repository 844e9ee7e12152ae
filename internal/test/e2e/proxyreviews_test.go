package e2e

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// testProxyReviews fails if an access review denies a request that the proxy serves, or allows a
// request that it refuses: clients such as k9s send a review before they list.
func testProxyReviews(t *testing.T, p *proxiedCluster) {
	for _, test := range []struct {
		user     testUser
		question string
		want     string
	}{
		{p.jane, "list namespaces", "yes"},
		{p.jane, "watch namespaces", "yes"},
		{p.joe, "list namespaces", "yes"}, // the list is empty
		{p.jane, "list pods -A", "yes"},
		{p.jane, "watch deployments.apps -A", "yes"},
		{p.joe, "list pods -A", "no"},
		{p.jane, "list nodes", "yes"},
		{p.jane, "list tenants.croft.dev", "yes"},
		{p.jane, "get pools.croft.dev/none", "no"},
		{p.joe, "list nodes", "no"},
		{p.jane, "list pods -n " + ownNamespace, "yes"},
		{p.jane, "list pods -n " + otherNamespace, "no"},
		{p.jane, "create namespaces", "no"},
		{p.jane, "delete namespaces", "no"},
		{p.jane, "delete pods -A", "no"},
		{p.jane, "get namespaces/" + otherNamespace, "no"},
		{p.jane, "get namespaces/" + ownNamespace + " -n " + ownNamespace, "yes"},
		{p.jane, "list clusterroles.rbac.authorization.k8s.io", "no"},
		{p.jane, "get /metrics", "no"},
	} {
		answer := p.runKubectlAs(t, test.user, "", append([]string{"auth", "can-i"}, strings.Fields(test.question)...)...)
		if got := strings.TrimSpace(answer.stdout); got != test.want {
			t.Errorf("can-i %s: %s, want %s: %s", test.question, got, test.want, answer)
		}
	}
	binary := rest.CopyConfig(p.jane.config)
	binary.ContentType, binary.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	review, err := kubernetes.NewForConfigOrDie(binary).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "namespaces", Version: "v1"}},
	}, metav1.CreateOptions{})
	if err != nil || !review.Status.Allowed || review.Spec.ResourceAttributes.Resource != "namespaces" {
		t.Errorf("in protobuf: %v, %v", review, err)
	}
}
