package watch

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestIsDrift(t *testing.T) {
	object := func(version string, generation int64) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "x", UID: "u", ResourceVersion: version, Generation: generation}
	}
	labelled, leaving := object("2", 1), object("2", 1)
	labelled.Labels = map[string]string{"a": "b"}
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	list := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	for _, test := range []struct {
		name          string
		before, after client.Object
		drifted       bool
	}{
		{"resynced", &rbacv1.RoleBinding{ObjectMeta: object("1", 0)}, &rbacv1.RoleBinding{ObjectMeta: object("1", 0)}, false},
		{"changed, without generation", &rbacv1.RoleBinding{ObjectMeta: object("1", 0)}, &rbacv1.RoleBinding{ObjectMeta: object("2", 0)}, true},
		{"status, with generation", &networkingv1.NetworkPolicy{ObjectMeta: object("1", 1)}, &networkingv1.NetworkPolicy{ObjectMeta: object("2", 1)}, false},
		{"spec, with generation", &networkingv1.NetworkPolicy{ObjectMeta: object("1", 1)}, &networkingv1.NetworkPolicy{ObjectMeta: object("2", 2)}, true},
		{"a label", &networkingv1.NetworkPolicy{ObjectMeta: object("1", 1)}, &networkingv1.NetworkPolicy{ObjectMeta: labelled}, true},
		{"deleted", &networkingv1.NetworkPolicy{ObjectMeta: object("1", 1)}, &networkingv1.NetworkPolicy{ObjectMeta: leaving}, true},
		{
			"a quota used",
			&corev1.ResourceQuota{ObjectMeta: object("1", 0)},
			&corev1.ResourceQuota{ObjectMeta: object("2", 0), Status: corev1.ResourceQuotaStatus{Used: list("1")}}, false,
		},
		{
			"a quota raised",
			&corev1.ResourceQuota{ObjectMeta: object("1", 0), Spec: corev1.ResourceQuotaSpec{Hard: list("1")}},
			&corev1.ResourceQuota{ObjectMeta: object("2", 0), Spec: corev1.ResourceQuotaSpec{Hard: list("2")}}, true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := isDrift(test.before, test.after); got != test.drifted {
				t.Errorf("drifted = %v", got)
			}
		})
	}
}
