package network

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/secondary"
)

// secondaryAttacks request networks of other tenants, and write definitions. The attacks that
// name a network to Multus directly are among the policy wall's attacks on annotations.
func secondaryAttacks(by, on *estate.Tenant) []attack.Attack {
	own, other, ungranted := by.Namespaces[0], on.Namespaces[0], notGranted(by, on)
	asks := func(name, summary, networks string) attack.Attack {
		return attack.Creating(name, summary, attack.ByPolicy(admissionpolicy.PodsPolicy, NetworksRule), asking(by, name, networks))
	}
	template := attack.Template(func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{v1alpha1.NetworksAnnotation: ungranted}
	})
	const inTemplate = "ask-for-network-in-template"
	all := attack.Because("a secondary network goes past every NetworkPolicy", nil,
		asks("ask-for-network", "ask for a secondary network that the tenant is not granted", ungranted),
		asks("ask-for-network-elsewhere", "ask for a secondary network of another tenant by its namespace",
			other+"/"+ungranted),
		asks("ask-for-many-networks", "ask for more secondary networks than are gone through", longest(by)),
		attack.Creating(inTemplate, "ask for a secondary network that is not granted, in a Deployment",
			attack.ByWarning(admissionpolicy.PodTemplatesPolicy, NetworksRule), attack.Deployment(own, "croft-"+inTemplate, template)),
	)
	return append(all, definitionAttacks(own)...)
}

// notGranted returns a network of the other tenant that this one is not granted, if there is
// one.
func notGranted(by, on *estate.Tenant) string {
	for i := range on.Networks {
		same := func(n estate.Network) bool { return n.Name == on.Networks[i].Name }
		if !slices.ContainsFunc(by.Networks, same) {
			return on.Networks[i].Name
		}
	}
	return "croft-of-nobody"
}

// longest returns a list of valid names that is longer than the rules allow.
func longest(t *estate.Tenant) string {
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

// definitionAttacks write definitions, which give access to any interface of a node.
func definitionAttacks(own string) []attack.Attack {
	const name, summary = "write-network", "attach pods to the node's own network by a definition"
	byPolicy := attack.ByPolicy(DefinitionsPolicy, DefinitionsRule)
	return attack.Because("a definition names any interface of the node", []string{"https://k8snetworkplumbingwg.github.io/multus-cni/docs/how-to-use.html"},
		attack.Creating(name, summary, attack.ByRBAC, openDefinition(own, name)),
		attack.Mistake(attack.Creating(name+"-when-permitted", summary, byPolicy, openDefinition(own, name+"-when-permitted")), writingDefinitions()),
		attack.Mistake(attack.Changing("change-network-when-permitted", "attach pods to the node's own network by changing a definition", byPolicy,
			openDefinition(own, "change-network"), func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, `{"type":"host-device","device":"eth0"}`, "spec", "config")
			}), writingDefinitions()),
	)
}

// secondaryMirrors request networks that the tenant is granted.
func secondaryMirrors(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	all := []attack.Attack{
		attack.InNobodys(own, attack.Creating("free-network", "write a definition of a network", attack.Nobody, openDefinition(own, "free-network")), writingDefinitions()),
	}
	for i := range by.Networks[:min(1, len(by.Networks))] {
		n := &by.Networks[i]
		if p.Placement == v1alpha1.PlacementGatekeeper {
			both := asking(by, "ask-for-own-network", n.Name)
			both.Annotations[multusNetworks] = n.Name
			return append(all, attack.Creating("ask-for-own-network", "ask for a secondary network that the tenant is granted", attack.Nobody, both))
		}
		zone := n.Zones[0].Zone
		bound := asking(by, "ask-in-zone", n.Name)
		bound.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
		all = append(all,
			attached(attack.Creating("ask-for-own-network", "ask for a secondary network that the tenant is granted", attack.Nobody,
				asking(by, "ask-for-own-network", " "+n.Name)), n.Name),
			attached(attack.Creating("ask-in-zone", "ask for a secondary network that the tenant is granted, in one zone", attack.Nobody, bound),
				secondary.InZone(n.Name, zone)))
	}
	return all
}

// attached expects the admitted pod to have the given networks for Multus.
func attached(a attack.Attack, networks string) attack.Attack {
	a.Outcome = attack.As(func(p *corev1.Pod) error {
		if got := p.Annotations[multusNetworks]; got != networks {
			return fmt.Errorf("it asks Multus for %q, not for %s", got, networks)
		}
		return nil
	})
	return a
}

// asking returns a pod that requests networks.
func asking(by *estate.Tenant, name, networks string) *corev1.Pod {
	return attack.Pod(by.Namespaces[0], "croft-"+name, func(p *corev1.Pod) {
		p.Annotations = map[string]string{v1alpha1.NetworksAnnotation: networks}
	})
}

func openDefinition(namespace, name string) *unstructured.Unstructured {
	return attack.Custom(DefinitionKind.GroupVersion().String(), DefinitionKind.Kind, namespace, "croft-"+name,
		map[string]any{"config": `{"type":"macvlan","master":"eth0"}`})
}

func writingDefinitions() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{DefinitionKind.Group}, Resources: []string{"network-attachment-definitions"},
		Verbs: []string{"create", "get", "update"},
	}
}
