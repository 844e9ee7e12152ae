package proxy

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// impersonationFilter removes the groups and extra values that the proxy's ClusterRole does
// not let it impersonate. The API server rejects a whole request if one group may not be
// impersonated. The removed groups have no rights in any tenant, because croft's role lists
// all groups that tenants name.
type impersonationFilter struct {
	// role is the name of the ClusterRole.
	role    string
	current atomic.Pointer[impersonationRights]
}

// impersonationRights are the groups and extra values that a ClusterRole lets its subjects
// impersonate.
type impersonationRights struct {
	// allGroups and allExtras are true for rules without resource names.
	allGroups, allExtras bool
	groups, extras       sets.Set[string]
}

// setRules replaces the rules of the role. They are nil if the role does not exist.
func (f *impersonationFilter) setRules(rules []rbacv1.PolicyRule) {
	rights := &impersonationRights{groups: sets.New[string](), extras: sets.New[string]()}
	for _, r := range rules {
		if !slices.ContainsFunc(r.Verbs, allowsImpersonation) {
			continue
		}
		for _, resource := range r.Resources {
			key, isExtra := strings.CutPrefix(resource, "userextras/")
			switch {
			case resource == rbacv1.ResourceAll:
				rights.allGroups, rights.allExtras = true, true
			case resource == "groups":
				rights.allGroups = rights.allGroups || len(r.ResourceNames) == 0
				rights.groups.Insert(r.ResourceNames...)
			case isExtra:
				rights.extras.Insert(key)
			}
		}
	}
	f.current.Store(rights)
}

func allowsImpersonation(verb string) bool {
	return verb == rbacv1.VerbAll || verb == "impersonate" || verb == "impersonate:user-info"
}

// filterUser returns a user without the groups and extra values that the proxy may not
// impersonate.
func (f *impersonationFilter) filterUser(u user.Info) user.Info {
	rights := f.current.Load()
	if rights == nil {
		rights = &impersonationRights{}
	}
	filtered := &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: slices.Clone(u.GetGroups()), Extra: map[string][]string{}}
	filtered.Groups = slices.DeleteFunc(filtered.Groups, func(g string) bool {
		return !rights.allGroups && g != user.AllAuthenticated && !rights.groups.Has(g)
	})
	for key, values := range u.GetExtra() {
		if rights.allExtras || rights.extras.Has(key) {
			filtered.Extra[key] = values
		}
	}
	return filtered
}

// filterUsers filters the users that an authenticator returns. Service accounts are
// returned unchanged, because the proxy does not impersonate them.
func filterUsers(f *impersonationFilter, next authenticator.Request) authenticator.Request {
	if f == nil {
		return next
	}
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := next.AuthenticateRequest(r)
		if ok && !isServiceAccount(response.User) {
			filtered := *response
			filtered.User = f.filterUser(response.User)
			response = &filtered
		}
		return response, ok, err
	})
}
