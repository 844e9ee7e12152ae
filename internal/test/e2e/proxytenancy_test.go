package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"croft.dev/croft/api/v1alpha1"
)

// ownTenants are the tenants of document 002 in which jane's group has a role, and ownPools are
// their pools.
var (
	ownTenants = []string{"nis-customer-portal", "sample-team-gitlab-ci"}
	ownPools   = []string{"sample-team-apps", "sample-team-gitlab-jobs"}
)

const otherTenant, otherPool = "example-tenant", "example-pool"

// testProxyTenancy fails if users see other tenants, pools and nodes than their own, or fields that
// reveal others. It shares TestProxy's cluster, so it is part of make test; package proxy's
// tests cover the combinations.
func testProxyTenancy(t *testing.T, p *proxiedCluster) {
	own, other := newNginxPod(ownNamespace, "seen"), newNginxPod(otherNamespace, "unseen")
	createObjects(t, newClient(t, p.jane.config), own)
	createObjects(t, p.admin, other)
	t.Cleanup(func() {
		p.deleteObjects(t, own)
		p.deleteObjects(t, other)
	})
	ownNode, otherNode := p.awaitRunning(t, own).Spec.NodeName, p.awaitRunning(t, other).Spec.NodeName
	awaitCondition(t, moments, "jane to see the node of her pod", func(ctx context.Context) error {
		return errors.Join(getError(p.jane.client.CoreV1().Nodes().Get(ctx, ownNode, metav1.GetOptions{})))
	})

	for resource, want := range map[string][]string{"tenants": ownTenants, "pools": ownPools} {
		shown := p.runKubectlAs(t, p.jane, "", "get", resource, "--no-headers").expectExit(t, 0).stdout
		if names := cutColumns(shown, 1); !slices.Equal(names, want) {
			t.Errorf("kubectl get %s shows jane\n%s", resource, shown)
		}
	}
	nodes := p.runKubectlAs(t, p.jane, "", "get", "nodes", "-o", "wide").expectExit(t, 0).stdout
	if !slices.Contains(cutColumns(nodes, 2), ownNode+" Ready") || strings.Contains(nodes, otherNode+" ") {
		t.Errorf("kubectl get nodes shows jane\n%s", nodes)
	}
	for resource, name := range map[string]string{"nodes": otherNode, "pools": otherPool, "tenants": otherTenant} {
		o := p.runKubectlAs(t, p.jane, "", "get", resource, name).expectExit(t, 1)
		missing := p.runKubectlAs(t, p.jane, "", "get", resource, "none").expectExit(t, 1)
		if !strings.Contains(o.stderr, `User "oidc:jane" cannot get resource`) || o.stderr != strings.ReplaceAll(missing.stderr, `"none"`, `"`+name+`"`) {
			t.Errorf("getting another's differs from getting what does not exist: %s, %s", o, missing)
		}
		for _, u := range []testUser{p.joe, p.newServiceAccount(t)} {
			if o := p.runKubectlAs(t, u, "", "get", resource).expectExit(t, 1); !strings.Contains(o.stderr, "cannot list resource") {
				t.Errorf("who is part of no tenant lists %s: %s", resource, o)
			}
		}
	}
	p.testHiddenNodeFields(t, ownNode)
	p.testTenancyWatches(t, ownNode)

	// Users who may read nodes get all of them, with every field.
	reads := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reads-nodes"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}}}}
	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reads.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reads.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "oidc:joe"}},
	}
	createObjects(t, p.admin, reads)
	createObjects(t, p.admin, bound)
	t.Cleanup(func() {
		p.deleteObjects(t, bound)
		p.deleteObjects(t, reads)
	})
	awaitCondition(t, moments, "joe to read all nodes", func(ctx context.Context) error {
		node, err := p.joe.client.CoreV1().Nodes().Get(ctx, otherNode, metav1.GetOptions{})
		if err == nil && node.Spec.ProviderID == "" {
			err = errors.New("the node lacks a field")
		}
		return err
	})
}

// testHiddenNodeFields fails if jane sees fields of her node that reveal others, in any encoding.
func (p *proxiedCluster) testHiddenNodeFields(t *testing.T, name string) {
	t.Helper()
	var real corev1.Node
	p.getObject(t, "", name, &real)
	real.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example.org/another/app:v1"}}}
	if err := p.admin.Status().Update(t.Context(), &real); err != nil {
		t.Fatal(err)
	}
	binary := rest.CopyConfig(p.jane.config)
	binary.ContentType = runtime.ContentTypeProtobuf
	for about, config := range map[string]*rest.Config{"JSON": p.jane.config, "protobuf": binary} {
		node, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s := node.Status
		if len(s.Images)+len(s.VolumesInUse)+len(s.VolumesAttached)+len(node.Annotations)+len(node.OwnerReferences) > 0 || node.Spec.ProviderID != "" {
			t.Errorf("in %s, jane sees %v", about, node)
		}
		if key := p.estate.Platform.NodePoolKey; node.Labels[key] != real.Labels[key] || len(node.Spec.Taints) != len(real.Spec.Taints) || s.Allocatable.Cpu().IsZero() {
			t.Errorf("in %s, jane does not see the pool, the taints or the size of her node: %v", about, node)
		}
	}
}

// testTenancyWatches fails if open watches miss that jane gains and loses a tenant.
func (p *proxiedCluster) testTenancyWatches(t *testing.T, ownNode string) {
	t.Helper()
	client, err := dynamic.NewForConfig(p.jane.config)
	if err != nil {
		t.Fatal(err)
	}
	nodes, tenants := corev1.SchemeGroupVersion.WithResource("nodes"), v1alpha1.GroupVersion.WithResource("tenants")
	open := map[string]watch.Interface{}
	for name, resource := range map[string]dynamic.NamespaceableResourceInterface{"nodes": client.Resource(nodes), "tenants": client.Resource(tenants)} {
		w, err := resource.Watch(t.Context(), metav1.ListOptions{
			SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		open[name] = w
	}
	awaitEvent(t, open["nodes"], watch.Added, ownNode)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: otherNamespace, Name: "guests"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: ownGroup}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-viewer"},
	}
	createObjects(t, p.admin, binding)
	awaitEvent(t, open["tenants"], watch.Added, otherTenant)
	added := awaitEvent(t, open["nodes"], watch.Added, "")
	p.deleteObjects(t, binding)
	awaitEvent(t, open["tenants"], watch.Deleted, otherTenant)
	awaitEvent(t, open["nodes"], watch.Deleted, added)
	if _, err := p.jane.client.CoreV1().Nodes().Get(t.Context(), added, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("after access was revoked, jane gets node %s: %v", added, err)
	}
}

// awaitEvent waits for an event of an object, of any name if name is empty and the initial
// events are over, and returns the name.
func awaitEvent(t testing.TB, events watch.Interface, kind watch.EventType, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), moments)
	defer cancel()
	seen := []string{}
	for {
		select {
		case <-ctx.Done():
			t.Fatalf("the watch received no event %s %s, but %v", kind, name, seen)
		case e, ok := <-events.ResultChan():
			if !ok {
				t.Fatalf("the watch ended without the event %s %s, after %v", kind, name, seen)
			}
			o, ok := e.Object.(metav1.Object)
			if !ok {
				t.Fatalf("the watch received %s %v", e.Type, e.Object)
			}
			seen = append(seen, fmt.Sprint(e.Type, " ", o.GetName()))
			if e.Type == kind && (name == "" || o.GetName() == name) {
				return o.GetName()
			}
		}
	}
}
