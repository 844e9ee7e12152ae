package doctor

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/prove/scratch"
)

// TestLeftovers expects a warning for the objects of a killed verify, and none for the
// objects of a running one.
func TestLeftovers(t *testing.T) {
	now := time.Now()
	namespace := func(name string, end time.Time) corev1.Namespace {
		n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.TenantLabel: name}}}
		scratch.Mark(&n, end)
		return n
	}
	s := &Snapshot{Now: now, Namespaces: []corev1.Namespace{
		namespace("croft-verify-aaaaa-a", now.Add(-time.Hour)), namespace("croft-verify-bbbbb-a", now), namespace("shop", now.Add(-time.Hour)),
	}}
	found := checkLeftovers(s)
	if len(found) != 1 || found[0].Object != "Namespace/croft-verify-aaaaa-a" || found[0].Severity != Warning || found[0].Fix == "" {
		t.Errorf("found %+v", found)
	}
}
