package verify_test

import (
	"context"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/attack"
)

// serve makes the cluster serve every kind that an attack is on, such as those
// of the Gateway API: without them these attacks are not tried.
func serve(t *testing.T, c client.Client, attacks []attack.Attack) {
	t.Helper()
	for _, a := range attacks {
		objects := a.Setup
		if a.Request != nil {
			objects = append([]client.Object{a.Request.Object}, objects...)
		}
		for _, o := range objects {
			if _, ok := o.(*unstructured.Unstructured); ok {
				define(t, c, o.GetObjectKind().GroupVersionKind(), o.GetNamespace() != "")
			}
		}
	}
}

// define defines a kind that takes any fields.
func define(t *testing.T, c client.Client, kind schema.GroupVersionKind, namespaced bool) {
	t.Helper()
	if _, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
		return
	}
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	scope := apiextensionsv1.ClusterScoped
	if namespaced {
		scope = apiextensionsv1.NamespaceScoped
	}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        plural.Resource + "." + kind.Group,
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for tests"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural.Resource, Singular: singular.Resource, Kind: kind.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), definition)); err != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return c.List(ctx, list) == nil, nil
	})
	if err != nil {
		t.Fatalf("%s is not served: %v", kind, err)
	}
}
