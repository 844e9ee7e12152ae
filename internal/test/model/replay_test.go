package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// The families of invariants.
const (
	familyPlacement = "no pod on another tenant's nodes"
	familyOwner     = "no namespace without an owner"
	familyCounted   = "no access before the quota is counted"
	familyWalls     = "no access without walls"
	familyShares    = "shares add up to the quota at most"
	familyDomains   = "no domain with two owners"
	familyRender    = "the cluster equals render"
	familySteady    = "no writes in steady state"
)

// violation is an invariant that does not hold.
type violation struct {
	family string
	// revision is etcd's revision at which it began, or 0 if the final state violates it.
	revision uint64
	text     string
}

func (v *violation) String() string {
	if v.revision == 0 {
		return v.family + ": " + v.text
	}
	return fmt.Sprintf("%s: at revision %d, %s", v.family, v.revision, v.text)
}

// ref names an object. The watched kinds have different names.
type ref struct {
	kind string
	types.NamespacedName
}

func (r ref) String() string { return strings.TrimPrefix(r.kind+" "+r.Namespace+"/"+r.Name, "/") }

// event is one version of an object, or its deletion.
type event struct {
	revision uint64
	ref
	object  client.Object
	deleted bool
	// byAdmin reports whether a step wrote it, and not croft or Kubernetes. An admin may tear down
	// walls: invariants are then evaluated again once croft has restored them.
	byAdmin bool
}

// disturbance is an admin's last change of an object, and the version before the first of them.
type disturbance struct {
	event
	before client.Object
}

// replay evaluates the invariants at each revision.
type replay struct {
	objects map[ref]client.Object
	// disturbed are the objects that an admin has changed or deleted, and that croft has not
	// restored yet.
	disturbed map[ref]disturbance
	// declared are the specs of each tenant that the operator may still be applying: it observes
	// a new spec a moment later.
	declared   map[string][]*v1alpha1.TenantSpec
	violations []*violation
}

func newReplay() *replay {
	return &replay{objects: map[ref]client.Object{}, disturbed: map[ref]disturbance{}, declared: map[string][]*v1alpha1.TenantSpec{}}
}

// settleSpecs records that the operator has applied the current specs. A tenant that is not Ready
// keeps the walls of an earlier spec.
func (r *replay) settleSpecs() {
	r.checkAllDomains()
	for _, name := range slices.Collect(maps.Keys(r.declared)) {
		tenant, ok := r.objects[ref{"Tenant", types.NamespacedName{Name: name}}].(*v1alpha1.Tenant)
		if !ok || meta.IsStatusConditionTrue(tenant.Status.Conditions, v1alpha1.ConditionReady) {
			delete(r.declared, name)
		}
		if ok {
			r.declared[name] = append(r.declared[name], &tenant.Spec)
		}
	}
}

// addEvent evaluates the next event.
func (r *replay) addEvent(e event) {
	before := r.objects[e.ref]
	if e.deleted {
		delete(r.objects, e.ref)
	} else {
		r.objects[e.ref] = e.object
	}
	disturbed := r.disturbed[e.ref]
	r.trackAdmins(e, before)
	r.trackSpecs(e, before)
	if e.kind == "Pod" {
		r.checkPod(e, before)
	}
	if e.byAdmin {
		return
	}
	switch e.kind {
	case "Namespace":
		r.checkOwner(e, before)
		r.checkPools(e, before, disturbed.before)
		r.checkDomains(e, before)
	case "Tenant":
		r.checkDeletion(e, before)
	case "ResourceQuota":
		r.checkShares(e, before)
	case "RoleBinding":
		r.checkCounted(e, before)
	}
	if e.kind == "RoleBinding" && before == nil || e.deleted && e.Namespace != "" {
		r.checkWalls(e)
	}
}

func (r *replay) reportViolation(e event, family, format string, args ...any) {
	r.violations = append(r.violations, &violation{family, e.revision, fmt.Sprintf(format, args...)})
}

// trackSpecs updates the specs of tenants.
func (r *replay) trackSpecs(e event, before client.Object) {
	tenant, ok := e.object.(*v1alpha1.Tenant)
	if was, known := before.(*v1alpha1.Tenant); ok && (!known || was.Generation != tenant.Generation) {
		r.declared[e.Name] = append(r.declared[e.Name], &tenant.Spec)
	}
}

// trackAdmins updates the objects that an admin has disturbed.
func (r *replay) trackAdmins(e event, before client.Object) {
	if e.kind == "Tenant" {
		return
	}
	if e.byAdmin {
		if earlier, ok := r.disturbed[e.ref]; ok {
			before = earlier.before
		}
		r.disturbed[e.ref] = disturbance{e, before}
		return
	}
	switch o := e.object.(type) {
	case *corev1.Namespace:
		// Kubernetes writes namespaces, too.
		if e.deleted || o.Labels[v1alpha1.TenantLabel] != "" && listRule(o, "pools") != nil {
			delete(r.disturbed, e.ref)
		}
	case *corev1.ResourceQuota:
		// kube-controller-manager writes the status, also with an admin's shares.
		admins := r.disturbed[e.ref]
		theirs, ok := admins.object.(*corev1.ResourceQuota)
		if !e.deleted && isInForce(o.Spec.Hard, o.Status.Hard) && (!ok || admins.deleted || !isInForce(theirs.Spec.Hard, o.Spec.Hard)) {
			delete(r.disturbed, e.ref)
		}
	default:
		if !e.deleted {
			delete(r.disturbed, e.ref)
		}
	}
}

func isInForce(shares, inForce corev1.ResourceList) bool {
	return maps.EqualFunc(shares, inForce, func(a, b quantity) bool { return a.Cmp(b) == 0 })
}

func (r *replay) getTenant(name string) *v1alpha1.Tenant {
	tenant, _ := r.objects[ref{"Tenant", types.NamespacedName{Name: name}}].(*v1alpha1.Tenant)
	return tenant
}

func (r *replay) getNamespace(name string) *corev1.Namespace {
	namespace, _ := r.objects[ref{"Namespace", types.NamespacedName{Name: name}}].(*corev1.Namespace)
	return namespace
}

// listObjects returns the objects of a type, sorted by namespace and name.
func listObjects[T client.Object](r *replay) []T {
	var found []T
	for _, o := range r.objects {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b T) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return found
}

// checkOwner expects a namespace that croft creates to belong to an existing tenant, from its first
// version on.
func (r *replay) checkOwner(e event, before client.Object) {
	if e.deleted || e.object.GetAnnotations()[v1alpha1.CreatedAnnotation] != "true" {
		return
	}
	tenant := e.object.GetLabels()[v1alpha1.TenantLabel]
	switch {
	case tenant == "" && (before == nil || before.GetLabels()[v1alpha1.TenantLabel] != ""):
		r.reportViolation(e, familyOwner, "namespace %s has no tenant", e.Name)
	case tenant != "" && before == nil && r.getTenant(tenant) == nil:
		r.reportViolation(e, familyOwner, "namespace %s is created for tenant %s, which does not exist", e.Name, tenant)
	}
}

// checkDeletion expects no namespaces to remain after a tenant with deletion: Delete. The API server
// deletes a tenant at once that was never valid: retained namespaces of an earlier tenant of this name
// then remain.
func (r *replay) checkDeletion(e event, before client.Object) {
	tenant, ok := e.object.(*v1alpha1.Tenant)
	if !ok || !e.deleted || tenant.Spec.Deletion != v1alpha1.DeletionDelete || before == nil || before.GetDeletionTimestamp() == nil {
		return
	}
	for _, n := range listObjects[*corev1.Namespace](r) {
		if n.Labels[v1alpha1.TenantLabel] == e.Name && n.Annotations[v1alpha1.CreatedAnnotation] == "true" && !r.isDisturbed("Namespace", "", n.Name) {
			r.reportViolation(e, familyOwner, "tenant %s is deleted, and its namespace %s remains", e.Name, n.Name)
		}
	}
}

func (r *replay) isDisturbed(kind, namespace, name string) bool {
	_, is := r.disturbed[ref{kind, types.NamespacedName{Namespace: namespace, Name: name}}]
	return is
}

// checkPools expects the rules by which pods are placed to have only pools of the tenant. undisturbed
// is the version before admins' changes, or nil. croft may restore it, also after the tenant has moved
// to other pools: a namespace that is retained keeps its rules.
func (r *replay) checkPools(e event, before, undisturbed client.Object) {
	tenant := e.object.GetLabels()[v1alpha1.TenantLabel]
	pools := listRule(e.object, "pools")
	if e.deleted || tenant == "" || before != nil && slices.Equal(pools, listRule(before, "pools")) {
		return
	}
	if undisturbed != nil && undisturbed.GetLabels()[v1alpha1.TenantLabel] == tenant && slices.Equal(pools, listRule(undisturbed, "pools")) {
		return
	}
	for _, pool := range pools {
		if !r.mayUse(tenant, pool) {
			r.reportViolation(e, familyPlacement, "the rules of namespace %s of tenant %s have the pool %s", e.Name, tenant, pool)
		}
	}
}

// mayUse reports whether one of the specs that are being applied has the pool.
func (r *replay) mayUse(tenant, pool string) bool {
	return slices.ContainsFunc(r.declared[tenant], func(s *v1alpha1.TenantSpec) bool {
		return pool != "" && (s.Pool == pool || slices.Contains(s.Pools, pool))
	})
}

// checkPod expects a new pod of a tenant to be bound to the tenant's pools. No scheduler runs: with
// this selector and these tolerations, it runs on no other node.
func (r *replay) checkPod(e event, before client.Object) {
	pod, ok := e.object.(*corev1.Pod)
	if !ok || before != nil || e.deleted {
		return
	}
	namespace := r.getNamespace(e.Namespace)
	if namespace == nil || r.isDisturbed("Namespace", "", e.Namespace) {
		return
	}
	tenant := namespace.Labels[v1alpha1.TenantLabel]
	if tenant == "" {
		return
	}
	if pool := pod.Spec.NodeSelector[v1alpha1.DefaultNodePoolKey]; !r.mayUse(tenant, pool) {
		r.reportViolation(e, familyPlacement, "pod %s/%s of tenant %s selects the nodes of pool %q", e.Namespace, e.Name, tenant, pool)
	}
	for _, t := range pod.Spec.Tolerations {
		if t.Key == "" || t.Key == v1alpha1.DefaultNodePoolKey && !r.mayUse(tenant, t.Value) {
			r.reportViolation(e, familyPlacement, "pod %s/%s of tenant %s tolerates %q=%q", e.Namespace, e.Name, tenant, t.Key, t.Value)
		}
	}
}

// checkDomains expects a namespace to get no domain that another tenant's people can use, and that
// this tenant still declares.
func (r *replay) checkDomains(e event, before client.Object) {
	tenant := e.object.GetLabels()[v1alpha1.TenantLabel]
	domains := listRule(e.object, "domains")
	if e.deleted || tenant == "" || before != nil && slices.Equal(domains, listRule(before, "domains")) {
		return
	}
	for _, n := range listObjects[*corev1.Namespace](r) {
		other := r.getTenant(n.Labels[v1alpha1.TenantLabel])
		if other == nil || other.Name == tenant || !r.hasAccess(n.Name) {
			continue
		}
		for _, theirs := range listRule(n, "domains") {
			if !slices.Contains(other.Spec.Domains, theirs) {
				continue // the operator is about to withdraw it
			}
			for _, domain := range domains {
				if haveCommonHost(domain, theirs) {
					r.reportViolation(e, familyDomains, "%s of tenant %s in namespace %s overlaps with %s of tenant %s in namespace %s", domain, tenant, e.Name, theirs, other.Name, n.Name)
				}
			}
		}
	}
}

// checkAllDomains expects no domain to have two owners once the operator has applied everything.
func (r *replay) checkAllDomains() {
	namespaces := listObjects[*corev1.Namespace](r)
	for i, a := range namespaces {
		for _, b := range namespaces[:i] {
			one, other := a.Labels[v1alpha1.TenantLabel], b.Labels[v1alpha1.TenantLabel]
			if one == "" || other == "" || one == other || !r.hasAccess(a.Name) || !r.hasAccess(b.Name) {
				continue
			}
			for _, domain := range listRule(a, "domains") {
				for _, theirs := range listRule(b, "domains") {
					if haveCommonHost(domain, theirs) {
						r.reportViolation(event{}, familyDomains, "%s of tenant %s in namespace %s overlaps with %s of tenant %s in namespace %s", domain, one, a.Name, theirs, other, b.Name)
					}
				}
			}
		}
	}
}

// haveCommonHost reports whether a host matches both domains.
func haveCommonHost(a, b string) bool {
	for range 2 {
		if base, isWildcard := strings.CutPrefix(a, "*"); isWildcard {
			if strings.HasSuffix(b, base) {
				return true
			}
		}
		a, b = b, a
	}
	return a == b
}

// listRule returns a list of the rules in a namespace's annotations, or nil if it is not set.
func listRule(namespace client.Object, field string) []string {
	value, ok := namespace.GetAnnotations()[v1alpha1.RulesAnnotationPrefix+field]
	switch {
	case !ok:
		return nil
	case value == "":
		return []string{}
	default:
		return strings.Split(value, ",")
	}
}

// isAccess reports whether a RoleBinding gives a tenant's people access.
func isAccess(o client.Object) bool {
	labels := o.GetLabels()
	return labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy && labels[v1alpha1.TenantLabel] != "" && labels[v1alpha1.ElevationLabel] == ""
}

func (r *replay) hasAccess(namespace string) bool {
	return slices.ContainsFunc(listObjects[*rbacv1.RoleBinding](r), func(b *rbacv1.RoleBinding) bool {
		return b.Namespace == namespace && isAccess(b)
	})
}

// checkCounted expects the quota of a namespace to be in force when people get access to it.
func (r *replay) checkCounted(e event, before client.Object) {
	if e.deleted || before != nil || !isAccess(e.object) || r.isDisturbed("ResourceQuota", e.Namespace, "croft") {
		return
	}
	quota, ok := r.objects[ref{"ResourceQuota", types.NamespacedName{Namespace: e.Namespace, Name: "croft"}}].(*corev1.ResourceQuota)
	if !ok || len(quota.Status.Hard) == 0 {
		r.reportViolation(e, familyCounted, "people get access to namespace %s, whose quota is not counted", e.Namespace)
	}
}

// required are the walls in each namespace with access, independent of the Tenant.
var required = []ref{
	{"NetworkPolicy", types.NamespacedName{Name: "croft-isolation"}}, {"NetworkPolicy", types.NamespacedName{Name: "croft-dns"}},
	{"ResourceQuota", types.NamespacedName{Name: "croft"}}, {"LimitRange", types.NamespacedName{Name: "croft"}},
	{"TenantRules", types.NamespacedName{Name: v1alpha1.TenantRulesName}},
}

// checkWalls expects a namespace with access to have its walls.
func (r *replay) checkWalls(e event) {
	namespace := r.getNamespace(e.Namespace)
	if namespace == nil || namespace.DeletionTimestamp != nil || !r.hasAccess(e.Namespace) {
		return
	}
	for _, wall := range required {
		wall.Namespace = e.Namespace
		if r.objects[wall] == nil && !r.isDisturbed(wall.kind, wall.Namespace, wall.Name) {
			r.reportViolation(e, familyWalls, "people have access to namespace %s, which has no %s %s", e.Namespace, wall.kind, wall.Name)
		}
	}
	if !r.isDisturbed("Namespace", "", e.Namespace) && (namespace.Labels[v1alpha1.TenantLabel] == "" || listRule(namespace, "pools") == nil) {
		r.reportViolation(e, familyWalls, "people have access to namespace %s, whose policies do not apply", e.Namespace)
	}
}

// checkShares expects the shares of a tenant's namespaces to be within its quota whenever one of
// them is raised. A share counts until its reduction is in force. A share that an admin has changed
// does not count, nor does a share in a namespace that an admin has taken from the tenant.
func (r *replay) checkShares(e event, before client.Object) {
	raised, ok := e.object.(*corev1.ResourceQuota)
	name := e.object.GetLabels()[v1alpha1.TenantLabel]
	if !ok || e.deleted || name == "" || e.Name != "croft" {
		return
	}
	was, _ := before.(*corev1.ResourceQuota)
	for resource, hard := range raised.Spec.Hard {
		var earlier quantity // a new share of zero is not raised
		if was != nil {
			earlier = was.Spec.Hard[resource]
		}
		if hard.Cmp(earlier) <= 0 {
			continue
		}
		total, sum, list := r.findLargestQuota(name, resource), quantity{}, []string{}
		for _, q := range listObjects[*corev1.ResourceQuota](r) {
			if q.Labels[v1alpha1.TenantLabel] != name || q.Name != "croft" {
				continue
			}
			if r.isDisturbed("ResourceQuota", q.Namespace, q.Name) {
				return
			}
			if n := r.getNamespace(q.Namespace); n != nil && n.Labels[v1alpha1.TenantLabel] != name && r.isDisturbed("Namespace", "", n.Name) {
				continue
			}
			share := q.Spec.Hard[resource]
			if inForce := q.Status.Hard[resource]; inForce.Cmp(share) > 0 {
				share = inForce
			}
			sum.Add(share)
			list = append(list, q.Namespace+" "+share.String())
		}
		if total != nil && sum.Cmp(*total) > 0 {
			r.reportViolation(e, familyShares, "the shares of tenant %s are %s %s of %s: %s", name, sum.String(), resource, total.String(), strings.Join(list, ", "))
		}
	}
}

// findLargestQuota returns the largest quota of a tenant's specs that are being applied, or nil.
func (r *replay) findLargestQuota(tenant string, resource corev1.ResourceName) *quantity {
	var largest *quantity
	for _, spec := range r.declared[tenant] {
		if q, ok := spec.Quota[resource]; ok && (largest == nil || q.Cmp(*largest) > 0) {
			largest = &q
		}
	}
	return largest
}
