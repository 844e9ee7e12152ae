package policy

import (
	"fmt"
	"strconv"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// SizesPolicy is the name of the policy on the size of objects.
const SizesPolicy = "croft-sizes"

// The names of its rules. For pods, croft-pods has these rules.
const (
	SizeRule       = "size"
	OwnerCountRule = "number-of-owners"
)

// maxOwners is the maximum number of an object's owners. The garbage collector looks up
// each owner, also missing ones, before it continues with other objects.
const maxOwners = 10

// growth is the number of bytes by which an object may still grow if it was too large before
// croft was installed or a bound was lowered. It is enough for a label and its entry in
// metadata.managedFields.
const growth = 4 << 10

// readText returns an expression for an object as text. The text's length differs by a few
// percent from the length of the object's JSON. CEL can process a whole object only by
// formatting it as text.
func readText(object string) string { return replaceWords(`"%s".format([OBJECT])`, "OBJECT", object) }

// countBytes returns an expression for the number of bytes of a text. CEL counts characters of
// up to four bytes each, so bytes are counted only if the difference matters for the bound.
func countBytes(text, most string) string {
	return replaceWords(`(TEXT.size() * 4 <= MOST || TEXT.size() > MOST ? TEXT.size() : bytes(TEXT).size())`,
		"TEXT", text, "MOST", most)
}

// notes are the kinds whose limit is estate.MaxNoteBytes.
var notes = []string{"/events", "events.k8s.io/events", "coordination.k8s.io/leases", "croft.dev/elevations"}

// checkSizes limits the size of objects, so that a quota on their number bounds a tenant's
// space in etcd. It matches every kind, since a tenant would use any kind that it leaves out.
// For the same reason it reads no TenantRules: the API server observes them late in a new
// namespace and after its own restart, and every write would wait for them.
func checkSizes() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name:               SizesPolicy,
		IgnoresTenantRules: true,
		Resources: []admissionpolicy.Resource{
			{Group: "*", Version: "*", Resources: []string{"*"}, Operations: write},
		},
		ExcludedResources: []admissionpolicy.Resource{
			{Version: "v1", Resources: []string{"pods"}, Operations: write},
			// Tenants cannot write these kinds. The endpoints of a Service with a thousand
			// pods are larger than the limit, and so are the rules of a tenant with many
			// exceptions.
			{Group: v1alpha1.GroupVersion.Group, Version: "*", Resources: []string{"tenantrules"}, Operations: write},
			{Version: "v1", Resources: []string{"endpoints"}, Operations: write},
			{Group: "discovery.k8s.io", Version: "*", Resources: []string{"endpointslices"}, Operations: write},
		},
		Variables: []admissionpolicy.Variable{
			{Name: "object", Expression: `dyn(object)`},
			{Name: "kind", Expression: `request.resource.group + "/" + request.resource.resource`},
			{Name: "isHelm", Expression: `variables.kind == "/secrets" &&
				has(variables.object.type) && variables.object.type == "helm.sh/release.v1"`},
			{Name: "most", Expression: `variables.kind == "/configmaps"
					? ` + readBound(v1alpha1.MaxObjectBytesAnnotation, estate.MaxObjectBytes) + ` :
				variables.isHelm
					? ` + readBound(v1alpha1.MaxHelmReleaseBytesAnnotation, estate.MaxObjectBytes) + ` :
				variables.kind == "/secrets"
					? ` + readBound(v1alpha1.MaxObjectBytesAnnotation, estate.MaxObjectBytes) + ` :
				variables.kind in ` + formatQuoted(notes) + `
					? ` + strconv.Itoa(estate.MaxNoteBytes) + ` :
				` + readBound(v1alpha1.MaxOtherObjectBytesAnnotation, estate.MaxOtherObjectBytes)},
			{Name: "text", Expression: readText("object")},
			{Name: "bytes", Expression: countBytes("variables.text", "variables.most")},
			// In these fields bytes are encoded in base64. etcd stores them decoded.
			{Name: "encoded", Expression: `variables.kind == "/secrets" && has(variables.object.data)
					? ` + sumLengths("variables.object.data") + ` :
				variables.kind == "/configmaps" && has(variables.object.binaryData)
					? ` + sumLengths("variables.object.binaryData") + ` :
				0`},
			{Name: "size", Expression: `variables.bytes <= variables.most || variables.bytes * 3 / 4 > variables.most
				? variables.bytes : variables.bytes - variables.encoded / 4`},
			{Name: "textBefore", Expression: readBefore(readText("oldObject"), `""`)},
		},
		Rules: []admissionpolicy.Rule{{
			Name: SizeRule, Costly: true,
			Summary: "objects are no larger than the tenant's maxObjectBytes (Secrets, ConfigMaps), " +
				"maxHelmReleaseBytes (Helm's releases) and maxOtherObjectBytes (other kinds), " +
				"Events, Leases and Elevations no larger than 8 KiB",
			Expression: `variables.size <= variables.most ||
				` + matchHardlyGrown("variables.text", "variables.textBefore", "variables.most"),
			Message: `"the object is larger than the " + string(variables.most) + " bytes that namespace " +
				namespaceObject.metadata.name + " has for one of " + request.resource.resource +
				": make it smaller, or split it" +
				(variables.kind in ` + formatQuoted(notes) + ` ? "" :
					"; a platform admin allows more by policy." +
						(variables.isHelm ? "maxHelmReleaseBytes" :
							variables.kind in ["/secrets", "/configmaps"] ? "maxObjectBytes" :
							"maxOtherObjectBytes"))`,
		}, buildOwnerCountRule()},
	}
}

// buildOwnerCountRule bounds the garbage collector's work for one object.
func buildOwnerCountRule() admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: OwnerCountRule, Summary: "objects name at most " + strconv.Itoa(maxOwners) + " owners",
		UsuallyFast: true,
		FastPath: `!has(object.metadata.ownerReferences) ||
			object.metadata.ownerReferences.size() <= ` + strconv.Itoa(maxOwners),
		Expression: matchNoMore("object.metadata", "oldObject.metadata", "ownerReferences", maxOwners),
		Message: `"metadata.ownerReferences: the garbage collector looks up each one: name ` +
			strconv.Itoa(maxOwners) + ` at most"`,
	}
}

// matchNoMore returns the condition that a list is absent, not too long, or no longer than before.
func matchNoMore(of, before, list string, most int) string {
	return replaceWords(`!has(OF.LIST) || OF.LIST.size() <= MOST ||
		request.operation == "UPDATE" && has(BEFORE.LIST) && OF.LIST.size() <= BEFORE.LIST.size()`,
		"OF", of, "BEFORE", before, "LIST", list, "MOST", strconv.Itoa(most))
}

// podControllers create pods from templates that checkSizes has already measured as parts of
// their Deployments, Jobs and the like. Measuring a pod takes some 0.1 ms, and most pods come
// from these controllers.
var podControllers = []string{
	"system:serviceaccount:kube-system:replicaset-controller",
	"system:serviceaccount:kube-system:job-controller",
	"system:serviceaccount:kube-system:statefulset-controller",
	"system:serviceaccount:kube-system:daemon-set-controller",
	"system:serviceaccount:kube-system:replication-controller",
}

// buildPodSizeRule is the rule of checkSizes for pods.
func buildPodSizeRule() admissionpolicy.Rule {
	of := readBound(v1alpha1.MaxOtherObjectBytesAnnotation, estate.MaxOtherObjectBytes)
	return admissionpolicy.Rule{
		Name: SizeRule, Costly: true,
		Summary: "pods are no larger than the tenant's maxOtherObjectBytes, " +
			"and neither are the objects whose templates they are made from",
		FastPath: `request.userInfo.username in ` + formatQuoted(podControllers),
		Expression: replaceWords(`variables.new && WITHIN <= MOST || SIZE <= MOST || !variables.new && `,
			"WITHIN", mostOfNewPod, "SIZE", countBytes("variables.text", of), "MOST", of) +
			matchHardlyGrown("variables.text", "variables.textBefore", of),
		Exception: "policy.maxOtherObjectBytes",
		Message: `"the pod is larger than the " + string(` + of + `) + " bytes that tenant " + params.spec.tenant +
			" has for one: move its large parts into a ConfigMap or Secret; ` +
			`a platform admin allows more by policy.maxOtherObjectBytes"`,
	}
}

// podTexts are the variables for buildPodSizeRule.
var podTexts = []admissionpolicy.Variable{
	{Name: "text", Expression: readText("object")},
	{Name: "textBefore", Expression: readText("oldObject")},
}

// mostOfNewPod is an expression for an upper bound of the size of a new pod, in bytes. The
// API server adds managedFields, which repeat the name of each field and each key of a list
// in JSON that replaces some characters by six. They are longer than the fields themselves
// and cost more to measure. Names and finalizers have bounds of their own.
var mostOfNewPod = func() string {
	const times, rest = 8, 4 << 10
	sum := readText("object.spec") + ".size()"
	for _, marks := range []string{"annotations", "labels", "ownerReferences"} {
		of := "object.metadata." + marks
		sum += replaceWords(` + (has(OF) ? TEXT.size() : 0)`, "OF", of, "TEXT", readText(of))
	}
	return fmt.Sprintf("(%s) * %d + %d", sum, times, rest)
}()

// matchHardlyGrown returns the condition that an object was too large before and has hardly grown:
// it can still be labelled, scaled and deleted. Growth is counted in characters, which is
// cheaper, so such an object may gain bytes if longer characters replace others.
func matchHardlyGrown(text, before, most string) string {
	return replaceWords(`BYTES > MOST && TEXT.size() <= BEFORE.size() + `+strconv.Itoa(growth),
		"BYTES", countBytes(before, most), "MOST", most, "TEXT", text, "BEFORE", before)
}

// readBound returns an expression for the namespace's bound.
func readBound(annotation string, otherwise int) string {
	return replaceWords(`(has(namespaceObject.metadata.annotations) && KEY in namespaceObject.metadata.annotations
		? int(namespaceObject.metadata.annotations[KEY]) : OTHERWISE)`,
		"KEY", admissionpolicy.Quote(annotation), "OTHERWISE", strconv.Itoa(otherwise))
}

// sumLengths returns an expression for the sum of the lengths of all values in a map of strings.
func sumLengths(of string) string { return replaceWords(`MAP.map(k, MAP[k].size()).sum()`, "MAP", of) }
