package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/access/login"
	"croft.dev/croft/internal/declare/scheme"
)

// findNamespace returns the tenant's first namespace. With --server it is the first namespace
// that the user may read there; otherwise it is read from the cluster of the current
// context.
func (a *app) findNamespace(ctx context.Context, o *kubeconfigOptions, session *login.Session, cluster *clientcmdapi.Cluster) (string, error) {
	if o.server == "" {
		c, err := a.newClient()
		if err != nil {
			return "", toFailure(err)
		}
		return findFirstNamespace(ctx, c, o.tenant, "the current context", a.currentNamespace())
	}
	token, err := session.Token(ctx, a.isInteractive())
	if err != nil {
		return "", classifyLoginError(err)
	}
	config := &rest.Config{
		Host: cluster.Server, BearerToken: token.Raw, TLSClientConfig: rest.TLSClientConfig{CAData: cluster.CertificateAuthorityData},
		QPS: -1, WarningHandlerWithContext: rest.NoWarnings{},
	}
	groups := "no groups"
	if len(token.Groups) > 0 {
		groups = "the groups " + strings.Join(token.Groups, ", ")
	}
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return "", toFailure(oneLineError{explainUnreachable(err)})
	}
	namespace, err := findFirstNamespace(ctx, c, o.tenant, fmt.Sprintf("%s, whose token has %s,", token.User, groups))
	if apierrors.IsUnauthorized(err) {
		return "", failuref("%s does not accept tokens of %s for client %s: ask the platform team which issuer and client it expects",
			escapeLine(cluster.Server), o.login.options.Issuer, o.login.options.ClientID)
	}
	return namespace, err
}

// findFirstNamespace returns the first namespace of a tenant that the user may read. Without
// the proxy, members may not list namespaces: then it is the namespace with the tenant's
// name, or one of guesses. who names the user in errors.
func findFirstNamespace(ctx context.Context, c client.Reader, tenant, who string, guesses ...string) (string, error) {
	var declared v1alpha1.Tenant
	err := c.Get(ctx, client.ObjectKey{Name: tenant}, &declared)
	switch {
	case err == nil:
		return append(declared.Spec.Namespaces, tenant)[0], nil // a tenant without namespaces has one with its own name
	case apierrors.IsNotFound(err):
		return "", failuref("there is no tenant %s", tenant)
	case !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err):
		return "", toFailure(oneLineError{explainUnreachable(err)})
	}
	var namespaces corev1.NamespaceList
	err = c.List(ctx, &namespaces, client.MatchingLabels{v1alpha1.TenantLabel: tenant})
	switch {
	case apierrors.IsForbidden(err):
		for _, name := range append([]string{tenant}, guesses...) {
			var namespace corev1.Namespace
			if err := c.Get(ctx, client.ObjectKey{Name: name}, &namespace); err == nil && namespace.Labels[v1alpha1.TenantLabel] == tenant {
				return name, nil
			}
		}
		return "", toFailure(oneLineError{fmt.Errorf("%s may not list the namespaces of tenant %s, and has no role in a namespace %s: name a namespace with --namespace", who, tenant, tenant)})
	case err != nil:
		return "", toFailure(oneLineError{explainUnreachable(err)})
	case len(namespaces.Items) == 0:
		return "", toFailure(oneLineError{fmt.Errorf("%s may see no namespace of tenant %s: ask the platform team which groups have access to the tenant", who, tenant)})
	}
	names := make([]string, len(namespaces.Items))
	for i := range namespaces.Items {
		names[i] = namespaces.Items[i].Name
	}
	return slices.Min(names), nil
}
