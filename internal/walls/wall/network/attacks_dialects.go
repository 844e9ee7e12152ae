package network

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// buildDialectAttacks are further attacks for walls that are not written as NetworkPolicies.
func buildDialectAttacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	open := map[string]func(namespace string) client.Object{"NetworkPolicy": makeOpenNetworkPolicy}
	switch p.Network.Dialect {
	case v1alpha1.DialectCalico:
		open["Calico NetworkPolicy"] = func(namespace string) client.Object { return makeOpenCalico(findCalicoKind(&p.Network), namespace) }
		return append(buildCalicoAttacks(p, by, on), buildGuardAttacks(p, by, on, open)...)
	case v1alpha1.DialectClusterNetworkPolicy:
		return append(buildClusterAttacks(clusterNetworkPolicyKind, by), buildGuardAttacks(p, by, on, open)...)
	case v1alpha1.DialectAWS:
		return append(buildClusterAttacks(awsKind, by), buildGuardAttacks(p, by, on, open)...)
	default:
		return nil
	}
}

// buildGuardAttacks are connections that must be denied although a policy allows all traffic. Such a
// policy may come from a user with permission to write it. open has a function for each kind of policy, which
// returns that policy for a namespace.
func buildGuardAttacks(p *estate.Platform, by, on *estate.Tenant, open map[string]func(namespace string) client.Object) []attack.Attack {
	own, other := by.Namespaces[0], on.Namespaces[0]
	closed := findClosedPort(listOpen(by, on.Name, by.Name, own))
	var all []attack.Attack
	for _, kind := range []string{"NetworkPolicy", "Calico NetworkPolicy"} {
		makePolicy, ok := open[kind]
		if !ok {
			continue
		}
		suffix := "-although-let"
		if kind != "NetworkPolicy" {
			suffix = "-although-let-by-calico"
		}
		though := ", although a " + kind + " lets everything through"
		with := func(f attack.Flow) attack.Flow {
			f.AddedPolicies = []client.Object{makePolicy(own)}
			return f
		}
		beyond := func(c *estate.Connection, to string) attack.Flow {
			return attack.Flow{
				FromNamespace: other, FromLabels: c.CallerPods, ToNamespace: to, ToLabels: c.CalleePods,
				Port:          findClosedPort(append([]estate.Connection{*c}, listOpen(by, c.Caller, c.Callee, to)...)),
				AddedPolicies: []client.Object{makePolicy(to), makeOpenNetworkPolicy(other)},
			}
		}
		all = append(all,
			makeFlow("be-called-by-other-tenant"+suffix, "receive a connection from another tenant"+though, with(attack.Flow{FromNamespace: other, ToNamespace: own, Port: closed})),
			makeFlow("be-called-from-unmanaged-namespace"+suffix, "receive a connection from a namespace without a tenant"+though, with(attack.Flow{FromNamespace: metav1.NamespaceDefault, ToNamespace: own, Port: 8080})),
		)
		if c := by.FindConnection(on.Name, by.Name); c != nil {
			all = append(all, makeFlow("be-called-beyond-agreed-ports"+suffix, "receive a connection on a port to which not both tenants agreed"+though, beyond(c, own)))
		}
		if c := by.FindAccepted(on.Name, by.Name); c != nil {
			all = append(all, makeFlow("be-called-in-a-namespace-beyond-agreed-ports"+suffix, "receive a connection in one namespace on a port to which not both tenants agreed"+though, beyond(c, c.CalleeNamespace)))
		}
		all = append(all, askMetadata(p, own, suffix, though, with)...)
	}
	return attack.WithReason("a policy that was written in haste must not open a tenant to all others", nil, dropWithoutPort(all)...)
}

func makeOpenNetworkPolicy(namespace string) client.Object {
	return makeOwnPolicy(namespace, "open", []networkingv1.NetworkPolicyIngressRule{{}}, []networkingv1.NetworkPolicyEgressRule{{}})
}

// makeOpenCalico returns a policy that allows all traffic. It is evaluated after croft's guard
// and before croft's other policies.
func makeOpenCalico(kind schema.GroupVersionKind, namespace string) client.Object {
	return makeOwnCalico(kind, namespace, "open", 500, []any{tree{"action": "Allow"}}, []any{tree{"action": "Allow"}})
}

// makeOwnCalico returns a policy as a tenant writes it.
func makeOwnCalico(kind schema.GroupVersionKind, namespace, name string, order int64, in, out []any) *unstructured.Unstructured {
	spec := tree{"order": order, "selector": "all()"}
	if in != nil {
		spec["ingress"] = in
	}
	if out != nil {
		spec["egress"] = out
	}
	return attack.NewCustomObject(kind.GroupVersion().String(), kind.Kind, namespace, formatCalicoName(kind, "croft-"+name), spec)
}

// buildClusterAttacks try to change the existing cluster-wide policy, and to write another one
// that comes before it.
func buildClusterAttacks(kind schema.GroupVersionKind, by *estate.Tenant) []attack.Attack {
	guard := attack.NewCustomObject(kind.GroupVersion().String(), kind.Kind, "", ClusterGuardName(by.Name), nil)
	rule := tree{"action": "Accept", "from": []any{tree{"namespaces": tree{}}}}
	before := attack.NewCustomObject(kind.GroupVersion().String(), kind.Kind, "", "croft-verify-before-the-guard", tree{
		"tier": "Admin", "priority": int64(0), "subject": tree{"namespaces": tree{}}, "ingress": []any{rule},
	})
	edit := attack.NewUpdate("edit-cluster-guard", "let everybody in by editing croft's ClusterNetworkPolicy", attack.ByRBAC, guard, func(o *unstructured.Unstructured) {
		o.Object["spec"].(tree)["ingress"] = []any{rule}
	})
	edit.Setup = nil // it exists already
	return attack.WithReason("a policy of the whole cluster affects every tenant", nil,
		attack.NewCreate("write-cluster-policy", "write a ClusterNetworkPolicy that lets everybody in everywhere, before all others", attack.ByRBAC, before),
		attack.NewDelete("delete-cluster-guard", "delete croft's ClusterNetworkPolicy", attack.ByRBAC, guard),
		edit,
	)
}
