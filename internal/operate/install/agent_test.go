package install_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/install/installtest"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/test/sandbox"
)

// newNode returns a Node as kubelet, croft and others have written it.
func newNode() *corev1.Node {
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

func setCondition(kind corev1.NodeConditionType, value corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind }),
			corev1.NodeCondition{Type: kind, Status: value})
	}
}

func addAnnotation(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

// TestWritesOfNodes fails if the agent can write more than one condition and one annotation
// of its own Node, or the operator more than one annotation and one taint, or if either
// cannot write these.
func TestWritesOfNodes(t *testing.T) {
	judge, err := evaluator.New(buildObjects(t, install.Options{Image: "croft:test", Agent: true}))
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
		"the agent's condition":        {on("a"), "status", ready, ""},
		"nothing":                      {on("a"), "status", func(*corev1.Node) {}, ""},
		"another node's agent":         {on("b"), "status", ready, install.AgentName},
		"a token without a node":       {account("croft-agent:croft-agent", nil), "status", ready, install.AgentName},
		"the kubelet's condition":      {on("a"), "status", setCondition(corev1.NodeReady, corev1.ConditionFalse), install.AgentName},
		"an address":                   {on("a"), "status", func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.0.0.8" }, install.AgentName},
		"a label, by the status":       {on("a"), "status", func(n *corev1.Node) { n.Labels["c"] = "d" }, install.AgentName},
		"an annotation, by the status": {on("a"), "status", func(n *corev1.Node) { n.Annotations["a"] = "c" }, install.AgentName},
		"the agent's annotation":       {on("a"), "status", addAnnotation(v1alpha1.BootAnnotation, "{}"), ""},
		"the agent's annotation and its condition": {on("a"), "status", func(n *corev1.Node) {
			addAnnotation(v1alpha1.BootAnnotation, strings.Repeat("x", 2048))(n)
			ready(n)
		}, ""},
		"the agent's annotation, on another node": {on("b"), "status", addAnnotation(v1alpha1.BootAnnotation, "{}"), install.AgentName},
		"a long annotation":                       {on("a"), "status", addAnnotation(v1alpha1.BootAnnotation, strings.Repeat("x", 2049)), install.AgentName},
		"the operator's list, by the agent":       {on("a"), "status", addAnnotation(v1alpha1.NodeNetworksAnnotation, "[]"), install.AgentName},
		"an annotation that goes":                 {on("a"), "status", func(n *corev1.Node) { delete(n.Annotations, "a") }, install.AgentName},
		"no annotations at all":                   {on("a"), "status", func(n *corev1.Node) { n.Annotations = nil }, install.AgentName},
		"the agent's annotation, by the operator": {operator, "", addAnnotation(v1alpha1.BootAnnotation, "{}"), install.NodesName},
		"the phase":                      {on("a"), "status", func(n *corev1.Node) { n.Status.Phase = corev1.NodeRunning }, install.AgentName},
		"the agent and a taint":          {on("a"), "", func(n *corev1.Node) { n.Spec.Taints = nil }, "RBAC"},
		"another account of the agent's": {account("croft-agent:default", nil), "status", ready, "RBAC"},

		"the operator's annotation": {operator, "", func(n *corev1.Node) { n.Annotations[v1alpha1.NodeNetworksAnnotation] = "[]" }, ""},
		"the first annotation": {operator, "", func(n *corev1.Node) {
			n.Annotations = map[string]string{"a": "b", v1alpha1.NodeNetworksAnnotation: "[]"}
		}, ""},
		"the operator's taint":                     {operator, "", func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[:1] }, ""},
		"the pool's taint":                         {operator, "", func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[1:] }, install.NodesName},
		"another taint":                            {operator, "", func(n *corev1.Node) { n.Spec.Taints[1].Value = "done" }, install.NodesName},
		"another annotation":                       {operator, "", func(n *corev1.Node) { n.Annotations["a"] = "c" }, install.NodesName},
		"no annotation":                            {operator, "", func(n *corev1.Node) { n.Annotations = nil }, install.NodesName},
		"a new annotation":                         {operator, "", func(n *corev1.Node) { n.Annotations["c"] = "d" }, install.NodesName},
		"a label":                                  {operator, "", func(n *corev1.Node) { n.Labels["a"] = "c" }, install.NodesName},
		"cordon":                                   {operator, "", func(n *corev1.Node) { n.Spec.Unschedulable = true }, install.NodesName},
		"the operator's condition":                 {operator, "status", setCondition(v1alpha1.ConditionPodNetworksReady, corev1.ConditionTrue), ""},
		"the agent's condition, by the operator":   {operator, "status", ready, install.NodesName},
		"the kubelet's condition, by the operator": {operator, "status", setCondition(corev1.NodeReady, corev1.ConditionFalse), install.NodesName},
		"an address, by the operator":              {operator, "status", func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.0.0.8" }, install.NodesName},
		"a label, by the operator and the status":  {operator, "status", func(n *corev1.Node) { n.Labels["c"] = "d" }, install.NodesName},
		"the operator's condition, by the agent":   {on("a"), "status", setCondition(v1alpha1.ConditionPodNetworksReady, corev1.ConditionTrue), install.AgentName},
	} {
		before := newNode()
		after := before.DeepCopy()
		test.change(after)
		answer, err := judge.Evaluate(t.Context(), evaluator.Request{
			User: test.as, Verb: "patch", Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Subresource: test.subresource,
			Name: "a", Object: convertToUnstructured(t, after), Old: convertToUnstructured(t, before),
		})
		if err != nil {
			t.Fatal(err)
		}
		by := ""
		for _, d := range answer.Denials {
			if d.Rule == "" && d.DeniedBy != "RBAC" {
				t.Errorf("%s: %s", name, d.Message)
			}
			by = d.DeniedBy
		}
		if by != test.by {
			t.Errorf("%s: denied by %q, not %q", name, by, test.by)
		}
	}
}

func convertToUnstructured(t *testing.T, o client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// TestAgentIsOptional fails if an installation without the agent has the agent or the
// operator's rights on Nodes.
func TestAgentIsOptional(t *testing.T) {
	has := func(o install.Options) bool {
		return slices.ContainsFunc(buildObjects(t, o), func(o client.Object) bool {
			return o.GetName() == install.AgentName || o.GetName() == install.NodesName
		})
	}
	if has(install.Options{Image: "croft:test", Authentication: "{}"}) || has(install.Options{Agent: true}) {
		t.Error("the agent is installed without the option, or without an image")
	}
	if !has(install.Options{Image: "croft:test", Agent: true}) {
		t.Error("no agent")
	}
}

// TestAgentJournalIsOptional fails if the agent can read any log of its node without the
// option for the journal, if it can read more than the journal with it, or if it can write the
// journal.
func TestAgentJournalIsOptional(t *testing.T) {
	pod := func(o install.Options) corev1.PodSpec {
		t.Helper()
		for _, o := range buildObjects(t, o) {
			if d, is := o.(*appsv1.DaemonSet); is {
				return d.Spec.Template.Spec
			}
		}
		t.Fatal("there is no agent")
		return corev1.PodSpec{}
	}
	paths := func(spec corev1.PodSpec) (all []string) {
		for _, m := range spec.Containers[0].VolumeMounts {
			i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
			path := spec.Volumes[i].HostPath.Path
			if m.ReadOnly {
				path += " (read)"
			}
			all = append(all, path)
		}
		return all
	}
	without := pod(install.Options{Image: "croft:test", Agent: true})
	with := pod(install.Options{Image: "croft:test", Agent: true, AgentJournal: true})
	if got := paths(without); !slices.Equal(got, []string{"/etc/cni/net.d/croft.d"}) {
		t.Errorf("without the journal: %q", got)
	}
	if got := paths(with); !slices.Equal(got, []string{"/etc/cni/net.d/croft.d", "/var/log/journal (read)"}) {
		t.Errorf("with the journal: %q", got)
	}
	const argument = "--journal=/var/log/journal"
	if slices.Contains(without.Containers[0].Args, argument) || !slices.Contains(with.Containers[0].Args, argument) {
		t.Errorf("arguments without the journal %q, with it %q", without.Containers[0].Args, with.Containers[0].Args)
	}
	if !equality.Semantic.DeepEqual(without.Containers[0].SecurityContext, with.Containers[0].SecurityContext) ||
		!equality.Semantic.DeepEqual(without.SecurityContext, with.SecurityContext) {
		t.Error("with the journal the agent has other capabilities")
	}
}

// TestAgentAnnotates checks that a real API server accepts the agent's annotation in a
// write to the status, which requires no right on the Node itself. TestWritesOfNodes covers
// the policy.
func TestAgentAnnotates(t *testing.T) {
	sandbox.Thorough(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Install(t.Context(), admin, install.Options{Image: "croft:test", Agent: true}); err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if err := admin.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	as := rest.CopyConfig(cluster.Config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:croft-agent:croft-agent", Groups: []string{"system:serviceaccounts", "system:authenticated"},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"a"}},
	}
	agent, err := client.New(as, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(key string) error {
		return agent.Status().Patch(t.Context(), n.DeepCopy(), client.RawPatch(types.StrategicMergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+key+`":"{}"}}}`)))
	}
	tries := 0 // vary the annotation: no policy is evaluated for a write without a change
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		tries++
		err := patch("other-" + strconv.Itoa(tries))
		return err != nil && strings.Contains(err.Error(), "[own-annotation]"), nil
	})
	if err != nil {
		t.Errorf("another annotation is not refused: %v", err)
	}
	if err := patch(v1alpha1.BootAnnotation); err != nil {
		t.Error(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil || n.Annotations[v1alpha1.BootAnnotation] != "{}" {
		t.Errorf("the Node has the annotations %v: %v", n.Annotations, err)
	}
}

// TestPluginRights fails if the operator cannot read DaemonSets and pods in the namespace
// where nodes wait for them, or can read them in another one, or at all if nodes wait for
// none.
func TestPluginRights(t *testing.T) {
	for _, test := range []struct {
		options install.Options
		in      string
		args    int
	}{
		{install.Options{Image: "croft:test"}, "", 0},
		{install.Options{Image: "croft:test", Agent: true}, "kube-system", 0},
		{install.Options{Image: "croft:test", Agent: true, PluginsNamespace: "multus", PluginsLabels: "app=multus"}, "multus", 2},
		{install.Options{Image: "croft:test", Agent: true, PluginsNamespace: "multus"}, "", 2},
	} {
		all := buildObjects(t, test.options)
		rights, problems := installtest.FindGranted(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: v1alpha1.ManagedBy}, all)
		if len(problems) > 0 {
			t.Error(problems)
		}
		var got []string
		for _, r := range rights {
			if r.Resource == "daemonsets" || r.Resource == "pods" && r.Verb != "create" {
				got = append(got, r.String())
			}
		}
		want := []string{
			"list daemonsets.apps in " + test.in, "watch daemonsets.apps in " + test.in, "list pods in " + test.in, "watch pods in " + test.in,
		}
		if test.in == "" {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: the operator may %q", test.options, got)
		}
		args := 0
		for _, o := range all {
			if d, is := o.(*appsv1.Deployment); is && d.Name == v1alpha1.ManagedBy {
				for _, a := range d.Spec.Template.Spec.Containers[0].Args {
					if strings.HasPrefix(a, install.PluginsArgument) {
						args++
					}
				}
			}
		}
		if args != test.args {
			t.Errorf("%+v: the operator has %d arguments about plugins", test.options, args)
		}
	}
}
