package migrate_test

import (
	"testing"
)

// TestWorkloads expects a problem for workloads that request a pool of another tenant.
func TestWorkloads(t *testing.T) {
	pools := buildDedicatedPool("jobs") + buildDedicatedPool("apps") + buildPool("open", "zone: far", "expireAfter: Never") + buildSelectorAssign("namespaces: [a]", "node-pool: jobs")
	deployment := func(namespace, spec string) string {
		return "\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: " + namespace + "}, spec: {template: {spec: {containers: [], " + spec + "}}}}\n"
	}
	affinity := func(key, value string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: " + key + ", operator: In, values: [" + value + "]}]}]}}}"
	}
	for name, r := range map[string]row{
		"its own pool":              {read: pools + deployment("a", "nodeSelector: {node-pool: jobs}"), options: demo},
		"its own pool, by affinity": {read: pools + deployment("a", affinity("karpenter.sh/nodepool", "jobs")), options: demo},
		"an instance":               {read: pools + deployment("a", affinity("node.kubernetes.io/instance-type", "m5.large")), options: demo},
		"another pool":              {read: pools + deployment("a", "nodeSelector: {node-pool: apps}"), options: demo, problems: []string{"Deployment/a/d: spec.template.spec.nodeSelector: requires nodes of pool apps, but the tenant of namespace a runs on pool jobs"}},
		"another pool, by affinity": {read: pools + deployment("a", affinity("karpenter.sh/nodepool", "apps")), options: demo, problems: []string{"matchExpressions[0]: requires nodes of pool apps"}},
		"no tenant's":               {read: pools + deployment("b", "nodeSelector: {node-pool: apps}"), options: demo, problems: []string{"no tenant in the input has namespace b: its pods will be evicted"}},
		"the platform's own nodes":  {read: pools + deployment("b", "nodeSelector: {zone: far}"), options: demo},
		"a CronJob":                 {read: pools + "\n---\n{apiVersion: batch/v1, kind: CronJob, metadata: {name: d, namespace: a}, spec: {jobTemplate: {spec: {template: {spec: {containers: [], nodeSelector: {node-pool: apps}}}}}}}\n", options: demo, problems: []string{"CronJob/a/d: spec.jobTemplate.spec.template.spec.nodeSelector"}},
		"a Pod":                     {read: pools + "\n---\n{apiVersion: v1, kind: Pod, metadata: {name: d, namespace: a}, spec: {containers: [], nodeSelector: {node-pool: apps}}}\n", options: demo, problems: []string{"Pod/a/d: spec.nodeSelector"}},
		"a value that changes":      {read: buildPool("jobs", "node-pool: ci", "taints: [{key: node-pool, value: ci, effect: NoSchedule}]") + buildSelectorAssign("namespaces: [a]", "node-pool: ci") + deployment("a", "nodeSelector: {node-pool: ci}"), options: demo, problems: []string{"requires nodes with node-pool=ci, which have node-pool=jobs under croft"}},
		"a job of KEDA":             {read: pools + buildAddOn("keda.sh/v1alpha1", "ScaledJob", "a", "{jobTargetRef: {template: {spec: {containers: [], nodeSelector: {node-pool: apps}}}}}"), options: demo, problems: []string{"ScaledJob/a/o: spec.jobTargetRef.template.spec.nodeSelector: requires nodes of pool apps"}},
		"a template of Argo":        {read: pools + buildAddOn("argoproj.io/v1alpha1", "WorkflowTemplate", "a", "{templates: [{name: m, nodeSelector: {node-pool: apps}}]}"), options: demo, problems: []string{"WorkflowTemplate/a/o: spec.templates[0].nodeSelector"}},
		"a database":                {read: pools + buildAddOn("postgresql.cnpg.io/v1", "Cluster", "a", "{affinity: {nodeSelector: {node-pool: apps}}}"), options: demo, problems: []string{"Cluster/a/o: spec.affinity.nodeSelector"}},
		"a broker":                  {read: pools + buildAddOn("kafka.strimzi.io/v1beta2", "Kafka", "a", "{kafka: {template: {pod: {"+affinity("node-pool", "apps")+"}}}}"), options: demo, problems: []string{"Kafka/a/o: spec.kafka.template.pod.affinity.nodeAffinity"}},
		"a database, its own pool":  {read: pools + buildAddOn("postgresql.cnpg.io/v1", "Cluster", "a", "{affinity: {nodeSelector: {node-pool: jobs}}}"), options: demo},
		"the platform's, elsewhere": {read: pools + buildAddOn("argoproj.io/v1alpha1", "Application", "argocd", "{source: {helm: {valuesObject: {nodeSelector: {node-pool: apps}}}}}"), options: demo},
	} {
		t.Run(name, r.checkMapping)
	}
}

// buildAddOn returns an object of an add-on's kind.
func buildAddOn(apiVersion, kind, namespace, spec string) string {
	return "\n---\n{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: o, namespace: " + namespace + "}, spec: " + spec + "}\n"
}
