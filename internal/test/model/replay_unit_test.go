package model

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// writer builds a history. If settle is not 0, the operator has applied everything after so many
// events.
type writer struct {
	events []event
	settle int
}

func (w *writer) add(o client.Object, deleted, byAdmin bool) *writer {
	w.events = append(w.events, event{revision: uint64(len(w.events) + 1), ref: refOf(o), object: o, deleted: deleted, byAdmin: byAdmin})
	return w
}

func (w *writer) write(o client.Object) *writer  { return w.add(o, false, false) }
func (w *writer) delete(o client.Object) *writer { return w.add(o, true, false) }

func tenantOf(name string, quota string, domains ...string) *v1alpha1.Tenant {
	return newTenant(name, v1alpha1.TenantSpec{Pool: "p0", Domains: domains, Deletion: v1alpha1.DeletionDelete,
		Quota: corev1.ResourceList{"pods": resource.MustParse(quota)}})
}

func namespaceOf(name, tenant, pools, domains string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		v1alpha1.CreatedAnnotation: "true", v1alpha1.RulesAnnotationPrefix + "pools": pools, v1alpha1.RulesAnnotationPrefix + "domains": domains,
	}}}
	if tenant != "" {
		n.Labels = map[string]string{v1alpha1.TenantLabel: tenant}
	}
	return n
}

func owned(o client.Object, namespace, name, tenant string) client.Object {
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{v1alpha1.TenantLabel: tenant, v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
	return o
}

func quotaOf(namespace, tenant, hard, inForce string) client.Object {
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse(hard)}}}
	if inForce != "" {
		q.Status.Hard = corev1.ResourceList{"pods": resource.MustParse(inForce)}
	}
	return owned(q, namespace, "croft", tenant)
}

func accessTo(namespace, tenant string) client.Object {
	return owned(&rbacv1.RoleBinding{}, namespace, "croft-operator", tenant)
}

// stand adds a tenant with a namespace, its walls and access.
func (w *writer) stand(tenant, namespace, domains string) *writer {
	w.write(tenantOf(tenant, "10", domains)).write(namespaceOf(namespace, tenant, "p0", domains))
	for _, name := range []string{"croft-isolation", "croft-dns"} {
		w.write(owned(&networkingv1.NetworkPolicy{}, namespace, name, tenant))
	}
	w.write(owned(&corev1.LimitRange{}, namespace, "croft", tenant)).write(owned(&v1alpha1.TenantRules{}, namespace, "croft", tenant))
	return w.write(quotaOf(namespace, tenant, "10", "10")).write(accessTo(namespace, tenant))
}

func podOf(namespace, pool string, tolerations ...corev1.Toleration) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{v1alpha1.DefaultNodePoolKey: pool}, Tolerations: tolerations,
	}}
}

// restorePools deletes a tenant that retains a namespace. Then an admin removes the rules of the
// namespace, and croft writes others.
func restorePools(w *writer, pools string) {
	bare := namespaceOf("n1", "t1", "", "")
	delete(bare.Annotations, v1alpha1.RulesAnnotationPrefix+"pools")
	retaining := tenantOf("t1", "10")
	retaining.Spec.Deletion = v1alpha1.DeletionRetain
	w.stand("t1", "n1", "").write(retaining).delete(accessTo("n1", "t1")).delete(retaining)
	w.settle = len(w.events)
	w.add(bare, false, true).write(namespaceOf("n1", "t1", pools, ""))
}

// TestInvariants expects each violation to be found, and nothing else to be reported.
func TestInvariants(t *testing.T) {
	offered := namespaceOf("n1", "", "p0", "")
	offered.Annotations[v1alpha1.CreatedAnnotation] = ""
	deleting := namespaceOf("t1", "t1", "p0", "")
	deleting.DeletionTimestamp = &metav1.Time{}
	leaving := tenantOf("t1", "10")
	leaving.DeletionTimestamp = &metav1.Time{}
	isolation := owned(&networkingv1.NetworkPolicy{}, "t1", "croft-isolation", "t1")
	for _, test := range []struct {
		name   string
		build  func(*writer)
		family string // "" for none
	}{
		{"a tenant with walls", func(w *writer) { w.stand("t1", "t1", "a.example.com").stand("t2", "t2", "b.example.com") }, ""},
		{"a namespace that croft has not created", func(w *writer) { w.write(offered) }, ""},

		{"a namespace without a tenant", func(w *writer) { w.write(namespaceOf("t1", "", "p0", "")) }, familyOwner},
		{"a namespace of a tenant that does not exist", func(w *writer) { w.write(namespaceOf("t1", "t1", "p0", "")) }, familyOwner},
		{"a namespace loses its tenant", func(w *writer) { w.stand("t1", "t1", "").write(namespaceOf("t1", "", "p0", "")) }, familyOwner},
		{"an admin removes its tenant", func(w *writer) {
			w.stand("t1", "t1", "").add(namespaceOf("t1", "", "p0", ""), false, true).write(namespaceOf("t1", "", "p0", ""))
		}, ""},
		{"a namespace remains", func(w *writer) { w.stand("t1", "t1", "").write(leaving).delete(leaving) }, familyOwner},
		{"a namespace remains after a tenant that croft did not accept", func(w *writer) {
			w.stand("t1", "t1", "").delete(tenantOf("t1", "10"))
		}, ""},
		{"the namespace is deleted first", func(w *writer) {
			w.stand("t1", "t1", "").write(leaving).delete(namespaceOf("t1", "t1", "p0", "")).delete(leaving)
		}, ""},

		{"rules with another pool", func(w *writer) { w.stand("t1", "t1", "").write(namespaceOf("t1", "t1", "p0,p1", "")) }, familyPlacement},
		{"croft restores rules of a retained namespace", func(w *writer) { restorePools(w, "p0") }, ""},
		{"croft restores rules with another pool", func(w *writer) { restorePools(w, "p1") }, familyPlacement},
		{"a pod on its own pool", func(w *writer) { w.stand("t1", "t1", "").write(podOf("t1", "p0")) }, ""},
		{"a pod on another pool", func(w *writer) { w.stand("t1", "t1", "").write(podOf("t1", "p1")) }, familyPlacement},
		{"a pod on any pool", func(w *writer) { w.stand("t1", "t1", "").write(podOf("t1", "")) }, familyPlacement},
		{"a pod that tolerates another pool", func(w *writer) {
			w.stand("t1", "t1", "").write(podOf("t1", "p0", corev1.Toleration{Key: v1alpha1.DefaultNodePoolKey, Value: "p1"}))
		}, familyPlacement},
		{"a pod that tolerates all", func(w *writer) {
			w.stand("t1", "t1", "").write(podOf("t1", "p0", corev1.Toleration{Operator: "Exists"}))
		}, familyPlacement},

		{"access without a quota", func(w *writer) {
			w.stand("t1", "t1", "").delete(accessTo("t1", "t1")).write(quotaOf("t1", "t1", "10", "")).write(accessTo("t1", "t1"))
		}, familyCounted},
		{"access while an admin removes the quota", func(w *writer) {
			w.stand("t1", "t1", "").delete(accessTo("t1", "t1")).add(quotaOf("t1", "t1", "10", "10"), true, true).write(accessTo("t1", "t1"))
		}, ""},

		{"access without a wall", func(w *writer) { w.stand("t1", "t1", "").delete(isolation) }, familyWalls},
		{"an admin deletes a wall", func(w *writer) {
			w.stand("t1", "t1", "").add(isolation, true, true).delete(accessTo("t1", "t1")).write(accessTo("t1", "t1"))
		}, ""},
		{"a wall is deleted after an admin's deletion", func(w *writer) {
			w.stand("t1", "t1", "").add(isolation, true, true).write(isolation).delete(isolation)
		}, familyWalls},
		{"a namespace is being deleted", func(w *writer) { w.stand("t1", "t1", "").write(deleting).delete(isolation) }, ""},
		{"access without rules", func(w *writer) {
			bare := namespaceOf("t1", "t1", "p0", "")
			delete(bare.Annotations, v1alpha1.RulesAnnotationPrefix+"pools")
			w.stand("t1", "t1", "").write(bare).delete(accessTo("t1", "t1")).write(accessTo("t1", "t1"))
		}, familyWalls},

		{"a share within the quota", func(w *writer) {
			w.stand("t1", "t1", "").write(quotaOf("t1", "t1", "6", "10")).write(quotaOf("t1", "t1", "6", "6")).write(quotaOf("t1-b", "t1", "4", ""))
		}, ""},
		{"a new share of zero after a namespace with a large share was given to the tenant", func(w *writer) {
			w.stand("t1", "t1", "").write(quotaOf("n1", "t2", "60", "60")).write(quotaOf("n1", "t1", "60", "60")).write(quotaOf("n2", "t1", "0", ""))
		}, ""},
		{"a share above the quota", func(w *writer) { w.stand("t1", "t1", "").write(quotaOf("t1-b", "t1", "1", "")) }, familyShares},
		{"a share before another is lowered in force", func(w *writer) {
			w.stand("t1", "t1", "").write(quotaOf("t1", "t1", "6", "10")).write(quotaOf("t1-b", "t1", "4", ""))
		}, familyShares},
		{"an admin raises a share", func(w *writer) { w.stand("t1", "t1", "").add(quotaOf("t1-b", "t1", "100", ""), false, true) }, ""},
		{"an admin takes a retained namespace from the tenant", func(w *writer) {
			w.stand("t1", "t1", "").write(quotaOf("t1", "t1", "6", "6")).write(namespaceOf("n1", "t1", "p0", "")).write(quotaOf("n1", "t1", "4", "4"))
			w.add(namespaceOf("n1", "", "p0", ""), false, true).write(quotaOf("t1", "t1", "10", "10"))
		}, ""},
		{"the quota is lowered", func(w *writer) { w.stand("t1", "t1", "").add(tenantOf("t1", "2"), false, true) }, ""},

		{"two owners", func(w *writer) { w.stand("t1", "t1", "a.example.com").stand("t2", "t2", "a.example.com") }, familyDomains},
		{"two owners by a wildcard", func(w *writer) { w.stand("t1", "t1", "*.a.example.com").stand("t2", "t2", "x.a.example.com") }, familyDomains},
		{"the other has no access", func(w *writer) {
			w.stand("t1", "t1", "a.example.com").delete(accessTo("t1", "t1")).stand("t2", "t2", "a.example.com")
		}, ""},
		{"the other declares it no longer", func(w *writer) {
			w.stand("t1", "t1", "a.example.com").add(tenantOf("t1", "10"), false, true).stand("t2", "t2", "a.example.com")
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, r := &writer{}, newReplay()
			test.build(w)
			for i, e := range w.events {
				if w.settle > 0 && i == w.settle {
					r.settle()
				}
				r.add(e)
			}
			switch {
			case test.family == "" && len(r.violations) > 0:
				t.Error(r.violations[0])
			case test.family != "" && (len(r.violations) == 0 || r.violations[0].family != test.family):
				t.Errorf("want %q, got %v", test.family, r.violations)
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"a.org", "a.org"}: true, {"a.org", "b.org"}: false, {"*.a.org", "a.org"}: false, {"*.a.org", "x.a.org"}: true,
		{"*.a.org", "*.a.org"}: true, {"*.x.a.org", "*.a.org"}: true, {"*.xa.org", "a.org"}: false, {"xa.org", "*.a.org"}: false,
	} {
		if got := areOverlapping(pair[0], pair[1]); got != want {
			t.Errorf("%v: %t", pair, got)
		}
	}
}
