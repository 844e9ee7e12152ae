package migrate_test

import (
	"strings"
	"testing"
)

// TestProviders tests the node classes of other providers: croft.yaml must refer to them, and
// not contain an AWS class instead.
func TestProviders(t *testing.T) {
	on := func(ref string) string {
		return strings.Replace(buildDedicatedPool("jobs"), "{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}", ref, 1)
	}
	class := func(version, kind string) string {
		return "\n---\n{apiVersion: " + version + ", kind: " + kind + ", metadata: {name: default}, spec: {imageFamily: X}}\n"
	}
	azure := []string{`"ref":{"group":"karpenter.azure.com","kind":"AKSNodeClass","name":"default"}`}
	old := func(ref string) string {
		return strings.Replace(on(ref), "karpenter.sh/v1\n", "karpenter.sh/v1beta1\n", 1)
	}
	not := []string{"EC2NodeClass", `"aws"`}
	for name, r := range map[string]row{
		"Azure, v1beta1":        {read: on("{group: karpenter.azure.com, kind: AKSNodeClass, name: default}") + class("karpenter.azure.com/v1beta1", "AKSNodeClass"), options: demo, gives: azure, not: not},
		"Azure, v1alpha2":       {read: old("{apiVersion: karpenter.azure.com/v1alpha2, kind: AKSNodeClass, name: default}") + class("karpenter.azure.com/v1alpha2", "AKSNodeClass"), options: demo, gives: azure, not: not},
		"Google, v1beta1":       {read: on("{group: karpenter.k8s.gcp, kind: GCENodeClass, name: default}") + class("karpenter.k8s.gcp/v1beta1", "GCENodeClass"), options: demo, gives: []string{`"ref":{"group":"karpenter.k8s.gcp","kind":"GCENodeClass","name":"default"}`}, not: not},
		"EKS Auto Mode":         {read: on("{group: eks.amazonaws.com, kind: NodeClass, name: default}") + class("eks.amazonaws.com/v1", "NodeClass"), options: demo, gives: []string{`"ref":{"group":"eks.amazonaws.com","kind":"NodeClass","name":"default"}`}, not: not},
		"a name, a class":       {read: old("{name: default}") + class("karpenter.azure.com/v1alpha2", "AKSNodeClass"), options: demo, gives: azure, not: not},
		"a kind, a class":       {read: old("{kind: AKSNodeClass, name: default}") + class("karpenter.azure.com/v1beta1", "AKSNodeClass"), options: demo, gives: azure, not: not},
		"a name, AWS' type":     {read: old("{name: default}\n      requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}]"), options: demo, gives: []string{`"kind":"EC2NodeClass"`}},
		"a name":                {read: old("{name: default}"), options: demo, not: not, problems: []string{"nodeClassRef: has no group and kind of node class", "platform.nodeClass"}},
		"another's Provisioner": {read: strings.Replace(strings.Split(buildSharedProvisioner(selectors), "---")[0], "{name: nodes}", "{apiVersion: karpenter.example.org/v1, kind: OtherNodeTemplate, name: nodes}", 1), options: demo, not: append(not, "karpenter.k8s.aws"), problems: []string{"providerRef.kind: OtherNodeTemplate is not a node class of AWS", "platform.nodeClass"}},
		"another's kubelet":     {read: old("{apiVersion: karpenter.azure.com/v1alpha2, kind: AKSNodeClass, name: default}\n      kubelet: {maxPods: 20}") + class("karpenter.azure.com/v1alpha2", "AKSNodeClass"), options: demo, gives: azure, not: not, problems: []string{"kubelet: Karpenter v1 has no kubelet settings in a NodePool: move them to AKSNodeClass/default"}},
	} {
		t.Run(name, r.checkMapping)
	}
}
