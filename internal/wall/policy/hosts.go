package policy

import "croft.dev/croft/internal/admission"

// AnnotatedHostsRule is a rule of every policy on objects whose annotations can
// name hosts.
const AnnotatedHostsRule = "annotated-hosts"

// annotatedHosts are the annotations that name a host which the tenant may not
// serve: those that external-dns makes records of, whatever its prefix, that
// ingress-nginx serves as well, and that cert-manager asks certificates for. The
// variables annotations and annotationsBefore are the object's.
func annotatedHosts() admission.Variable {
	return admission.Variable{Name: "refusedAnnotations", Expression: `variables.annotations.transformList(k, v,
		(k.contains("external-dns") && (k.endsWith("/hostname") || k.endsWith("/internal-hostname")) ||
		k in ["nginx.ingress.kubernetes.io/server-alias", "cert-manager.io/common-name", "cert-manager.io/alt-names"]) &&
		v.split(",").exists(h, h.trim() != "" && !` + granted("h.trim()") + `) &&
		!(k in variables.annotationsBefore && variables.annotationsBefore[k] == v), k + "=" + v)`}
}

func annotatedHostsRule() admission.Rule {
	return admission.Rule{
		Name: AnnotatedHostsRule, Says: "annotations of external-dns, ingress-nginx and cert-manager name the tenant's hosts only",
		Holds:   `variables.refusedAnnotations.size() == 0`,
		Message: `"metadata.annotations: " + ` + some("variables.refusedAnnotations", 3) + ` + ` + hosts(),
	}
}

// annotationVariables are what annotatedHostsRule asks about, for an object that
// is no pod.
func annotationVariables(more ...admission.Variable) []admission.Variable {
	return append([]admission.Variable{
		{Name: "annotations", Expression: annotations("object.metadata")},
		{Name: "annotationsBefore", Expression: before(annotations("oldObject.metadata"), `{}`)},
		annotatedHosts(),
	}, more...)
}
