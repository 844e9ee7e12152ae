package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"croft.dev/croft/internal/rules/attack"
)

// servedKinds lists the kinds that the cluster serves.
type servedKinds struct {
	kinds []kind
	// unknown are the groups whose discovery failed, with the error.
	unknown []string
}

// kind is a resource or a subresource.
type kind struct {
	schema.GroupVersionResource
	// subresource is empty for the resource itself.
	subresource string
	object      schema.GroupVersionKind
	namespaced  bool
	verbs       []attack.Verb
}

// rbacName returns the resource's name as in RBAC rules.
func (k kind) rbacName() string {
	if k.subresource == "" {
		return k.Resource
	}
	return k.Resource + "/" + k.subresource
}

// displayName returns the resource's name for messages.
func (k kind) displayName() string {
	if k.Group == "" {
		return k.rbacName()
	}
	return k.Resource + "." + k.Group + strings.TrimPrefix(k.rbacName(), k.Resource)
}

// discoverKinds lists all resources that the cluster serves, each in one version: RBAC rules do not
// depend on versions.
func (r *Runner) discoverKinds() (*servedKinds, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.served != nil {
		return r.served, nil
	}
	_, lists, err := r.discovery.ServerGroupsAndResources()
	all := &servedKinds{}
	if failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err); ok {
		for gv := range maps.Keys(failed) {
			all.unknown = append(all.unknown, gv.String())
		}
		slices.Sort(all.unknown)
	} else if err != nil {
		return nil, fmt.Errorf("discover the cluster's kinds: %w", err)
	}
	seen := map[schema.GroupResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			k := newKind(gv, &list.APIResources[i])
			id := schema.GroupResource{Group: k.Group, Resource: k.rbacName()}
			if !seen[id] {
				seen[id] = true
				all.kinds = append(all.kinds, k)
			}
		}
	}
	r.served = all
	return all, nil
}

func newKind(gv schema.GroupVersion, r *metav1.APIResource) kind {
	name, subresource, _ := strings.Cut(r.Name, "/")
	k := kind{
		GroupVersionResource: gv.WithResource(name), subresource: subresource, namespaced: r.Namespaced,
		object: schema.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind},
	}
	// A subresource may have a kind of another group, such as an autoscaling/v1 Scale.
	if r.Version != "" {
		k.object.Group, k.object.Version = r.Group, r.Version
	}
	for _, v := range r.Verbs {
		k.verbs = append(k.verbs, attack.Verb(v))
	}
	return k
}
