package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/policy"
)

const keeper = `
tenants:
  keeper:
    pool: pool-a
    access: [{group: team-keeper, role: operator}]
    quota: {pods: "20"}
`

// testRetain fails if deleting a tenant removes more than the access of its members: a wall,
// the rules without which no pod is admitted, the workload or the namespace. It also fails if
// the access remains.
func testRetain(t *testing.T, c *twoTenants) {
	c.applyContent(t, keeper)
	member := c.newMemberClient(t, "team-keeper")
	createObjects(t, member, newNginxPod("keeper", "workload"))
	workload := c.awaitRunningPods(t, "keeper", 1)[0]
	before := c.listEverything(t, client.MatchingLabels{v1alpha1.TenantLabel: "keeper"})
	if len(before) == len(before.excludeKind("RoleBinding")) || len(before) == len(before.excludeKind("ResourceQuota")) {
		t.Fatalf("the tenant has no RoleBinding or no ResourceQuota: %s", before)
	}

	c.runCroft(t, "delete", "tenant", "keeper", "--yes", "--wait-timeout", patience.String()).expectExit(t, 0)
	c.awaitDeletion(t, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "keeper"}})

	after := c.listEverything(t, client.MatchingLabels{v1alpha1.TenantLabel: "keeper"})
	expectSame(t, "what a tenant leaves behind", listUIDs(before.excludeKind("RoleBinding")), listUIDs(after))
	expectForbidden(t, "listing pods", member.List(t.Context(), &corev1.PodList{}, client.InNamespace("keeper")))
	if now := c.awaitRunningPods(t, "keeper", 1)[0]; now.UID != workload.UID {
		t.Errorf("the workload was replaced: pod %s is another", now.Name)
	}
	late := newNginxPod("keeper", "late")
	createObjects(t, c.admin, late)
	expectPlacement(t, late, c.estate.Platform.NodePoolKey, "pool-a")
	c.deleteObjects(t, late)

	c.applyContent(t, keeper)
	if err := member.List(t.Context(), &corev1.PodList{}, client.InNamespace("keeper")); err != nil {
		t.Errorf("the tenant is declared again, and its people have no access: %v", err)
	}
	again := c.listEverything(t, client.MatchingLabels{v1alpha1.TenantLabel: "keeper"})
	expectSame(t, "the existing objects", listUIDs(after), listUIDs(again.excludeKind("RoleBinding")))
}

// testGracePeriod fails if a member can delete a running pod with a longer grace period than
// the pod could have requested. The attacks of verify cannot test this: they have no nodes.
func testGracePeriod(t *testing.T, c *twoTenants) {
	a := teams[0]
	member := c.newMemberClient(t, a.group)
	slow := newNginxPod(a.tenant, "slow")
	createObjects(t, member, slow)
	awaitCondition(t, patience, "the pod to run", func(ctx context.Context) error {
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(slow), slow); err != nil {
			return err
		}
		if slow.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s", slow.Status.Phase)
		}
		return nil
	})
	expectRefusal(t, "deleting a pod with a day to end", member.Delete(t.Context(), slow, client.GracePeriodSeconds(86400), client.DryRunAll),
		attack.ByPolicy(policy.TerminationPolicy, policy.GracePeriodRule))
	if err := member.Delete(t.Context(), slow, client.GracePeriodSeconds(60), client.DryRunAll); err != nil {
		t.Errorf("deleting a pod with a minute to end: %v", err)
	}
	c.deleteObjects(t, slow)
}

const goner = `
tenants:
  goner:
    pool: pool-b
    access: [{group: team-goner, role: operator}]
    deletion: Delete
`

// testDelete fails if deleting a tenant with its namespaces leaves a namespace behind, or if
// croft reports the deletion before it is complete. The tenant's rules are deleted before its
// last objects: controllers must still be able to remove their finalizers then.
func testDelete(t *testing.T, c *twoTenants) {
	c.applyContent(t, goner)
	member := c.newMemberClient(t, "team-goner")
	createObjects(t, member, newNginxPod("goner", "workload"))
	kept := newUnfinishedObjects("goner")
	createObjects(t, c.admin, kept...)
	for _, o := range kept {
		unfinished := []byte(`{"metadata": {"finalizers": ["example.org/unfinished"]}}`)
		if err := c.admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, unfinished)); err != nil {
			t.Fatal(err)
		}
	}

	if err := c.admin.Delete(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "goner"}}); err != nil {
		t.Fatal(err)
	}
	c.awaitDeletion(t, &v1alpha1.TenantRules{ObjectMeta: metav1.ObjectMeta{Namespace: "goner", Name: v1alpha1.TenantRulesName}})
	for _, o := range kept {
		release := []byte(`{"metadata": {"finalizers": null}}`)
		if err := c.admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, release)); err != nil {
			t.Errorf("a controller cannot let %T go: %v", o, err)
		}
	}
	c.awaitDeletion(t, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "goner"}})
	if left := c.listEverything(t, client.MatchingLabels{v1alpha1.TenantLabel: "goner"}); len(left) > 0 {
		t.Errorf("the tenant is deleted, but these are left: %s", left)
	}
	c.awaitDeletion(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "goner"}})
}

// newUnfinishedObjects returns objects with a controller's finalizer: a load balancer, a volume, an
// Ingress. Pods are deleted before anything else (KEP-5080).
func newUnfinishedObjects(namespace string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "unfinished"}
	return []client.Object{
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("none"),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
		&networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: namespace + ".tenants.example.org"}}}},
	}
}

// testDeleteUnconfirmed fails if croft takes empty standard input, as in a script, for a yes.
func testDeleteUnconfirmed(t *testing.T, c *twoTenants) {
	name := teams[1].tenant
	before := c.getTenant(t, name)
	c.runCroft(t, "delete", "tenant", name).expectExit(t, 1)
	if after := c.getTenant(t, name); after.UID != before.UID || after.DeletionTimestamp != nil {
		t.Errorf("the tenant was deleted without a confirmation")
	}
}

const settler = `
tenants:
  settler:
    pool: pool-a
    namespaces: [homestead]
    access: [{group: team-settler, role: operator}]
    deletion: Delete
`

// testAdoption fails if croft adopts an existing namespace without permission, or if it deletes
// an adopted namespace or leaves labels or annotations on it.
func testAdoption(t *testing.T, c *twoTenants) {
	homestead := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "homestead"}}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "homestead", Name: "note"}}
	createObjects(t, c.admin, homestead, note)
	t.Cleanup(func() { c.deleteObjects(t, homestead) })

	var message string
	if !t.Run("it is refused", func(t *testing.T) {
		refused := c.runCroftWithInput(t, settler, "apply", "-f", "-").expectExit(t, 1)
		ready := getReadyCondition(c.getTenant(t, "settler"))
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonNamespaceNotOwned {
			t.Fatalf("the tenant's Ready is %+v, want False for the reason %s", ready, v1alpha1.ReasonNamespaceNotOwned)
		}
		message = ready.Message
		if !strings.Contains(refused.stderr, message) {
			t.Errorf("apply does not print the condition's message, %q: %s", message, refused)
		}
		var now corev1.Namespace
		c.getObject(t, "", "homestead", &now)
		if now.ResourceVersion != homestead.ResourceVersion {
			t.Errorf("the namespace was written to: it is now %+v", now.ObjectMeta)
		}
		if made := c.listEverything(t, ours).selectNamespace("homestead"); len(made) > 0 {
			t.Errorf("croft made objects in a namespace that is not its own: %s", made)
		}
	}) {
		return
	}

	if !t.Run("it is adopted by the message's command", func(t *testing.T) {
		if !strings.Contains(message, "`croft adopt tenant settler -f croft.yaml`") {
			t.Fatalf("the message does not name croft adopt: %q", message)
		}
		c.runCroftWithInput(t, settler, "adopt", "tenant", "settler", "-f", "-", "--yes").expectExit(t, 0)
		if made := c.listEverything(t, ours).selectNamespace("homestead"); len(made) == 0 {
			t.Error("the tenant is Ready, and croft made nothing in its namespace")
		}
	}) {
		return
	}

	t.Run("it is given back", func(t *testing.T) {
		c.runCroft(t, "delete", "tenant", "settler", "--yes", "--wait-timeout", patience.String()).expectExit(t, 0)
		var now corev1.Namespace
		c.getObject(t, "", "homestead", &now)
		if now.UID != homestead.UID || now.DeletionTimestamp != nil {
			t.Fatalf("croft deleted a namespace that it did not create: %+v", now.ObjectMeta)
		}
		if marks := listMarks(&now); len(marks) > 0 || now.Labels["pod-security.kubernetes.io/enforce"] != "" {
			t.Errorf("the namespace is still croft's by %v, with the labels %v", marks, now.Labels)
		}
		if left := c.listEverything(t, ours).selectNamespace("homestead"); len(left) > 0 {
			t.Errorf("croft left behind %s", left)
		}
		c.getObject(t, "homestead", "note", note)
	})
}
