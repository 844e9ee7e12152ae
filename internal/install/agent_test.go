package install_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/evaluator"
	"croft.dev/croft/internal/install"
)

// node is a Node as a kubelet and others left it.
func node() *corev1.Node {
	pool := corev1.Taint{Key: v1alpha1.DefaultNodePoolKey, Value: "telco", Effect: corev1.TaintEffectNoExecute}
	pending := corev1.Taint{Key: v1alpha1.NetworksTaint, Value: v1alpha1.NetworksTaintValue, Effect: corev1.TaintEffectNoSchedule}
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///us-west-2a/i-1", Taints: []corev1.Taint{pool, pending}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.7"}},
		},
	}
}

func setCondition(kind corev1.NodeConditionType, holds corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind }),
			corev1.NodeCondition{Type: kind, Status: holds})
	}
}

// TestWritesOfNodes wants the agent to write one condition of its own Node, and the
// operator one annotation and one taint, and both nothing else.
func TestWritesOfNodes(t *testing.T) {
	judge, err := evaluator.New(objects(t, install.Options{Image: "croft:test", Agent: true}))
	if err != nil {
		t.Fatal(err)
	}
	account := func(name string, extra map[string][]string) user.Info {
		return &user.DefaultInfo{
			Name: "system:serviceaccount:" + name, Groups: []string{"system:serviceaccounts", "system:authenticated"}, Extra: extra,
		}
	}
	on := func(names ...string) user.Info {
		return account("croft-agent:croft-agent", map[string][]string{"authentication.kubernetes.io/node-name": names})
	}
	operator := account("croft-system:croft", nil)
	ready := setCondition(v1alpha1.ConditionNetworksReady, corev1.ConditionTrue)
	for name, test := range map[string]struct {
		as          user.Info
		subresource string
		change      func(*corev1.Node)
		by          string
	}{
		"the agent's condition":          {on("a"), "status", ready, ""},
		"nothing":                        {on("a"), "status", func(*corev1.Node) {}, ""},
		"another node's agent":           {on("b"), "status", ready, install.AgentName},
		"a token without a node":         {account("croft-agent:croft-agent", nil), "status", ready, install.AgentName},
		"the kubelet's condition":        {on("a"), "status", setCondition(corev1.NodeReady, corev1.ConditionFalse), install.AgentName},
		"an address":                     {on("a"), "status", func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.0.0.8" }, install.AgentName},
		"a label, by the status":         {on("a"), "status", func(n *corev1.Node) { n.Labels["c"] = "d" }, install.AgentName},
		"an annotation, by the status":   {on("a"), "status", func(n *corev1.Node) { n.Annotations["a"] = "c" }, install.AgentName},
		"the phase":                      {on("a"), "status", func(n *corev1.Node) { n.Status.Phase = corev1.NodeRunning }, install.AgentName},
		"the agent and a taint":          {on("a"), "", func(n *corev1.Node) { n.Spec.Taints = nil }, "RBAC"},
		"another account of the agent's": {account("croft-agent:default", nil), "status", ready, "RBAC"},

		"the operator's annotation": {operator, "", func(n *corev1.Node) { n.Annotations[v1alpha1.NodeNetworksAnnotation] = "[]" }, ""},
		"the first annotation": {operator, "", func(n *corev1.Node) {
			n.Annotations = map[string]string{"a": "b", v1alpha1.NodeNetworksAnnotation: "[]"}
		}, ""},
		"the operator's taint":      {operator, "", func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[:1] }, ""},
		"the pool's taint":          {operator, "", func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[1:] }, install.NodesName},
		"another taint":             {operator, "", func(n *corev1.Node) { n.Spec.Taints[1].Value = "done" }, install.NodesName},
		"another annotation":        {operator, "", func(n *corev1.Node) { n.Annotations["a"] = "c" }, install.NodesName},
		"no annotation":             {operator, "", func(n *corev1.Node) { n.Annotations = nil }, install.NodesName},
		"a new annotation":          {operator, "", func(n *corev1.Node) { n.Annotations["c"] = "d" }, install.NodesName},
		"a label":                   {operator, "", func(n *corev1.Node) { n.Labels["a"] = "c" }, install.NodesName},
		"cordon":                    {operator, "", func(n *corev1.Node) { n.Spec.Unschedulable = true }, install.NodesName},
		"the operator and a status": {operator, "status", ready, "RBAC"},
	} {
		before := node()
		after := before.DeepCopy()
		test.change(after)
		answer, err := judge.Judge(t.Context(), evaluator.Request{
			User: test.as, Verb: "patch", Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Subresource: test.subresource,
			Name: "a", Object: untyped(t, after), Old: untyped(t, before),
		})
		if err != nil {
			t.Fatal(err)
		}
		by := ""
		for _, d := range answer.Denials {
			if d.Rule == "" && d.By != "RBAC" {
				t.Errorf("%s: %s", name, d.Message)
			}
			by = d.By
		}
		if by != test.by {
			t.Errorf("%s: denied by %q, not %q", name, by, test.by)
		}
	}
}

func untyped(t *testing.T, o client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// TestAgentOnlyIfAsked wants neither the agent nor the operator's rights on Nodes in an
// installation without it.
func TestAgentOnlyIfAsked(t *testing.T) {
	has := func(o install.Options) bool {
		return slices.ContainsFunc(objects(t, o), func(o client.Object) bool {
			return o.GetName() == install.AgentName || o.GetName() == install.NodesName
		})
	}
	if has(install.Options{Image: "croft:test", Authentication: "{}"}) || has(install.Options{Agent: true}) {
		t.Error("the agent is there, and nobody asked for it, or there is no image")
	}
	if !has(install.Options{Image: "croft:test", Agent: true}) {
		t.Error("no agent")
	}
}
