package migrate_test

import (
	"strings"
)

// buildPool returns a NodePool on simulated nodes. spec is in its template, such as taints: [...].
func buildPool(name, labels, spec string) string {
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

// buildDedicatedPool returns a NodePool whose nodes have a label and a taint node-pool with its
// name.
func buildDedicatedPool(name string) string {
	return buildPool(name, "node-pool: "+name, "taints: [{key: node-pool, value: "+name+", effect: NoSchedule}]")
}

// buildMutator returns a mutator of pods. match is written without braces.
func buildMutator(kind, name, match, location, parameters string) string {
	return buildMutatorFor("", "Pod", kind, name, match, location, parameters)
}

func buildMutatorFor(group, target, kind, name, match, location, parameters string) string {
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

// buildSelectorAssign returns an Assign of a nodeSelector.
func buildSelectorAssign(match, selector string) string {
	return buildMutator("Assign", "selector", match, "spec.nodeSelector", "{assign: {value: {"+selector+"}}}")
}

func buildNamespace(name, labels string) string {
	return "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: " + name + ", labels: {" + labels + "}}}\n"
}

const required = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
