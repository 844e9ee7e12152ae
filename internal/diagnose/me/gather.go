package me

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/refusals"
)

// NotTenantsError reports that a namespace belongs to no tenant of the caller.
type NotTenantsError struct {
	Namespace string
	// Hidden means that the caller may not read the namespace's TenantRules.
	Hidden bool
	// Anonymous means that the API server did not authenticate the caller.
	Anonymous bool
}

// Error implements error.
func (e *NotTenantsError) Error() string {
	if e.Anonymous {
		return "you are not logged in, the API server calls you system:anonymous: run croft login, or correct the user of the kubeconfig's context"
	}
	if e.Hidden {
		return fmt.Sprintf("you have no role in namespace %s: name a namespace of your tenant with -n NAMESPACE, or in the kubeconfig's context; "+
			"the platform's admins know which are yours; a role of the platform's own may lack the right to get tenantrules.croft.dev", e.Namespace)
	}
	return fmt.Sprintf("namespace %s belongs to no tenant: name a namespace of your tenant with -n NAMESPACE, or in the kubeconfig's context", e.Namespace)
}

// Gather reads the caller's state in the tenant of a namespace. Only the platform's users
// may list namespaces: the TenantRules in one namespace list the others.
func Gather(ctx context.Context, c client.Client, namespace string) (*Me, error) {
	m, err := ReadRules(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	caller, err := m.readCaller(ctx, c)
	if err != nil {
		return nil, err
	}
	if m.Declared, err = readDeclared(ctx, c, m.Tenant); err != nil {
		return nil, err
	}
	var refused []corev1.Event
	for i := range m.Namespaces {
		events, err := m.Namespaces[i].gather(ctx, c, caller)
		if err != nil {
			return nil, err
		}
		refused = append(refused, events...)
		ending, err := m.Namespaces[i].readEnding(ctx, c)
		if err != nil {
			return nil, err
		}
		m.Ending = append(m.Ending, ending...)
	}
	slices.SortFunc(m.Ending, func(a, b Ending) int { return a.Until.Compare(b.Until.Time) })
	for _, w := range refusals.Workloads(refused, time.Now()) {
		m.Refused = append(m.Refused, w.RefusedWorkload)
	}
	if m.Classes, err = listClasses(ctx, c, &m.Rules); err != nil {
		return nil, err
	}
	m.Restrictions = slices.Concat(listMissingAbilities(m.Namespaces), m.Restrictions)
	return m, nil
}

// readDeclared returns a Tenant's spec, or nil if the caller may not read it.
func readDeclared(ctx context.Context, c client.Reader, name string) (*v1alpha1.TenantSpec, error) {
	var tenant v1alpha1.Tenant
	switch err := c.Get(ctx, client.ObjectKey{Name: name}, &tenant); {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the tenant %s: %w", name, err)
	}
	return &tenant.Spec, nil
}

// gather reads a namespace, and returns its events about refused pods.
func (n *Namespace) gather(ctx context.Context, c client.Client, caller *authenticationv1.UserInfo) ([]corev1.Event, error) {
	if _, err := n.readRoles(ctx, c, caller); err != nil {
		return nil, err
	}
	if err := n.readQuota(ctx, c); err != nil {
		return nil, err
	}
	var events corev1.EventList
	if err := n.list(ctx, c, "events", &events, client.MatchingFields{"reason": refusals.Reason}); err != nil {
		return nil, err
	}
	slices.Sort(n.Unreadable)
	return events.Items, n.readAbilities(ctx, c)
}

// readEnding reads the TenantNamespaces in the namespace, and returns the ones that end within 24 hours.
func (n *Namespace) readEnding(ctx context.Context, c client.Reader) ([]Ending, error) {
	var requests v1alpha1.TenantNamespaceList
	if err := n.list(ctx, c, "tenantnamespaces", &requests); err != nil {
		return nil, err
	}
	var all []Ending
	for _, r := range requests.Items {
		if r.Status.Until != nil && meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionEnding) != nil {
			all = append(all, Ending{Namespace: r.Name, Request: r.Namespace + "/" + r.Name, Until: *r.Status.Until})
		}
	}
	slices.Sort(n.Unreadable)
	return all, nil
}

// list lists a kind, or records that the caller may not.
func (n *Namespace) list(ctx context.Context, c client.Reader, kind string, into client.ObjectList, opts ...client.ListOption) error {
	switch err := c.List(ctx, into, append(opts, client.InNamespace(n.Name))...); {
	case apierrors.IsForbidden(err):
		n.Unreadable = append(n.Unreadable, kind)
	case err != nil:
		return fmt.Errorf("read %s of namespace %s: %w", kind, n.Name, err)
	}
	return nil
}

// readRoles reads the RoleBindings of the namespace, and finds the caller's roles.
func (n *Namespace) readRoles(ctx context.Context, c client.Reader, caller *authenticationv1.UserInfo) ([]rbacv1.RoleBinding, error) {
	var bindings rbacv1.RoleBindingList
	if err := n.list(ctx, c, "rolebindings", &bindings); err != nil {
		return nil, err
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return matchesUser(s, caller) }) {
			n.Roles = append(n.Roles, b.RoleRef.Name)
		}
	}
	slices.Sort(n.Roles)
	n.Roles = slices.Compact(n.Roles)
	return bindings.Items, nil
}

func (n *Namespace) readQuota(ctx context.Context, c client.Reader) error {
	var quotas corev1.ResourceQuotaList
	err := n.list(ctx, c, "resourcequotas", &quotas)
	n.Quota = listUses(quotas.Items)
	return err
}

func (n *Namespace) readAbilities(ctx context.Context, c client.Client) error {
	rules := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: n.Name}}
	if err := c.Create(ctx, rules); err != nil {
		return fmt.Errorf("read your rights in namespace %s: %w", n.Name, err)
	}
	n.Abilities = ListAbilities(rules.Status.ResourceRules)
	return nil
}

func matchesUser(s rbacv1.Subject, user *authenticationv1.UserInfo) bool {
	switch s.Kind {
	case rbacv1.GroupKind:
		return slices.Contains(user.Groups, s.Name)
	case rbacv1.UserKind:
		return s.Name == user.Username
	default:
		return user.Username == "system:serviceaccount:"+s.Namespace+":"+s.Name
	}
}

func listUses(quotas []corev1.ResourceQuota) []Use {
	var all []Use
	for i := range quotas {
		for name, hard := range quotas[i].Status.Hard {
			used := quotas[i].Status.Used[name]
			u := Use{Resource: name, Used: used.String(), Hard: hard.String()}
			if most := hard.AsApproximateFloat64(); most > 0 {
				u.Percent = int(100 * used.AsApproximateFloat64() / most)
			}
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Use) int { return cmp.Compare(a.Resource, b.Resource) })
	return all
}

// classKinds are the kinds whose names are listed in TenantRules.
var classKinds = []struct {
	name string
	gvk  schema.GroupVersionKind
	of   func(*v1alpha1.TenantRulesSpec) []string
}{
	{"storageClasses", schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}, func(r *v1alpha1.TenantRulesSpec) []string { return r.StorageClasses }},
	{"ingressClasses", schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"}, func(r *v1alpha1.TenantRulesSpec) []string { return r.IngressClasses }},
	{"gatewayClasses", schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "GatewayClass"}, func(r *v1alpha1.TenantRulesSpec) []string { return r.GatewayClasses }},
	{"priorityClasses", schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, func(r *v1alpha1.TenantRulesSpec) []string { return r.PriorityClasses }},
	{"runtimeClasses", schema.GroupVersionKind{Group: "node.k8s.io", Version: "v1", Kind: "RuntimeClass"}, func(r *v1alpha1.TenantRulesSpec) []string { return r.RuntimeClasses }},
}

// listClasses reads the names of classes where the rules allow any. A user who may not read
// them may use them nevertheless.
func listClasses(ctx context.Context, c client.Reader, rules *v1alpha1.TenantRulesSpec) (map[string][]string, error) {
	all := map[string][]string{}
	for _, k := range classKinds {
		if !slices.Contains(k.of(rules), "*") {
			continue
		}
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		switch err := c.List(ctx, &list); {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", k.name, err)
		}
		for i := range list.Items {
			all[k.name] = append(all[k.name], list.Items[i].Name)
		}
	}
	return all, nil
}
