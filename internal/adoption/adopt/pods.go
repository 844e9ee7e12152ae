package adopt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Workload is the pods of one controller, or a pod without a controller.
type Workload struct {
	Namespace string `json:"namespace"`
	// Name is the controller's kind and name, or the pod's.
	Name string `json:"name"`
	Pods int    `json:"pods"`
	// Nodes are the pods' nodes, and CurrentPools these nodes' pools.
	Nodes        []string `json:"nodes,omitempty"`
	CurrentPools []string `json:"now,omitempty"`
	// NextPool is the pool of the pods when they are re-created. It is empty if they would be
	// refused.
	NextPool string `json:"next,omitempty"`
	// Refusal is the rule's message, verbatim.
	Refusal string `json:"refused,omitempty"`
	// PendingReason is the reason why no new node of that pool fits the pods. It is empty if one may
	// fit.
	PendingReason string `json:"pendingReason,omitempty"`
	// Note is further information.
	Note string `json:"note,omitempty"`

	// template is the pod as its controller writes it, and pod the result of the cluster's own
	// admission, which precedes croft's rules.
	template, pod *corev1.Pod
}

// Moves reports whether a restart changes the pool.
func (w *Workload) Moves() bool {
	return w.NextPool != "" && slices.ContainsFunc(w.CurrentPools, func(pool string) bool { return pool != w.NextPool })
}

// readPods reads the running pods, and computes their pools from the file.
func (a *Adoption) readPods(ctx context.Context, p *Plan) error {
	var nodes corev1.NodeList
	if err := a.client.List(ctx, &nodes); err != nil {
		return err
	}
	pools := map[string]string{}
	for i := range nodes.Items {
		pools[nodes.Items[i].Name] = a.findPool(&nodes.Items[i])
	}
	for _, namespace := range a.tenant.Namespaces {
		var pods corev1.PodList
		if err := a.client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		found, err := a.groupWorkloads(ctx, pods.Items, pools)
		if err != nil {
			return err
		}
		p.Pods = append(p.Pods, found...)
	}
	return nil
}

// findPool returns the pool of a node: by the label that croft's pods select or, if the node does
// not have it, by Karpenter's own label.
func (a *Adoption) findPool(node *corev1.Node) string {
	return cmp.Or(node.Labels[a.estate.Platform.NodePoolKey], node.Labels[karpenterv1.NodePoolLabelKey], "no pool")
}

func (a *Adoption) groupWorkloads(ctx context.Context, pods []corev1.Pod, pools map[string]string) ([]Workload, error) {
	var all []*Workload
	workloads := map[string]*Workload{}
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		id := "Pod/" + pod.Name
		if owner := metav1.GetControllerOf(pod); owner != nil {
			id = string(owner.UID)
		}
		w := workloads[id]
		if w == nil {
			var err error
			if w, err = a.readWorkload(ctx, pod); err != nil {
				return nil, err
			}
			workloads[id] = w
			all = append(all, w)
		}
		w.Pods++
		if pool, ok := pools[pod.Spec.NodeName]; ok {
			w.Nodes, w.CurrentPools = insertSorted(w.Nodes, pod.Spec.NodeName), insertSorted(w.CurrentPools, pool)
		}
	}
	list := make([]Workload, len(all))
	for i, w := range all {
		list[i] = *w
	}
	slices.SortFunc(list, func(x, y Workload) int { return cmp.Compare(x.Name, y.Name) })
	return list, nil
}

func insertSorted(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	list = append(list, name)
	slices.Sort(list)
	return list
}

// readWorkload returns the workload of a pod. The next pod is created from the controller's
// template, not from the pod, which admission has changed.
func (a *Adoption) readWorkload(ctx context.Context, pod *corev1.Pod) (*Workload, error) {
	w := &Workload{Namespace: pod.Namespace, Name: "Pod/" + pod.Name, template: pod}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		w.Note = "no controller re-creates it"
	} else {
		w.Name = owner.Kind + "/" + owner.Name
		object, err := a.readOwner(ctx, pod.Namespace, owner)
		if err != nil {
			return nil, err
		}
		if template, err := readTemplate(object); err == nil && template != nil {
			w.template = &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		}
		if above := object.GetOwnerReferences(); owner.Kind != "DaemonSet" && len(above) == 1 {
			w.Name = above[0].Kind + "/" + above[0].Name
		}
		if owner.Kind == "DaemonSet" {
			w.Note = "gets its pool when its template is written: run kubectl rollout restart after the adoption"
		}
	}
	w.template = resetPod(w.template)
	w.pod = w.template
	w.NextPool = a.tenant.Pools[0]
	if pool := w.pod.Spec.NodeSelector[a.estate.Platform.NodePoolKey]; slices.Contains(a.tenant.Pools, pool) {
		w.NextPool = pool
	}
	return w, nil
}

func (a *Adoption) readOwner(ctx context.Context, namespace string, owner *metav1.OwnerReference) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, object)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return &unstructured.Unstructured{}, nil // the pod itself is then the template
	}
	return object, err
}

// readTemplate returns the pod template of a built-in controller, or nil if it has none.
func readTemplate(object *unstructured.Unstructured) (*corev1.PodTemplateSpec, error) {
	content, ok, err := unstructured.NestedMap(object.Object, "spec", "template")
	if err != nil || !ok {
		return nil, err
	}
	var template corev1.PodTemplateSpec
	return &template, runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template)
}

// accessVolume is the prefix of the volume in which the API server mounts the token of the
// pod's service account.
const accessVolume = "kube-api-access-"

// resetPod returns a pod as its controller would write it: without the fields that the API server,
// the scheduler and the kubelet set. It has no service account, since the scratch namespace has
// only the default one.
func resetPod(pod *corev1.Pod) *corev1.Pod {
	clean := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "croft-adopt-", Labels: pod.Labels, Annotations: pod.Annotations, Finalizers: pod.Finalizers},
		Spec:       *pod.Spec.DeepCopy(),
	}
	spec := &clean.Spec
	if pod.UID != "" {
		spec.NodeName, spec.Priority, spec.PreemptionPolicy = "", nil, nil
	}
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = "", ""
	spec.Hostname = strings.TrimSuffix(spec.Hostname, pod.Name)
	spec.EphemeralContainers = nil
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, accessVolume) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = slices.DeleteFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool {
				return strings.HasPrefix(m.Name, accessVolume)
			})
		}
	}
	return clean
}

// String returns the namespace and name of a workload.
func (w *Workload) String() string {
	return fmt.Sprintf("%s/%s", w.Namespace, w.Name)
}
