package proxy

import (
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// visibility is an index of RBAC that answers which namespaces a user may get. It
// precomputes the answer for each subject of a binding, so that a check costs one lookup
// per group.
//
// It ignores names, labels and annotations of namespaces, because tenants can write some of
// them.
type visibility struct {
	mutex sync.RWMutex
	// roles is the access that each Role and ClusterRole grants.
	roles map[roleKey]access
	// bindings are keyed by namespace ("" for ClusterRoleBindings) and name.
	bindings map[string]map[string]binding
	// subjects contains the access of each subject, keyed by the namespace and name of the
	// binding that grants it.
	subjects map[subject]map[string]map[string]access
}

// roleKey identifies a Role, or a ClusterRole if namespace is empty.
type roleKey struct{ namespace, name string }

// subject is a user or a group.
type subject struct {
	group bool
	name  string
}

// binding is a RoleBinding or ClusterRoleBinding.
type binding struct {
	role     roleKey
	subjects []subject
}

// access is the set of namespaces that a role lets its subjects get.
type access struct {
	// all is true if a rule has no resource names: it covers every namespace in the scope
	// of the binding.
	all bool
	// names contains the resource names of rules.
	names sets.Set[string]
	// list is true if a rule grants list on namespaces. It takes effect only in a
	// ClusterRoleBinding.
	list bool
}

func newVisibility() *visibility {
	return &visibility{
		roles: map[roleKey]access{}, bindings: map[string]map[string]binding{}, subjects: map[subject]map[string]map[string]access{},
	}
}

// parseAccess returns the access that rules grant.
func parseAccess(rules []rbacv1.PolicyRule) access {
	a := access{names: sets.New[string]()}
	for _, r := range rules {
		if !includes(r.APIGroups, "") || !includes(r.Resources, "namespaces") {
			continue
		}
		if includes(r.Verbs, "get") {
			a.all = a.all || len(r.ResourceNames) == 0
			a.names.Insert(r.ResourceNames...)
		}
		a.list = a.list || includes(r.Verbs, "list") && len(r.ResourceNames) == 0
	}
	return a
}

func includes(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, rbacv1.VerbAll)
}

// covers reports whether the access extends to a namespace that is in the scope of the
// binding.
func (a access) covers(namespace string) bool { return a.all || a.names.Has(namespace) }

// accessChange is a change of the users who may get some namespaces.
type accessChange struct {
	// namespaces lists the affected namespaces; "" means all.
	namespaces []string
	// revoked lists the grants that ended or changed.
	revoked []revocation
}

// revocation is a grant that ended or changed: its subjects may have lost the access.
type revocation struct {
	// namespace is the binding's namespace, or "" for a ClusterRoleBinding.
	namespace string
	access    access
	subjects  []subject
}

// listRevokedIn returns the subjects that may have lost access to a namespace by a RoleBinding
// in it.
func (c accessChange) listRevokedIn(namespace string) (all []subject) {
	for _, r := range c.revoked {
		if r.namespace == namespace && r.access.covers(namespace) {
			all = append(all, r.subjects...)
		}
	}
	return all
}

// listRevokedFor returns the subjects that may have lost access to a namespace by any binding.
func (c accessChange) listRevokedFor(namespace string) (all []subject) {
	for _, r := range c.revoked {
		if (r.namespace == "" || r.namespace == namespace) && r.access.covers(namespace) {
			all = append(all, r.subjects...)
		}
	}
	return all
}

// setRole stores a Role or ClusterRole. Nil rules delete it.
func (v *visibility) setRole(key roleKey, rules []rbacv1.PolicyRule) accessChange {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	next, previous := parseAccess(rules), v.roles[key]
	if previous.all == next.all && previous.list == next.list && previous.names.Equal(next.names) {
		return accessChange{}
	}
	v.roles[key] = next
	if len(rules) == 0 {
		delete(v.roles, key)
	}
	var changed accessChange
	for namespace, bindings := range v.bindings {
		for name, b := range bindings {
			if b.role == key {
				v.grant(namespace, name, b)
				changed.namespaces = append(changed.namespaces, namespace)
				changed.revoked = append(changed.revoked, revocation{namespace, previous, b.subjects})
			}
		}
	}
	return changed
}

// setBinding stores a RoleBinding, or a ClusterRoleBinding if namespace is empty. Without
// subjects it deletes the binding.
func (v *visibility) setBinding(namespace, name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) accessChange {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	previous := v.bindings[namespace][name]
	v.revoke(namespace, name, previous)
	delete(v.bindings[namespace], name)
	if len(subjects) > 0 {
		b := binding{role: roleKey{name: ref.Name}}
		if ref.Kind == "Role" {
			b.role.namespace = namespace
		}
		for _, s := range subjects {
			b.subjects = append(b.subjects, toSubject(s))
		}
		if v.bindings[namespace] == nil {
			v.bindings[namespace] = map[string]binding{}
		}
		v.bindings[namespace][name] = b
		v.grant(namespace, name, b)
	}
	return accessChange{[]string{namespace}, []revocation{{namespace, v.roles[previous.role], previous.subjects}}}
}

func toSubject(s rbacv1.Subject) subject {
	switch s.Kind {
	case rbacv1.GroupKind:
		return subject{group: true, name: s.Name}
	case rbacv1.ServiceAccountKind:
		return subject{name: serviceaccount.MakeUsername(s.Namespace, s.Name)}
	default:
		return subject{name: s.Name}
	}
}

// grant gives the subjects of a binding the access of its role.
func (v *visibility) grant(namespace, name string, b binding) {
	v.revoke(namespace, name, b)
	granted, ok := v.roles[b.role]
	if !ok {
		return
	}
	for _, s := range b.subjects {
		if v.subjects[s] == nil {
			v.subjects[s] = map[string]map[string]access{}
		}
		if v.subjects[s][namespace] == nil {
			v.subjects[s][namespace] = map[string]access{}
		}
		v.subjects[s][namespace][name] = granted
	}
}

// revoke undoes grant.
func (v *visibility) revoke(namespace, name string, b binding) {
	for _, s := range b.subjects {
		delete(v.subjects[s][namespace], name)
		if len(v.subjects[s][namespace]) == 0 {
			delete(v.subjects[s], namespace)
		}
		if len(v.subjects[s]) == 0 {
			delete(v.subjects, s)
		}
	}
}

// listSubjects returns the subjects by which bindings can refer to a user: the user and their
// groups.
func listSubjects(u user.Info) []subject {
	all := []subject{{name: u.GetName()}}
	for _, g := range u.GetGroups() {
		all = append(all, subject{group: true, name: g})
	}
	return all
}

// canListAll reports whether the API server lets a user list all namespaces.
func (v *visibility) canListAll(u user.Info) bool {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return true
	}
	return v.hasAccess(u, "", func(a access) bool { return a.list })
}

// canSee implements visibilityIndex: it reports whether a user may get a namespace.
func (v *visibility) canSee(u user.Info, namespace string) bool {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	covers := func(a access) bool { return a.covers(namespace) }
	return v.hasAccess(u, "", covers) || v.hasAccess(u, namespace, covers)
}

// hasAccess reports whether one of the user's bindings in a namespace has access for which
// match is true.
func (v *visibility) hasAccess(u user.Info, namespace string, match func(access) bool) bool {
	for _, s := range listSubjects(u) {
		for _, granted := range v.subjects[s][namespace] {
			if match(granted) {
				return true
			}
		}
	}
	return false
}

// visibleTo implements visibilityIndex: it returns the names of the namespaces that a user may get,
// including namespaces that do not exist.
func (v *visibility) visibleTo(u user.Info) (names sets.Set[string], all bool) {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	names = sets.New[string]()
	for _, s := range listSubjects(u) {
		for namespace, granted := range v.subjects[s] {
			for _, a := range granted {
				switch {
				case namespace != "" && a.covers(namespace):
					names.Insert(namespace)
				case namespace == "" && a.all:
					return nil, true
				case namespace == "":
					names = names.Union(a.names)
				}
			}
		}
	}
	return names, false
}

// listRoleNamespaces returns the namespaces that a user may get by a RoleBinding in them.
// ClusterRoleBindings do not count: a user who may get every namespace, such as a
// controller, is not a member of a tenant because of that.
func (v *visibility) listRoleNamespaces(u user.Info) sets.Set[string] {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	names := sets.New[string]()
	for _, s := range listSubjects(u) {
		for namespace, granted := range v.subjects[s] {
			for _, a := range granted {
				if namespace != "" && a.covers(namespace) {
					names.Insert(namespace)
				}
			}
		}
	}
	return names
}

// listSubjectsIn returns the subjects that may get a namespace by a RoleBinding in it.
func (v *visibility) listSubjectsIn(namespace string) (all []subject) {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	for _, b := range v.bindings[namespace] {
		if v.roles[b.role].covers(namespace) {
			all = append(all, b.subjects...)
		}
	}
	return all
}
