package model

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/operator/operatortest"
)

// Short names for types in signatures.
type (
	quantity      = resource.Quantity
	runtimeObject = runtime.Object
)

var kinds = scheme.New()

func newPlatform() *v1alpha1.Platform    { return operatortest.NewPlatform() }
func newPool(name string) *v1alpha1.Pool { return operatortest.NewPool(name) }

func newTenant(name string, spec v1alpha1.TenantSpec) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// getKind returns the kind of a typed object.
func getKind(o client.Object) schema.GroupVersionKind {
	kind, err := apiutil.GVKForObject(o, kinds)
	if err != nil {
		panic(err) // the model uses only kinds of the scheme
	}
	return kind
}

func newRef(o client.Object) ref { return ref{getKind(o).Kind, client.ObjectKeyFromObject(o)} }
