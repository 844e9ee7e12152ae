package platform

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall"
)

// TestReportCondition fails if PlacementReady is True for an engine that is not ready.
func TestReportCondition(t *testing.T) {
	for reason, want := range map[string]metav1.ConditionStatus{
		v1alpha1.ReasonPlacementReady:  metav1.ConditionTrue,
		v1alpha1.ReasonEngineMissing:   metav1.ConditionFalse,
		v1alpha1.ReasonEngineUnsafe:    metav1.ConditionFalse,
		v1alpha1.ReasonSwitchingEngine: metav1.ConditionFalse,
	} {
		platform := &v1alpha1.Platform{}
		platform.Generation = 3
		engine{reason: reason, message: "why"}.reportCondition(platform)
		is := meta.FindStatusCondition(platform.Status.Conditions, v1alpha1.ConditionPlacementReady)
		if is == nil || is.Status != want || is.Reason != reason || is.Message != "why" || is.ObservedGeneration != 3 {
			t.Errorf("%s: %+v, want %s", reason, is, want)
		}
	}
}

// TestNormalizeVersions fails if an API server that serves the engine in its beta version, in
// its final version or in both has other kinds than the walls use, or has one twice.
func TestNormalizeVersions(t *testing.T) {
	other := schema.GroupVersionKind{Group: "templates.gatekeeper.sh", Version: "v1", Kind: "ConstraintTemplate"}
	want := append(slices.Clone(apply.NativePlatformKinds), other)
	for name, served := range map[string][]schema.GroupVersionKind{
		"final": slices.Concat(apply.NativePlatformKinds, []schema.GroupVersionKind{other}),
		"beta":  slices.Concat(apply.NativeBetaKinds, []schema.GroupVersionKind{other}),
		"both":  slices.Concat(apply.NativeBetaKinds, apply.NativePlatformKinds, []schema.GroupVersionKind{other}),
	} {
		if got := normalizeVersions(served); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestSwitchEngine fails if the previous engine is not the other one, or if the platform itself
// changes.
func TestSwitchEngine(t *testing.T) {
	for engine, want := range map[v1alpha1.PlacementEngine]v1alpha1.PlacementEngine{
		v1alpha1.PlacementNative: v1alpha1.PlacementGatekeeper, v1alpha1.PlacementGatekeeper: v1alpha1.PlacementNative,
	} {
		platform := &estate.Platform{}
		platform.Placement = engine
		if got := switchEngine(platform).Placement; got != want || platform.Placement != engine {
			t.Errorf("%s: the other is %s, and the platform has %s", engine, got, platform.Placement)
		}
	}
}

// TestPlacementPredicate fails if the Platform is not reconciled when the last tenant has
// changed its engine, or if it is reconciled for other changes of tenants.
func TestPlacementPredicate(t *testing.T) {
	tenant := func(engine v1alpha1.PlacementEngine) *v1alpha1.Tenant {
		return &v1alpha1.Tenant{Status: v1alpha1.TenantStatus{Placement: engine}}
	}
	p := newPlacementPredicate()
	for name, test := range map[string]struct{ got, want bool }{
		"created":   {p.Create(event.CreateEvent{Object: tenant("")}), false},
		"deleted":   {p.Delete(event.DeleteEvent{Object: tenant(v1alpha1.PlacementNative)}), true},
		"first":     {p.Update(event.UpdateEvent{ObjectOld: tenant(""), ObjectNew: tenant(v1alpha1.PlacementNative)}), false},
		"changed":   {p.Update(event.UpdateEvent{ObjectOld: tenant(v1alpha1.PlacementNative), ObjectNew: tenant(v1alpha1.PlacementGatekeeper)}), true},
		"unchanged": {p.Update(event.UpdateEvent{ObjectOld: tenant(v1alpha1.PlacementNative), ObjectNew: tenant(v1alpha1.PlacementNative)}), false},
		"not one":   {p.Update(event.UpdateEvent{ObjectOld: &v1alpha1.Pool{}, ObjectNew: &v1alpha1.Pool{}}), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: %t, want %t", name, test.got, test.want)
		}
	}
}

// TestListRights fails if an object that people's rights depend on is not written without an
// engine, or if another object is.
func TestListRights(t *testing.T) {
	platform := &estate.Platform{}
	platform.Placement, platform.Admins, platform.Auditors = v1alpha1.PlacementNative, []string{"ops"}, []string{"audit"}
	count := 0
	for _, o := range wall.PlatformObjects(platform) {
		switch o.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			count++
		}
	}
	rights := listRights(platform)
	for _, o := range rights {
		switch o.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		default:
			t.Errorf("%T %s gives no right", o, o.GetName())
		}
	}
	if count == 0 || len(rights) != count {
		t.Errorf("%d objects, want %d", len(rights), count)
	}
}
