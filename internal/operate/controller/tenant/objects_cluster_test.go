package tenant_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
)

// testMaintainedObjects declares objects, changes and deletes them in the cluster, and removes them
// from the Tenant. The operator must write, restore and delete them, and leave the team's own
// ConfigMap alone.
func testMaintainedObjects(f *fixture) {
	t := operatortest.NewTenant("sharing", "apps")
	t.Spec.Namespaces = []string{"sharing", "sharing-ci"}
	for _, manifest := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ca"},"data":{"ca.crt":"first","namespace":"$(namespace)"}}`,
		`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"pods"},"spec":{"limits":[{"type":"Pod","max":{"cpu":"8"}}]}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"own"},"spec":{"podSelector":{},"ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"croft.dev/tenant":"$(tenant)"}}}]}]}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"bot"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"croft-viewer"},"subjects":[{"kind":"ServiceAccount","name":"bot","namespace":"$(namespace)"}]}`,
	} {
		t.Spec.Objects = append(t.Spec.Objects, runtime.RawExtension{Raw: []byte(manifest)})
	}
	f.Create(t)
	f.AwaitReady(t)
	for _, namespace := range t.Spec.Namespaces {
		f.awaitConfig(namespace, map[string]string{"ca.crt": "first", "namespace": namespace})
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "sharing", Name: name} }
	others := []client.Object{&corev1.LimitRange{ObjectMeta: meta("pods")}, &networkingv1.NetworkPolicy{ObjectMeta: meta("own")}, &rbacv1.RoleBinding{ObjectMeta: meta("bot")}}
	for _, o := range others {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			f.Error(err)
		}
	}
	own := &corev1.ConfigMap{ObjectMeta: meta("own")}
	f.Create(own)

	config := &corev1.ConfigMap{ObjectMeta: meta("ca")}
	f.Patch(config, `{"data":{"ca.crt":"forged","more":"keys"}}`)
	f.awaitConfig("sharing", map[string]string{"ca.crt": "first", "namespace": "sharing"})
	f.AwaitRepair(t, "ConfigMap sharing/ca")
	f.Delete(config)
	f.awaitConfig("sharing", map[string]string{"ca.crt": "first", "namespace": "sharing"})

	testChangedObject(f, t)
	f.Patch(t, `{"spec":{"objects":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ca"},"data":{"ca.crt":"second"}}]}}`)
	f.awaitConfig("sharing-ci", map[string]string{"ca.crt": "second"})
	f.Patch(t, `{"spec":{"objects":null}}`)
	f.awaitConfig("sharing", nil)
	f.awaitConfig("sharing-ci", nil)
	if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(own), own); err != nil {
		f.Error(err)
	}
	for _, o := range others {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			f.Errorf("%T %s was not deleted: %v", o, o.GetName(), err)
		}
	}
	f.AwaitReady(t)
}

// testChangedObject changes the data of one declared object. The operator must write that object in each
// namespace once, and must not probe the rules again, which have not changed.
func testChangedObject(f *fixture, t *v1alpha1.Tenant) {
	f.Helper()
	f.AwaitReady(t)
	before := f.Writes.Count()
	t.Spec.Objects[0].Raw = bytes.Replace(t.Spec.Objects[0].Raw, []byte("first"), []byte("changed"), 1)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"objects": t.Spec.Objects}})
	if err != nil {
		f.Fatal(err)
	}
	f.Patch(t, string(patch))
	f.AwaitReady(t) // after a probe, if there is one
	var want, got []string
	for _, namespace := range t.Spec.Namespaces {
		f.awaitConfig(namespace, map[string]string{"ca.crt": "changed", "namespace": namespace})
		want = append(want, "PATCH /api/v1/namespaces/"+namespace+"/configmaps/ca")
	}
	for _, write := range f.Writes.ListSince(before) {
		// The shares of the quota may move meanwhile.
		path, _, _ := strings.Cut(write, "?")
		if strings.Contains(path, "/namespaces/sharing") && !strings.Contains(path, "/resourcequotas/") {
			got = append(got, path)
		}
	}
	if !slices.Equal(got, want) {
		f.Errorf("the writes are %v, want %v", got, want)
	}
}

// awaitConfig waits until the ConfigMap ca of a namespace has the data. nil means that it does not exist.
func (f *fixture) awaitConfig(namespace string, data map[string]string) {
	f.Helper()
	f.Await("the ConfigMap in "+namespace, func() string {
		config := &corev1.ConfigMap{}
		switch err := f.Client.Get(f.Context(), client.ObjectKey{Namespace: namespace, Name: "ca"}, config); {
		case apierrors.IsNotFound(err) && data == nil:
			return ""
		case err != nil:
			return err.Error()
		case data == nil || fmt.Sprint(config.Data) != fmt.Sprint(data):
			return fmt.Sprintf("has %v", config.Data)
		}
		return ""
	})
}
