package network

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// mayWriteCalico reports whether tenants may write their own Calico policies.
func mayWriteCalico(p *estate.Platform) bool {
	return p.Network.Dialect == v1alpha1.DialectCalico && p.Network.Calico != nil && p.Network.Calico.TenantPolicies
}

// calicoAttacks try to write Calico policies that undo croft's.
func calicoAttacks(p *estate.Platform, by, on *estate.Tenant) []attack.Attack {
	kind, own, other := calicoKind(&p.Network), by.Namespaces[0], on.Namespaces[0]
	everything := []any{tree{"action": "Allow"}}
	global := attack.Custom(kind.GroupVersion().String(), "GlobalNetworkPolicy", "", calicoName(kind, "croft-verify-for-all"), tree{
		"order": int64(1), "selector": "all()", "ingress": everything,
	})
	all := attack.Because("a policy of the whole cluster is every tenant's", nil,
		attack.Creating("write-global-policy", "write a Calico GlobalNetworkPolicy that lets everybody in everywhere", attack.ByRBAC, global))
	gone := func(f attack.Flow) attack.Flow {
		f.Without = []client.Object{attack.Custom(kind.GroupVersion().String(), kind.Kind, own, calicoName(kind, GuardPolicy), nil)}
		return f
	}
	all = append(all, attack.Because("while a wall is written in another dialect, some of its policies are gone before others", nil,
		askMetadata(p, own, "-without-guard", ", although croft's guard is gone", gone)...)...)
	first := func(name, summary string, by attack.Stopper, order int64) attack.Attack {
		return attack.Creating(name, summary, by, ownCalico(kind, own, name, order, everything, nil))
	}
	if !mayWriteCalico(p) {
		return append(all, attack.Because("Calico asks the policy of the lowest order first", nil,
			first("write-calico-policy", "write a Calico NetworkPolicy that lets everybody in", attack.ByRBAC, 1))...)
	}
	byOrder := attack.ByPolicy(CalicoFloorPolicy, CalicoOrderRule)
	elsewhere := ownCalico(kind, own, "choose-calico-tier", 500, []any{tree{"action": "Deny"}}, nil)
	elsewhere.Object["spec"].(tree)["tier"] = "first"
	letIn := func(name, summary string, rule tree) attack.Attack {
		return attack.Creating(name, summary, attack.ByPolicy(CalicoFloorPolicy, CalicoIngressRule), ownCalico(kind, own, name, 500, []any{rule}, nil))
	}
	letOut := func(name, summary string, rule tree) attack.Attack {
		return attack.Creating(name, summary, attack.ByPolicy(CalicoFloorPolicy, CalicoEgressRule), ownCalico(kind, own, name, 500, nil, []any{rule}))
	}
	named := func(namespace string) string { return fmt.Sprintf("%s == '%s'", namespaceName, namespace) }
	from := func(selector string) tree { return tree{"action": "Allow", "source": inNamespaces(selector)} }
	to := func(destination tree) tree { return tree{"action": "Allow", "destination": destination} }
	all = append(all, attack.Because("Calico asks the policy of the lowest order first", nil,
		first("come-before-calico-guard", "write a Calico NetworkPolicy that is asked before croft's", byOrder, 1),
		first("come-level-with-calico-guard", "write a Calico NetworkPolicy of the same order as croft's, which its name brings before it", byOrder, guardOrder),
		attack.Creating("choose-calico-tier", "write a Calico NetworkPolicy in a tier that is asked before croft's", byOrder, elsewhere),
		attack.Changing("come-before-calico-guard-later", "bring a Calico NetworkPolicy of one's own before croft's", byOrder,
			ownCalico(kind, own, "come-before-calico-guard-later", 500, []any{tree{"action": "Deny"}}, nil),
			func(o *unstructured.Unstructured) { o.Object["spec"].(tree)["order"] = int64(1) }),
	)...)
	all = append(all, attack.Because("what comes before croft's last policies can let in what they do not", nil,
		letIn("calico-let-everybody-in", "write a Calico NetworkPolicy that lets everybody in", tree{"action": "Allow"}),
		letIn("calico-pass-everybody-on", "write a Calico NetworkPolicy that passes everybody on behind the last tier", tree{"action": "Pass"}),
		letIn("calico-let-every-namespace-in", "write a Calico NetworkPolicy that lets every namespace in", from("all()")),
		letIn("calico-let-other-tenant-in", "write a Calico NetworkPolicy that lets another tenant in", from(named(other))),
		letIn("calico-let-others-in-beside-own", "write a Calico NetworkPolicy that lets others in beside one's own namespace", from(named(own)+" || all()")),
		letIn("calico-let-all-others-in", "write a Calico NetworkPolicy that lets in what is not of one's own", from("!"+named(own))),
		letIn("calico-let-hosts-in", "write a Calico NetworkPolicy that lets in what is in no namespace", from("global()")),
		letIn("calico-let-every-address-in", "write a Calico NetworkPolicy that lets every address in", tree{"action": "Allow", "source": tree{"nets": []any{"0.0.0.0/0"}}}),
		letIn("calico-let-all-but-some-in", "write a Calico NetworkPolicy that lets in whatever does not carry a label", tree{"action": "Allow", "source": tree{"notSelector": "has(nothing)"}}),
		letOut("calico-let-everything-out", "write a Calico NetworkPolicy that lets traffic out everywhere", tree{"action": "Allow"}),
		letOut("calico-let-metadata-out", "write a Calico NetworkPolicy that lets traffic out to every address", to(tree{"nets": []any{everyAddress[0]}})),
		letOut("calico-let-metadata-out-ipv6", "write a Calico NetworkPolicy that lets traffic out to every address over IPv6", to(tree{"nets": []any{everyAddress[1]}})),
		letOut("calico-let-all-but-one-metadata-address-out", "write a Calico NetworkPolicy that excepts one metadata address alone",
			to(tree{"nets": []any{everyAddress[0]}, "notNets": []any{metadata(p)[0]}})),
		letOut("calico-let-port-53-out", "write a Calico NetworkPolicy that lets traffic out everywhere on the port of DNS",
			tree{"action": "Allow", "protocol": "UDP", "destination": tree{"ports": []any{int64(estate.DNSPort)}}}),
	)...)
	for _, cidr := range metadata(p) {
		name := "calico-let-metadata-out-at-" + hyphens.Replace(address(cidr))
		all = append(all, attack.Because("the address hands the node's own credentials to whoever asks", nil,
			letOut(name, "write a Calico NetworkPolicy that lets traffic out to a small network around "+address(cidr), to(tree{"nets": []any{around(cidr)}})))...)
	}
	if by.Egress == v1alpha1.EgressRestricted {
		all = append(all, attack.Because("a tenant that handles others' data sends it only where it was allowed to", nil,
			letOut("calico-let-unlisted-network-out", "write a Calico NetworkPolicy that lets traffic out to a network that was not allowed", to(tree{"nets": []any{"203.0.113.0/24"}})),
			letOut("calico-let-every-namespace-out", "write a Calico NetworkPolicy that lets traffic out to every namespace", to(inNamespaces("all()"))),
			letOut("calico-let-every-system-pod-out", "write a Calico NetworkPolicy for DNS that names every pod of kube-system", calicoResolving(tree{"namespaceSelector": named(metav1.NamespaceSystem)})),
			letOut("calico-let-dns-pods-of-every-namespace-out", "write a Calico NetworkPolicy for DNS that names DNS pods of every namespace", calicoResolving(tree{"namespaceSelector": "all()", "selector": "k8s-app == 'kube-dns'"})),
			letOut("calico-let-dns-pods-out-on-every-port", "write a Calico NetworkPolicy that lets traffic out to DNS pods on every port",
				to(tree{"namespaceSelector": named(metav1.NamespaceSystem), "selector": "k8s-app == 'kube-dns'"})),
			letOut("calico-let-unknown-name-server-out", "write a Calico NetworkPolicy for DNS at an address that is no name server of the platform", calicoResolving(tree{"nets": []any{"203.0.113.53/32"}})),
			letOut("calico-let-name-server-out-on-every-port", "write a Calico NetworkPolicy that lets traffic out to a name server on every port", to(tree{"nets": []any{prefixOf(estate.NodeLocalDNS.String())}})),
		)...)
	}
	return all
}

// calicoMirrors are policies that a tenant may write in Calico's API.
func calicoMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	if !mayWriteCalico(p) {
		return nil
	}
	kind, own := calicoKind(&p.Network), by.Namespaces[0]
	let := func(name, summary string, in, out []any) attack.Attack {
		return attack.Creating(name, summary, attack.Nobody, ownCalico(kind, own, name, 500, in, out))
	}
	allow := func(side string, entity tree) []any { return []any{tree{"action": "Allow", side: entity}} }
	all := []attack.Attack{
		let("calico-let-own-pods-in", "write a Calico NetworkPolicy among pods of one namespace", allow("source", tree{"selector": "app == 'web'"}), nil),
		let("calico-let-own-namespace-in", "write a Calico NetworkPolicy that lets one's own namespace in",
			allow("source", inNamespaces(fmt.Sprintf(`%s == "%s"`, namespaceName, own))), nil),
		let("calico-let-own-tenant-in", "write a Calico NetworkPolicy that lets all of one's own tenant in",
			allow("source", inNamespaces(fmt.Sprintf("%s == '%s'", v1alpha1.TenantLabel, by.Name))), nil),
		let("calico-let-nobody-in", "write a Calico NetworkPolicy that denies everybody", []any{tree{"action": "Deny"}}, nil),
		let("calico-let-nothing-out", "write a Calico NetworkPolicy that denies all traffic out", nil, []any{tree{"action": "Deny"}}),
	}
	all = append(all,
		attack.ByPlatform(let("calico-let-everybody-in-as-platform", "write a Calico NetworkPolicy that lets everybody in", []any{tree{"action": "Allow"}}, nil)),
		attack.InNobodys(own, let("free-calicopolicy", "write a Calico NetworkPolicy that lets everybody in", []any{tree{"action": "Allow"}}, nil), writing(kind.Group)))
	if by.Egress == v1alpha1.EgressOpen {
		all = append(all,
			let("calico-let-the-internet-out", "write a Calico NetworkPolicy that lets traffic out everywhere but to the metadata address", nil,
				allow("destination", tree{"nets": []any{everyAddress[0]}, "notNets": list(within(everyAddress[0], metadata(p)))})),
			let("calico-let-names-be-resolved", "write a Calico NetworkPolicy that lets names be resolved by pods of any namespace", nil,
				[]any{tree{"action": "Allow", "protocol": "UDP", "destination": tree{"namespaceSelector": "all()", "ports": []any{int64(estate.DNSPort)}}}}))
	}
	if by.Egress == v1alpha1.EgressRestricted {
		all = append(all,
			let("calico-let-names-be-resolved-although-restricted", "write a Calico NetworkPolicy for DNS, with Restricted egress", nil,
				[]any{calicoResolving(tree{"namespaceSelector": `projectcalico.org/name == "kube-system"`, "selector": `k8s-app == "kube-dns"`})}),
			let("calico-let-names-be-resolved-at-the-node", "write a Calico NetworkPolicy for the name server of each node, with Restricted egress", nil,
				[]any{calicoResolving(tree{"nets": []any{prefixOf(estate.NodeLocalDNS.String())}})}))
	}
	for _, cidr := range by.AllowCIDRs[:min(1, len(by.AllowCIDRs))] {
		all = append(all, let("calico-let-allowed-network-out", "write a Calico NetworkPolicy that lets traffic out to a network that the tenant is allowed", nil,
			allow("destination", tree{"nets": []any{cidr}})))
	}
	return all
}

// calicoResolving returns a rule that allows DNS at a destination.
func calicoResolving(destination tree) tree {
	destination["ports"] = []any{int64(estate.DNSPort)}
	return tree{"action": "Allow", "protocol": "UDP", "destination": destination}
}
