package network

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// inDialect are further attacks for walls that are not written as NetworkPolicies.
func inDialect(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	switch p.Network.Dialect {
	case v1alpha1.DialectCalico:
		return append(calicoAttacks(p, by, on), guarded(p, own, other, map[string]client.Object{
			"NetworkPolicy":        openNetworkPolicy(own),
			"Calico NetworkPolicy": openCalico(calicoKind(&p.Network), own),
		})...)
	case v1alpha1.DialectClusterNetworkPolicy:
		return append(clusterAttacks(clusterNetworkPolicyKind, by), guarded(p, own, other, map[string]client.Object{"NetworkPolicy": openNetworkPolicy(own)})...)
	case v1alpha1.DialectAWS:
		return append(clusterAttacks(awsKind, by), guarded(p, own, other, map[string]client.Object{"NetworkPolicy": openNetworkPolicy(own)})...)
	default:
		return nil
	}
}

// guarded are connections that must be denied although a policy allows all traffic. Such a
// policy may come from a user with permission to write it.
func guarded(p *estate.Platform, own, other string, open map[string]client.Object) []attack.Attack {
	var all []attack.Attack
	for _, kind := range []string{"NetworkPolicy", "Calico NetworkPolicy"} {
		policy, ok := open[kind]
		if !ok {
			continue
		}
		suffix := "-although-let"
		if kind != "NetworkPolicy" {
			suffix = "-although-let-by-calico"
		}
		though := ", although a " + kind + " lets everything through"
		with := func(f attack.Flow) attack.Flow {
			f.Beside = []client.Object{policy}
			return f
		}
		all = append(all,
			flow("be-called-by-other-tenant"+suffix, "be connected to from another tenant"+though, with(attack.Flow{FromNamespace: other, ToNamespace: own, Port: 8080})),
			flow("be-called-from-unmanaged-namespace"+suffix, "be connected to from a namespace that is nobody's"+though, with(attack.Flow{FromNamespace: metav1.NamespaceDefault, ToNamespace: own, Port: 8080})),
		)
		all = append(all, askMetadata(p, own, suffix, though, with)...)
	}
	return attack.Because("who writes a policy in haste must not open a tenant to all others", nil, all...)
}

func openNetworkPolicy(namespace string) client.Object {
	return written(namespace, "open", []networkingv1.NetworkPolicyIngressRule{{}}, []networkingv1.NetworkPolicyEgressRule{{}})
}

// openCalico returns a policy that allows all traffic. It is evaluated after croft's guard
// and before croft's other policies.
func openCalico(kind schema.GroupVersionKind, namespace string) client.Object {
	return ownCalico(kind, namespace, "open", 500, []any{tree{"action": "Allow"}}, []any{tree{"action": "Allow"}})
}

// ownCalico returns a policy as a tenant writes it.
func ownCalico(kind schema.GroupVersionKind, namespace, name string, order int64, in, out []any) *unstructured.Unstructured {
	spec := tree{"order": order, "selector": "all()"}
	if in != nil {
		spec["ingress"] = in
	}
	if out != nil {
		spec["egress"] = out
	}
	return attack.Custom(kind.GroupVersion().String(), kind.Kind, namespace, calicoName(kind, "croft-"+name), spec)
}

// clusterAttacks try to change the existing cluster-wide policy, and to write another one
// that comes before it.
func clusterAttacks(kind schema.GroupVersionKind, by *estate.Tenant) []attack.Attack {
	guard := attack.Custom(kind.GroupVersion().String(), kind.Kind, "", ClusterGuard(by.Name), nil)
	rule := tree{"action": "Accept", "from": []any{tree{"namespaces": tree{}}}}
	before := attack.Custom(kind.GroupVersion().String(), kind.Kind, "", "croft-verify-before-the-guard", tree{
		"tier": "Admin", "priority": int64(0), "subject": tree{"namespaces": tree{}}, "ingress": []any{rule},
	})
	edit := attack.Changing("edit-cluster-guard", "let everybody in by editing croft's ClusterNetworkPolicy", attack.ByRBAC, guard, func(o *unstructured.Unstructured) {
		o.Object["spec"].(tree)["ingress"] = []any{rule}
	})
	edit.Setup = nil // it exists already
	return attack.Because("a policy of the whole cluster is every tenant's", nil,
		attack.Creating("write-cluster-policy", "write a ClusterNetworkPolicy that lets everybody in everywhere, before all others", attack.ByRBAC, before),
		attack.Deleting("delete-cluster-guard", "delete croft's ClusterNetworkPolicy", attack.ByRBAC, guard),
		edit,
	)
}
