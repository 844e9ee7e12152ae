package elevation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/walls/elevation"
)

// testRoom floods a tenant with one person's requests. Another person's request is still
// decided.
func testRoom(t *testing.T, f *fixture) {
	crowd := operatortest.NewTenant("crowd", "apps")
	crowd.Spec.Access[0].Role = v1alpha1.RoleViewer
	crowd.Spec.Namespaces = []string{"crowd", "crowd-db"}
	crowd.Spec.Quota = corev1.ResourceList{"count/elevations.croft.dev": resource.MustParse("20")} // four for each person
	f.Create(crowd)

	_, public, err := elevation.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request := func(by, namespace, name string) error {
		return f.Impersonate(by, "crowd-devs").Create(t.Context(), &v1alpha1.Elevation{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.ElevationSpec{
				RequestedBy: by, Role: v1alpha1.ElevationOperator, Duration: metav1.Duration{Duration: 20 * time.Minute}, Reason: "INC-42", PublicKey: public,
			},
		})
	}
	f.Await("eve to be let in", func() string {
		if err := request("eve", "crowd", "eve-first"); err != nil {
			return err.Error()
		}
		return ""
	})
	for i := range 60 {
		namespace := crowd.Spec.Namespaces[i%2]
		if err := request("eve", namespace, fmt.Sprintf("eve-%d", i)); err != nil && !strings.Contains(err.Error(), "exceeded quota") {
			t.Fatal(err)
		}
	}
	f.Await("ann's request to be let in", func() string {
		if err := request("ann", "crowd", "ann-1"); err != nil {
			return err.Error()
		}
		return ""
	})
	f.AwaitPhase(&v1alpha1.Elevation{ObjectMeta: metav1.ObjectMeta{Namespace: "crowd", Name: "ann-1"}}, v1alpha1.ElevationPending)
	f.Await("eve's surplus to be deleted", func() string {
		n := 0
		for _, namespace := range crowd.Spec.Namespaces {
			var all v1alpha1.ElevationList
			if err := f.Client.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
				return err.Error()
			}
			n += len(all.Items)
		}
		if n != 5 {
			return fmt.Sprintf("%d elevations", n)
		}
		return ""
	})
	f.AwaitPhase(&v1alpha1.Elevation{ObjectMeta: metav1.ObjectMeta{Namespace: "crowd", Name: "eve-first"}}, v1alpha1.ElevationPending)
}

// awaitSubject waits until a group is among the subjects of shop's viewer binding, or is not.
func (f *fixture) awaitSubject(group string, want bool) {
	f.Helper()
	f.Await("group "+group, func() string {
		binding := &rbacv1.RoleBinding{}
		if err := f.Client.Get(f.Context(), client.ObjectKey{Namespace: "shop", Name: "croft-viewer"}, binding); err != nil {
			return err.Error()
		}
		for _, s := range binding.Subjects {
			if s.Name == group {
				if want {
					return ""
				}
				return "still has access"
			}
		}
		if want {
			return "has no access"
		}
		return ""
	})
}
