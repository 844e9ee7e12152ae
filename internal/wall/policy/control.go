package policy

import (
	"strconv"

	"croft.dev/croft/internal/admissionpolicy"
)

// The names of the policies that complement RBAC, where it cannot distinguish requests
// or is too coarse.
const (
	EndpointsPolicy  = "croft-endpoints"
	FinalizersPolicy = "croft-finalizers"
)

// Their rules.
const (
	EndpointsRule  = "written-by-controllers"
	FinalizersRule = "finalizers"
	OwnersRule     = "owners"
)

// clusterWide is true if the user may do so in every namespace, as the controllers of
// the cluster and of the platform may, and no tenant: so the policies need not know them
// by name.
const clusterWide = everyNamespace + `.check("update").allowed() ||
	` + everyNamespace + `.check("patch").allowed()`

// everyNamespace asks the authorizer about the request's resource. Without a namespace,
// it asks about all of them.
const everyNamespace = `authorizer.group(request.resource.group).resource(request.resource.resource)`

// checkEndpoints keeps tenants from sending Services' traffic to arbitrary addresses
// (CVE-2021-25740).
func checkEndpoints() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name:     EndpointsPolicy,
		Ruleless: true,
		Resources: []admissionpolicy.Resource{
			{Version: "v1", Resources: []string{"endpoints"}, Operations: write},
			{Group: "discovery.k8s.io", Version: "v1", Resources: []string{"endpointslices"}, Operations: write},
		},
		Rules: []admissionpolicy.Rule{{
			Name: EndpointsRule, Says: "Endpoints and EndpointSlices are written by controllers of the whole cluster",
			Holds:   clusterWide,
			Message: `"the addresses behind a Service are found for it: give the Service a selector"`,
		}},
	}
}

// The finalizers that Kubernetes puts on objects that tenants write. Each is removed by
// a controller that handles one kind alone, and on any other kind by none.
// foregroundDeletion and orphan come with a deletion, not with a write.
const (
	claimFinalizer = "kubernetes.io/pvc-protection"
	jobFinalizer   = "batch.kubernetes.io/job-tracking"
)

// hasFinalizersOrOwners is true of what checkDeletion has something to ask of: finalizers,
// an owner of the whole cluster, or more owners than it would look through.
var hasFinalizersOrOwners = `object != null && has(object.metadata) &&
	(has(object.metadata.finalizers) ||
		has(object.metadata.ownerReferences) &&
		(object.metadata.ownerReferences.size() > ` + strconv.Itoa(mostOwners) + ` ||
			object.metadata.ownerReferences.exists(o,
				` + ofTheCluster + `)))`

// checkDeletion keeps objects, and so namespaces, from becoming undeletable. It matches
// every kind of object, but only objects with finalizers or owners to check; for pods,
// croft-pods has the same rules.
//
// Controllers of the whole cluster create claims from tenants' StatefulSets, finalizers
// included: so a controller may put none on a new claim.
func checkDeletion(more []string) admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name:     FinalizersPolicy,
		Ruleless: true,
		Resources: []admissionpolicy.Resource{
			{Group: "*", Version: "*", Resources: []string{"*"}, Operations: write},
		},
		Except: []admissionpolicy.Resource{
			{Version: "v1", Resources: []string{"pods"}, Operations: write},
		},
		Only:   map[string]string{"has-finalizers-or-owners": hasFinalizersOrOwners},
		Bounds: finalizerBounds,
		Variables: []admissionpolicy.Variable{
			{Name: "isClaim", Expression: `request.resource.group == "" &&
				request.resource.resource == "persistentvolumeclaims"`},
			{Name: "finalizers", Expression: `has(object.metadata.finalizers) ? object.metadata.finalizers : []`},
			{Name: "finalizersBefore", Expression: `request.operation == "UPDATE" &&
				has(oldObject.metadata.finalizers) ?
					oldObject.metadata.finalizers : []`},
			refusedFinalizers(`f in ` + quoted(more) + ` || variables.isClaim && f == "` + claimFinalizer + `"`),
		},
		Rules: []admissionpolicy.Rule{
			finalizersRule(`(!variables.isClaim || request.operation == "UPDATE")`),
			ownersRule(),
		},
	}
}

// refusedOfPods are the finalizers of pods, and of templates, that are not to be.
func refusedOfPods(more []string) admissionpolicy.Variable {
	return refusedFinalizers(`f in ` + quoted(append([]string{jobFinalizer}, more...)))
}

// refusedFinalizers are the new finalizers that are not allowed. From a list too long to
// be compared, any may be removed.
func refusedFinalizers(allowed string) admissionpolicy.Variable {
	const refused = `variables.finalizersBefore.size() > MOST &&
			variables.finalizers.size() < variables.finalizersBefore.size() ? [] :
		variables.finalizers.filter(f,
			!(ALLOWED) &&
			(variables.finalizersBefore.size() > MOST || !(f in variables.finalizersBefore)))`
	return admissionpolicy.Variable{
		Name:       "refusedFinalizers",
		Expression: with(refused, "ALLOWED", allowed, "MOST", strconv.Itoa(mostFinalizers)),
	}
}

// finalizersRule allows controllers of the whole cluster any finalizer, unless a
// tenant's template may have set it.
func finalizersRule(untold string) admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: FinalizersRule,
		Says: "tenants put no finalizers on their objects but Kubernetes' own of that kind " +
			"and the Platform's finalizers",
		Fine:  `variables.finalizers.size() == 0`,
		Holds: `variables.refusedFinalizers.size() == 0 || ` + untold + ` && (` + clusterWide + `)`,
		Message: `"metadata.finalizers: " + ` + some("variables.refusedFinalizers", 3) +
			` + " would keep the namespace from going: remove it; ` +
			`a platform admin allows it by the Platform's finalizers"`,
	}
}

// ofTheCluster is true of an owner o that is in no namespace, and no tenant's.
const ofTheCluster = `o.apiVersion == "v1" && o.kind in ["Namespace", "Node", "PersistentVolume"] ||
	o.apiVersion.startsWith("croft.dev/") || o.apiVersion.startsWith("karpenter.")`

func ownersRule() admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: OwnersRule, Says: "objects of tenants are owned by no Namespace, Node or PersistentVolume, " +
			"and by nothing of croft's and Karpenter's",
		Fine: `!has(object.metadata.ownerReferences)`,
		Holds: `object.metadata.ownerReferences.all(o, !(` + ofTheCluster + `) ||
			request.operation == "UPDATE" && has(oldObject.metadata.ownerReferences) &&
			oldObject.metadata.ownerReferences.exists(b,
				b.uid == o.uid && b.kind == o.kind && b.apiVersion == o.apiVersion)) || ` + clusterWide,
		Message: `"metadata.ownerReferences: a Namespace, a Node or another object of the whole cluster ` +
			`would wait for this one when it is deleted, or take it along: ` +
			`name an owner in the same namespace, or none"`,
	}
}
