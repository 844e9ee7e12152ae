package network

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// canWriteCalico reports whether tenants may write their own Calico policies.
func canWriteCalico(p *estate.Platform) bool {
	return p.Network.Dialect == v1alpha1.DialectCalico && p.Network.Calico != nil && p.Network.Calico.TenantPolicies
}

// buildCalicoAttacks try to write Calico policies that undo croft's.
func buildCalicoAttacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	kind, own, other := findCalicoKind(&p.Network), by.Namespaces[0], on.Namespaces[0]
	everything := []any{tree{"action": "Allow"}}
	global := attack.NewCustomObject(kind.GroupVersion().String(), "GlobalNetworkPolicy", "", formatCalicoName(kind, "croft-verify-for-all"), tree{
		"order": int64(1), "selector": "all()", "ingress": everything,
	})
	all := attack.WithReason("a policy of the whole cluster affects every tenant", nil,
		attack.NewCreate("write-global-policy", "write a Calico GlobalNetworkPolicy that lets everybody in everywhere", attack.ByRBAC, global))
	withoutGuard := func(f attack.Flow) attack.Flow {
		f.OmittedPolicies = []client.Object{attack.NewCustomObject(kind.GroupVersion().String(), kind.Kind, own, formatCalicoName(kind, GuardPolicy), nil)}
		return f
	}
	all = append(all, attack.WithReason("while a wall is written in another dialect, some of its policies are deleted before others", nil,
		askMetadata(p, own, "-without-guard", ", although croft's guard is deleted", withoutGuard)...)...)
	first := func(name, summary string, by attack.Stopper, order int64) attack.Attack {
		return attack.NewCreate(name, summary, by, makeOwnCalico(kind, own, name, order, everything, nil))
	}
	if !canWriteCalico(p) {
		return append(all, attack.WithReason("Calico evaluates the policy of the lowest order first", nil,
			first("write-calico-policy", "write a Calico NetworkPolicy that lets everybody in", attack.ByRBAC, 1))...)
	}
	byOrder := attack.ByPolicy(CalicoFloorPolicy, CalicoOrderRule)
	elsewhere := makeOwnCalico(kind, own, "choose-calico-tier", 500, []any{tree{"action": "Deny"}}, nil)
	elsewhere.Object["spec"].(tree)["tier"] = "first"
	letIn := func(name, summary string, rule tree) attack.Attack {
		return attack.NewCreate(name, summary, attack.ByPolicy(CalicoFloorPolicy, CalicoIngressRule), makeOwnCalico(kind, own, name, 500, []any{rule}, nil))
	}
	letOut := func(name, summary string, rule tree) attack.Attack {
		return attack.NewCreate(name, summary, attack.ByPolicy(CalicoFloorPolicy, CalicoEgressRule), makeOwnCalico(kind, own, name, 500, nil, []any{rule}))
	}
	named := func(namespace string) string { return fmt.Sprintf("%s == '%s'", namespaceName, namespace) }
	from := func(selector string) tree { return tree{"action": "Allow", "source": selectNamespaces(selector)} }
	to := func(destination tree) tree { return tree{"action": "Allow", "destination": destination} }
	all = append(all, attack.WithReason("Calico evaluates the policy of the lowest order first", nil,
		first("come-before-calico-guard", "write a Calico NetworkPolicy that is evaluated before croft's", byOrder, 1),
		first("come-level-with-calico-guard", "write a Calico NetworkPolicy of the same order as croft's, whose name precedes croft's", byOrder, guardOrder),
		attack.NewCreate("choose-calico-tier", "write a Calico NetworkPolicy in a tier that is evaluated before croft's", byOrder, elsewhere),
		attack.NewUpdate("come-before-calico-guard-later", "move a Calico NetworkPolicy of one's own before croft's", byOrder,
			makeOwnCalico(kind, own, "come-before-calico-guard-later", 500, []any{tree{"action": "Deny"}}, nil),
			func(o *unstructured.Unstructured) { o.Object["spec"].(tree)["order"] = int64(1) }),
	)...)
	all = append(all, attack.WithReason("a policy before croft's last policies can allow connections that these do not allow", nil,
		letIn("calico-let-everybody-in", "write a Calico NetworkPolicy that lets everybody in", tree{"action": "Allow"}),
		letIn("calico-pass-everybody-on", "write a Calico NetworkPolicy that passes every connection on to the end of the last tier", tree{"action": "Pass"}),
		letIn("calico-let-every-namespace-in", "write a Calico NetworkPolicy that lets every namespace in", from("all()")),
		letIn("calico-let-other-tenant-in", "write a Calico NetworkPolicy that lets another tenant in", from(named(other))),
		letIn("calico-let-others-in-beside-own", "write a Calico NetworkPolicy that lets others in, together with one's own namespace", from(named(own)+" || all()")),
		letIn("calico-let-all-others-in", "write a Calico NetworkPolicy that lets in every namespace except one's own", from("!"+named(own))),
		letIn("calico-let-hosts-in", "write a Calico NetworkPolicy that lets in sources outside of namespaces", from("global()")),
		letIn("calico-let-every-address-in", "write a Calico NetworkPolicy that lets every address in", tree{"action": "Allow", "source": tree{"nets": []any{"0.0.0.0/0"}}}),
		letIn("calico-let-all-but-some-in", "write a Calico NetworkPolicy that lets in every source without a label", tree{"action": "Allow", "source": tree{"notSelector": "has(nothing)"}}),
		letOut("calico-let-everything-out", "write a Calico NetworkPolicy that lets traffic out everywhere", tree{"action": "Allow"}),
		letOut("calico-let-metadata-out", "write a Calico NetworkPolicy that lets traffic out to every address", to(tree{"nets": []any{everyAddress[0]}})),
		letOut("calico-let-metadata-out-ipv6", "write a Calico NetworkPolicy that lets traffic out to every address over IPv6", to(tree{"nets": []any{everyAddress[1]}})),
		letOut("calico-let-all-but-one-metadata-address-out", "write a Calico NetworkPolicy that excepts one metadata address alone",
			to(tree{"nets": []any{everyAddress[0]}, "notNets": []any{listMetadata(p)[0]}})),
		letOut("calico-let-port-53-out", "write a Calico NetworkPolicy that lets traffic out everywhere on the port of DNS",
			tree{"action": "Allow", "protocol": "UDP", "destination": tree{"ports": []any{int64(estate.DNSPort)}}}),
	)...)
	for _, cidr := range listMetadata(p) {
		name := "calico-let-metadata-out-at-" + hyphens.Replace(formatAddress(cidr))
		all = append(all, attack.WithReason("the address gives the node's own credentials to every client", nil,
			letOut(name, "write a Calico NetworkPolicy that lets traffic out to a small network around "+formatAddress(cidr), to(tree{"nets": []any{widenNetwork(cidr)}})))...)
	}
	if by.Egress == v1alpha1.EgressRestricted {
		all = append(all, attack.WithReason("a tenant that handles data of others may send it only to allowed destinations", nil,
			letOut("calico-let-unlisted-network-out", "write a Calico NetworkPolicy that lets traffic out to a network that is not allowed", to(tree{"nets": []any{"203.0.113.0/24"}})),
			letOut("calico-let-every-namespace-out", "write a Calico NetworkPolicy that lets traffic out to every namespace", to(selectNamespaces("all()"))),
			letOut("calico-let-every-system-pod-out", "write a Calico NetworkPolicy for DNS that names every pod of kube-system", makeCalicoDNSRule(tree{"namespaceSelector": named(metav1.NamespaceSystem)})),
			letOut("calico-let-dns-pods-of-every-namespace-out", "write a Calico NetworkPolicy for DNS that names DNS pods of every namespace", makeCalicoDNSRule(tree{"namespaceSelector": "all()", "selector": "k8s-app == 'kube-dns'"})),
			letOut("calico-let-dns-pods-out-on-every-port", "write a Calico NetworkPolicy that lets traffic out to DNS pods on every port",
				to(tree{"namespaceSelector": named(metav1.NamespaceSystem), "selector": "k8s-app == 'kube-dns'"})),
			letOut("calico-let-unknown-name-server-out", "write a Calico NetworkPolicy for DNS at an address that is no name server of the platform", makeCalicoDNSRule(tree{"nets": []any{"203.0.113.53/32"}})),
			letOut("calico-let-name-server-out-on-every-port", "write a Calico NetworkPolicy that lets traffic out to a name server on every port", to(tree{"nets": []any{formatPrefix(estate.NodeLocalDNS.String())}})),
		)...)
	}
	return all
}

// buildCalicoMirrors are policies that a tenant may write in Calico's API.
func buildCalicoMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	if !canWriteCalico(p) {
		return nil
	}
	kind, own := findCalicoKind(&p.Network), by.Namespaces[0]
	let := func(name, summary string, in, out []any) attack.Attack {
		return attack.NewCreate(name, summary, attack.Nobody, makeOwnCalico(kind, own, name, 500, in, out))
	}
	allow := func(side string, entity tree) []any { return []any{tree{"action": "Allow", side: entity}} }
	all := []attack.Attack{
		let("calico-let-own-pods-in", "write a Calico NetworkPolicy among pods of one namespace", allow("source", tree{"selector": "app == 'web'"}), nil),
		let("calico-let-own-namespace-in", "write a Calico NetworkPolicy that lets one's own namespace in",
			allow("source", selectNamespaces(fmt.Sprintf(`%s == "%s"`, namespaceName, own))), nil),
		let("calico-let-own-tenant-in", "write a Calico NetworkPolicy that lets all of one's own tenant in",
			allow("source", selectNamespaces(fmt.Sprintf("%s == '%s'", v1alpha1.TenantLabel, by.Name))), nil),
		let("calico-let-nobody-in", "write a Calico NetworkPolicy that denies everybody", []any{tree{"action": "Deny"}}, nil),
		let("calico-let-nothing-out", "write a Calico NetworkPolicy that denies all traffic out", nil, []any{tree{"action": "Deny"}}),
	}
	all = append(all,
		attack.SendAsAdmin(let("calico-let-everybody-in-as-platform", "write a Calico NetworkPolicy that lets everybody in", []any{tree{"action": "Allow"}}, nil)),
		attack.SendOutsideTenants(own, let("free-calicopolicy", "write a Calico NetworkPolicy that lets everybody in", []any{tree{"action": "Allow"}}, nil), permitWriting(kind.Group)))
	if by.Egress == v1alpha1.EgressOpen {
		all = append(all,
			let("calico-let-the-internet-out", "write a Calico NetworkPolicy that lets traffic out everywhere but to the metadata address", nil,
				allow("destination", tree{"nets": []any{everyAddress[0]}, "notNets": toAnyList(filterByFamily(everyAddress[0], listMetadata(p)))})),
			let("calico-let-names-be-resolved", "write a Calico NetworkPolicy that lets names be resolved by pods of any namespace", nil,
				[]any{tree{"action": "Allow", "protocol": "UDP", "destination": tree{"namespaceSelector": "all()", "ports": []any{int64(estate.DNSPort)}}}}))
	}
	if by.Egress == v1alpha1.EgressRestricted {
		all = append(all,
			let("calico-let-names-be-resolved-although-restricted", "write a Calico NetworkPolicy for DNS, with Restricted egress", nil,
				[]any{makeCalicoDNSRule(tree{"namespaceSelector": `projectcalico.org/name == "kube-system"`, "selector": `k8s-app == "kube-dns"`})}),
			let("calico-let-names-be-resolved-at-the-node", "write a Calico NetworkPolicy for the name server of each node, with Restricted egress", nil,
				[]any{makeCalicoDNSRule(tree{"nets": []any{formatPrefix(estate.NodeLocalDNS.String())}})}))
	}
	for _, cidr := range by.AllowCIDRs[:min(1, len(by.AllowCIDRs))] {
		all = append(all, let("calico-let-allowed-network-out", "write a Calico NetworkPolicy that lets traffic out to a network that the tenant is allowed", nil,
			allow("destination", tree{"nets": []any{cidr}})))
	}
	return all
}

// makeCalicoDNSRule returns a rule that allows DNS at a destination.
func makeCalicoDNSRule(destination tree) tree {
	destination["ports"] = []any{int64(estate.DNSPort)}
	return tree{"action": "Allow", "protocol": "UDP", "destination": destination}
}
