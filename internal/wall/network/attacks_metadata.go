package network

import (
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// podIdentity has the addresses at which the EKS Pod Identity agent serves a pod's own
// credentials. They are link-local like the metadata addresses, but are not among them.
var podIdentity = []string{"169.254.170.23", "fd00:ec2::23"}

// askMetadata connects from a namespace to each metadata address. with may add to the
// connection. suffix and although describe the addition in the name and summary.
func askMetadata(p *estate.Platform, from, suffix, although string, with func(attack.Flow) attack.Flow) []attack.Attack {
	var all []attack.Attack
	for _, cidr := range metadata(p) {
		ip := address(cidr)
		all = append(all, flow("ask-instance-metadata-at-"+hyphens.Replace(ip)+suffix, "ask the instance metadata address "+ip+" for credentials"+although,
			with(attack.Flow{FromNamespace: from, ToIP: ip, Port: 80})))
	}
	return all
}

var hyphens = strings.NewReplacer(".", "-", ":", "-")

func asItIs(f attack.Flow) attack.Flow { return f }

// metadataAttacks try to reach the metadata addresses, and to write NetworkPolicies that
// allow it by any network that contains one of them.
func metadataAttacks(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	let := func(name, summary, rule string, rules ...networkingv1.NetworkPolicyEgressRule) attack.Attack {
		return attack.Creating(name, summary, attack.ByPolicy(FloorPolicy, rule), written(own, name, nil, rules))
	}
	to := func(cidr string, except ...string) networkingv1.NetworkPolicyEgressRule {
		return networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{block(cidr, except...)}}
	}
	never := metadata(p)
	all := askMetadata(p, own, "", "", asItIs)
	for _, cidr := range never {
		if ip := address(cidr); !slices.Contains(resolvers(p), cidr) {
			all = append(all, flow("resolve-names-at-metadata-address-"+hyphens.Replace(ip), "ask the metadata address "+ip+" for names, where the platform does not",
				attack.Flow{FromNamespace: own, ToIP: ip, Port: estate.DNSPort, Protocol: "UDP"}))
		}
	}
	all = append(all,
		let("let-everything-out", "write a NetworkPolicy that lets traffic out everywhere", EgressNamespacesRule, networkingv1.NetworkPolicyEgressRule{}),
		let("let-port-53-out", "write a NetworkPolicy that lets traffic out everywhere on the port of DNS", EgressNamespacesRule, networkingv1.NetworkPolicyEgressRule{Ports: overDNS(estate.DNSPort)}),
		let("let-metadata-out", "write a NetworkPolicy that lets traffic out to every address", EgressAddressesRule, to(everyAddress[0])),
		let("let-every-ipv6-out", "write a NetworkPolicy that lets traffic out to every address over IPv6", EgressAddressesRule, to(everyAddress[1])),
		let("let-nat64-out", "write a NetworkPolicy that lets traffic out to every IPv4 address through NAT64", EgressAddressesRule, to("64:ff9b::/96")),
		let("let-all-but-one-metadata-address-out", "write a NetworkPolicy that excepts one metadata address alone", EgressAddressesRule, to(everyAddress[0], never[0])),
		let("let-metadata-port-53-out", "write a NetworkPolicy that lets traffic out to every address on the port of DNS", EgressAddressesRule,
			networkingv1.NetworkPolicyEgressRule{To: to(everyAddress[0]).To, Ports: overDNS(estate.DNSPort)}),
	)
	for _, cidr := range never {
		ip := address(cidr)
		all = append(all, let("let-metadata-out-at-"+hyphens.Replace(ip), "write a NetworkPolicy that lets traffic out to a small network around "+ip, EgressAddressesRule, to(around(cidr))))
	}
	return all
}

// around returns a network of 16 addresses that contains the given one.
func around(cidr string) string {
	ip := netip.MustParsePrefix(cidr).Addr()
	network, err := ip.Prefix(ip.BitLen() - 4)
	if err != nil {
		return cidr
	}
	return network.String()
}

// metadataMirrors are connections that must be allowed, although they are near the metadata
// addresses.
func metadataMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	if by.Egress != v1alpha1.EgressOpen {
		return nil
	}
	own, never := by.Namespaces[0], metadata(p)
	var all []attack.Attack
	for i, ip := range podIdentity {
		if slices.Contains(never, prefixOf(ip)) {
			continue // the platform lists it as a metadata address
		}
		all = append(all,
			flow("ask-pod-identity-at-"+hyphens.Replace(ip), "ask the EKS Pod Identity agent for one's own credentials", attack.Flow{FromNamespace: own, ToIP: ip, Port: 80}),
			attack.Creating("let-pod-identity-out-at-"+hyphens.Replace(ip), "write a NetworkPolicy that lets traffic out to the EKS Pod Identity agent, and everywhere but to metadata addresses", attack.Nobody,
				written(own, "let-pod-identity-out-"+hyphens.Replace(ip), nil, []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{
					block(prefixOf(ip)), block(everyAddress[i], within(everyAddress[i], never)...),
				}}})))
	}
	return all
}
