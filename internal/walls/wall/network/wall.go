// Package network is the wall that separates tenants' traffic.
package network

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// Wall is the network wall. It denies ingress from other tenants and egress to the instance
// metadata addresses, prevents tenants' own policies from changing that, and attaches pods
// only to networks that their tenant is granted.
type Wall struct{}

// Name implements wall.Wall.
func (Wall) Name() string { return "network" }

// Policies returns the policies on tenants' own network policies, and on definitions of
// networks.
func (Wall) Policies(p *estate.Platform) []admissionpolicy.Validating {
	all := []admissionpolicy.Validating{checkNetworkPolicies(p), checkDefinitions()}
	if p.Network.Dialect == v1alpha1.DialectCalico {
		all = append(all, checkCalicoPolicies(p))
	}
	return all
}

// Pods returns the rules and the mutation that attach pods to secondary networks.
func (Wall) Pods(*estate.Platform) admissionpolicy.Pods { return buildAttachmentRules() }

// Platform returns the policies other than the shared policies on pods.
func (w Wall) Platform(p *estate.Platform) []client.Object {
	var all []client.Object
	for _, policy := range w.Policies(p) {
		all = append(all, policy.Objects()...)
	}
	return all
}

// Pool returns nothing: policies distinguish pods by namespace, not by node.
func (Wall) Pool(*estate.Platform, *estate.Pool) []client.Object { return nil }

// Tenant returns the tenant's policies, in the platform's dialect, the ReferenceGrants for
// connections with other tenants, and the definitions of its secondary networks. Policies that
// deny come before policies that allow, so that no traffic is allowed too early while they are
// written.
func (Wall) Tenant(p *estate.Platform, t *estate.Tenant) []client.Object {
	terms := newTerms(p, t)
	var all []client.Object
	inEach := func(write func(namespace string) []client.Object) {
		for _, namespace := range t.Namespaces {
			all = append(all, write(namespace)...)
		}
	}
	switch p.Network.Dialect {
	case v1alpha1.DialectCalico:
		inEach(func(namespace string) []client.Object {
			return terms.buildCalicoPolicies(findCalicoKind(&p.Network), namespace)
		})
	case v1alpha1.DialectClusterNetworkPolicy:
		all = append(all, terms.buildClusterGuard(clusterNetworkPolicyKind))
		all = append(all, terms.buildClusterPasses(clusterNetworkPolicyKind)...)
		inEach(terms.buildNetworkPolicies)
	case v1alpha1.DialectAWS:
		all = append(all, terms.buildClusterGuard(awsKind))
		all = append(all, terms.buildClusterPasses(awsKind)...)
		inEach(terms.buildNetworkPolicies)
	case v1alpha1.DialectKubernetes:
		fallthrough
	default:
		inEach(terms.buildNetworkPolicies)
	}
	inEach(terms.buildGrants)
	return append(all, buildDefinitions(t)...)
}

// ListKinds returns the kinds that the platform's dialect needs and that a cluster may lack.
func ListKinds(p *estate.Platform) []schema.GroupVersionKind {
	switch p.Network.Dialect {
	case v1alpha1.DialectCalico:
		return []schema.GroupVersionKind{findCalicoKind(&p.Network)}
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
