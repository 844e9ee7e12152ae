package policy

import (
	"strconv"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// FinalizersPolicy is the name of the policy on finalizers and owners.
const FinalizersPolicy = "croft-finalizers"

// The names of its rules.
const (
	FinalizersRule = "finalizers"
	OwnersRule     = "owners"
)

// clusterWide is the condition that the user may update or patch the resource in every
// namespace. The controllers of the cluster and the platform may, and tenants may not, so the
// policies need not name these controllers.
const clusterWide = everyNamespace + `.check("update").allowed() ||
	` + everyNamespace + `.check("patch").allowed()`

// everyNamespace calls the authorizer for the request's resource, without a namespace and so
// for all namespaces.
const everyNamespace = `authorizer.group(request.resource.group).resource(request.resource.resource)`

// The finalizers that Kubernetes adds to objects that tenants write. For each there is a
// controller that removes it from objects of one kind. On any other kind, no controller
// removes it. foregroundDeletion and orphan are added by a deletion, not by a write.
const (
	claimFinalizer = "kubernetes.io/pvc-protection"
	jobFinalizer   = "batch.kubernetes.io/job-tracking"
)

// hasFinalizersOrOwners is the condition that checkDeletion applies to an object: it has
// finalizers, a cluster-scoped owner, or more owners than the condition may iterate over.
var hasFinalizersOrOwners = `object != null && has(object.metadata) &&
	(has(object.metadata.finalizers) ||
		has(object.metadata.ownerReferences) &&
		(object.metadata.ownerReferences.size() > ` + strconv.Itoa(mostOwners) + ` ||
			object.metadata.ownerReferences.exists(o,
				` + ofTheCluster + `)))`

// checkDeletion prevents objects, and therefore namespaces, from becoming undeletable. It
// matches every kind, but only objects with finalizers or owners to check. For pods,
// croft-pods has the same rules.
//
// Controllers of the whole cluster create claims from tenants' StatefulSets, with the
// finalizers of the template. So the rule applies to controllers, too, when they create a
// claim.
func checkDeletion(more []string) admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name:               FinalizersPolicy,
		IgnoresTenantRules: true,
		Resources: []admissionpolicy.Resource{
			{Group: "*", Version: "*", Resources: []string{"*"}, Operations: write},
		},
		ExcludedResources: []admissionpolicy.Resource{
			{Version: "v1", Resources: []string{"pods"}, Operations: write},
		},
		MatchConditions: map[string]string{"has-finalizers-or-owners": hasFinalizersOrOwners},
		Bounds:          finalizerBounds,
		Variables: []admissionpolicy.Variable{
			{Name: "isClaim", Expression: `request.resource.group == "" &&
				request.resource.resource == "persistentvolumeclaims"`},
			{Name: "finalizers", Expression: `has(object.metadata.finalizers) ? object.metadata.finalizers : []`},
			{Name: "finalizersBefore", Expression: `request.operation == "UPDATE" &&
				has(oldObject.metadata.finalizers) ?
					oldObject.metadata.finalizers : []`},
			buildRefusedFinalizers(`f in ` + formatQuoted(more) +
				` || variables.isClaim && f == "` + claimFinalizer + `"`),
		},
		Rules: []admissionpolicy.Rule{
			buildFinalizersRule(`(!variables.isClaim || request.operation == "UPDATE")`),
			buildOwnersRule(),
		},
	}
}

// buildRefusedPodFinalizers returns the variable with the refused finalizers of pods and of templates.
func buildRefusedPodFinalizers(more []string) admissionpolicy.Variable {
	return buildRefusedFinalizers(`f in ` + formatQuoted(append([]string{jobFinalizer}, more...)))
}

// buildRefusedFinalizers returns a variable with the new finalizers that are not allowed. If the
// old list is too long to compare, a removal is always allowed.
func buildRefusedFinalizers(allowed string) admissionpolicy.Variable {
	const refused = `variables.finalizersBefore.size() > MOST &&
			variables.finalizers.size() < variables.finalizersBefore.size() ? [] :
		variables.finalizers.filter(f,
			!(ALLOWED) &&
			(variables.finalizersBefore.size() > MOST || !(f in variables.finalizersBefore)))`
	return admissionpolicy.Variable{
		Name:       "refusedFinalizers",
		Expression: replaceWords(refused, "ALLOWED", allowed, "MOST", strconv.Itoa(mostFinalizers)),
	}
}

// buildFinalizersRule allows controllers of the whole cluster any finalizer where the condition
// untold is true: no tenant's template can have set it.
func buildFinalizersRule(untold string) admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: FinalizersRule,
		Summary: "tenants' objects have only finalizers of Kubernetes for their kind, " +
			"and the Platform's finalizers",
		FastPath:   `variables.finalizers.size() == 0`,
		Expression: `variables.refusedFinalizers.size() == 0 || ` + untold + ` && (` + clusterWide + `)`,
		Message: `"metadata.finalizers: " + ` + formatFirst("variables.refusedFinalizers", 3) +
			` + " would block the deletion of the namespace: remove it; ` +
			`a platform admin allows it by the Platform's finalizers"`,
	}
}

// ofTheCluster is the condition that an owner o is cluster-scoped or belongs to croft or
// Karpenter, and not to a tenant.
const ofTheCluster = `o.apiVersion == "v1" && o.kind in ["Namespace", "Node", "PersistentVolume"] ||
	o.apiVersion.startsWith("croft.dev/") || o.apiVersion.startsWith("karpenter.")`

func buildOwnersRule() admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: OwnersRule, Summary: "objects of tenants are owned by no Namespace, Node or PersistentVolume, " +
			"and by no object of croft or Karpenter",
		FastPath: `!has(object.metadata.ownerReferences)`,
		Expression: `object.metadata.ownerReferences.all(o, !(` + ofTheCluster + `) ||
			request.operation == "UPDATE" && has(oldObject.metadata.ownerReferences) &&
			oldObject.metadata.ownerReferences.exists(b,
				b.uid == o.uid && b.kind == o.kind && b.apiVersion == o.apiVersion)) || ` + clusterWide,
		Message: `"metadata.ownerReferences: a Namespace, a Node or another object of the whole cluster ` +
			`would wait for this one when it is deleted, or take it along: ` +
			`name an owner in the same namespace, or none"`,
	}
}
