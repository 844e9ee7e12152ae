package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The names of the policies on resources that tenants share without noticing.
const (
	ClaimsPolicy      = "croft-volume-claims"
	TerminationPolicy = "croft-termination"
)

// The names of their rules.
const (
	VolumeRule          = "volume-name"
	StorageClassRule    = "storage-class"
	SourceRule          = "volume-source"
	AttributesClassRule = "attributes-class"
	VolumeSizeRule      = "volume-size"
	BindingRule         = "binding-annotations"
)

// classAnnotation sets a claim's storage class. It takes precedence over the field.
const classAnnotation = "volume.beta.kubernetes.io/storage-class"

// BindingAnnotations pass decisions of the scheduler and the volume controller to the volume
// controller and provisioners: the node of a volume's disks, the volume's provisioner, and
// that a claim is bound.
var BindingAnnotations = []string{
	"volume.kubernetes.io/selected-node",
	"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
	"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller",
}

// byVolumeControllers is the condition that the scheduler or the volume controller sends the
// request. They may change claims in the whole cluster. GitOps controllers and operators may
// do so too, but they write a tenant's content, so service accounts outside of kube-system
// are excluded.
const byVolumeControllers = `(!request.userInfo.username.startsWith("system:serviceaccount:") ||
		request.userInfo.username.startsWith("system:serviceaccount:kube-system:")) &&
	authorizer.group("").resource("persistentvolumeclaims").check("update").allowed()`

// readStorageClasses returns an expression for all storage classes in a claim or claim template. The
// annotation takes precedence, but the field is stored, too, and other programs read it.
func readStorageClasses(claim string) string {
	return replaceWords(`((has(CLAIM.metadata) && has(CLAIM.metadata.annotations) && KEY in CLAIM.metadata.annotations
			? [CLAIM.metadata.annotations[KEY]] : []) +
		(has(CLAIM.spec.storageClassName) ? [CLAIM.spec.storageClassName] : []))`,
		"CLAIM", claim, "KEY", admissionpolicy.Quote(classAnnotation))
}

// matchAllowedClass returns the condition that the tenant may use a storage class. "*" does not
// include the empty class.
func matchAllowedClass(class string) string {
	return replaceWords(`(CLASS == "" ? "" in params.spec.storageClasses :
		`+matchAllowed("storageClasses", "CLASS")+`)`, "CLASS", class)
}

func readAttributesClass(claim string) string {
	return replaceWords(`(has(CLAIM.spec.volumeAttributesClassName)
		? CLAIM.spec.volumeAttributesClassName : "")`, "CLAIM", claim)
}

// matchOwnSource returns the condition that a claim takes no data, or data from the tenant's own
// namespaces. Kubernetes supports sources in other namespaces only with a feature gate that
// is off by default, and then requires a ReferenceGrant in the source's namespace.
func matchOwnSource(claim string) string {
	return replaceWords(`(!has(CLAIM.spec.dataSourceRef) || !has(CLAIM.spec.dataSourceRef.namespace) ||
		CLAIM.spec.dataSourceRef.namespace == "" ||
		CLAIM.spec.dataSourceRef.namespace in params.spec.namespaces)`, "CLAIM", claim)
}

// readStorageRequest returns an expression for the storage that a claim requests, as a string.
func readStorageRequest(claim string) string {
	return replaceWords(`(has(CLAIM.spec.resources) && has(CLAIM.spec.resources.requests) &&
		"storage" in CLAIM.spec.resources.requests
		? string(CLAIM.spec.resources.requests["storage"]) : "0")`, "CLAIM", claim)
}

func matchTooLarge(size string) string {
	return replaceWords(`quantity(SIZE).isGreaterThan(quantity(params.spec.maxVolumeSize))`, "SIZE", size)
}

// checkClaims prevents claims from taking other tenants' volumes. Controllers create claims
// from tenants' templates, so the rules apply to every creator of a claim. Only the
// platform's admins, who restore volumes, may choose a volume. The volume controller binds
// existing claims.
func checkClaims(admins []string) admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: ClaimsPolicy,
		Resources: []admissionpolicy.Resource{
			{Version: "v1", Resources: []string{"persistentvolumeclaims"}, Operations: write},
		},
		Variables: []admissionpolicy.Variable{
			{Name: "new", Expression: `request.operation == "CREATE"`},
			{Name: "volume", Expression: `has(object.spec.volumeName) ? object.spec.volumeName : ""`},
			{
				Name:       "volumeBefore",
				Expression: readBefore(`(has(oldObject.spec.volumeName) ? oldObject.spec.volumeName : "")`, `""`),
			},
			{Name: "classes", Expression: readStorageClasses("object")},
			{Name: "classesBefore", Expression: readBefore(readStorageClasses("oldObject"), `[]`)},
			// Without a default class in the cluster, a claim without a class has the empty
			// class.
			{Name: "refusedClasses", Expression: `(variables.new && variables.classes.size() == 0
					? [""] : variables.classes)
				.filter(c, !(c in variables.classesBefore) && !` + matchAllowedClass("c") + `)`},
			{Name: "attributesClass", Expression: readAttributesClass("object")},
			{Name: "attributesClassBefore", Expression: readBefore(readAttributesClass("oldObject"), `""`)},
			{Name: "size", Expression: readStorageRequest("object")},
			{Name: "sizeBefore", Expression: readBefore(readStorageRequest("oldObject"), `"0"`)},
			{Name: "annotations", Expression: readAnnotations("object.metadata")},
			{Name: "annotationsBefore", Expression: readBefore(readAnnotations("oldObject.metadata"), `{}`)},
			{Name: "refusedAnnotations", Expression: formatQuoted(BindingAnnotations) + `.filter(a,
				a in variables.annotations &&
				!(a in variables.annotationsBefore && variables.annotationsBefore[a] == variables.annotations[a]))`},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name: VolumeRule, Summary: "claims do not choose their volume",
				Expression: `variables.volume == variables.volumeBefore || ` + admissionpolicy.ByAdmins(admins) + ` ||
					!variables.new && ` + byVolumeControllers,
				Message: `"spec.volumeName: Kubernetes chooses the volume of a claim, ` +
					`since another volume may belong to another tenant: remove the field"`,
			},
			{
				Name:    BindingRule,
				Summary: "only the scheduler and the volume controller write their annotations on a claim",
				Expression: `variables.refusedAnnotations.size() == 0 || ` + admissionpolicy.ByAdmins(admins) + ` ||
					!variables.new && ` + byVolumeControllers,
				Message: `"metadata.annotations: " + variables.refusedAnnotations.join(", ") +
					" is reserved for Kubernetes, which decides where the volume comes from: remove it"`,
			},
			{
				Name:       SourceRule,
				Summary:    "claims select no existing volumes, and use no data of namespaces outside of the tenant",
				Expression: `!variables.new || !has(object.spec.selector) && ` + matchOwnSource("object"),
				Message: `has(object.spec.selector)
					? "spec.selector: it would select an existing volume, ` +
					`which may belong to another tenant: remove the field"
					: "spec.dataSourceRef.namespace: tenant " + params.spec.tenant +
						" may use data of its own namespaces: " + ` + formatAllowed("namespaces"),
			},
			{
				Name:       StorageClassRule,
				Summary:    "claims use only the tenant's storageClasses, by the field and by the older annotation",
				Expression: `variables.refusedClasses.size() == 0`,
				Exception:  "policy.storageClasses",
				Message:    formatRefusedClass(),
			},
			{
				Name: AttributesClassRule, Summary: "claims use only the tenant's volumeAttributesClasses",
				Expression: `variables.attributesClass == "" ||
					variables.attributesClass == variables.attributesClassBefore ||
					` + matchAllowed("volumeAttributesClasses", "variables.attributesClass"),
				Exception: "policy.volumeAttributesClasses",
				Message: `"spec.volumeAttributesClassName: " + variables.attributesClass +
					" is not among the volume attributes classes of tenant " + params.spec.tenant + ": " + ` +
					formatAllowed("volumeAttributesClasses") + ` + "; leave the field out; ` +
					`a platform admin allows others by policy.volumeAttributesClasses"`,
			},
			{
				Name: VolumeSizeRule, Summary: "claims request at most the tenant's maxVolumeSize",
				Expression: `variables.size == variables.sizeBefore || !` + matchTooLarge("variables.size"),
				Exception:  "policy.maxVolumeSize",
				Message: `"spec.resources.requests.storage: " + variables.size + " is more than the " +
					params.spec.maxVolumeSize + " that one claim of tenant " + params.spec.tenant +
					" may request: lower it; a platform admin allows more by policy.maxVolumeSize"`,
			},
		},
	}
}

// formatRefusedClass distinguishes three mistakes: a class that the tenant may not use, the
// empty class, and no class where the cluster has no default. The message names the
// annotation, since a change of the field alone would be refused again.
func formatRefusedClass() string {
	return `"spec.storageClassName: " +
		(variables.refusedClasses[0] != ""
			? variables.refusedClasses[0] + " is not among the storage classes of the tenant" :
		variables.classes.size() > 0
			? "the empty class requests an existing volume" :
			"the cluster has no default class, ` +
		`and without a class the claim gets an existing volume: name a class") +
		(` + admissionpolicy.Quote(classAnnotation) + ` in variables.annotations
			? "; annotation ` + classAnnotation + ` takes precedence over the field: remove it" : "") +
		"; storage classes of tenant " + params.spec.tenant + ": " + ` + formatAllowed("storageClasses") +
		` + "; a platform admin allows others by policy.storageClasses"`
}

// buildRefusedClaimFields returns a variable with the fields for which checkClaims would refuse
// claims that are created from the templates in variables.claims.
func buildRefusedClaimFields() admissionpolicy.Variable {
	each := func(field, condition string) string {
		return `variables.claims.exists(c, ` + condition + `) ? "` + field + `" : ""`
	}
	return admissionpolicy.Variable{Name: "refusedClaimFields", Expression: `variables.claims.size() == 0 ? [] : [
		` + each("spec.volumeName", `has(c.spec.volumeName) && c.spec.volumeName != ""`) + `,
		` + each("spec.selector", `has(c.spec.selector)`) + `,
		` + each("spec.dataSourceRef.namespace", `!(`+matchOwnSource("c")+`)`) + `,
		` + each("spec.storageClassName", readStorageClasses("c")+`.exists(n, !`+matchAllowedClass("n")+`)`) + `,
		` + each("spec.volumeAttributesClassName", readAttributesClass("c")+` != "" &&
			!`+matchAllowed("volumeAttributesClasses", readAttributesClass("c"))) + `,
		` + each("spec.resources.requests.storage", matchTooLarge(readStorageRequest("c"))) + `,
		` + each("metadata.annotations", `has(c.metadata) && has(c.metadata.annotations) &&
			`+formatQuoted(BindingAnnotations)+`.exists(a, a in c.metadata.annotations)`) + `
		].filter(f, f != "")`}
}

// buildClaimTemplatesRule shows the author of a template the refusals that checkClaims would send
// to a controller.
func buildClaimTemplatesRule() admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: ClaimTemplatesRule, Summary: "templates of claims follow the rules for claims",
		UsuallyFast: true, FastPath: plainVolumed + ` && variables.claimTemplates.size() == 0`,
		Expression: `variables.refusedClaimFields.size() == 0`,
		Message: `"volumeClaimTemplates: claims with this " + variables.refusedClaimFields.join(", ") +
			" are refused: remove it; tenant " + params.spec.tenant +
			" has the storage classes " + ` + formatAllowed("storageClasses") + ` +
			", the volume attributes classes " + ` + formatAllowed("volumeAttributesClasses") + ` +
			" and at most " + params.spec.maxVolumeSize + " for each claim"`,
	}
}

// checkTermination limits the grace period of deletions and evictions to the maximum for the
// pod itself. For a pod without a node the API server passes no grace period to policies, and
// uses none.
func checkTermination() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: TerminationPolicy,
		Resources: []admissionpolicy.Resource{
			{Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Delete}},
			{
				Version: "v1", Resources: []string{"pods/eviction"},
				Operations: []admissionv1.OperationType{admissionv1.Create},
			},
		},
		Variables: []admissionpolicy.Variable{
			{Name: "options", Expression: `request.operation == "DELETE" ? dyn(request.options) :
				has(object.deleteOptions) ? dyn(object.deleteOptions) : dyn({})`},
			{Name: "seconds", Expression: `variables.options != null && has(variables.options.gracePeriodSeconds)
				? variables.options.gracePeriodSeconds : 0`},
		},
		Rules: []admissionpolicy.Rule{{
			Name: GracePeriodRule,
			Summary: "pods are deleted and evicted with a grace period " +
				"within the tenant's maxTerminationGracePeriodSeconds",
			Expression: `variables.seconds <= params.spec.maxTerminationGracePeriodSeconds`,
			Message: `"gracePeriodSeconds: " + string(variables.seconds) + " is more than the " +
				string(params.spec.maxTerminationGracePeriodSeconds) +
				" that pods of tenant " + params.spec.tenant + " may take to terminate: lower it"`,
		}},
	}
}
