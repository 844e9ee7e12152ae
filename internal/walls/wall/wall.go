// Package wall builds the objects that a cluster needs for an estate, and the attacks that
// these objects must stop.
//
// A wall is pure: it reads an estate and returns values. A new guarantee is an object and an
// attack that succeeds without it, in the same package. Walls do not import each other.
package wall

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/identity"
	"croft.dev/croft/internal/walls/wall/network"
	"croft.dev/croft/internal/walls/wall/nodes"
	"croft.dev/croft/internal/walls/wall/policy"
)

// Wall is one of the four fences around a tenant. Its objects have three scopes: a change
// requires only the objects of its own scope to be rebuilt.
type Wall interface {
	// Name returns network, nodes, identity or policy.
	Name() string
	// Platform returns the objects that exist once in the cluster. They do not depend on the
	// estate's pools and tenants, so their number never grows with them.
	Platform(*estate.Platform) []client.Object
	// Pool returns the objects of one pool.
	Pool(*estate.Platform, *estate.Pool) []client.Object
	// Tenant returns the objects of one tenant.
	Tenant(*estate.Platform, *estate.Tenant) []client.Object
	// Attacks returns the attempts of the strongest member of tenant by, some of them against
	// tenant on, and the requests that by must still be able to make.
	Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack
}

// podWall is a wall that contributes rules to the shared policies on pods.
type podWall interface {
	Wall
	Pods(*estate.Platform) admissionpolicy.Pods
}

// validatingWall is a wall with validating policies other than the shared policies on pods.
type validatingWall interface {
	Wall
	Policies(*estate.Platform) []admissionpolicy.Validating
}

// constrainingWall is a wall with policies that Gatekeeper enforces too, if Gatekeeper is the
// placement engine.
type constrainingWall interface {
	Wall
	Constraints(*estate.Platform) []admissionpolicy.Constrained
}

// sharedWall is the label's value on objects that several walls share.
const sharedWall = "shared"

// FindNames returns the names of the walls that an object belongs to. The result is empty for an
// object of no wall.
func FindNames(o client.Object) []string {
	var names []string
	label := o.GetLabels()[v1alpha1.WallLabel]
	for _, w := range All() {
		if _, shares := w.(podWall); w.Name() == label || shares && label == sharedWall {
			names = append(names, w.Name())
		}
	}
	return names
}

// All returns the walls in their usual order.
func All() []Wall {
	return []Wall{network.Wall{}, nodes.Wall{}, identity.Wall{}, policy.Wall{}}
}

// PlatformObjects returns the objects of all walls that exist once in the cluster, in
// the order of their writes.
func PlatformObjects(p *estate.Platform) []client.Object {
	all := collectObjects(nil, func(w Wall) []client.Object { return w.Platform(p) })
	parts := collectPodParts(p)
	onPods := admissionpolicy.BuildPodPolicies(parts)
	if p.Placement == v1alpha1.PlacementGatekeeper {
		onPods = admissionpolicy.BuildPodChecks(parts)
	}
	for _, o := range onPods {
		o.SetLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.WallLabel: sharedWall})
		all = append(all, o)
	}
	slices.SortStableFunc(all, compareRanks)
	return all
}

func collectPodParts(p *estate.Platform) []admissionpolicy.Pods {
	var parts []admissionpolicy.Pods
	for _, w := range All() {
		if w, ok := w.(podWall); ok {
			parts = append(parts, w.Pods(p))
		}
	}
	return parts
}

// ListBoundedPolicies returns the policies with bounds. The policies on pods are last.
func ListBoundedPolicies(p *estate.Platform) []admissionpolicy.Validating {
	var all []admissionpolicy.Validating
	for _, w := range All() {
		if w, ok := w.(validatingWall); ok {
			all = append(all, w.Policies(p)...)
		}
	}
	parts := collectPodParts(p)
	all = append(all, admissionpolicy.CheckPods(parts...), admissionpolicy.WarnOfTemplates(parts...))
	return slices.DeleteFunc(all, func(v admissionpolicy.Validating) bool { return !v.HasBounds() })
}

// PoolObjects returns the objects of all walls for one pool, in the order of their
// writes.
func PoolObjects(p *estate.Platform, pool *estate.Pool) []client.Object {
	return collectObjects(map[string]string{v1alpha1.PoolLabel: pool.Name},
		func(w Wall) []client.Object { return w.Pool(p, pool) })
}

// ReadinessObjects returns the rules of the node readiness controller for one pool: the
// controller admits pods to a node by them. They are not part of PoolObjects because most
// clusters do not serve their kind. The operator does the same work without the controller.
func ReadinessObjects(pool *estate.Pool) []client.Object {
	return collectObjects(map[string]string{v1alpha1.PoolLabel: pool.Name}, func(w Wall) []client.Object {
		if w, ok := w.(nodes.Wall); ok {
			return w.Readiness(pool)
		}
		return nil
	})
}

// TenantObjects returns the objects of all walls for one tenant, in the order of their
// writes. Access comes last, after all other objects.
func TenantObjects(p *estate.Platform, t *estate.Tenant) []client.Object {
	all := collectObjects(map[string]string{v1alpha1.TenantLabel: t.Name},
		func(w Wall) []client.Object { return w.Tenant(p, t) })
	annotateNamespaces(p, all)
	return all
}

// annotateNamespaces copies each namespace's TenantRules into annotations of the namespace, from which
// the API server and Gatekeeper read them.
func annotateNamespaces(p *estate.Platform, objects []client.Object) {
	rules := map[string]v1alpha1.TenantRulesSpec{}
	for _, o := range objects {
		if o, ok := o.(*v1alpha1.TenantRules); ok {
			rules[o.Namespace] = o.Spec
		}
	}
	for _, o := range objects {
		o, ok := o.(*corev1.Namespace)
		if !ok {
			continue
		}
		admissionpolicy.AnnotateNamespace(o, rules[o.Name])
		if p.Placement == v1alpha1.PlacementGatekeeper {
			admissionpolicy.MarkForGatekeeper(o)
		}
	}
}

// ListConstrainedPolicies returns the policies of all walls that Gatekeeper enforces too, if Gatekeeper
// is the placement engine.
func ListConstrainedPolicies(p *estate.Platform) []admissionpolicy.Constrained {
	var all []admissionpolicy.Constrained
	for _, w := range All() {
		if w, ok := w.(constrainingWall); ok {
			all = append(all, w.Constraints(p)...)
		}
	}
	return all
}

// Objects returns all objects of an estate, in the order of their writes. The same estate
// yields the same bytes.
func Objects(e *estate.Estate) []client.Object {
	objects := PlatformObjects(&e.Platform)
	for _, p := range e.Pools {
		objects = append(objects, PoolObjects(&e.Platform, p)...)
	}
	for _, t := range e.Tenants {
		objects = append(objects, TenantObjects(&e.Platform, t)...)
	}
	slices.SortStableFunc(objects, compareRanks)
	return objects
}

// Attacks returns the attacks of every wall, by one tenant on another.
func Attacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	var all []attack.Attack
	for _, w := range All() {
		var constraints []admissionpolicy.Constrained
		if c, ok := w.(constrainingWall); ok && p.Placement == v1alpha1.PlacementGatekeeper {
			constraints = c.Constraints(p)
		}
		for _, a := range w.Attacks(p, by, on) {
			a.Wall, a.Attacker = w.Name(), by.Name
			a.StoppedBy = addConstraint(constraints, a.StoppedBy)
			all = append(all, attack.ReplaceImages(a, attack.ChooseImage(&by.Allowances)))
		}
	}
	return all
}

// addConstraint adds Gatekeeper's constraint with the same rules to a policy, if
// Gatekeeper enforces them too. The policy is evaluated first.
func addConstraint(constraints []admissionpolicy.Constrained, by attack.Stopper) attack.Stopper {
	if by.IsRefusal == nil {
		return by
	}
	for _, c := range constraints {
		if c.Policy.Name == by.Policy && c.Policy.HasRule(by.Rule) {
			return attack.OrByConstraint(by, c.Kind)
		}
	}
	return by
}

// collectObjects labels each wall's objects as managed by croft, so that they can be found and
// pruned, and sorts them by the order of their writes.
func collectObjects(owner map[string]string, objectsOf func(Wall) []client.Object) []client.Object {
	var all []client.Object
	for _, w := range All() {
		for _, o := range objectsOf(w) {
			labels := map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.WallLabel: w.Name()}
			for _, more := range []map[string]string{owner, o.GetLabels()} {
				for k, v := range more {
					labels[k] = v
				}
			}
			o.SetLabels(labels)
			all = append(all, o)
		}
	}
	slices.SortStableFunc(all, compareRanks)
	return all
}

// ranks orders kinds. Namespaces come before their objects, and before the policies, which
// refuse requests in a namespace without rules. Users' permissions come last, and Flux
// objects after the permissions that they are applied with.
var ranks = map[string]int{
	"Namespace":                        0,
	"TenantRules":                      2,
	"ValidatingAdmissionPolicy":        4,
	"MutatingAdmissionPolicy":          4,
	"ValidatingAdmissionPolicyBinding": 5,
	"MutatingAdmissionPolicyBinding":   5,
	"ConstraintTemplate":               4,
	"ClusterRole":                      6,
	"RoleBinding":                      7,
	"ClusterRoleBinding":               7,
	"GitRepository":                    8,
	"OCIRepository":                    8,
	"Kustomization":                    9,
	"Receiver":                         9,
}

// otherRank is the rank of quotas, limits, network policies, mutators and pools. Constraints
// come after their templates, which define their kinds.
const otherRank, constraintRank = 3, 6

func compareRanks(a, b client.Object) int {
	rank := func(o client.Object) int {
		gvk := o.GetObjectKind().GroupVersionKind()
		if r, ok := ranks[gvk.Kind]; ok {
			return r
		}
		if gvk.Group == admissionpolicy.ConstraintsGroup {
			return constraintRank
		}
		return otherRank
	}
	return cmp.Compare(rank(a), rank(b))
}
