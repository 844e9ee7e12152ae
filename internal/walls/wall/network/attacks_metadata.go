package network

import (
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// podIdentity has the addresses at which the EKS Pod Identity agent serves a pod's own
// credentials. They are link-local like the metadata addresses, but are not among them.
var podIdentity = []string{"169.254.170.23", "fd00:ec2::23"}

// askMetadata connects from a namespace to each metadata address. with may add to the
// connection. suffix and although describe the addition in the name and summary.
func askMetadata(p *estate.Platform, from, suffix, although string, with func(attack.Flow) attack.Flow) []attack.Attack {
	var all []attack.Attack
	for _, cidr := range listMetadata(p) {
		ip := formatAddress(cidr)
		all = append(all, makeFlow("ask-instance-metadata-at-"+hyphens.Replace(ip)+suffix, "ask the instance metadata address "+ip+" for credentials"+although,
			with(attack.Flow{FromNamespace: from, ToIP: ip, Port: 80})))
	}
	return all
}

var hyphens = strings.NewReplacer(".", "-", ":", "-")

func keepFlow(f attack.Flow) attack.Flow { return f }

// buildMetadataAttacks try to reach the metadata addresses, and to write NetworkPolicies that
// allow it by any network that contains one of them.
func buildMetadataAttacks(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	let := func(name, summary, rule string, rules ...networkingv1.NetworkPolicyEgressRule) attack.Attack {
		return attack.NewCreate(name, summary, attack.ByPolicy(FloorPolicy, rule), makeOwnPolicy(own, name, nil, rules))
	}
	to := func(cidr string, except ...string) networkingv1.NetworkPolicyEgressRule {
		return networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{makeBlock(cidr, except...)}}
	}
	never := listMetadata(p)
	all := askMetadata(p, own, "", "", keepFlow)
	for _, cidr := range never {
		if ip := formatAddress(cidr); !slices.Contains(listResolvers(p), cidr) {
			all = append(all, makeFlow("resolve-names-at-metadata-address-"+hyphens.Replace(ip), "ask the metadata address "+ip+" for names, where the platform does not",
				attack.Flow{FromNamespace: own, ToIP: ip, Port: estate.DNSPort, Protocol: "UDP"}))
		}
	}
	all = append(all,
		let("let-everything-out", "write a NetworkPolicy that lets traffic out everywhere", EgressNamespacesRule, networkingv1.NetworkPolicyEgressRule{}),
		let("let-port-53-out", "write a NetworkPolicy that lets traffic out everywhere on the port of DNS", EgressNamespacesRule, networkingv1.NetworkPolicyEgressRule{Ports: makeDNSPorts(estate.DNSPort)}),
		let("let-metadata-out", "write a NetworkPolicy that lets traffic out to every address", EgressAddressesRule, to(everyAddress[0])),
		let("let-every-ipv6-out", "write a NetworkPolicy that lets traffic out to every address over IPv6", EgressAddressesRule, to(everyAddress[1])),
		let("let-nat64-out", "write a NetworkPolicy that lets traffic out to every IPv4 address through NAT64", EgressAddressesRule, to("64:ff9b::/96")),
		let("let-all-but-one-metadata-address-out", "write a NetworkPolicy that excepts one metadata address alone", EgressAddressesRule, to(everyAddress[0], never[0])),
		let("let-metadata-port-53-out", "write a NetworkPolicy that lets traffic out to every address on the port of DNS", EgressAddressesRule,
			networkingv1.NetworkPolicyEgressRule{To: to(everyAddress[0]).To, Ports: makeDNSPorts(estate.DNSPort)}),
	)
	for _, cidr := range never {
		ip := formatAddress(cidr)
		all = append(all, let("let-metadata-out-at-"+hyphens.Replace(ip), "write a NetworkPolicy that lets traffic out to a small network around "+ip, EgressAddressesRule, to(widenNetwork(cidr))))
	}
	return all
}

// widenNetwork returns a network of 16 addresses that contains the given one.
func widenNetwork(cidr string) string {
	ip := netip.MustParsePrefix(cidr).Addr()
	network, err := ip.Prefix(ip.BitLen() - 4)
	if err != nil {
		return cidr
	}
	return network.String()
}

// buildMetadataMirrors are connections that must be allowed, although they are near the metadata
// addresses.
func buildMetadataMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	if by.Egress != v1alpha1.EgressOpen {
		return nil
	}
	own, never := by.Namespaces[0], listMetadata(p)
	var all []attack.Attack
	for i, ip := range podIdentity {
		if slices.Contains(never, formatPrefix(ip)) {
			continue // the platform lists it as a metadata address
		}
		all = append(all,
			makeFlow("ask-pod-identity-at-"+hyphens.Replace(ip), "ask the EKS Pod Identity agent for one's own credentials", attack.Flow{FromNamespace: own, ToIP: ip, Port: 80}),
			attack.NewCreate("let-pod-identity-out-at-"+hyphens.Replace(ip), "write a NetworkPolicy that lets traffic out to the EKS Pod Identity agent, and everywhere but to metadata addresses", attack.Nobody,
				makeOwnPolicy(own, "let-pod-identity-out-"+hyphens.Replace(ip), nil, []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{
					makeBlock(formatPrefix(ip)), makeBlock(everyAddress[i], filterByFamily(everyAddress[i], never)...),
				}}})))
	}
	return all
}
