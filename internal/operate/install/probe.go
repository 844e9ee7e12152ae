package install

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

const (
	// ProbesName is the name of the policy that limits the operator's pods to dry runs.
	ProbesName = "croft-probes"
	// ConfigMapsName is the name of the policy that limits the operator's ConfigMaps to tenants'
	// namespaces.
	ConfigMapsName = "croft-config-maps"
	// RevisionPolicy is the name of the policy by which an API server reports its version of
	// a namespace.
	RevisionPolicy = "croft-revision"
	// RevisionRule is the name of that policy's rule.
	RevisionRule = "revision"
	// RevisionProbe is the generateName of a LimitRange that requests that version.
	RevisionProbe = "croft-revision-"
)

// buildProbesPolicy refuses pods that would be stored for the operator. The operator creates
// pods to check whether the walls are enforced, always in a dry run. RBAC cannot express
// that: without the policy, the operator's token could start pods in every namespace,
// including kube-system.
func buildProbesPolicy() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: ProbesName, IgnoresTenantRules: true, ClusterWide: true,
		Resources:       []admissionpolicy.Resource{{Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Create}}},
		MatchConditions: byOperator(),
		Rules: []admissionpolicy.Rule{{
			Name: "dry-run-only", Summary: "croft's operator creates pods only in dry runs",
			Expression: "has(request.dryRun) && request.dryRun",
			Message:    `"croft's operator may create pods only in dry runs, to test the walls"`,
		}},
	}
}

// buildRevisionPolicy refuses a LimitRange named RevisionProbe with the resource version of its
// namespace. All admission policies of an API server read a tenant's rules from the same
// copy of the namespace. No other rule applies to a LimitRange of the operator's, so none
// hides the answer.
func buildRevisionPolicy() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: RevisionPolicy, IgnoresTenantRules: true, ClusterWide: true,
		Resources:       []admissionpolicy.Resource{{Version: "v1", Resources: []string{"limitranges"}, Operations: []admissionv1.OperationType{admissionv1.Create}}},
		MatchConditions: byOperator(),
		Rules: []admissionpolicy.Rule{{
			Name: RevisionRule, Summary: "croft's operator reads which version of a namespace an API server evaluates",
			Expression: "!has(object.metadata.generateName) || object.metadata.generateName != " + admissionpolicy.Quote(RevisionProbe),
			Message:    "namespaceObject.metadata.resourceVersion",
		}},
	}
}

// buildConfigMapsPolicy refuses the operator's writes of ConfigMaps other than those with croft's label
// in tenants' namespaces, which croft.yaml declares. RBAC cannot express that: without the policy,
// the operator's token could change the ConfigMaps of kube-system, such as aws-auth, which gives
// access to the cluster.
func buildConfigMapsPolicy() admissionpolicy.Validating {
	label := admissionpolicy.Quote(v1alpha1.ManagedByLabel)
	return admissionpolicy.Validating{
		Name: ConfigMapsName, IgnoresTenantRules: true, ClusterWide: true,
		Resources: []admissionpolicy.Resource{{Version: "v1", Resources: []string{"configmaps"},
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}}},
		MatchConditions: byOperator(),
		Variables:       []admissionpolicy.Variable{{Name: "written", Expression: `request.operation == "DELETE" ? oldObject : object`}},
		Rules: []admissionpolicy.Rule{
			{
				Name: "own-config-maps", Summary: "croft's operator writes only ConfigMaps with croft's label",
				Expression: "has(variables.written.metadata.labels) && " + label + " in variables.written.metadata.labels && " +
					"variables.written.metadata.labels[" + label + "] == " + admissionpolicy.Quote(v1alpha1.ManagedBy),
				Message: `"croft's operator may write only ConfigMaps that croft.yaml declares"`,
			},
			{
				Name: "tenant-config-maps", Summary: "croft's operator writes ConfigMaps only in tenants' namespaces",
				Expression: `!request.namespace.startsWith("kube-") && has(namespaceObject.metadata.labels) && ` +
					admissionpolicy.Quote(v1alpha1.TenantLabel) + ` in namespaceObject.metadata.labels`,
				Message: `"croft's operator may write ConfigMaps only in tenants' namespaces"`,
			},
		},
	}
}

func byOperator() map[string]string {
	return map[string]string{"by-operator": "request.userInfo.username == " + admissionpolicy.Quote(admissionpolicy.OperatorUser)}
}
