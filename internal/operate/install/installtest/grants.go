// Package installtest compares, in tests, the rights that croft grants to its operator with
// the requests that the operator made.
package installtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Right is one verb on one resource of one API group, in a namespace or, if Namespace is
// empty, in the whole cluster.
type Right struct{ Namespace, Verb, Group, Resource string }

// String formats a right like RBAC's messages.
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// includes reports whether the right includes another one.
func (r Right) includes(other Right) bool {
	return r.Verb == other.Verb && r.Group == other.Group && r.Resource == other.Resource &&
		(r.Namespace == "" || r.Namespace == other.Namespace)
}

// FindGranted returns the rights that a subject has by the roles and bindings among objects,
// and the problems of these roles: a wildcard, a right to grant rights without resource
// names, or a right that is granted twice.
func FindGranted(subject rbacv1.Subject, objects []client.Object) (rights []Right, problems []string) {
	for _, rule := range findRules(subject, objects) {
		for _, right := range rule.listRights() {
			switch {
			case slices.Contains([]string{right.Verb, right.Group, right.Resource}, rbacv1.ResourceAll):
				problems = append(problems, fmt.Sprintf("a wildcard: %s", right))
			case slices.Contains([]string{"bind", "escalate", "impersonate"}, right.Verb) && len(rule.ResourceNames) == 0:
				problems = append(problems, fmt.Sprintf("without names of what it is limited to: %s", right))
			}
			if slices.ContainsFunc(rights, func(r Right) bool { return r.includes(right) }) {
				problems = append(problems, fmt.Sprintf("granted twice: %s", right))
				continue
			}
			rights = append(rights, right)
		}
	}
	return rights, problems
}

// rule is a rule of a bound role.
type rule struct {
	rbacv1.PolicyRule
	namespace string
}

func (r rule) listRights() []Right {
	var all []Right
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				all = append(all, Right{r.namespace, verb, group, resource})
			}
		}
	}
	return all
}

// findRules returns the rules of the roles that are bound to a subject, cluster-wide ones
// first.
func findRules(subject rbacv1.Subject, objects []client.Object) []rule {
	var all []rule
	bound := func(namespace string, subjects []rbacv1.Subject, ref rbacv1.RoleRef) {
		if slices.Contains(subjects, subject) {
			for _, r := range findRoleRules(objects, namespace, ref) {
				all = append(all, rule{r, namespace})
			}
		}
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			bound("", o.Subjects, o.RoleRef)
		case *rbacv1.RoleBinding:
			bound(o.Namespace, o.Subjects, o.RoleRef)
		}
	}
	slices.SortStableFunc(all, func(a, b rule) int { return cmp.Compare(a.namespace, b.namespace) })
	return all
}

// findRoleRules returns the rules of the role that a binding in a namespace refers to.
func findRoleRules(objects []client.Object, namespace string, ref rbacv1.RoleRef) []rbacv1.PolicyRule {
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			if ref.Kind == "ClusterRole" && ref.Name == o.Name {
				return o.Rules
			}
		case *rbacv1.Role:
			if ref.Kind == "Role" && ref.Name == o.Name && namespace == o.Namespace {
				return o.Rules
			}
		}
	}
	return nil
}

// Excuse is a reason why rights are needed although no request of a test uses them.
type Excuse struct {
	// Rights are the excused rights, as Right.String formats them, without a namespace.
	Rights []string
	// Reason explains the excuse.
	Reason string
	// DependsOnTiming reports whether it depends on timing that a request uses them.
	DependsOnTiming bool
}

// Compare returns the problems of rights after a test run of the operator, one line each: a
// right that no request used and no excuse names, an excuse that is no longer needed
// (except for excuses that are needed sometimes), and a refused request.
func Compare(rights []Right, requests []Request, excuses []Excuse) []string {
	excused, sometimes := map[string]bool{}, map[string]bool{} // whether the excuse is needed
	for _, e := range excuses {
		for _, name := range e.Rights {
			excused[name], sometimes[name] = false, e.DependsOnTiming
		}
	}
	var wrong []string
	for _, right := range rights {
		used := slices.ContainsFunc(requests, func(r Request) bool {
			return slices.ContainsFunc(r.listUsed(), right.includes)
		})
		name := Right{"", right.Verb, right.Group, right.Resource}.String()
		_, known := excused[name]
		switch {
		case known:
			excused[name] = excused[name] || !used || sometimes[name]
		case !used:
			wrong = append(wrong, "no request used it: "+right.String())
		}
	}
	for name, needed := range excused {
		if !needed {
			wrong = append(wrong, "an excuse for a right that is used or not given: "+name)
		}
	}
	for _, r := range requests {
		if r.Refused {
			wrong = append(wrong, "refused: "+strings.TrimSpace(r.right().String()+" "+r.Name)+": "+r.Message)
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}
