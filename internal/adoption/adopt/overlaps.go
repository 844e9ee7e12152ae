package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

// Overlap is an existing object with the same purpose as a wall.
type Overlap struct {
	Object string `json:"object"`
	// Overwritten reports whether croft overwrites the object with its own.
	Overwritten bool `json:"overwritten,omitempty"`
	// Replaced reports whether the walls fully replace the object, so that it can be deleted.
	Replaced bool   `json:"replaced"`
	Reason   string `json:"why"`

	object *unstructured.Unstructured
	// annotation is the replaced annotation, if the object itself is not replaced.
	annotation string
}

// These are annotations of a namespace by which plugins of the API server place its pods.
const (
	nodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"
	defaultTolerations     = "scheduler.alpha.kubernetes.io/defaultTolerations"
	allowedTolerations     = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

// evaluator is a kind that the walls also contain, with the function that evaluates other objects
// of this kind.
type evaluator struct {
	kind     schema.GroupVersionKind
	evaluate func(*unstructured.Unstructured) (replaced bool, reason string)
}

// findOverlaps finds existing objects with the same purpose as a wall.
func (a *Adoption) findOverlaps(ctx context.Context, p *Plan) error {
	walls := map[apply.Ref]bool{}
	for _, o := range a.buildWalls() {
		walls[apply.RefOf(o)] = true
	}
	judges := []evaluator{
		{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), a.compareNetworkPolicy},
		{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), a.compareBinding},
		{corev1.SchemeGroupVersion.WithKind("ResourceQuota"), a.compareQuota},
		{corev1.SchemeGroupVersion.WithKind("LimitRange"), a.compareLimits},
	}
	// Calico also serves the objects of its second group in the first.
	for _, group := range []v1alpha1.CalicoAPIGroup{v1alpha1.CalicoGroup, v1alpha1.CalicoStorageGroup} {
		if kind, served := a.findKind(string(group), "networkpolicies"); served {
			judges = append(judges, evaluator{kind, compareCalico})
			break
		}
	}
	for _, namespace := range a.tenant.Namespaces {
		for _, j := range judges {
			objects, err := listObjects(ctx, a.client, j.kind, client.InNamespace(namespace))
			if err != nil {
				return err
			}
			for i := range objects {
				o := &objects[i]
				if isOurs(o) {
					continue
				}
				b := Overlap{Object: apply.RefOf(o).String(), object: o}
				if walls[apply.RefOf(o)] {
					b.Overwritten, b.Reason = true, "croft's own object has the same name, and overwrites it"
				} else {
					b.Replaced, b.Reason = j.evaluate(o)
				}
				if b.Reason != "" {
					p.Overlaps = append(p.Overlaps, b)
				}
			}
		}
	}
	if err := a.findNamespaceOverlaps(ctx, p); err != nil {
		return err
	}
	return a.findGatekeeperOverlaps(ctx, p)
}

func isOurs(o client.Object) bool {
	return o.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy
}

// findNamespaceOverlaps finds namespaces that place pods by an annotation.
func (a *Adoption) findNamespaceOverlaps(ctx context.Context, p *Plan) error {
	live, err := a.readNamespaces(ctx)
	if err != nil {
		return err
	}
	for _, name := range a.tenant.Namespaces {
		namespace, ok := live[name]
		if !ok {
			continue
		}
		for _, key := range []string{nodeSelectorAnnotation, defaultTolerations, allowedTolerations} {
			value := namespace.Annotations[key]
			if value == "" {
				continue
			}
			b := Overlap{
				Object: "Namespace " + name + ", annotation " + key,
				object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
					"metadata": map[string]any{"name": name}}},
				annotation: key,
			}
			b.Replaced, b.Reason = a.compareAnnotation(key, value)
			p.Overlaps = append(p.Overlaps, b)
		}
	}
	return nil
}

// compareAnnotation reports whether croft places pods as an annotation does.
func (a *Adoption) compareAnnotation(key, value string) (replaced bool, reason string) {
	switch key {
	case defaultTolerations:
		return false, "the API server gives these tolerations to every pod: croft refuses pods that tolerate more than their pool's taint; remove the annotation"
	case allowedTolerations:
		return false, "the API server refuses pods with other tolerations: remove the annotation if it does not allow the toleration of the tenant's pool, which croft adds"
	}
	for _, term := range strings.Split(value, ",") {
		if label, _, _ := strings.Cut(strings.TrimSpace(term), "="); label != a.estate.Platform.NodePoolKey && label != corev1.LabelOSStable {
			return false, "adds " + value + " to pods; croft places them only by " + a.estate.Platform.NodePoolKey
		}
	}
	return true, "croft places pods; the API server also adds " + value + " to them until the annotation is removed"
}

// compareBinding reports whether croft gives access to all subjects of a binding.
func (a *Adoption) compareBinding(o *unstructured.Unstructured) (bool, string) {
	var binding rbacv1.RoleBinding
	if decodeInto(o, &binding) != nil {
		return false, ""
	}
	var people, strangers []string
	for _, s := range binding.Subjects {
		if s.Kind == rbacv1.ServiceAccountKind {
			continue
		}
		people = append(people, s.Name)
		if !slices.ContainsFunc(a.tenant.Access, func(x v1alpha1.Access) bool {
			return s.Kind == rbacv1.GroupKind && x.Group == s.Name || s.Kind == rbacv1.UserKind && x.User == s.Name
		}) {
			strangers = append(strangers, s.Name)
		}
	}
	role := binding.RoleRef.Kind + " " + binding.RoleRef.Name
	switch {
	case len(people) == 0:
		return false, "" // it only binds service accounts, which croft leaves to the team
	case len(strangers) > 0:
		return false, fmt.Sprintf("gives %s the role %s, and the tenant's access does not name them", strings.Join(strangers, ", "), role)
	case len(people) < len(binding.Subjects):
		return false, "also gives service accounts the role " + role
	default:
		return true, fmt.Sprintf("croft's own binding gives access to %s, instead of %s", strings.Join(people, ", "), role)
	}
}

// compareCalico never replaces a Calico policy: it has an order relative to croft's policies, and
// may deny connections that they allow.
func compareCalico(o *unstructured.Unstructured) (bool, string) {
	if strings.HasPrefix(o.GetName(), "knp.default.") {
		return false, "" // Calico's own copy of a Kubernetes policy
	}
	return false, "Calico evaluates it together with croft's policies, by its order: delete it if croft's policies have the same effect"
}

// compareQuota reports whether the tenant's quota is at least as strict. It compares the whole
// quota, since one namespace may use the share of another.
func (a *Adoption) compareQuota(o *unstructured.Unstructured) (bool, string) {
	var quota corev1.ResourceQuota
	if decodeInto(o, &quota) != nil {
		return false, ""
	}
	for _, name := range sortedKeys(quota.Spec.Hard) {
		hard := quota.Spec.Hard[name]
		ours, ok := a.tenant.Quota[name]
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil || !ok || ours.Cmp(hard) > 0 {
			return false, fmt.Sprintf("limits %[2]s to %[1]s, which the tenant's quota does not: both apply", hard.String(), name)
		}
	}
	return true, "the tenant's quota is at least as strict"
}

// compareLimits reports whether the tenant's limits are the same.
func (a *Adoption) compareLimits(o *unstructured.Unstructured) (bool, string) {
	var limits corev1.LimitRange
	if decodeInto(o, &limits) != nil {
		return false, ""
	}
	for _, own := range a.buildWalls() {
		if own, ok := own.(*corev1.LimitRange); ok && own.Namespace == o.GetNamespace() && equality.Semantic.DeepEqual(own.Spec, limits.Spec) {
			return true, "the tenant's limits are the same"
		}
	}
	return false, "has other limits than the tenant's: both apply"
}

func decodeInto(o *unstructured.Unstructured, typed any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed)
}

// findGatekeeperOverlaps finds mutators that place these pods, and constraints on them.
func (a *Adoption) findGatekeeperOverlaps(ctx context.Context, p *Plan) error {
	live, err := a.readNamespaces(ctx)
	if err != nil {
		return err
	}
	templates, err := listObjects(ctx, a.client, schema.GroupVersionKind{Group: "templates.gatekeeper.sh", Version: "v1", Kind: "ConstraintTemplate"})
	if err != nil {
		return err
	}
	kinds := []schema.GroupVersionKind{}
	for _, kind := range []string{"Assign", "ModifySet"} {
		kinds = append(kinds, schema.GroupVersionKind{Group: mutations, Version: "v1", Kind: kind})
	}
	for i := range templates {
		if kind := getString(&templates[i], "spec", "crd", "spec", "names", "kind"); kind != "" {
			kinds = append(kinds, schema.GroupVersionKind{Group: "constraints.gatekeeper.sh", Version: "v1beta1", Kind: kind})
		}
	}
	for _, kind := range kinds {
		objects, err := listObjects(ctx, a.client, kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return err
		}
		for i := range objects {
			o := &objects[i]
			if isOurs(o) || !a.matchesTenant(o, live) {
				continue
			}
			b := Overlap{Object: apply.RefOf(o).String(), object: o}
			b.Replaced, b.Reason = a.compareRule(o)
			p.Overlaps = append(p.Overlaps, b)
			if reason := a.explainConflict(o); reason != "" {
				p.Blockers = append(p.Blockers, reason)
			}
		}
	}
	return nil
}
