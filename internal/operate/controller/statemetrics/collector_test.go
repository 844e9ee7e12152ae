package statemetrics

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
)

// TestReadStateConnections expects the ends of connections in every dialect that the Platform may
// use.
func TestReadStateConnections(t *testing.T) {
	calico := &unstructured.Unstructured{}
	calico.SetGroupVersionKind(schema.GroupVersionKind{Group: "projectcalico.org", Version: "v3", Kind: "NetworkPolicy"})
	for _, test := range []struct {
		dialect v1alpha1.NetworkDialect
		policy  client.Object
	}{
		{"", &networkingv1.NetworkPolicy{}}, {v1alpha1.DialectCalico, calico}, {v1alpha1.DialectAWS, &networkingv1.NetworkPolicy{}},
	} {
		platform := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName}}
		platform.Spec.Network.Dialect = test.dialect
		agreed, own := test.policy, test.policy.DeepCopyObject().(client.Object)
		agreed.SetNamespace("shop")
		agreed.SetName("croft-caller-billing")
		agreed.SetLabels(map[string]string{v1alpha1.TenantLabel: "shop", v1alpha1.ConsentLabel: "billing"})
		agreed.SetAnnotations(map[string]string{v1alpha1.UntilAnnotation: "1970-01-01T00:10:00Z"})
		own.SetNamespace("shop")
		own.SetName("croft-isolation")
		own.SetLabels(map[string]string{v1alpha1.TenantLabel: "shop"})
		s, err := readState(t.Context(), fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(platform, agreed, own).Build())
		if err != nil {
			t.Fatalf("%s: %v", test.dialect, err)
		}
		if got, want := formatSamples(t, s), []string{"croft_connection_end_timestamp_seconds{caller=billing,tenant=shop} 600"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q", test.dialect, got)
		}
	}
}
