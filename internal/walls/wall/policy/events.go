package policy

import (
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// EventsPolicy is the name of the policy on events.
const EventsPolicy = "croft-events"

// EventSourceRule is the name of its only rule.
const EventSourceRule = "event-source"

// systemComponents are the components whose names only nodes and controllers of the whole
// cluster may use in events: users, alerts and `croft why` trust these names.
var systemComponents = []string{
	"kubelet", "default-scheduler", "karpenter", "cluster-autoscaler", "croft",
	"attachdetach-controller", "controllermanager", "cronjob-controller", "daemonset-controller",
	"deployment-controller", "endpoint-controller", "endpoint-slice-controller", "ephemeral_volume",
	"horizontal-pod-autoscaler", "job-controller", "kube-proxy", "node-controller", "persistentvolume-controller",
	"replicaset-controller", "replication-controller", "resource_claim", "resourcequota-controller",
	"service-controller", "statefulset-controller", "taint-eviction-controller", "volume_expand",
}

// checkEvents prevents tenants from writing events in the name of the cluster, and from
// changing the cluster's events.
func checkEvents() admissionpolicy.Validating {
	// The two APIs name the same fields differently. The old object is checked too, because a
	// tenant may not change an event of the cluster.
	claims := `[dyn(object), dyn(oldObject)].exists(e, e != null && [
		has(e.source) && has(e.source.component) ? e.source.component : "",
		has(e.reportingComponent) ? e.reportingComponent : "",
		has(e.deprecatedSource) && has(e.deprecatedSource.component) ? e.deprecatedSource.component : "",
		has(e.reportingController) ? e.reportingController : ""
		].exists(c, c in ` + formatQuoted(systemComponents) + `))`
	return admissionpolicy.Validating{
		Name:               EventsPolicy,
		IgnoresTenantRules: true,
		Resources: []admissionpolicy.Resource{
			{Version: "v1", Resources: []string{"events"}, Operations: write},
			{Group: "events.k8s.io", Version: "v1", Resources: []string{"events"}, Operations: write},
		},
		MatchConditions: map[string]string{"claims-to-be-of-the-cluster": claims},
		Rules: []admissionpolicy.Rule{{
			Name:       EventSourceRule,
			Summary:    "only Kubernetes' components, Karpenter and croft write events in their names",
			Expression: clusterWide,
			Message: `"source.component, reportingController: the event claims to come ` +
				`from a component of the cluster: name the component that writes it"`,
		}},
	}
}
