// Package network is the wall that keeps tenants' traffic apart.
package network

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/estate"
)

// Wall is the network wall: nothing comes in from other tenants, nothing goes
// out to the instance metadata address, no policy of a tenant's own can
// change that, and no pod is attached to a network that its tenant is not granted.
type Wall struct{}

// Name implements wall.Wall.
func (Wall) Name() string { return "network" }

// Policies are the floors under tenants' own policies, and who writes definitions of
// networks.
func (Wall) Policies(p *estate.Platform) []admissionpolicy.Validating {
	all := []admissionpolicy.Validating{floor(p), checkDefinitions()}
	if p.Network.Dialect == v1alpha1.DialectCalico {
		all = append(all, calicoFloor(p))
	}
	return all
}

// Pods returns how pods are attached to secondary networks.
func (Wall) Pods(*estate.Platform) admissionpolicy.Pods { return attachments() }

// Platform returns the policies that are not about pods.
func (w Wall) Platform(p *estate.Platform) []client.Object {
	var all []client.Object
	for _, policy := range w.Policies(p) {
		all = append(all, policy.Objects()...)
	}
	return all
}

// Pool returns nothing: pods are told apart by namespace, not by node.
func (Wall) Pool(*estate.Platform, *estate.Pool) []client.Object { return nil }

// Tenant returns the tenant's policies, in the platform's dialect, and the definitions of
// its secondary networks. What denies comes before what lets through, so that nothing
// opens while they are written.
func (Wall) Tenant(p *estate.Platform, t *estate.Tenant) []client.Object {
	terms := termsOf(p, t)
	var all []client.Object
	inEach := func(write func(namespace string) []client.Object) {
		for _, namespace := range t.Namespaces {
			all = append(all, write(namespace)...)
		}
	}
	switch p.Network.Dialect {
	case v1alpha1.DialectCalico:
		inEach(func(namespace string) []client.Object { return terms.calico(calicoKind(&p.Network), namespace) })
	case v1alpha1.DialectClusterNetworkPolicy:
		all = append(all, terms.clusterGuard(clusterNetworkPolicyKind))
		inEach(terms.kubernetes)
	case v1alpha1.DialectAWS:
		all = append(all, terms.clusterGuard(awsKind))
		inEach(terms.kubernetes)
	case v1alpha1.DialectKubernetes:
		fallthrough
	default:
		inEach(terms.kubernetes)
	}
	return append(all, definitions(t)...)
}

// Kinds are those that the platform's dialect needs and a cluster may not have.
func Kinds(p *estate.Platform) []schema.GroupVersionKind {
	switch p.Network.Dialect {
	case v1alpha1.DialectCalico:
		return []schema.GroupVersionKind{calicoKind(&p.Network)}
	case v1alpha1.DialectClusterNetworkPolicy:
		return []schema.GroupVersionKind{clusterNetworkPolicyKind}
	case v1alpha1.DialectAWS:
		return []schema.GroupVersionKind{awsKind}
	case v1alpha1.DialectKubernetes:
		return nil
	default:
		return nil
	}
}
