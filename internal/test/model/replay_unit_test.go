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

func (w *writer) addEvent(o client.Object, deleted, byAdmin bool) *writer {
	w.events = append(w.events, event{revision: uint64(len(w.events) + 1), ref: newRef(o), object: o, deleted: deleted, byAdmin: byAdmin})
	return w
}

func (w *writer) writeObject(o client.Object) *writer  { return w.addEvent(o, false, false) }
func (w *writer) deleteObject(o client.Object) *writer { return w.addEvent(o, true, false) }

func makeTenant(name string, quota string, domains ...string) *v1alpha1.Tenant {
	return newTenant(name, v1alpha1.TenantSpec{Pool: "p0", Domains: domains, Deletion: v1alpha1.DeletionDelete,
		Quota: corev1.ResourceList{"pods": resource.MustParse(quota)}})
}

func makeNamespace(name, tenant, pools, domains string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		v1alpha1.CreatedAnnotation: "true", v1alpha1.RulesAnnotationPrefix + "pools": pools, v1alpha1.RulesAnnotationPrefix + "domains": domains,
	}}}
	if tenant != "" {
		n.Labels = map[string]string{v1alpha1.TenantLabel: tenant}
	}
	return n
}

func setOwner(o client.Object, namespace, name, tenant string) client.Object {
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{v1alpha1.TenantLabel: tenant, v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
	return o
}

func newQuota(namespace, tenant, hard, inForce string) client.Object {
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse(hard)}}}
	if inForce != "" {
		q.Status.Hard = corev1.ResourceList{"pods": resource.MustParse(inForce)}
	}
	return setOwner(q, namespace, "croft", tenant)
}

func newAccess(namespace, tenant string) client.Object {
	return setOwner(&rbacv1.RoleBinding{}, namespace, "croft-operator", tenant)
}

// addWalledTenant adds a tenant with a namespace, its walls and access.
func (w *writer) addWalledTenant(tenant, namespace, domains string) *writer {
	w.writeObject(makeTenant(tenant, "10", domains)).writeObject(makeNamespace(namespace, tenant, "p0", domains))
	for _, name := range []string{"croft-isolation", "croft-dns"} {
		w.writeObject(setOwner(&networkingv1.NetworkPolicy{}, namespace, name, tenant))
	}
	w.writeObject(setOwner(&corev1.LimitRange{}, namespace, "croft", tenant)).writeObject(setOwner(&v1alpha1.TenantRules{}, namespace, "croft", tenant))
	return w.writeObject(newQuota(namespace, tenant, "10", "10")).writeObject(newAccess(namespace, tenant))
}

func newPod(namespace, pool string, tolerations ...corev1.Toleration) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{v1alpha1.DefaultNodePoolKey: pool}, Tolerations: tolerations,
	}}
}

// restorePools deletes a tenant that retains a namespace. Then an admin removes the rules of the
// namespace, and croft writes others.
func restorePools(w *writer, pools string) {
	bare := makeNamespace("n1", "t1", "", "")
	delete(bare.Annotations, v1alpha1.RulesAnnotationPrefix+"pools")
	retaining := makeTenant("t1", "10")
	retaining.Spec.Deletion = v1alpha1.DeletionRetain
	w.addWalledTenant("t1", "n1", "").writeObject(retaining).deleteObject(newAccess("n1", "t1")).deleteObject(retaining)
	w.settle = len(w.events)
	w.addEvent(bare, false, true).writeObject(makeNamespace("n1", "t1", pools, ""))
}

// TestInvariants expects each violation to be found, and nothing else to be reported.
func TestInvariants(t *testing.T) {
	offered := makeNamespace("n1", "", "p0", "")
	offered.Annotations[v1alpha1.CreatedAnnotation] = ""
	deleting := makeNamespace("t1", "t1", "p0", "")
	deleting.DeletionTimestamp = &metav1.Time{}
	leaving := makeTenant("t1", "10")
	leaving.DeletionTimestamp = &metav1.Time{}
	isolation := setOwner(&networkingv1.NetworkPolicy{}, "t1", "croft-isolation", "t1")
	for _, test := range []struct {
		name   string
		build  func(*writer)
		family string // "" for none
	}{
		{"a tenant with walls", func(w *writer) {
			w.addWalledTenant("t1", "t1", "a.example.com").addWalledTenant("t2", "t2", "b.example.com")
		}, ""},
		{"a namespace that croft has not created", func(w *writer) { w.writeObject(offered) }, ""},

		{"a namespace without a tenant", func(w *writer) { w.writeObject(makeNamespace("t1", "", "p0", "")) }, familyOwner},
		{"a namespace of a tenant that does not exist", func(w *writer) { w.writeObject(makeNamespace("t1", "t1", "p0", "")) }, familyOwner},
		{"a namespace loses its tenant", func(w *writer) { w.addWalledTenant("t1", "t1", "").writeObject(makeNamespace("t1", "", "p0", "")) }, familyOwner},
		{"an admin removes its tenant", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").addEvent(makeNamespace("t1", "", "p0", ""), false, true).writeObject(makeNamespace("t1", "", "p0", ""))
		}, ""},
		{"a namespace remains", func(w *writer) { w.addWalledTenant("t1", "t1", "").writeObject(leaving).deleteObject(leaving) }, familyOwner},
		{"a namespace remains after a tenant that croft did not accept", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").deleteObject(makeTenant("t1", "10"))
		}, ""},
		{"the namespace is deleted first", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").writeObject(leaving).deleteObject(makeNamespace("t1", "t1", "p0", "")).deleteObject(leaving)
		}, ""},

		{"rules with another pool", func(w *writer) { w.addWalledTenant("t1", "t1", "").writeObject(makeNamespace("t1", "t1", "p0,p1", "")) }, familyPlacement},
		{"croft restores rules of a retained namespace", func(w *writer) { restorePools(w, "p0") }, ""},
		{"croft restores rules with another pool", func(w *writer) { restorePools(w, "p1") }, familyPlacement},
		{"a pod on its own pool", func(w *writer) { w.addWalledTenant("t1", "t1", "").writeObject(newPod("t1", "p0")) }, ""},
		{"a pod on another pool", func(w *writer) { w.addWalledTenant("t1", "t1", "").writeObject(newPod("t1", "p1")) }, familyPlacement},
		{"a pod on any pool", func(w *writer) { w.addWalledTenant("t1", "t1", "").writeObject(newPod("t1", "")) }, familyPlacement},
		{"a pod that tolerates another pool", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").writeObject(newPod("t1", "p0", corev1.Toleration{Key: v1alpha1.DefaultNodePoolKey, Value: "p1"}))
		}, familyPlacement},
		{"a pod that tolerates all", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").writeObject(newPod("t1", "p0", corev1.Toleration{Operator: "Exists"}))
		}, familyPlacement},

		{"access without a quota", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").deleteObject(newAccess("t1", "t1")).writeObject(newQuota("t1", "t1", "10", "")).writeObject(newAccess("t1", "t1"))
		}, familyCounted},
		{"access while an admin removes the quota", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").deleteObject(newAccess("t1", "t1")).addEvent(newQuota("t1", "t1", "10", "10"), true, true).writeObject(newAccess("t1", "t1"))
		}, ""},

		{"access without a wall", func(w *writer) { w.addWalledTenant("t1", "t1", "").deleteObject(isolation) }, familyWalls},
		{"an admin deletes a wall", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").addEvent(isolation, true, true).deleteObject(newAccess("t1", "t1")).writeObject(newAccess("t1", "t1"))
		}, ""},
		{"a wall is deleted after an admin's deletion", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").addEvent(isolation, true, true).writeObject(isolation).deleteObject(isolation)
		}, familyWalls},
		{"a namespace is being deleted", func(w *writer) { w.addWalledTenant("t1", "t1", "").writeObject(deleting).deleteObject(isolation) }, ""},
		{"access without rules", func(w *writer) {
			bare := makeNamespace("t1", "t1", "p0", "")
			delete(bare.Annotations, v1alpha1.RulesAnnotationPrefix+"pools")
			w.addWalledTenant("t1", "t1", "").writeObject(bare).deleteObject(newAccess("t1", "t1")).writeObject(newAccess("t1", "t1"))
		}, familyWalls},

		{"a share within the quota", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").writeObject(newQuota("t1", "t1", "6", "10")).writeObject(newQuota("t1", "t1", "6", "6")).writeObject(newQuota("t1-b", "t1", "4", ""))
		}, ""},
		{"a new share of zero after a namespace with a large share was given to the tenant", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").writeObject(newQuota("n1", "t2", "60", "60")).writeObject(newQuota("n1", "t1", "60", "60")).writeObject(newQuota("n2", "t1", "0", ""))
		}, ""},
		{"a share above the quota", func(w *writer) { w.addWalledTenant("t1", "t1", "").writeObject(newQuota("t1-b", "t1", "1", "")) }, familyShares},
		{"a share before another is lowered in force", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").writeObject(newQuota("t1", "t1", "6", "10")).writeObject(newQuota("t1-b", "t1", "4", ""))
		}, familyShares},
		{"an admin raises a share", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").addEvent(newQuota("t1-b", "t1", "100", ""), false, true)
		}, ""},
		{"an admin takes a retained namespace from the tenant", func(w *writer) {
			w.addWalledTenant("t1", "t1", "").writeObject(newQuota("t1", "t1", "6", "6")).writeObject(makeNamespace("n1", "t1", "p0", "")).writeObject(newQuota("n1", "t1", "4", "4"))
			w.addEvent(makeNamespace("n1", "", "p0", ""), false, true).writeObject(newQuota("t1", "t1", "10", "10"))
		}, ""},
		{"the quota is lowered", func(w *writer) { w.addWalledTenant("t1", "t1", "").addEvent(makeTenant("t1", "2"), false, true) }, ""},

		{"two owners", func(w *writer) {
			w.addWalledTenant("t1", "t1", "a.example.com").addWalledTenant("t2", "t2", "a.example.com")
		}, familyDomains},
		{"two owners by a wildcard", func(w *writer) {
			w.addWalledTenant("t1", "t1", "*.a.example.com").addWalledTenant("t2", "t2", "x.a.example.com")
		}, familyDomains},
		{"the other has no access", func(w *writer) {
			w.addWalledTenant("t1", "t1", "a.example.com").deleteObject(newAccess("t1", "t1")).addWalledTenant("t2", "t2", "a.example.com")
		}, ""},
		{"the other declares it no longer", func(w *writer) {
			w.addWalledTenant("t1", "t1", "a.example.com").addEvent(makeTenant("t1", "10"), false, true).addWalledTenant("t2", "t2", "a.example.com")
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, r := &writer{}, newReplay()
			test.build(w)
			for i, e := range w.events {
				if w.settle > 0 && i == w.settle {
					r.settleSpecs()
				}
				r.addEvent(e)
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
		if got := haveCommonHost(pair[0], pair[1]); got != want {
			t.Errorf("%v: %t", pair, got)
		}
	}
}
