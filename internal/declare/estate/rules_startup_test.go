package estate

import (
	"slices"
	"testing"

	"croft.dev/croft/internal/declare/manifest"
)

// TestStartupTaints tests valid and invalid startup taints of a pool.
func TestStartupTaints(t *testing.T) {
	const at = ": pools.jobs.startupTaints"
	for name, test := range map[string]struct {
		taints string
		want   []string
	}{
		"of agents": {taints: `[{key: node.cilium.io/agent-not-ready, value: "true", effect: NoExecute}, {key: ebs.csi.aws.com/agent-not-ready, effect: NoSchedule},` +
			` {key: agent, effect: PreferNoSchedule}, {key: readiness.k8s.io/storage, effect: NoSchedule}]`},
		"of a key in two effects": {taints: "[{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]"},
		"twice": {taints: "[{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]", want: []string{
			"croft.yaml:3" + at + "[1]: startupTaints[0] has the key a and the effect NoSchedule, too; leave one of them out"}},
		"of croft": {taints: "[{key: croft.dev/a, effect: NoSchedule}, {key: sub.croft.dev/a, effect: NoSchedule}, {key: readiness.k8s.io/croft-networks, effect: NoExecute}]", want: []string{
			"croft.yaml:3" + at + "[0].key: the taint croft.dev/a is reserved for croft; leave this taint out",
			"croft.yaml:3" + at + "[1].key: the taint sub.croft.dev/a is reserved for croft; leave this taint out",
			"croft.yaml:3" + at + "[2].key: the taint readiness.k8s.io/croft-networks is reserved for croft; write waitForNetworks: true instead"}},
		"of Karpenter": {taints: "[{key: karpenter.sh/unregistered, effect: NoExecute}, {key: a.karpenter.sh/b, effect: NoExecute}, {key: mykarpenter.sh/a, effect: NoExecute}]", want: []string{
			"croft.yaml:3" + at + "[0].key: the taint karpenter.sh/unregistered is reserved for Karpenter; leave this taint out",
			"croft.yaml:3" + at + "[1].key: the taint a.karpenter.sh/b is reserved for Karpenter; leave this taint out"}},
		"of the pool": {taints: "[{key: node-pool, value: new, effect: NoSchedule}]", want: []string{
			"croft.yaml:3" + at + "[0].key: node-pool is the nodePoolKey, and the pool's nodes keep its taint; leave this taint out"}},
		"of no key": {taints: `[{key: "a b", effect: NoSchedule}, {effect: NoSchedule}]`, want: []string{
			"croft.yaml:3" + at + "[1].key: is required, but missing"}},
		"that no node can have": {taints: `[{key: "a b", value: "c d", effect: NoSchedule}]`, want: []string{
			`croft.yaml:3` + at + `[0].key: "a b" is not the key of a taint; write one such as node.cilium.io/agent-not-ready`,
			`croft.yaml:3` + at + `[0].value: "c d" cannot be the value of a taint; write letters, digits, '-', '_' and '.', beginning and ending with a letter or digit`}},
		"of another effect": {taints: "[{key: a, effect: Never}]", want: []string{`croft.yaml:3` + at + `[0].effect: "Never" is not allowed; write NoSchedule, PreferNoSchedule or NoExecute`}},
		"that pods tolerate": {taints: "[{key: nvidia.com/gpu, effect: NoSchedule}]", want: []string{
			"croft.yaml:3" + at + "[0].key: warning: tenants' pods may tolerate nvidia.com/gpu, since it is in platform.tolerations: pods that do start before the taint is removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", []byte("platform: {clusterName: demo, nodePoolKey: node-pool, nodeClass: {kwok: {}}}\npools:\n  jobs: {startupTaints: "+test.taints+"}\n"))
			e, more := Build(d)
			all := slices.Concat(problems, more)
			if e != nil {
				all = append(all, e.Warnings...)
			}
			expectProblems(t, all.Sorted(), test.want...)
		})
	}
}
