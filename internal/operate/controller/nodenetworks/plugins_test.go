package nodenetworks

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/controller/watch"
)

var byName = func() labels.Selector {
	s, err := labels.Parse(secondary.PluginsLabels)
	if err != nil {
		panic(err)
	}
	return s
}()

// newDaemonSet returns a DaemonSet like Multus' manifests: it tolerates all taints.
func newDaemonSet(name string) appsv1.DaemonSet {
	return appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name)},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": name}},
			Spec:       corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
		}},
	}
}

func newPod(name, node string, ready bool) corev1.Pod {
	value := corev1.ConditionFalse
	if ready {
		value = corev1.ConditionTrue
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: name + "-" + node, Labels: map[string]string{"name": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: types.UID(name), Controller: ptr.To(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: value}}},
	}
}

// TestCheckNode fails if a node does not wait for each existing DaemonSet that selects it,
// until that DaemonSet's pod is Ready on the node, or if it waits for anything else.
func TestCheckNode(t *testing.T) {
	intolerant := newDaemonSet("whereabouts") // as in whereabouts' own manifest
	intolerant.Spec.Template.Spec.Tolerations[0].Effect = corev1.TaintEffectNoSchedule
	arm := newDaemonSet("multus")
	arm.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"}
	going := newDaemonSet("multus")
	going.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now()))
	leaving := newPod("multus", "a", true)
	leaving.DeletionTimestamp = going.DeletionTimestamp
	strange := newPod("multus", "a", true)
	strange.OwnerReferences[0].UID = "older"
	type (
		sets = []appsv1.DaemonSet
		pods = []corev1.Pod
	)
	for name, test := range map[string]struct {
		sets           sets
		pods           pods
		names, pending []string
	}{
		"none is there":         {nil, nil, nil, nil},
		"another DaemonSet":     {sets{newDaemonSet("aws-node")}, nil, nil, nil},
		"it is being deleted":   {sets{going}, nil, nil, nil},
		"it is for other nodes": {sets{arm}, nil, nil, nil},
		"both are Ready": {sets{newDaemonSet("whereabouts"), newDaemonSet("multus")}, pods{newPod("multus", "a", true), newPod("whereabouts", "a", true)},
			[]string{"multus", "whereabouts"}, nil},
		"one alone is there": {sets{newDaemonSet("multus")}, pods{newPod("multus", "a", true)}, []string{"multus"}, nil},
		"a pod is not Ready": {sets{newDaemonSet("multus")}, pods{newPod("multus", "a", false)}, []string{"multus"},
			[]string{"DaemonSet kube-system/multus has a pod on the node that is not Ready: multus-a"}},
		"a pod elsewhere": {sets{newDaemonSet("multus")}, pods{newPod("multus", "b", true)}, []string{"multus"},
			[]string{"DaemonSet kube-system/multus has no pod on the node"}},
		"a pod that leaves":          {sets{newDaemonSet("multus")}, pods{leaving}, []string{"multus"}, []string{"DaemonSet kube-system/multus has no pod on the node"}},
		"a pod of another DaemonSet": {sets{newDaemonSet("multus")}, pods{strange}, []string{"multus"}, []string{"DaemonSet kube-system/multus has no pod on the node"}},
		"it does not tolerate a taint": {sets{intolerant}, nil, []string{"whereabouts"},
			[]string{"DaemonSet kube-system/whereabouts has no pod on the node, since it does not tolerate the taint " + others.ToString()}},
		"it does not, but has a pod": {sets{intolerant}, pods{newPod("whereabouts", "a", true)}, []string{"whereabouts"}, nil},
	} {
		names, pending := newPlugins(byName, test.sets, test.pods).checkNode(newReadyNode().node)
		if !slices.Equal(names, test.names) || !slices.Equal(pending, test.pending) {
			t.Errorf("%s: %q, pending %q", name, names, pending)
		}
	}
}

// TestListPluginsForbidden fails if a missing right is not reported, or is waited for.
func TestListPluginsForbidden(t *testing.T) {
	refused := fake.NewClientBuilder().WithScheme(scheme.New()).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "daemonsets"}, "", nil)
		},
	}).Build()
	c := &Controller{client: refused, live: refused, daemonSets: &watch.Late{}, requiredPlugins: secondary.Plugins{Namespace: "kube-system", Labels: byName}}
	if p, unread, err := c.listPlugins(t.Context()); err != nil || p != nil || unread == "" {
		t.Errorf("%v, %q, %v", p, unread, err)
	}
}

// TestIsRelevantChange fails if a relevant change of a pod or DaemonSet is not passed, or any
// other change is.
func TestIsRelevantChange(t *testing.T) {
	pod, ready, moved := newPod("multus", "", false), newPod("multus", "", true), newPod("multus", "a", false)
	beat := pod.DeepCopy()
	beat.ResourceVersion = "2"
	before, counted, changed := newDaemonSet("multus"), newDaemonSet("multus"), newDaemonSet("multus")
	counted.Status.NumberReady, changed.Generation = 1, 2
	for name, test := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"a pod becomes Ready": {&pod, &ready, true}, "a pod gets its node": {&pod, &moved, true}, "a pod's heartbeat": {&pod, beat, false},
		"a DaemonSet changes": {&before, &changed, true}, "a DaemonSet counts": {&before, &counted, false},
	} {
		if isRelevantChange(test.before, test.after) != test.want {
			t.Errorf("%s: not %t", name, test.want)
		}
	}
}
