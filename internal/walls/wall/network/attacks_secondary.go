package network

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// buildSecondaryAttacks request networks of other tenants, and write definitions. The attacks that
// name a network to Multus directly are among the policy wall's attacks on annotations.
func buildSecondaryAttacks(by, on *estate.Tenant) []attack.Attack {
	own, other, ungranted := by.Namespaces[0], on.Namespaces[0], findUngranted(by, on)
	asks := func(name, summary, networks string) attack.Attack {
		return attack.NewCreate(name, summary, attack.ByPolicy(admissionpolicy.PodsPolicy, NetworksRule), makeRequestingPod(by, name, networks))
	}
	template := attack.NewTemplate(func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{v1alpha1.NetworksAnnotation: ungranted}
	})
	const inTemplate = "ask-for-network-in-template"
	all := attack.WithReason("a secondary network bypasses every NetworkPolicy", nil,
		asks("ask-for-network", "ask for a secondary network that the tenant is not granted", ungranted),
		asks("ask-for-network-elsewhere", "ask for a secondary network of another tenant by its namespace",
			other+"/"+ungranted),
		asks("ask-for-many-networks", "ask for more secondary networks than croft evaluates", makeOverlongList(by)),
		attack.NewCreate(inTemplate, "ask for a secondary network that is not granted, in a Deployment",
			attack.ByWarning(admissionpolicy.PodTemplatesPolicy, NetworksRule), attack.NewDeployment(own, "croft-"+inTemplate, template)),
	)
	return append(all, buildDefinitionAttacks(own)...)
}

// findUngranted returns a network of the other tenant that this one is not granted, if there is
// one.
func findUngranted(by, on *estate.Tenant) string {
	for i := range on.Networks {
		same := func(n estate.Network) bool { return n.Name == on.Networks[i].Name }
		if !slices.ContainsFunc(by.Networks, same) {
			return on.Networks[i].Name
		}
	}
	return "croft-of-nobody"
}

// makeOverlongList returns a list of valid names that is longer than the rules allow.
func makeOverlongList(t *estate.Tenant) string {
	name := "croft-of-nobody"
	if len(t.Networks) > 0 {
		name = t.Networks[0].Name
	}
	text := name
	for len(text) <= 1024 {
		text += "," + name
	}
	return text
}

// buildDefinitionAttacks write definitions, which give access to any interface of a node.
func buildDefinitionAttacks(own string) []attack.Attack {
	const name, summary = "write-network", "attach pods to the node's own network by a definition"
	byPolicy := attack.ByPolicy(DefinitionsPolicy, DefinitionsRule)
	return attack.WithReason("a definition names any interface of the node", []string{"https://k8snetworkplumbingwg.github.io/multus-cni/docs/how-to-use.html"},
		attack.NewCreate(name, summary, attack.ByRBAC, makeOpenDefinition(own, name)),
		attack.GrantToEveryone(attack.NewCreate(name+"-when-permitted", summary, byPolicy, makeOpenDefinition(own, name+"-when-permitted")), permitDefinitions()),
		attack.GrantToEveryone(attack.NewUpdate("change-network-when-permitted", "attach pods to the node's own network by changing a definition", byPolicy,
			makeOpenDefinition(own, "change-network"), func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, `{"type":"host-device","device":"eth0"}`, "spec", "config")
			}), permitDefinitions()),
	)
}

// buildSecondaryMirrors request networks that the tenant is granted.
func buildSecondaryMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	all := []attack.Attack{
		attack.SendOutsideTenants(own, attack.NewCreate("free-network", "write a definition of a network", attack.Nobody, makeOpenDefinition(own, "free-network")), permitDefinitions()),
	}
	for i := range by.Networks[:min(1, len(by.Networks))] {
		n := &by.Networks[i]
		if p.Placement == v1alpha1.PlacementGatekeeper {
			both := makeRequestingPod(by, "ask-for-own-network", n.Name)
			both.Annotations[multusNetworks] = n.Name
			return append(all, attack.NewCreate("ask-for-own-network", "ask for a secondary network that the tenant is granted", attack.Nobody, both))
		}
		zone := n.Zones[0].Zone
		bound := makeRequestingPod(by, "ask-in-zone", n.Name)
		bound.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
		all = append(all,
			expectNetworks(attack.NewCreate("ask-for-own-network", "ask for a secondary network that the tenant is granted", attack.Nobody,
				makeRequestingPod(by, "ask-for-own-network", " "+n.Name)), n.Name),
			expectNetworks(attack.NewCreate("ask-in-zone", "ask for a secondary network that the tenant is granted, in one zone", attack.Nobody, bound),
				secondary.ZoneDefinitionName(n.Name, zone)))
	}
	return all
}

// expectNetworks expects the admitted pod to have the given networks for Multus.
func expectNetworks(a attack.Attack, networks string) attack.Attack {
	a.Outcome = attack.ExpectType(func(p *corev1.Pod) error {
		if got := p.Annotations[multusNetworks]; got != networks {
			return fmt.Errorf("it requests %q of Multus, not %s", got, networks)
		}
		return nil
	})
	return a
}

// makeRequestingPod returns a pod that requests networks.
func makeRequestingPod(by *estate.Tenant, name, networks string) *corev1.Pod {
	return attack.NewPod(by.Namespaces[0], "croft-"+name, func(p *corev1.Pod) {
		p.Annotations = map[string]string{v1alpha1.NetworksAnnotation: networks}
	})
}

func makeOpenDefinition(namespace, name string) *unstructured.Unstructured {
	return attack.NewCustomObject(DefinitionKind.GroupVersion().String(), DefinitionKind.Kind, namespace, "croft-"+name,
		map[string]any{"config": `{"type":"macvlan","master":"eth0"}`})
}

func permitDefinitions() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{DefinitionKind.Group}, Resources: []string{"network-attachment-definitions"},
		Verbs: []string{"create", "get", "update"},
	}
}
