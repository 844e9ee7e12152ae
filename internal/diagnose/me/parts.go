package me

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/refusals"
)

// The functions of this file read parts of Gather's result with few requests, for pages that need
// no more.

// ReadRules reads the rules of a namespace's tenant, by one request: the tenant, the names of its
// namespaces, and the restrictions of the rules.
func ReadRules(ctx context.Context, c client.Reader, namespace string) (*Me, error) {
	var rules v1alpha1.TenantRules
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.TenantRulesName}, &rules)
	switch {
	case apierrors.IsForbidden(err):
		anonymous := strings.Contains(err.Error(), fmt.Sprintf("User %q", user.Anonymous))
		return nil, &NotTenantsError{Namespace: namespace, Hidden: true, Anonymous: anonymous}
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, &NotTenantsError{Namespace: namespace}
	case err != nil:
		return nil, err
	}
	m := &Me{Tenant: rules.Spec.Tenant, Rules: rules.Spec, Restrictions: listRuleRestrictions(&rules.Spec)}
	for _, name := range rules.Spec.Namespaces {
		m.Namespaces = append(m.Namespaces, newNamespace(name))
	}
	return m, nil
}

// ReadRefused reads the workloads of a namespace whose pods are refused, by one request. It returns
// none if the caller may not read events.
func ReadRefused(ctx context.Context, c client.Reader, namespace string) ([]v1alpha1.RefusedWorkload, error) {
	n := newNamespace(namespace)
	var events corev1.EventList
	if err := n.list(ctx, c, "events", &events, client.MatchingFields{"reason": refusals.Reason}); err != nil {
		return nil, err
	}
	var refused []v1alpha1.RefusedWorkload
	for _, w := range refusals.Workloads(events.Items, time.Now()) {
		refused = append(refused, w.RefusedWorkload)
	}
	return refused, nil
}

// ReadQuota reads the quota of one of the tenant's namespaces, by one request.
func (m *Me) ReadQuota(ctx context.Context, c client.Reader, namespace string) error {
	for i := range m.Namespaces {
		if m.Namespaces[i].Name == namespace {
			return m.Namespaces[i].readQuota(ctx, c)
		}
	}
	return nil
}

// ReadAccess reads the caller's access to one namespace, and the RoleBindings in it, by three
// requests. It returns an error if the caller has no access.
func ReadAccess(ctx context.Context, c client.Client, namespace string) (*Me, []rbacv1.RoleBinding, error) {
	m, n := &Me{}, newNamespace(namespace)
	caller, err := m.readCaller(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	bindings, err := n.readRoles(ctx, c, caller)
	if err != nil {
		return nil, nil, err
	}
	if err := n.readAbilities(ctx, c); err != nil {
		return nil, nil, err
	}
	if len(n.Unreadable) > 0 && len(n.Abilities) == 0 {
		return nil, nil, &NotTenantsError{Namespace: namespace, Hidden: true}
	}
	m.Namespaces = []Namespace{n}
	m.Restrictions = listMissingAbilities(m.Namespaces)
	return m, bindings, nil
}

func newNamespace(name string) Namespace {
	return Namespace{Name: name, Roles: []string{}, Abilities: []string{}}
}

// MayList reports whether the caller could list a kind, such as rolebindings.
func (n *Namespace) MayList(kind string) bool { return !slices.Contains(n.Unreadable, kind) }

// readCaller reads the caller's name and groups.
func (m *Me) readCaller(ctx context.Context, c client.Client) (*authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("read your user name: %w", err)
	}
	m.User, m.Groups = review.Status.UserInfo.Username, review.Status.UserInfo.Groups
	return &review.Status.UserInfo, nil
}
