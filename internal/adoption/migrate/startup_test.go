package migrate_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/migrate/source"
)

// TestStartupTaints expects a pool to have the startup taints of its NodePool, in each version,
// and a problem for each taint that a pool cannot have.
func TestStartupTaints(t *testing.T) {
	with := func(taints string) string {
		return buildPool("jobs", "node-pool: jobs", "startupTaints: ["+taints+"]\ntaints: [{key: node-pool, value: jobs, effect: NoSchedule}]")
	}
	const cilium = `{key: node.cilium.io/agent-not-ready, value: "true", effect: NoExecute}`
	kept := []string{`"startupTaints":[{"effect":"NoExecute","key":"node.cilium.io/agent-not-ready","value":"true"}]`}
	azure := strings.NewReplacer("{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}", "{group: karpenter.azure.com, kind: AKSNodeClass, name: default}",
		"labels: {node-pool: jobs}", "labels: {node-pool: jobs, kubernetes.azure.com/ebpf-dataplane: cilium}").Replace(with(cilium)) +
		"\n---\n{apiVersion: karpenter.azure.com/v1beta1, kind: AKSNodeClass, metadata: {name: default}, spec: {imageFamily: Ubuntu2204}}\n"
	for name, r := range map[string]row{
		"v1":          {read: with(cilium), options: demo, gives: kept, findings: []want{{source.Kept, "startupTaints[0]", "pools.jobs.startupTaints"}}},
		"v1beta1":     {read: strings.Replace(with(cilium), "karpenter.sh/v1\n", "karpenter.sh/v1beta1\n", 1), options: demo, gives: kept},
		"v1alpha5":    {read: buildInlineProvisioner("startupTaints: [" + cilium + "]"), gives: kept},
		"Azure's":     {read: azure, options: demo, gives: append(kept, `"ref":{"group":"karpenter.azure.com","kind":"AKSNodeClass","name":"default"}`)},
		"several":     {read: with("{key: ebs.csi.aws.com/agent-not-ready, effect: NoExecute}, {key: ebs.csi.aws.com/agent-not-ready, effect: NoSchedule}"), options: demo, gives: []string{`"startupTaints":[{"effect":"NoExecute","key":"ebs.csi.aws.com/agent-not-ready"},{"effect":"NoSchedule","key":"ebs.csi.aws.com/agent-not-ready"}]`}},
		"a time":      {read: with(`{key: a, effect: NoSchedule, timeAdded: "2026-01-01T00:00:00Z"}`), options: demo, gives: []string{`"startupTaints":[{"effect":"NoSchedule","key":"a"}]`}, findings: []want{{source.NotKept, "startupTaints[0].timeAdded", "Kubernetes sets"}}},
		"twice":       {read: with("{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}"), options: demo, gives: []string{`"startupTaints":[{"effect":"NoSchedule","key":"a"}]`}, problems: []string{"startupTaints[1]: pool jobs already has a startup taint with this key and effect"}},
		"the key's":   {read: with("{key: node-pool, value: new, effect: NoSchedule}"), options: demo, not: []string{"startupTaints"}, problems: []string{"startupTaints[0]: pool jobs cannot have this startup taint: node-pool is the nodePoolKey"}},
		"Karpenter's": {read: with("{key: karpenter.sh/unregistered, effect: NoExecute}, " + cilium), options: demo, gives: kept, problems: []string{"startupTaints[0]: pool jobs cannot have this startup taint: the taint karpenter.sh/unregistered is reserved for Karpenter"}},
	} {
		t.Run(name, r.checkMapping)
	}
}
