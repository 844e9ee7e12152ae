package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/network"
	"croft.dev/croft/internal/walls/wall/nodes"
	"croft.dev/croft/internal/walls/wall/policy"
)

// buildEstate returns the estate of a file.
func buildEstate(t testing.TB, name, content string) *estate.Estate {
	t.Helper()
	declaration, problems := manifest.Parse(name, []byte(content))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := estate.Build(declaration)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return e
}

// getObject reads an object, which must exist.
func (c *cluster) getObject(t testing.TB, namespace, name string, into client.Object) {
	t.Helper()
	if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatal(err)
	}
}

// createObjects creates objects as a user, and ends the test on a refusal.
func createObjects(t testing.TB, as client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		// Concurrent requests that change a quota can fail with a conflict. kubectl shows the
		// error, and controllers retry.
		err := retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error { return as.Create(t.Context(), o) })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Each Stopper is the rule that must refuse the requests of these tests.
var (
	byPlacement  = attack.ByPolicy(admissionpolicy.PodsPolicy, nodes.TolerationsRule)
	byFloor      = attack.ByPolicy(network.FloorPolicy, network.IngressRule)
	byProtection = attack.ByPolicy(policy.ProtectionPolicy, policy.ProtectionRule)
)

// expectRefusal fails the test if a request was admitted, or refused by another rule.
func expectRefusal(t testing.TB, what string, err error, by attack.Stopper) {
	t.Helper()
	if reason := checkRefusal(err, by); reason != nil {
		t.Errorf("%s: %v", what, reason)
	}
}

func checkRefusal(err error, by attack.Stopper) error {
	switch {
	case err == nil:
		return fmt.Errorf("it went through; %s should have refused it", by.Name)
	case !by.IsRefusal(err):
		return fmt.Errorf("%s should have refused it, but this is what came: %w", by.Name, err)
	default:
		return nil
	}
}

// awaitDeletion waits for the deletion of an object. For a Node that is not deleted, the error
// lists its pods, since a node with pods is never deleted.
func (c *cluster) awaitDeletion(t testing.TB, o client.Object) {
	t.Helper()
	awaitCondition(t, patience, fmt.Sprintf("%T %s to go", o, o.GetName()), func(ctx context.Context) error {
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return client.IgnoreNotFound(err)
		}
		if _, isNode := o.(*corev1.Node); !isNode {
			return errors.New("it is still there")
		}
		var pods corev1.PodList
		if err := c.admin.List(ctx, &pods, client.MatchingFields{"spec.nodeName": o.GetName()}); err != nil {
			return err
		}
		var names []string
		for _, pod := range pods.Items {
			name := pod.Namespace + "/" + pod.Name
			if pod.DeletionTimestamp != nil {
				name += fmt.Sprintf(" (deleted at %s, finalizers %q)", pod.DeletionTimestamp.UTC().Format(time.TimeOnly), pod.Finalizers)
			}
			names = append(names, name)
		}
		return fmt.Errorf("it is still there, with the pods %q", names)
	})
}

func (c *cluster) getTenant(t testing.TB, name string) *v1alpha1.Tenant {
	t.Helper()
	tenant := &v1alpha1.Tenant{}
	c.getObject(t, "", name, tenant)
	return tenant
}

// getReadyCondition returns a Tenant's Ready condition for its current spec, or nil if croft has
// not reconciled that yet.
func getReadyCondition(tenant *v1alpha1.Tenant) *metav1.Condition {
	if tenant.Status.ObservedGeneration != tenant.Generation {
		return nil
	}
	return meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
}

// listTenants returns all Tenants, by name.
func (c *cluster) listTenants(t testing.TB) map[string]v1alpha1.Tenant {
	t.Helper()
	var list v1alpha1.TenantList
	if err := c.admin.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	tenants := map[string]v1alpha1.Tenant{}
	for _, tenant := range list.Items {
		tenants[tenant.Name] = tenant
	}
	return tenants
}

// listNotReady lists the Tenants that are not Ready, with the reason.
func (c *cluster) listNotReady(ctx context.Context) ([]string, error) {
	var tenants v1alpha1.TenantList
	if err := c.admin.List(ctx, &tenants); err != nil {
		return nil, err
	}
	var names []string
	for i := range tenants.Items {
		ready := getReadyCondition(&tenants.Items[i])
		switch {
		case ready == nil:
			names = append(names, tenants.Items[i].Name)
		case ready.Status != metav1.ConditionTrue:
			names = append(names, fmt.Sprintf("%s (%s: %s)", tenants.Items[i].Name, ready.Reason, ready.Message))
		}
	}
	return names, nil
}

// listTenantNamespaces returns the namespaces of all tenants.
func (c *cluster) listTenantNamespaces(ctx context.Context) ([]corev1.Namespace, error) {
	var namespaces corev1.NamespaceList
	err := c.admin.List(ctx, &namespaces, client.HasLabels{v1alpha1.TenantLabel})
	return namespaces.Items, err
}

// objectMetadata is the metadata of objects of any kind, by reference.
type objectMetadata map[apply.Ref]metav1.ObjectMeta

// ours selects croft's objects.
var ours = client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}

// listEverything lists the objects of every kind in the cluster, not only of the kinds that croft
// writes.
func (c *cluster) listEverything(t testing.TB, opts ...client.ListOption) objectMetadata {
	t.Helper()
	found := objectMetadata{}
	for _, kind := range c.listKinds(t) {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.admin.List(t.Context(), &list, opts...)
		if apierrors.IsNotFound(err) {
			continue // the kind was deleted meanwhile, with all of its objects
		}
		if err != nil {
			t.Fatalf("list %s: %v", kind, err)
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
			found[apply.RefOf(&list.Items[i])] = list.Items[i].ObjectMeta
		}
	}
	return found
}

func (c *cluster) listKinds(t testing.TB) []schema.GroupVersionKind {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		for _, r := range list.APIResources {
			// ComponentStatuses are health checks, and cannot be selected by label.
			if slices.Contains(r.Verbs, "list") && r.Kind != "ComponentStatus" {
				kinds = append(kinds, schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind))
			}
		}
	}
	return kinds
}

// selectNamespace returns the objects of a namespace.
func (all objectMetadata) selectNamespace(namespace string) objectMetadata {
	return all.selectObjects(func(ref apply.Ref) bool { return ref.Namespace == namespace })
}

// excludeKind returns the objects of other kinds.
func (all objectMetadata) excludeKind(kind string) objectMetadata {
	return all.selectObjects(func(ref apply.Ref) bool { return ref.Kind != kind })
}

func (all objectMetadata) selectObjects(picked func(apply.Ref) bool) objectMetadata {
	some := objectMetadata{}
	for ref, o := range all {
		if picked(ref) {
			some[ref] = o
		}
	}
	return some
}

// String lists the references of the objects, without their metadata.
func (all objectMetadata) String() string {
	var names []string
	for ref := range all {
		names = append(names, ref.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// listUIDs returns the UIDs of objects, which change if an object is replaced.
func listUIDs(all objectMetadata) map[apply.Ref]string {
	values := map[apply.Ref]string{}
	for ref, o := range all {
		values[ref] = string(o.UID)
	}
	return values
}

// listDifferences returns a line for each difference between two states of the same objects.
func listDifferences[V comparable](want, have map[apply.Ref]V) []string {
	var lines []string
	for ref, w := range want {
		if h, ok := have[ref]; !ok {
			lines = append(lines, ref.String()+" is missing")
		} else if h != w {
			lines = append(lines, fmt.Sprintf("%s is %v, want %v", ref, h, w))
		}
	}
	for ref := range have {
		if _, ok := want[ref]; !ok {
			lines = append(lines, ref.String()+" is there, and should not be")
		}
	}
	slices.Sort(lines)
	return lines
}

// expectSame fails the test if two states of the same objects differ.
func expectSame[V comparable](t testing.TB, what string, want, have map[apply.Ref]V) {
	t.Helper()
	if lines := listDifferences(want, have); len(lines) > 0 {
		t.Errorf("%s: %d differences:\n%s", what, len(lines), strings.Join(lines, "\n"))
	}
}

// listMarks returns the labels and annotations by which croft recognises an object.
func listMarks(o metav1.Object) []string {
	var marks []string
	for _, set := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for key, value := range set {
			if strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") || value == v1alpha1.ManagedBy {
				marks = append(marks, key+"="+value)
			}
		}
	}
	return marks
}

func getCapacityType(node *corev1.Node) v1alpha1.CapacityType {
	return v1alpha1.CapacityType(node.Labels[karpenterv1.CapacityTypeLabelKey])
}

// expectForbidden fails the test unless RBAC refused the request.
func expectForbidden(t testing.TB, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !attack.ByRBAC.IsRefusal(err) {
		t.Errorf("%s: RBAC should have refused it, but this is what came: %v", what, err)
	}
}
