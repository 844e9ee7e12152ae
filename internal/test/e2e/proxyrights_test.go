package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/walls/wall/identity"
)

// enableProxyAccount enables the platform's proxy, and returns a token of its service account
// once the operator has given it permissions.
func (p *proxiedCluster) enableProxyAccount(t testing.TB) string {
	t.Helper()
	platform := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"proxy":{}}}`))
	if err := p.admin.Patch(t.Context(), platform, patch); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: identity.ProxyRole}}
	createObjects(t, p.admin, account)
	awaitCondition(t, moments, "the proxy to have permissions", func(ctx context.Context) error {
		role := &rbacv1.ClusterRole{}
		if err := p.admin.Get(ctx, client.ObjectKey{Name: identity.ProxyRole}, role); err != nil {
			return err
		}
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.ResourceNames, ownGroup) }) {
			return errors.New("it may not impersonate " + ownGroup)
		}
		return p.admin.Get(ctx, client.ObjectKey{Name: identity.ProxyRole}, &rbacv1.ClusterRoleBinding{})
	})
	given, err := kubernetes.NewForConfigOrDie(p.Config).CoreV1().ServiceAccounts(account.Namespace).
		CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return given.Status.Token
}

// testProxyStolenToken fails if the token of the proxy's service account can impersonate a node, a
// service account, an admin or a member of a group that the platform does not name, or if it
// can read objects without impersonation.
func testProxyStolenToken(t *testing.T, p *proxiedCluster) {
	thief := func(as rest.ImpersonationConfig) kubernetes.Interface {
		config := rest.AnonymousClientConfig(p.Config)
		config.BearerToken, config.Impersonate = p.proxyToken, as
		return kubernetes.NewForConfigOrDie(config)
	}
	for _, test := range []struct {
		about string
		as    rest.ImpersonationConfig
	}{
		{"no user", rest.ImpersonationConfig{}},
		{"a node", rest.ImpersonationConfig{UserName: "system:node:n1"}},
		{"a node, by its group", rest.ImpersonationConfig{UserName: "oidc:jane", Groups: []string{"system:nodes"}}},
		{"a service account", rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:namespace-controller"}},
		{"service accounts, by their group", rest.ImpersonationConfig{UserName: "oidc:jane", Groups: []string{"system:serviceaccounts:kube-system"}}},
		{"croft's operator", rest.ImpersonationConfig{UserName: "system:serviceaccount:croft-system:croft"}},
		{"an admin", rest.ImpersonationConfig{UserName: "oidc:jane", Groups: []string{"system:masters"}}},
		{"an admin, among her own groups", rest.ImpersonationConfig{UserName: "oidc:jane", Groups: []string{ownGroup, "system:masters"}}},
		{"a group that no tenant names", rest.ImpersonationConfig{UserName: "oidc:jane", Groups: []string{"oidc:cloud-admins"}}},
		{"the anonymous user, with a group", rest.ImpersonationConfig{UserName: "system:anonymous", Groups: []string{"system:masters"}}},
		{"an extra value", rest.ImpersonationConfig{UserName: "oidc:jane", Extra: map[string][]string{"scopes": {"all"}}}},
		{"a node's credential", rest.ImpersonationConfig{UserName: "oidc:jane", Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}}}},
	} {
		c := thief(test.as).CoreV1()
		for what, err := range map[string]error{
			"lists Secrets": getError(c.Secrets("kube-system").List(t.Context(), metav1.ListOptions{})),
			"lists volumes": getError(c.PersistentVolumes().List(t.Context(), metav1.ListOptions{})),
			"creates a pod": getError(c.Pods(ownNamespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("impersonating %s, the proxy's token %s: %v", test.about, what, err)
			}
		}
	}
	// The proxy's own reads work only without impersonation.
	if _, err := thief(rest.ImpersonationConfig{UserName: "oidc:jane", Groups: []string{ownGroup}}).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("as jane, the proxy's token lists nodes: %v", err)
	}
	nodes := thief(rest.ImpersonationConfig{}).CoreV1().Nodes()
	if err := nodes.Delete(t.Context(), "n1", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsForbidden(err) {
		t.Errorf("the proxy's token deletes nodes: %v", err)
	}
	// Impersonating a user with known groups works.
	if _, err := thief(rest.ImpersonationConfig{UserName: "oidc:jane", Groups: []string{ownGroup}}).CoreV1().Pods(ownNamespace).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the proxy cannot impersonate jane: %v", err)
	}
}

func getError[T any](_ T, err error) error { return err }
