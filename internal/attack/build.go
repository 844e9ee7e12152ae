package attack

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Creating is an attack, or a mirror where nothing stops it, by creating an
// object.
func Creating(name, summary string, by Stopper, object client.Object) Attack {
	return of(name, summary, by, &Request{Verb: Create, Object: object})
}

// Changing is an attack, or a mirror where nothing stops it, by changing an
// object, which is made beforehand.
func Changing[T client.Object](name, summary string, by Stopper, object T, change func(T)) Attack {
	a := of(name, summary, by, &Request{Verb: Update, Object: object, Change: As(func(o T) error { change(o); return nil })})
	a.Setup = []client.Object{object}
	return a
}

// Deleting is an attack, or a mirror where nothing stops it, by deleting an
// object that is there.
func Deleting(name, summary string, by Stopper, object client.Object) Attack {
	return of(name, summary, by, &Request{Verb: Delete, Object: object})
}

func of(name, summary string, by Stopper, r *Request) Attack {
	kind := Breach
	if by.Name == "" {
		kind = Mirror
	}
	return Attack{Name: name, Kind: kind, Summary: summary, StoppedBy: by, Request: r}
}

// Nobody stops a mirror.
var Nobody = Stopper{}

// Because says of each attack what it would cost, and where it is known from.
func Because(why string, references []string, attacks ...Attack) []Attack {
	for i := range attacks {
		if attacks[i].Why == "" {
			attacks[i].Why = why
		}
		if attacks[i].References == nil {
			attacks[i].References = references
		}
	}
	return attacks
}

// Mistake gives every authenticated user a right in a namespace, as a careless
// platform might: it shows what a policy holds where RBAC does not.
func Mistake(a Attack, rule rbacv1.PolicyRule) Attack {
	namespace := a.Request.Object.GetNamespace()
	if namespace == "" { // a Namespace's own rights are given in it
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
		a.Summary += ", after being given the right to by mistake"
	}
	return a
}

// Custom is an object of a kind that a cluster may not have.
func Custom(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     spec,
	}}
}

// Pull makes the pods of an attack run an image that a tenant may pull, in the
// place of Image.
func Pull(a Attack, image string) Attack {
	if image == Image {
		return a
	}
	a.Setup = slices.Clone(a.Setup)
	for i := range a.Setup {
		a.Setup[i] = pull(a.Setup[i], image)
	}
	if a.Request != nil {
		request := *a.Request
		request.Object = pull(request.Object, image)
		a.Request = &request
	}
	return a
}

func pull(o client.Object, image string) client.Object {
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
