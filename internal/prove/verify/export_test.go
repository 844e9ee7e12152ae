package verify

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	authentication "k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
)

// GetParts returns the parts of a Scratch, for tests that change them.
func (s *Scratch) GetParts() (platform *estate.Platform, by, on *estate.Tenant) {
	return s.platform, s.attacker, s.target
}

// ListUsers returns the identities that Runners impersonate, by tenant and role.
func ListUsers(tenants ...*estate.Tenant) map[string]map[v1alpha1.Role]authentication.Info {
	all := map[string]map[v1alpha1.Role]authentication.Info{}
	for _, t := range tenants {
		all[t.Name] = map[v1alpha1.Role]authentication.Info{}
		for role, as := range listIdentities(t) {
			all[t.Name][role] = &authentication.DefaultInfo{Name: as.UserName, Groups: as.Groups}
		}
	}
	return all
}

// EvaluateAnswer returns a Runner's result for the answer to an attack.
func EvaluateAnswer(a attack.Attack, err error, warnings []string, outcome error) Result {
	return classifyAnswer(a, answer{err: err, warnings: warnings, outcome: outcome})
}

// NewOfflineRunner returns a Runner that only evaluates flows, by the given network policies.
func NewOfflineRunner(policies *netpol.Map) *Runner { return &Runner{policies: policies} }

// Refresh discards the data read from the cluster, after a change by the caller.
func (r *Runner) Refresh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.policies, r.served = nil, nil
}

// Tell sets the Runner's callback for each answer to a request, or removes it if it is nil. No
// request may be in flight.
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

// String returns the resource's name for messages.
func (k Kind) String() string {
	return kind{GroupVersionResource: k.Resource, subresource: k.Subresource}.displayName()
}

// ListServed returns all kinds that the cluster serves.
func (r *Runner) ListServed() ([]Kind, error) {
	found, err := r.discoverKinds()
	if err != nil {
		return nil, err
	}
	var all []Kind
	for _, k := range found.kinds {
		all = append(all, Kind{k.GroupVersionResource, k.subresource, k.object, k.namespaced, k.verbs})
	}
	return all, nil
}
