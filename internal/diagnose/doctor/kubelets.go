package doctor

import (
	"context"
	"fmt"
	"regexp"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
)

// Write is an object that a component of Kubernetes creates for a node.
type Write struct {
	User   rest.ImpersonationConfig
	Object client.Object
	// Harm is the consequence of a refusal.
	Harm string
	// Refusal is the error of the admission policy or webhook that refuses the write; nil
	// if it is admitted.
	Refusal error
}

// probe is the name of the objects in dry runs, and of the node if no node can be read.
const probe = "croft-doctor"

// buildNodeWrites returns the writes of kubelets and of volume controllers for a node. Several
// objects have the Node as their owner, which tenants' objects may not have.
func buildNodeWrites(node *corev1.Node) []Write {
	owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	owned := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}
	}
	kubelet := rest.ImpersonationConfig{UserName: "system:node:" + node.Name, Groups: []string{"system:nodes"}}
	attacher := rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:attachdetach-controller"}
	return []Write{
		{User: kubelet, Harm: "no new node registers", Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}},
		{User: kubelet, Harm: "no new node becomes Ready", Object: &storagev1.CSINode{ObjectMeta: owned("", node.Name)}},
		{User: kubelet, Harm: "new nodes count as dead", Object: &coordinationv1.Lease{ObjectMeta: owned(corev1.NamespaceNodeLease, node.Name)}},
		{User: kubelet, Harm: "the API does not show static pods", Object: buildMirrorPod(node, owned(metav1.NamespaceSystem, probe))},
		{User: kubelet, Harm: "nodes do not offer their devices", Object: &resourcev1.ResourceSlice{
			ObjectMeta: owned("", probe),
			Spec: resourcev1.ResourceSliceSpec{
				Driver: "croft-doctor.example.org", NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, ResourceSliceCount: 1},
			},
		}},
		{User: attacher, Harm: "pods wait for their volumes", Object: &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: probe, Finalizers: []string{"external-attacher/croft-doctor-example-org"}},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "croft-doctor.example.org", NodeName: node.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(probe)},
			},
		}},
	}
}

// buildMirrorPod returns a pod as a kubelet creates it for a static pod.
func buildMirrorPod(node *corev1.Node, metadata metav1.ObjectMeta) *corev1.Pod {
	metadata.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "0"}
	metadata.OwnerReferences = []metav1.OwnerReference{metadata.OwnerReferences[0]}
	metadata.OwnerReferences[0].Controller = ptr.To(true)
	return &corev1.Pod{ObjectMeta: metadata, Spec: corev1.PodSpec{
		NodeName: node.Name, Containers: []corev1.Container{{Name: "probe", Image: "registry.k8s.io/pause"}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
	}}
}

// tryWrites sends the writes of a node's components as dry runs.
func tryWrites(ctx context.Context, config *rest.Config, c client.Client, s *Snapshot) error {
	node, err := findAnyNode(ctx, c)
	if err != nil {
		return err
	}
	delete(s.Unreadable, readWrites)
	var left []string
	for _, w := range buildNodeWrites(node) {
		if _, pod := w.Object.(*corev1.Pod); pod && node.UID == probe {
			continue // the API server looks up the node of a pod
		}
		reason, err := w.try(ctx, config, c)
		if err != nil {
			return err
		}
		if reason != "" {
			left = append(left, reason)
		}
		s.Writes = append(s.Writes, w)
	}
	if len(left) > 0 {
		s.Unreadable[readWrites] = formatSome(sortUnique(left))
	}
	return nil
}

// findAnyNode returns a node of the cluster, or the probe if no node can be read.
func findAnyNode(ctx context.Context, c client.Client) (*corev1.Node, error) {
	var nodes corev1.NodeList
	err := c.List(ctx, &nodes, client.Limit(1))
	switch {
	case err == nil && len(nodes.Items) > 0:
		return &nodes.Items[0], nil
	case err == nil, apierrors.IsForbidden(err):
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: probe, UID: probe}}, nil
	default:
		return nil, fmt.Errorf("read nodes: %w", err)
	}
}

// refusedByAdmission matches refusals by admission policies and webhooks, and failed calls
// of webhooks with failurePolicy Fail.
var refusedByAdmission = regexp.MustCompile(`(?i)policy ['"][^'"]*['"]( with binding ['"][^'"]*['"])? denied request|admission webhook "[^"]*" denied the request|failed calling webhook`)

// try sends a write as a dry run and records a refusal. It returns a reason if the result
// is not conclusive, and "" otherwise.
func (w *Write) try(ctx context.Context, config *rest.Config, c client.Client) (reason string, err error) {
	if may, err := canImpersonate(ctx, c, listImpersonationRights(w.User)); !may {
		return "you may not impersonate " + w.User.UserName, err
	}
	as := rest.CopyConfig(config)
	as.Impersonate = w.User
	kubelet, err := client.New(as, client.Options{Scheme: scheme.New(), Mapper: c.RESTMapper()})
	if err != nil {
		return "", err
	}
	err = kubelet.Create(ctx, w.Object, client.DryRunAll)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), meta.IsNoMatchError(err):
		return "", nil
	case refusedByAdmission.MatchString(err.Error()):
		w.Refusal = err
		return "", nil
	default:
		return fmt.Sprintf("the dry run of the %s failed: %v", w.kind(), err), nil
	}
}

// listImpersonationRights returns the rights to impersonate a node or a service account. A service
// account's groups need no right of their own.
func listImpersonationRights(as rest.ImpersonationConfig) []verify.Right {
	if _, name, err := serviceaccount.SplitUsername(as.UserName); err == nil {
		return []verify.Right{{Verb: "impersonate", Resource: "serviceaccounts", Name: name}}
	}
	rights := []verify.Right{{Verb: "impersonate", Resource: "users", Name: as.UserName}}
	for _, group := range as.Groups {
		rights = append(rights, verify.Right{Verb: "impersonate", Resource: "groups", Name: group})
	}
	return rights
}

func (w *Write) kind() string {
	kinds, _, _ := scheme.New().ObjectKinds(w.Object)
	return kinds[0].Kind
}

// checkKubelets reports writes of kubelets and of volume controllers that admission refuses.
func checkKubelets(s *Snapshot) []Finding {
	var all []Finding
	for _, w := range s.Writes {
		if w.Refusal == nil {
			continue
		}
		f := Finding{
			Severity: Problem, Object: w.kind() + "/" + w.Object.GetName(), Message: w.User.UserName + " may not create it: " + w.Refusal.Error(),
			Cause: "an admission policy or webhook matches too many objects: " + w.Harm,
			Fix: "limit the policy or webhook in the message to the namespaces that it concerns, " +
				"or exempt the group system:nodes and the service accounts of kube-system; repair a webhook that does not respond",
		}
		if attack.IsCroftRefusal(w.Refusal) {
			f.Fix = "it is croft's own policy: install a version of croft that does not refuse this, by `croft install --image IMAGE` or `helm upgrade`"
		}
		all = append(all, f)
	}
	return all
}
