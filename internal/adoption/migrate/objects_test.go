package migrate_test

import (
	"strings"
)

// pool returns a NodePool on simulated nodes. spec is in its template, such as taints: [...].
func pool(name, labels, spec string) string {
	return `
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: ` + name + `}
spec:
  template:
    metadata: {labels: {` + labels + `}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      ` + strings.ReplaceAll(spec, "\n", "\n      ") + "\n"
}

// tiedPool returns a NodePool whose nodes have a label and a taint node-pool with its name.
func tiedPool(name string) string {
	return pool(name, "node-pool: "+name, "taints: [{key: node-pool, value: "+name+", effect: NoSchedule}]")
}

// mutator returns a mutator of pods. match is written without braces.
func mutator(kind, name, match, location, parameters string) string {
	return mutatorOf("", "Pod", kind, name, match, location, parameters)
}

func mutatorOf(group, target, kind, name, match, location, parameters string) string {
	return `
---
apiVersion: mutations.gatekeeper.sh/v1
kind: ` + kind + `
metadata: {name: ` + name + `}
spec:
  applyTo: [{groups: ["` + group + `"], kinds: [` + target + `], versions: [v1]}]
  match: {` + match + `}
  location: '` + location + `'
  parameters: ` + parameters + "\n"
}

// selecting returns an Assign of a nodeSelector.
func selecting(match, selector string) string {
	return mutator("Assign", "selector", match, "spec.nodeSelector", "{assign: {value: {"+selector+"}}}")
}

func ns(name, labels string) string {
	return "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: " + name + ", labels: {" + labels + "}}}\n"
}

const required = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
