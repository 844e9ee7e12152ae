package network

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// DefinitionsPolicy is the name of the policy on NetworkAttachmentDefinitions, which Multus
// reads.
const DefinitionsPolicy = "croft-network-definitions"

// The names of the rules on secondary networks. The annotations that Multus itself reads are
// in the policy wall's catalogue of annotations.
const (
	DefinitionsRule = "network-definitions"
	NetworksRule    = "networks"
)

// multusNetworks is the annotation of a pod that Multus reads.
const multusNetworks = "k8s.v1.cni.cncf.io/networks"

// longestNetworks is the maximum length of NetworksAnnotation that the rules evaluate. A
// tenant may have at most 14 networks with names of 63 characters, which fit.
const longestNetworks = "1024"

// cel replaces names in an expression.
var cel = strings.NewReplacer(
	"ASKED", admissionpolicy.Quote(v1alpha1.NetworksAnnotation), "MULTUS", admissionpolicy.Quote(multusNetworks),
	"ZONE", admissionpolicy.Quote(corev1.LabelTopologyZone), "LONGEST", longestNetworks,
).Replace

// buildAttachmentRules returns the rules and the mutation for pods with secondary networks. A pod
// names its networks by the names that croft gives them, and the mutation writes Multus'
// annotation. Nearly every pod requests no network, which costs one lookup in its
// annotations.
//
// It is not known in which zone a new pod will run, so a network has one name for all zones
// (see secondary.Definitions). A pod that its nodeSelector binds to a zone gets the
// definition of that zone. Gatekeeper has no such mutation: with Gatekeeper, a pod names its
// networks in Multus' annotation, too.
func buildAttachmentRules() admissionpolicy.Pods {
	const none = `!(ASKED in variables.annotations)`
	granted := cel(`variables.annotations[ASKED].size() <= LONGEST &&
		variables.annotations[ASKED].split(",").all(n, n.trim() in params.spec.networks)`)
	rule := admissionpolicy.Rule{
		Name:        NetworksRule,
		Summary:     "pods request only secondary networks that the tenant is granted",
		UsuallyFast: true, FastPath: cel(none),
		Exception: "networks",
		Message: cel(`"metadata.annotations[` + v1alpha1.NetworksAnnotation + `]: tenant "
			+ params.spec.tenant + " has the networks "
			+ (params.spec.networks.size() == 0 ? "(none)" : params.spec.networks.map(n, string(n)).join(", "))
			+ ": name some of them, separated by commas; a platform admin grants others by networks"
			+ (MULTUS in variables.annotations
				? "" : "; where Gatekeeper places pods, name them in " + MULTUS + ", too")`),
	}
	onPods, onTemplates := rule, rule
	onPods.Summary += ", and croft has passed them on to Multus"
	onPods.Expression = `!variables.new || ` + granted + cel(` && MULTUS in variables.annotations`)
	onTemplates.Expression = granted
	onTemplates.Message = `"its pods will be refused: " + ` + rule.Message
	return admissionpolicy.Pods{
		PodRules: []admissionpolicy.Rule{onPods}, TemplateRules: []admissionpolicy.Rule{onTemplates},
		PatchSummary: "pods that request secondary networks get the annotation that Multus reads",
		SkipPatch: cel(`!has(object.metadata.annotations) || !(ASKED in object.metadata.annotations) ||
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

// checkDefinitions prevents tenants from writing their own definitions: the configuration in
// a definition can name any interface of the node, any address, and any program in the node's
// directory of plugins. No role of croft grants this kind, but other roles may.
func checkDefinitions() admissionpolicy.Validating {
	const everywhere = `authorizer.group(request.resource.group).resource(request.resource.resource)`
	return admissionpolicy.Validating{
		Name: DefinitionsPolicy, IgnoresTenantRules: true,
		Resources: []admissionpolicy.Resource{{
			Group: DefinitionKind.Group, Version: "*", Resources: []string{"network-attachment-definitions"},
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		}},
		Rules: []admissionpolicy.Rule{{
			Name:    DefinitionsRule,
			Summary: "only the platform writes NetworkAttachmentDefinitions",
			Expression: everywhere + `.check("update").allowed() ||
				` + everywhere + `.check("patch").allowed()`,
			Message: `"NetworkAttachmentDefinition: its configuration can name any interface and any address ` +
				`of the node: ask a platform admin for a secondary network, or to write it for you"`,
		}},
	}
}
