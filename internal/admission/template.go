package admission

import admissionv1 "k8s.io/api/admissionregistration/v1"

// Templates are the kinds that pods are made from by controllers.
func Templates() []Resource {
	write := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	return []Resource{
		{Group: "apps", Version: "v1", Resources: []string{"deployments", "statefulsets", "daemonsets", "replicasets"}, Operations: write},
		{Group: "batch", Version: "v1", Resources: []string{"jobs", "cronjobs"}, Operations: write},
		{Version: "v1", Resources: []string{"replicationcontrollers", "podtemplates"}, Operations: write},
	}
}

// TemplateVariables give the pod template of any of the kinds of Templates, as
// variables.template. The object is of several kinds, so its fields are looked up
// without being checked against one of them.
func TemplateVariables() []Variable {
	return []Variable{
		{Name: "object", Expression: `dyn(object)`},
		{Name: "template", Expression: `has(variables.object.template) ? variables.object.template :
			has(variables.object.spec.jobTemplate) ? variables.object.spec.jobTemplate.spec.template : variables.object.spec.template`},
	}
}

// FromTemplate is the message of a rule about pods, said of a template of them.
func FromTemplate(message string) string { return `"its pods will be refused: " + ` + message }
