package network

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
)

// DefinitionsPolicy is the name of the policy on what Multus attaches pods by.
const DefinitionsPolicy = "croft-network-definitions"

// The rules on secondary networks. What pods say to Multus itself is in the policy
// wall's catalogue of annotations.
const (
	DefinitionsRule = "network-definitions"
	NetworksRule    = "networks"
)

// multusNetworks is the annotation of a pod that Multus reads.
const multusNetworks = "k8s.v1.cni.cncf.io/networks"

// longestNetworks is the most text of NetworksAnnotation that is gone through: all the
// networks that a tenant may have, with names as long as they may be, are 14 of 63.
const longestNetworks = "1024"

// cel puts names into an expression.
var cel = strings.NewReplacer(
	"ASKED", admissionpolicy.Quote(v1alpha1.NetworksAnnotation), "MULTUS", admissionpolicy.Quote(multusNetworks),
	"ZONE", admissionpolicy.Quote(corev1.LabelTopologyZone), "LONGEST", longestNetworks,
).Replace

// attachments is how pods come to their networks: by the names that the team knows them
// by, which become what Multus reads. Nearly every pod asks for none, which costs one
// look at its annotations.
//
// Where a pod will run is not known when it is created, so a network's one name has to
// do for all zones (secondary.Definitions says how). A pod that is bound to a zone by its
// nodeSelector gets the definition of that zone. Gatekeeper has no mutation that could do
// any of it: there, a pod names its networks to Multus itself.
func attachments() admissionpolicy.Pods {
	const none = `!(ASKED in variables.annotations)`
	granted := cel(`variables.annotations[ASKED].size() <= LONGEST &&
		variables.annotations[ASKED].split(",").all(n, n.trim() in params.spec.networks)`)
	rule := admissionpolicy.Rule{
		Name: NetworksRule,
		Says: "pods ask for secondary networks that the tenant is granted, and for no others",
		Rare: true, Fine: cel(none),
		Exception: "networks",
		Message: cel(`"metadata.annotations[` + v1alpha1.NetworksAnnotation + `]: tenant "
			+ params.spec.tenant + " has the networks "
			+ (params.spec.networks.size() == 0 ? "(none)" : params.spec.networks.map(n, string(n)).join(", "))
			+ ": name some of them, separated by commas; a platform admin grants others by networks"
			+ (MULTUS in variables.annotations
				? "" : "; where Gatekeeper places pods, name them in " + MULTUS + ", too")`),
	}
	onPods, onTemplates := rule, rule
	onPods.Says += "; and croft has passed them on to Multus"
	onPods.Holds = `!variables.new || ` + granted + cel(` && MULTUS in variables.annotations`)
	onTemplates.Holds = granted
	onTemplates.Message = `"its pods will be refused: " + ` + rule.Message
	return admissionpolicy.Pods{
		PodRules: []admissionpolicy.Rule{onPods}, TemplateRules: []admissionpolicy.Rule{onTemplates},
		Says: "pods that ask for secondary networks get the annotation that Multus reads",
		Done: cel(`!has(object.metadata.annotations) || !(ASKED in object.metadata.annotations) ||
			MULTUS in object.metadata.annotations`),
		Patch: cel(`!variables.new || !has(object.metadata.annotations) || !(ASKED in object.metadata.annotations) ||
			MULTUS in object.metadata.annotations || object.metadata.annotations[ASKED].size() > LONGEST
			? []
			: [JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey(MULTUS),
				value: object.metadata.annotations[ASKED].split(",").map(n, n.trim() +
					(has(object.spec.nodeSelector) && ZONE in object.spec.nodeSelector
						? "-" + object.spec.nodeSelector[ZONE] : "")).join(", ")}]`),
	}
}

// checkDefinitions keeps tenants from writing definitions of their own: the
// configuration in one names any interface of the node, any address, and any program
// of the node's directory of plugins. No role gives the right to; somebody may.
func checkDefinitions() admissionpolicy.Validating {
	const everywhere = `authorizer.group(request.resource.group).resource(request.resource.resource)`
	return admissionpolicy.Validating{
		Name: DefinitionsPolicy, Ruleless: true,
		Resources: []admissionpolicy.Resource{{
			Group: DefinitionKind.Group, Version: "*", Resources: []string{"network-attachment-definitions"},
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		}},
		Rules: []admissionpolicy.Rule{{
			Name: DefinitionsRule,
			Says: "NetworkAttachmentDefinitions are written by the platform alone",
			Holds: everywhere + `.check("update").allowed() ||
				` + everywhere + `.check("patch").allowed()`,
			Message: `"NetworkAttachmentDefinition: its configuration names any interface and any address ` +
				`of the node: ask a platform admin for a secondary network, or to write it for you"`,
		}},
	}
}
