// Package why finds the first cause to fix of a failing object. It walks through admission,
// quota, scheduler, Karpenter, the NodePool and its node class, the NodeClaim and the node.
//
// Gather reads the objects, with the caller's rights only. Tell evaluates them without I/O.
package why

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/certmanager"
	"croft.dev/croft/internal/walls/gitops"
)

// Target is the object in question.
type Target struct {
	// Kind is one of Kinds, or another kind with its group.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// other is the kind if it is not one of Kinds.
	other schema.GroupVersionKind
}

// String returns the Target as users write it: KIND/NAME.
func (t Target) String() string { return t.Kind + "/" + t.Name }

// kind is a kind that `croft why` explains.
type kind struct {
	name       string
	also       []string
	namespaced bool
	empty      func() client.Object
	// installed is the add-on that installs the kind; "" for kinds of Kubernetes and croft.
	installed string
}

var kinds = []kind{
	{"pod", []string{"pods", "po"}, true, func() client.Object { return &corev1.Pod{} }, ""},
	{"deployment", []string{"deployments", "deploy"}, true, func() client.Object { return &appsv1.Deployment{} }, ""},
	{"replicaset", []string{"replicasets", "rs"}, true, func() client.Object { return &appsv1.ReplicaSet{} }, ""},
	{"replicationcontroller", []string{"replicationcontrollers", "rc"}, true, func() client.Object { return &corev1.ReplicationController{} }, ""},
	{"statefulset", []string{"statefulsets", "sts"}, true, func() client.Object { return &appsv1.StatefulSet{} }, ""},
	{"daemonset", []string{"daemonsets", "ds"}, true, func() client.Object { return &appsv1.DaemonSet{} }, ""},
	{"job", []string{"jobs"}, true, func() client.Object { return &batchv1.Job{} }, ""},
	{"cronjob", []string{"cronjobs", "cj"}, true, func() client.Object { return &batchv1.CronJob{} }, ""},
	{"persistentvolumeclaim", []string{"persistentvolumeclaims", "pvc"}, true, func() client.Object { return &corev1.PersistentVolumeClaim{} }, ""},
	{"persistentvolume", []string{"persistentvolumes", "pv"}, false, func() client.Object { return &corev1.PersistentVolume{} }, ""},
	{"ingress", []string{"ingresses", "ing"}, true, func() client.Object { return &networkingv1.Ingress{} }, ""},
	{"kustomization", []string{"kustomizations", "ks"}, true, makeUnstructured(gitops.Kustomization), "Flux"},
	{"gitrepository", []string{"gitrepositories", "gitrepo"}, true, makeUnstructured(gitops.GitRepository), "Flux"},
	{"ocirepository", []string{"ocirepositories", "ocirepo"}, true, makeUnstructured(gitops.OCIRepository), "Flux"},
	{"certificate", []string{"certificates", "cert", "certs", "certificate.cert-manager.io", "certificates.cert-manager.io"}, true, makeUnstructured(certmanager.Certificate), "cert-manager"},
	{"namespace", []string{"namespaces", "ns"}, false, func() client.Object { return &corev1.Namespace{} }, ""},
	{"tenant", []string{"tenants"}, false, func() client.Object { return &v1alpha1.Tenant{} }, ""},
	{"node", []string{"nodes", "no"}, false, func() client.Object { return &corev1.Node{} }, ""},
	{"nodeclaim", []string{"nodeclaims"}, false, func() client.Object { return &karpenterv1.NodeClaim{} }, "Karpenter"},
	{"pool", []string{"pools"}, false, func() client.Object { return &v1alpha1.Pool{} }, ""},
	{"nodepool", []string{"nodepools"}, false, func() client.Object { return &karpenterv1.NodePool{} }, "Karpenter"},
}

// Kinds returns the names of the kinds that `croft why` explains in detail.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// UnknownKindError is an error about a kind that is not one of Kinds. Resolve looks it up
// in the cluster.
type UnknownKindError struct{ word string }

// Error implements error.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("%s: there is no such kind: use one of %s, or the name of another kind with its group, such as rollout.argoproj.io", e.word, strings.Join(Kinds(), ", "))
}

// ParseTarget parses KIND/NAME, or KIND and NAME as separate arguments, like kubectl.
func ParseTarget(args []string, namespace string) (Target, error) {
	word, name, err := splitArgs(args)
	if err != nil {
		return Target{}, err
	}
	k := findKind(word)
	if k == nil {
		return Target{}, &UnknownKindError{word}
	}
	if !k.namespaced {
		namespace = ""
	}
	return Target{Kind: k.name, Namespace: namespace, Name: name}, nil
}

// Resolve parses KIND/NAME of any kind that the cluster serves. The Target's kind contains
// the group.
func Resolve(mapper meta.RESTMapper, args []string, namespace string) (Target, error) {
	word, name, err := splitArgs(args)
	if err != nil {
		return Target{}, err
	}
	gvk, err := mapper.KindFor(schema.ParseGroupResource(strings.ToLower(word)).WithVersion(""))
	if err != nil {
		return Target{}, &UnknownKindError{word}
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return Target{}, &UnknownKindError{word}
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	kind := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		kind += "." + gvk.Group
	}
	return Target{Kind: kind, Namespace: namespace, Name: name, other: gvk}, nil
}

func splitArgs(args []string) (word, name string, err error) {
	switch {
	case len(args) == 1:
		word, name, _ = strings.Cut(args[0], "/")
	case len(args) == 2:
		word, name = args[0], args[1]
	}
	if word == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%s: name the object as KIND/NAME, such as pod/web-1 or node/ip-10-0-0-1", strings.Join(args, " "))
	}
	return word, name, nil
}

// findTargetKind returns the kind of a Target, which may not be one of Kinds.
func findTargetKind(t Target) *kind {
	if t.other.Kind == "" {
		return findKind(t.Kind)
	}
	return &kind{name: t.Kind, namespaced: t.Namespace != "", empty: makeUnstructured(t.other), installed: "its add-on"}
}

func findKind(word string) *kind {
	word = strings.ToLower(word)
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == word || slices.Contains(k.also, word) })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}
