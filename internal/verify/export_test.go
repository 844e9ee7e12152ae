package verify

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	authentication "k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/netpol"
)

// Parts are the parts of a Scratch, for tests that change them.
func (s *Scratch) Parts() (platform *estate.Platform, by, on *estate.Tenant) {
	return s.platform, s.by, s.on
}

// Users are who Runners act as, by tenant and role.
func Users(tenants ...*estate.Tenant) map[string]map[v1alpha1.Role]authentication.Info {
	all := map[string]map[v1alpha1.Role]authentication.Info{}
	for _, t := range tenants {
		all[t.Name] = map[v1alpha1.Role]authentication.Info{}
		for role, as := range identities(t) {
			all[t.Name][role] = &authentication.DefaultInfo{Name: as.UserName, Groups: as.Groups}
		}
	}
	return all
}

// Judge is a Runner's judgement of the answer to an attack.
func Judge(a attack.Attack, err error, warnings []string, outcome error) Result {
	return judge(a, answer{err: err, warnings: warnings, outcome: outcome})
}

// OfflineRunner judges flows by some network policies, and nothing else.
func OfflineRunner(policies *netpol.Map) *Runner { return &Runner{policies: policies} }

// Tell sets the Runner's callback for each answer to a request; nil for none. No request
// may be under way.
func (r *Runner) Tell(answered func(a attack.Attack, got client.Object, err error, warnings []string)) {
	r.answered = answered
}

// Kind is a resource or a subresource that a cluster serves.
type Kind struct {
	Resource    schema.GroupVersionResource
	Subresource string
	Object      schema.GroupVersionKind
	Namespaced  bool
	Verbs       []attack.Verb
}

// String is the resource's name for people.
func (k Kind) String() string {
	return kind{GroupVersionResource: k.Resource, subresource: k.Subresource}.label()
}

// Served are all kinds that the cluster serves.
func (r *Runner) Served() ([]Kind, error) {
	found, err := r.discover()
	if err != nil {
		return nil, err
	}
	var all []Kind
	for _, k := range found.kinds {
		all = append(all, Kind{k.GroupVersionResource, k.subresource, k.object, k.namespaced, k.verbs})
	}
	return all, nil
}
