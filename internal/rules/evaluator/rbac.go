package evaluator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// rbac is the authorizer: Roles and their bindings, and the group system:masters, to which
// every request is allowed.
type rbac struct {
	roles           []*rbacv1.Role
	clusterRoles    []*rbacv1.ClusterRole
	bindings        []*rbacv1.RoleBinding
	clusterBindings []*rbacv1.ClusterRoleBinding
}

// evaluate returns a refusal if no role permits the request.
func (a rbac) evaluate(r Request) *Denial {
	resource := r.Resource.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	name := r.Name
	if r.Verb == "create" && r.Subresource == "" {
		name = "" // the name is in the object, which the authorizer does not read
	}
	if a.permits(r.User, r.Namespace, makeRule(r.Verb, r.Resource.Group, resource, name)) {
		return nil
	}
	err := newForbidden(r)
	return &Denial{DeniedBy: "RBAC", Message: err.Error(), Err: err}
}

// checkEscalation returns a refusal if a role or a binding grants permissions that the user lacks,
// unless a role permits the verb escalate or bind.
func (a rbac) checkEscalation(r Request) *Denial {
	if r.Object == nil || r.Resource.Group != rbacv1.GroupName || r.Subresource != "" {
		return nil
	}
	var given []rbacv1.PolicyRule
	permitted := makeRule("escalate", rbacv1.GroupName, r.Resource.Resource, r.Name)
	switch r.Resource.Resource {
	case "roles", "clusterroles":
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object.Object, &role); err != nil {
			return newGrantDenial(r, err.Error())
		}
		given = role.Rules
	case "rolebindings", "clusterrolebindings":
		var binding rbacv1.RoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object.Object, &binding); err != nil {
			return newGrantDenial(r, err.Error())
		}
		ref := binding.RoleRef
		permitted = makeRule("bind", rbacv1.GroupName, strings.ToLower(ref.Kind)+"s", ref.Name)
		rules, known := a.getRoleRules(ref, r.Namespace)
		if !known && !a.permits(r.User, r.Namespace, permitted) {
			return newGrantDenial(r, fmt.Sprintf("%s %q is not known here", ref.Kind, ref.Name))
		}
		given = rules
	}
	if a.permits(r.User, r.Namespace, permitted) {
		return nil
	}
	if ok, missing := validation.Covers(a.listRules(r.User, r.Namespace), given); !ok {
		return newGrantDenial(r, fmt.Sprint(missing))
	}
	return nil
}

func newGrantDenial(r Request, why string) *Denial {
	err := apierrors.NewForbidden(schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}, r.Name,
		fmt.Errorf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", r.User.GetName(), r.User.GetGroups(), why))
	return &Denial{DeniedBy: "RBAC", Message: err.Error(), Err: err}
}

// Authorize implements authorizer.Authorizer, for expressions that call the authorizer.
func (a rbac) Authorize(_ context.Context, what authorizer.Attributes) (authorizer.Decision, string, error) {
	rule := rbacv1.PolicyRule{Verbs: []string{what.GetVerb()}, NonResourceURLs: []string{what.GetPath()}}
	if what.IsResourceRequest() {
		resource := what.GetResource()
		if sub := what.GetSubresource(); sub != "" {
			resource += "/" + sub
		}
		rule = makeRule(what.GetVerb(), what.GetAPIGroup(), resource, what.GetName())
	}
	if a.permits(what.GetUser(), what.GetNamespace(), rule) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func makeRule(verb, group, resource, name string) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
	if name != "" {
		rule.ResourceNames = []string{name}
	}
	return rule
}

func (a rbac) permits(who user.Info, namespace string, what rbacv1.PolicyRule) bool {
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return true
	}
	ok, _ := validation.Covers(a.listRules(who, namespace), []rbacv1.PolicyRule{what})
	return ok
}

// listRules returns a user's rules in a namespace, or in the whole cluster.
func (a rbac) listRules(who user.Info, namespace string) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, b := range a.clusterBindings {
		if bindsUser(b.Subjects, who, "") {
			rules, _ := a.getRoleRules(b.RoleRef, "")
			all = append(all, rules...)
		}
	}
	if namespace == "" {
		return all
	}
	for _, b := range a.bindings {
		if b.Namespace == namespace && bindsUser(b.Subjects, who, namespace) {
			rules, _ := a.getRoleRules(b.RoleRef, namespace)
			all = append(all, rules...)
		}
	}
	return all
}

// getRoleRules returns the rules of a role, and whether the role exists.
func (a rbac) getRoleRules(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	if ref.Kind == "ClusterRole" {
		for _, role := range a.clusterRoles {
			if role.Name == ref.Name {
				return role.Rules, true
			}
		}
		return nil, false
	}
	for _, role := range a.roles {
		if role.Name == ref.Name && role.Namespace == namespace {
			return role.Rules, true
		}
	}
	return nil, false
}

func bindsUser(subjects []rbacv1.Subject, who user.Info, namespace string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return who.GetName() == s.Name
		case rbacv1.GroupKind:
			return slices.Contains(who.GetGroups(), s.Name)
		case rbacv1.ServiceAccountKind:
			in := s.Namespace
			if in == "" {
				in = namespace
			}
			return in != "" && serviceaccount.MatchesUsername(in, s.Name, who.GetName())
		default:
			return false
		}
	})
}
