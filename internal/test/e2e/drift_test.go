package e2e

import (
	"context"
	"errors"
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/walls/wall/identity"
	"croft.dev/croft/internal/walls/wall/network"
)

// testDrift fails if the operator does not watch a kind that it writes, or overwrites fields
// that other field managers have added.
func testDrift(t *testing.T, c *twoTenants) {
	in := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: teams[0].tenant, Name: name}
	}
	for _, d := range []struct {
		name   string
		object client.Object
		// patch is a merge patch. If it is empty, the object is deleted.
		patch string
	}{
		{
			name:   "a NetworkPolicy is deleted",
			object: &networkingv1.NetworkPolicy{ObjectMeta: in(network.DNSPolicy)},
		},
		{
			name:   "a NetworkPolicy is opened",
			object: &networkingv1.NetworkPolicy{ObjectMeta: in(network.IsolationPolicy)},
			patch:  `{"spec": {"ingress": [{}]}}`,
		},
		{
			name:   "a RoleBinding gets other subjects",
			object: &rbacv1.RoleBinding{ObjectMeta: in(identity.ClusterRoleName(v1alpha1.RoleOperator))},
			patch:  `{"subjects": [{"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}]}`,
		},
		{
			name:   "the placement policy's binding is deleted",
			object: &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: admissionpolicy.PodsPolicy}},
		},
	} {
		t.Run(d.name, func(t *testing.T) {
			before := copyObject(d.object)
			c.getObject(t, before.GetNamespace(), before.GetName(), before)
			c.disturbObject(t, d.object, d.patch)
			awaitCondition(t, moments, "croft to put it back", func(ctx context.Context) error {
				now := copyObject(d.object)
				if err := c.admin.Get(ctx, client.ObjectKeyFromObject(d.object), now); err != nil {
					return err
				}
				if d.patch == "" && now.GetUID() == before.GetUID() {
					return errors.New("it has not been deleted yet")
				}
				if !reflect.DeepEqual(getDesired(t, now), getDesired(t, before)) {
					return errors.New("it is still as it was left")
				}
				return nil
			})
		})
	}

	c.awaitPlacement(t, teams[0].tenant, c.estate.Platform.NodePoolKey, teams[0].pool)

	t.Run("a namespace's labels are changed", func(t *testing.T) {
		const foreign, level = "example.org/floor", "pod-security.kubernetes.io/enforce"
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: teams[0].tenant}}
		c.disturbObject(t, namespace, `{"metadata": {"labels": {"`+foreign+`": "7", "`+level+`": "privileged"}}}`)
		var labels map[string]string
		awaitCondition(t, moments, "the Pod Security level to be put back", func(ctx context.Context) error {
			now := &corev1.Namespace{}
			err := c.admin.Get(ctx, client.ObjectKeyFromObject(namespace), now)
			labels = now.Labels
			if err == nil && labels[level] != string(v1alpha1.PodSecurityBaseline) {
				err = errors.New("it is " + labels[level])
			}
			return err
		})
		if labels[foreign] != "7" {
			t.Errorf("croft took away a label that is not its own: the namespace has %v", labels)
		}
	})
}

// disturbObject changes an object as another user, or deletes it if the patch is empty.
func (c *cluster) disturbObject(t testing.TB, o client.Object, patch string) {
	t.Helper()
	var err error
	if patch == "" {
		err = c.admin.Delete(t.Context(), o)
	} else {
		err = c.admin.Patch(t.Context(), copyObject(o), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copyObject returns an empty object of the same kind and name, to read into: reading into a filled
// object keeps fields that the API server omits.
func copyObject(o client.Object) client.Object { return o.DeepCopyObject().(client.Object) }

// getDesired returns the desired content of an object: without its status and the API server's own
// metadata.
func getDesired(t testing.TB, o client.Object) map[string]any {
	t.Helper()
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	delete(all, "status")
	all["metadata"] = []map[string]string{o.GetLabels(), o.GetAnnotations()}
	return all
}
