package attack

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewCreate returns an attack, or a mirror if by is Nobody, that creates an object.
func NewCreate(name, summary string, by Stopper, object client.Object) Attack {
	return newAttack(name, summary, by, &Request{Verb: Create, Object: object})
}

// NewUpdate returns an attack, or a mirror if by is Nobody, that changes an object. The object
// is created before the attack.
func NewUpdate[T client.Object](name, summary string, by Stopper, object T, change func(T)) Attack {
	a := newAttack(name, summary, by, &Request{Verb: Update, Object: object, Change: ExpectType(func(o T) error { change(o); return nil })})
	a.Setup = []client.Object{object}
	return a
}

// NewDelete returns an attack, or a mirror if by is Nobody, that deletes an existing object.
func NewDelete(name, summary string, by Stopper, object client.Object) Attack {
	return newAttack(name, summary, by, &Request{Verb: Delete, Object: object})
}

func newAttack(name, summary string, by Stopper, r *Request) Attack {
	kind := Breach
	if by.Name == "" {
		kind = Mirror
	}
	return Attack{Name: name, Kind: kind, Summary: summary, StoppedBy: by, Request: r}
}

// Nobody is the stopper of mirrors, which must not be stopped.
var Nobody = Stopper{}

// WithReason sets the harm and the references of attacks that have none.
func WithReason(why string, references []string, attacks ...Attack) []Attack {
	for i := range attacks {
		if attacks[i].Harm == "" {
			attacks[i].Harm = why
		}
		if attacks[i].References == nil {
			attacks[i].References = references
		}
	}
	return attacks
}

// GrantToEveryone grants every authenticated user a permission in a namespace, as a careless platform
// might. It shows that a policy denies a request that RBAC allows.
func GrantToEveryone(a Attack, rule rbacv1.PolicyRule) Attack {
	namespace := a.Request.Object.GetNamespace()
	if namespace == "" { // permissions for a Namespace are granted in it
		namespace = a.Request.Object.GetName()
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "croft-mistake-" + a.Name}
	mistake := []client.Object{
		&rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{rule},
		},
		&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta,
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		},
	}
	a.Setup = append(mistake, a.Setup...)
	if a.Summary != "" {
		a.Summary += ", after receiving the right by mistake"
	}
	return a
}

// SendOutsideTenants sends a mirror's request in a namespace outside of all tenants, as a user with
// permission there: the walls must not restrict it. The namespace is created for the mirror,
// and its name is derived from a namespace of the tenant.
func SendOutsideTenants(own string, a Attack, right rbacv1.PolicyRule) Attack {
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: own + "-" + a.Name}}
	a = SendInNamespace(namespace, a, right)
	a.OutsideTenants = true
	a.Summary += ", in a namespace without a tenant"
	return a
}

// SendInNamespace sends the request of an attack or a mirror in a namespace that is created for it, as a
// user with permission there.
func SendInNamespace(namespace *corev1.Namespace, a Attack, right rbacv1.PolicyRule) Attack {
	for _, o := range append(slices.Clone(a.Setup), a.Request.Object) {
		o.SetNamespace(namespace.Name)
	}
	if a.Request.Body != nil {
		a.Request.Body.SetNamespace(namespace.Name)
	}
	summary := a.Summary
	a = GrantToEveryone(a, right)
	a.Summary = summary
	a.Setup = append([]client.Object{namespace}, a.Setup...)
	return a
}

// SendAsAdmin sends a mirror's request as a cluster administrator, to whom no policy applies.
func SendAsAdmin(a Attack) Attack {
	a.AsGroups, a.OutsideTenants = []string{"system:masters"}, true
	a.Summary += ", as a platform admin"
	return a
}

// SendAsKubelet sends a mirror's request as the kubelet of a node. No policy may refuse a
// kubelet's own objects. The node need not exist.
func SendAsKubelet(node string, a Attack) Attack {
	a.AsUser, a.AsGroups, a.OutsideTenants = "system:node:"+node, []string{"system:nodes"}, true
	a.Summary += ", as a kubelet"
	return a
}

// NewCustomObject returns an object of a kind that a cluster may lack.
func NewCustomObject(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     spec,
	}}
}

// ReplaceImages replaces Image in the pods of an attack by an image that the tenant may pull.
func ReplaceImages(a Attack, image string) Attack {
	if image == Image {
		return a
	}
	a.Setup = slices.Clone(a.Setup)
	for i := range a.Setup {
		a.Setup[i] = replaceImage(a.Setup[i], image)
	}
	if a.Request != nil {
		request := *a.Request
		request.Object = replaceImage(request.Object, image)
		a.Request = &request
	}
	return a
}

func replaceImage(o client.Object, image string) client.Object {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o
	}
	pod = pod.DeepCopy()
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Image == Image {
			pod.Spec.Containers[i].Image = image
		}
	}
	return pod
}

// FreeClusterIP is replaced by an unused address of a Service in the cluster's range.
const FreeClusterIP = "0.0.0.0"

// SetClusterIP replaces FreeClusterIP by an address.
func SetClusterIP(o client.Object, address func() (string, error)) error {
	service, ok := o.(*corev1.Service)
	if !ok || service.Spec.ClusterIP != FreeClusterIP {
		return nil
	}
	free, err := address()
	if err != nil {
		return err
	}
	service.Spec.ClusterIP = free
	for i := range service.Spec.ClusterIPs {
		service.Spec.ClusterIPs[i] = free
	}
	return nil
}
