package adopt

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
)

// TestCompareNetworkPolicyRandomly generates policies in a world so small that it can try
// every connection. It fails if a policy is classified as replaced although it allows a
// connection that the walls deny, or if a replaced policy is not classified as such.
func TestCompareNetworkPolicyRandomly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	replaced := 0
	for range 300 {
		w := &world{random}
		granted := w.generateNetworks(3)
		a := newAdoption(t, "{platformNamespaces: [ingress]}", ", network: {egress: Restricted, allowCIDRs: ["+granted+"]}")
		spec := w.generatePolicy()
		verdict, why := a.compareNetworkPolicy(parseNetworkPolicy(t, spec))
		if verdict {
			replaced++
		}
		lost := a.findLostConnection(t, spec)
		if verdict != (lost == "") {
			t.Errorf("granted [%s], policy %s\nreplaced: %t (%s); and the first connection that only the policy lets through is %q", granted, spec, verdict, why, lost)
		}
	}
	if replaced < 30 || replaced > 270 {
		t.Errorf("of 300 policies %d are replaced: too few of one sort to tell", replaced)
	}
}

// world generates the policies, over 16 addresses and 5 namespaces.
type world struct{ *rand.Rand }

func (w *world) pickOne(of ...string) string { return of[w.IntN(len(of))] }

func (w *world) generateNetwork() string {
	address := netip.AddrFrom4([4]byte{10, 0, 0, byte(w.IntN(16))})
	return netip.PrefixFrom(address, 28+w.IntN(5)).Masked().String()
}

// generateNetworks returns up to this number of networks, without repetitions.
func (w *world) generateNetworks(most int) string {
	seen := map[string]bool{}
	var all []string
	for range w.IntN(most + 1) {
		if n := w.generateNetwork(); !seen[n] {
			seen[n] = true
			all = append(all, n)
		}
	}
	return strings.Join(all, ", ")
}

func (w *world) generatePeer() string {
	switch w.IntN(4) {
	case 0, 1:
		whole := netip.MustParsePrefix(w.generateNetwork())
		var but []string
		for range w.IntN(3) {
			if hole := netip.MustParsePrefix(w.generateNetwork()); whole.Overlaps(hole) && whole.Bits() < hole.Bits() {
				but = append(but, hole.String())
			}
		}
		return fmt.Sprintf("{ipBlock: {cidr: %s, except: [%s]}}", whole, strings.Join(but, ", "))
	case 2:
		return fmt.Sprintf("{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [%s, %s]}]}}",
			w.pickOne(namespacesOfWorld...), w.pickOne(namespacesOfWorld...))
	default:
		return w.pickOne("{podSelector: {}}", "{namespaceSelector: {matchLabels: {croft.dev/tenant: shop}}}",
			"{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}, podSelector: {matchLabels: {k8s-app: kube-dns}}}")
	}
}

var namespacesOfWorld = []string{"shop", "shop-ci", "ingress", "kube-system", "bank"}

func (w *world) generatePolicy() string {
	if w.IntN(4) == 0 {
		// A Flow has no labels for the source pod.
		peer := strings.Replace(w.generatePeer(), ", podSelector: {matchLabels: {k8s-app: kube-dns}}", "", 1)
		return "{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [" + peer + "]}]}"
	}
	peers := []string{w.generatePeer()}
	if w.IntN(2) == 0 {
		peers = append(peers, w.generatePeer())
	}
	ports := w.pickOne("", ", ports: [{port: 53, protocol: UDP}]", ", ports: [{port: 53, protocol: UDP}, {port: 53}]", ", ports: [{port: 53, endPort: 54, protocol: UDP}]")
	return "{podSelector: {}, policyTypes: [Egress], egress: [{to: [" + strings.Join(peers, ", ") + "]" + ports + "}]}"
}

// findLostConnection returns the first connection of the world that a policy allows and the walls
// deny.
func (a *Adoption) findLostConnection(t *testing.T, spec string) string {
	t.Helper()
	var all []corev1.Namespace
	for _, name := range namespacesOfWorld {
		all = append(all, newNamespace(name))
	}
	labelled, walls := a.buildWalledNamespaces(all)
	before, after := a.buildMap(t, labelled, parseTypedPolicy(t, spec)), a.buildMap(t, labelled, walls...)
	ingress := strings.Contains(spec, "ingress: [")
	for _, f := range listFlows(ingress) {
		was, err := before.Evaluate(f)
		is, alsoErr := after.Evaluate(f)
		if err != nil || alsoErr != nil {
			t.Fatal(err, alsoErr)
		}
		if ingress && was.Ingress.Allowed && !is.Ingress.Allowed || !ingress && was.Egress.Allowed && !is.Egress.Allowed {
			return is.Connection
		}
	}
	return ""
}

func (a *Adoption) buildMap(t *testing.T, namespaces []corev1.Namespace, policies ...client.Object) *netpol.Map {
	t.Helper()
	m, err := netpol.NewFromObjects(namespaces, policies)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func listFlows(ingress bool) []attack.Flow {
	var all []attack.Flow
	for i := range 16 {
		address := fmt.Sprintf("10.0.0.%d", i)
		if ingress {
			all = append(all, attack.Flow{FromIP: address, ToNamespace: "shop", Port: 53, Protocol: "UDP"})
		} else {
			all = append(all, attack.Flow{FromNamespace: "shop", ToIP: address, Port: 53, Protocol: "UDP"})
		}
	}
	for _, name := range namespacesOfWorld {
		if ingress {
			all = append(all, attack.Flow{FromNamespace: name, ToNamespace: "shop", Port: 80, Protocol: "TCP"})
			continue
		}
		for _, port := range []int{53, 54} {
			for _, protocol := range []string{"UDP", "TCP"} {
				for _, pod := range []map[string]string{nil, {"k8s-app": "kube-dns"}} {
					all = append(all, attack.Flow{FromNamespace: "shop", ToNamespace: name, ToLabels: pod, Port: port, Protocol: protocol})
				}
			}
		}
	}
	return all
}
