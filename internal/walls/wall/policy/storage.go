package policy

import (
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The parts of the rules on volume claims and on templates of claims in pods and StatefulSets.

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
