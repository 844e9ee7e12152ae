package server

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Resource is the resource of the API group croft.dev whose `get` allows to read costs. No object has it.
const Resource = "costs"

// authenticate returns the user of a token for an audience: the API server's if it is empty.
func (s *server) authenticate(ctx context.Context, token, audience string) (authenticationv1.UserInfo, error) {
	if s.Tokens != nil && audience == "" {
		// The API server may accept a token that is unknown here.
		if response, ok, err := s.Tokens.AuthenticateToken(ctx, token); ok && err == nil {
			return convertUser(response.User), nil
		}
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if audience != "" {
		review.Spec.Audiences = []string{audience}
	}
	if err := s.review(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, err
	}
	// An authenticator that ignores audiences leaves them out of the status.
	if audience != "" && !slices.Contains(review.Status.Audiences, audience) {
		return authenticationv1.UserInfo{}, errNoToken
	}
	if user := review.Status.User; review.Status.Authenticated && review.Status.Error == "" && user.Username != "" {
		return user, nil
	}
	return authenticationv1.UserInfo{}, errNoToken
}

// convertUser returns a user as the API server describes it.
func convertUser(u user.Info) authenticationv1.UserInfo {
	extra := map[string]authenticationv1.ExtraValue{}
	for key, values := range u.GetExtra() {
		extra[key] = values
	}
	return authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: extra}
}

func (s *server) review(ctx context.Context, review client.Object) error {
	if !s.limiter.Allow() {
		return errBusy
	}
	return s.Reviews.Create(ctx, review)
}

// mayRead reports whether a user may read costs in a namespace, or in the whole cluster.
func (s *server) mayRead(ctx context.Context, u authenticationv1.UserInfo, namespace string) (bool, error) {
	return s.mayGet(ctx, u, namespace, "")
}

// mayGet reports whether a user may get costs, or a subresource of them, in a namespace or in the whole cluster.
func (s *server) mayGet(ctx context.Context, u authenticationv1.UserInfo, namespace, subresource string) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range u.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.Username, UID: u.UID, Groups: u.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "get",
			Group: v1alpha1.GroupVersion.Group, Resource: Resource, Subresource: subresource},
	}}
	if err := s.review(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}

// access is the part of the costs that a caller may read.
type access struct {
	// cluster means that the caller may read everything. The answer is then limited to the tenant
	// that was named, if there is one.
	cluster bool
	// tenant is the present tenant of the named namespace, or empty for a platform namespace.
	tenant string
	// namespaces are the tenant's namespaces that the caller may read. whole means that these are
	// all, so that deleted namespaces of the tenant are included.
	namespaces map[string]bool
	whole      bool
}

// authorize returns the access of a user to a namespace, or to the cluster if none is named. The error is
// the same for a namespace that does not exist.
func (s *server) authorize(ctx context.Context, u authenticationv1.UserInfo, namespace string) (*access, error) {
	a := &access{namespaces: map[string]bool{}}
	var err error
	if a.cluster, err = s.mayRead(ctx, u, ""); err != nil || a.cluster && namespace == "" {
		return a, err
	}
	if namespace == "" {
		return nil, errForbidden
	}
	if !a.cluster {
		allowed, err := s.mayRead(ctx, u, namespace)
		if err != nil {
			return nil, err
		}
		if !allowed {
			return nil, errForbidden
		}
	}
	a.namespaces[namespace] = true
	return a, nil
}

// addTenant adds the other namespaces of the named namespace's tenant, as far as the user may read them.
func (s *server) addTenant(ctx context.Context, a *access, u authenticationv1.UserInfo, tenants map[string]string) error {
	for namespace := range a.namespaces {
		tenant, exists := tenants[namespace]
		if !exists && !a.cluster {
			return errForbidden
		}
		a.tenant = tenant
	}
	if a.tenant == "" {
		return nil
	}
	a.whole = true
	for namespace, tenant := range tenants {
		if tenant != a.tenant || a.namespaces[namespace] {
			continue
		}
		allowed := a.cluster
		if !allowed {
			var err error
			if allowed, err = s.mayRead(ctx, u, namespace); err != nil {
				return err
			}
		}
		if allowed {
			a.namespaces[namespace] = true
		}
		a.whole = a.whole && allowed
	}
	return nil
}
