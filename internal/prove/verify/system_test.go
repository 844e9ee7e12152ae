package verify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/walls/wall/policy"
)

// systemNamespaces are namespaces outside of all tenants.
var systemNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, "ingress"}

// systemUsers write objects of the system. They do not have rights in every namespace, which
// would exempt them from some rules.
var systemUsers = []user.Info{
	&user.DefaultInfo{Name: "system:node:one", Groups: []string{user.NodesGroup, user.AllAuthenticated}},
	&user.DefaultInfo{Name: "system:serviceaccount:kube-system:driver", Groups: []string{"system:serviceaccounts", user.AllAuthenticated}},
}

// unservedKinds are kinds that system components of other clusters write.
var unservedKinds = []verify.Kind{
	newSystemKind("cilium.io", "v2", "CiliumNode", "ciliumnodes", false),
	newSystemKind("vpcresources.k8s.aws", "v1alpha1", "CNINode", "cninodes", false),
	newSystemKind("snapshot.storage.k8s.io", "v1", "VolumeSnapshotContent", "volumesnapshotcontents", false),
	newSystemKind("cluster.x-k8s.io", "v1beta2", "Machine", "machines", true),
}

func newSystemKind(group, version, kind, resource string, namespaced bool) verify.Kind {
	k := verify.Kind{Namespaced: namespaced, Verbs: []attack.Verb{attack.Create, attack.Update, attack.Delete}}
	k.Resource.Group, k.Resource.Version, k.Resource.Resource = group, version, resource
	k.Object.Group, k.Object.Version, k.Object.Kind = group, version, kind
	return k
}

// listSystemMetadata returns the metadata that controllers of nodes, volumes and namespaces write,
// each part separately and all together.
func listSystemMetadata() map[string]func(*unstructured.Unstructured) {
	owner := func(apiVersion, kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "one", UID: "0c1f7d5e-3c4b-4a5e-9d67-0123456789ab", BlockOwnerDeletion: ptr.To(true)}
	}
	var owners []metav1.OwnerReference
	each := map[string]func(*unstructured.Unstructured){"nothing": func(*unstructured.Unstructured) {}}
	for kind, apiVersion := range map[string]string{
		"Node": "v1", "Namespace": "v1", "PersistentVolume": "v1", "NodePool": "karpenter.sh/v1", "NodeClaim": "karpenter.sh/v1",
		"EC2NodeClass": "karpenter.k8s.aws/v1", "Tenant": v1alpha1.GroupVersion.String(),
	} {
		owners = append(owners, owner(apiVersion, kind))
		each["the owner "+kind] = func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{owner(apiVersion, kind)})
		}
	}
	for len(owners) < 20 {
		owners = append(owners, owner("apps/v1", "DaemonSet"))
	}
	each["twenty owners"] = func(o *unstructured.Unstructured) { o.SetOwnerReferences(owners) }
	each["finalizers"] = func(o *unstructured.Unstructured) {
		o.SetFinalizers([]string{"karpenter.sh/termination", "external-attacher/ebs-csi-aws-com", metav1.FinalizerDeleteDependents})
	}
	each["annotations"] = func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{
			corev1.MirrorPodAnnotationKey: "0123", "node.alpha.kubernetes.io/ttl": "0", "csi.volume.kubernetes.io/nodeid": strings.Repeat("x", 100<<10),
			"container.apparmor.security.beta.kubernetes.io/one": "unconfined", "nginx.ingress.kubernetes.io/server-snippet": "deny all;",
		})
	}
	each["labels"] = func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{"node.kubernetes.io/instance-type": "m5.large", v1alpha1.ManagedByLabel: "Helm"})
	}
	all := make([]func(*unstructured.Unstructured), 0, len(each))
	for _, set := range each {
		all = append(all, set)
	}
	each["everything"] = func(o *unstructured.Unstructured) {
		for _, set := range all {
			set(o)
		}
		o.SetOwnerReferences(owners)
	}
	return each
}

// sendSystemRequests sends the evaluator every write to every kind, cluster-scoped and in
// systemNamespaces. It returns a line for each request that croft's policies deny, change or
// warn about, and the number of requests.
func sendSystemRequests(t *testing.T, e *evaluator.Evaluator, kinds []verify.Kind) (disturbed []string, requests int) {
	t.Helper()
	for _, k := range kinds {
		if k.Resource.Group == v1alpha1.GroupVersion.Group {
			continue // system components do not write croft's own kinds
		}
		namespaces := systemNamespaces
		if !k.Namespaced {
			namespaces = []string{""}
		}
		for label, set := range listSystemMetadata() {
			for _, namespace := range namespaces {
				o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
				o.SetGroupVersionKind(k.Object)
				o.SetNamespace(namespace)
				o.SetName("one")
				before := o.DeepCopy()
				set(o)
				for _, who := range systemUsers {
					for _, r := range buildSystemRequests(k, before, o, who) {
						requests++
						answer, err := e.Evaluate(t.Context(), r)
						if err != nil {
							t.Fatalf("%s %s: %v", r.Verb, k, err)
						}
						if trouble := describeInterference(answer); trouble != "" {
							disturbed = append(disturbed, fmt.Sprintf("%s %s in %q with %s as %s: %s", r.Verb, k, namespace, label, who.GetName(), trouble))
						}
					}
				}
			}
		}
	}
	return disturbed, requests
}

func buildSystemRequests(k verify.Kind, before, o *unstructured.Unstructured, who user.Info) []evaluator.Request {
	r := evaluator.Request{
		User: who, Resource: k.Resource, Subresource: k.Subresource, Namespace: o.GetNamespace(), Name: o.GetName(), Authorized: true,
	}
	var all []evaluator.Request
	for _, verb := range k.Verbs {
		r := r
		r.Verb = string(verb)
		switch verb {
		case attack.Create:
			r.Object = o
		case attack.Update, attack.Patch:
			r.Object, r.Old = o, before
		case attack.Delete:
			r.Old = o
			r.Options = &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "DeleteOptions"}, GracePeriodSeconds: ptr.To[int64](86400)}
		default:
			continue
		}
		all = append(all, r)
	}
	return all
}

// describeInterference describes the effect of croft's policies on a request, or returns "" if
// there is none.
func describeInterference(a evaluator.Answer) string {
	if err := a.Err(); err != nil {
		return err.Error()
	}
	if i := slices.IndexFunc(a.Warnings, attack.IsCroftWarning); i >= 0 {
		return a.Warnings[i]
	}
	if a.Sent != nil && !equality.Semantic.DeepEqual(a.Sent, a.Object) {
		return "the object is changed"
	}
	return ""
}

// testSystemRequests fails for each request of a system component that croft's policies deny,
// change or warn about. The walls apply to tenants' namespaces only.
func (p *proving) testSystemRequests(t *testing.T, runner *verify.Runner) {
	served, err := runner.ListServed()
	if err != nil {
		t.Fatal(err)
	}
	kinds := slices.Concat(served, unservedKinds)
	s := newOfflineScene(t, p.scratch)
	disturbed, requests := sendSystemRequests(t, s.evaluator, kinds)
	fmt.Printf("requests of system components: %d to %d kinds, %d disturbed\n", requests, len(kinds), len(disturbed))
	for _, d := range disturbed[:min(len(disturbed), 20)] {
		t.Error(d)
	}
	t.Run("NoticesAllScopes", func(t *testing.T) {
		finalizers := p.findObject(t, "ValidatingAdmissionPolicy", policy.FinalizersPolicy)
		wide, err := s.applyMutation(buildEdit(finalizers, func(live client.Object) {
			for i := range live.(*admissionv1.ValidatingAdmissionPolicy).Spec.MatchConstraints.ResourceRules {
				live.(*admissionv1.ValidatingAdmissionPolicy).Spec.MatchConstraints.ResourceRules[i].Scope = ptr.To(admissionv1.AllScopes)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		owned := []string{"csinodes.storage.k8s.io", "resourceslices.resource.k8s.io", "ciliumnodes.cilium.io"}
		disturbed, _ := sendSystemRequests(t, wide.evaluator, slices.DeleteFunc(kinds, func(k verify.Kind) bool { return !slices.Contains(owned, k.String()) }))
		for _, resource := range owned {
			if !slices.ContainsFunc(disturbed, func(d string) bool { return strings.HasPrefix(d, "create "+resource) }) {
				t.Errorf("a policy of all scopes denies no %s", resource)
			}
		}
	})
	t.Run("OnTheServer", p.testSystemObjects)
}

// systemObjects are objects as system components write them. The user is kubelet or component;
// the latter may create everything and update nothing.
const systemObjects = `
- user: kubelet
  object: {apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: croft-node, ownerReferences: [NODE]}, spec: {drivers: []}}
- user: kubelet
  object: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: croft-node, namespace: kube-node-lease, ownerReferences: [NODE]}, spec: {holderIdentity: croft-node}}
- user: kubelet
  object:
    apiVersion: v1
    kind: Pod
    metadata:
      name: proxy-croft-node
      namespace: kube-system
      annotations: {kubernetes.io/config.mirror: "0123", kubernetes.io/config.hash: "0123", kubernetes.io/config.source: file}
      ownerReferences: [{apiVersion: v1, kind: Node, name: croft-node, uid: UID, controller: true}]
    spec: {nodeName: croft-node, hostNetwork: true, tolerations: [{operator: Exists}], containers: [{name: proxy, image: proxy, securityContext: {privileged: true}}]}
- user: component
  object: {apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: croft-node-gpu, ownerReferences: [NODE]}, spec: {driver: gpu.example.com, nodeName: croft-node, pool: {name: croft-node, generation: 1, resourceSliceCount: 1}}}
- user: component
  object: {apiVersion: v1, kind: Node, metadata: {name: croft-other, finalizers: [karpenter.sh/termination], ownerReferences: [{apiVersion: karpenter.sh/v1, kind: NodeClaim, name: apps-x, uid: UID, blockOwnerDeletion: true}]}}
- user: component
  object: {apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: csi-x, finalizers: [external-attacher/ebs-csi-aws-com]}, spec: {attacher: ebs.csi.aws.com, nodeName: croft-node, source: {persistentVolumeName: pv-x}}}
- user: component
  object:
    apiVersion: v1
    kind: PersistentVolume
    metadata: {name: pv-x, finalizers: [kubernetes.io/pv-protection, external-provisioner.volume.kubernetes.io/finalizer]}
    spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: ebs.csi.aws.com, volumeHandle: vol-0}}
- user: component
  object: {apiVersion: v1, kind: Namespace, metadata: {name: croft-other, finalizers: [controller.cattle.io/namespace-auth]}}
- user: component
  object: {apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: csisc-x, namespace: kube-system, ownerReferences: [NODE]}, storageClassName: gp3}
- user: component
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: of-node, namespace: kube-system, finalizers: [example.com/stay], ownerReferences: [NODE]}}
- user: component
  object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: croft-other, ownerReferences: [{apiVersion: v1, kind: Namespace, name: default, uid: UID}]}}
- user: component
  object: {apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: croft-other, ownerReferences: [NODE]}, spec: {priorityLevelConfiguration: {name: catch-all}, matchingPrecedence: 9000}}
`

// testSystemObjects sends the objects to the real API server, as dry runs.
func (p *proving) testSystemObjects(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "croft-node"}}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "croft-test-component"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"create"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "croft-test-component"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "croft-test-component"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	for _, o := range []client.Object{node, role, binding} {
		if err := p.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.admin.Delete(context.WithoutCancel(t.Context()), o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
	text := strings.NewReplacer("[NODE]", "[{apiVersion: v1, kind: Node, name: croft-node, uid: UID}]").Replace(systemObjects)
	var all []struct {
		User   string         `json:"user"`
		Object map[string]any `json:"object"`
	}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "UID", string(node.UID))), &all); err != nil {
		t.Fatal(err)
	}
	users := map[string]client.Client{
		"kubelet":   p.newClientOf(t, "system:node:croft-node", user.NodesGroup, user.AllAuthenticated),
		"component": p.newClientOf(t, "croft-test-component", user.AllAuthenticated),
	}
	for _, s := range all {
		o := &unstructured.Unstructured{Object: s.Object}
		// The role takes effect a moment after it is written.
		p.awaitAllowed(t, func(ctx context.Context) error {
			err := users[s.User].Create(ctx, o.DeepCopy(), client.DryRunAll)
			if err != nil && attack.IsCroftRefusal(err) || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s of %s: %v", o.GetKind(), s.User, err)
				return nil
			}
			return err
		})
	}
}

func (p *proving) newClientOf(t *testing.T, name string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(p.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	c, err := client.New(config, client.Options{Scheme: p.admin.Scheme(), Mapper: p.admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
