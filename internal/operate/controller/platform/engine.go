package platform

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/status"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/walls/wall"
)

// missing is the interval of checks for a missing engine.
const missing = 5 * time.Second

// recheck is the interval of checks of Gatekeeper's setup. Only administrators change
// it, and it emits no event when they do.
const recheck = 20 * time.Second

// engine is the observed state of the placement engine.
type engine struct {
	// reason and message belong to the condition PlacementReady. ReasonPlacementReady means
	// ready.
	reason, message string
	// leftover are the objects of the previous engine while it still places pods.
	leftover []client.Object
	// served are the kinds of both engines that the cluster serves.
	served []schema.GroupVersionKind
}

func (e engine) reportCondition(platform *v1alpha1.Platform) {
	value := metav1.ConditionFalse
	if e.reason == v1alpha1.ReasonPlacementReady {
		value = metav1.ConditionTrue
	}
	status.Set(&platform.Status.Status, platform.Generation, v1alpha1.ConditionPlacementReady, value, e.reason, e.message)
}

// observeEngine checks the engine, and finds the tenants whose pods another engine still places.
func (c *Controller) observeEngine(ctx context.Context, platform *estate.Platform) (engine, error) {
	e := engine{reason: v1alpha1.ReasonPlacementReady}
	var err error
	if e.served, err = c.late.Look(ctx); err != nil {
		return e, err
	}
	e.served = normalizeVersions(e.served)
	switch {
	case platform.Placement == v1alpha1.PlacementNative && len(watch.Intersect(apply.NativePlatformKinds, e.served)) < len(apply.NativePlatformKinds):
		e.reason = v1alpha1.ReasonEngineMissing
		e.message = "spec.placement: " + apply.NoEngine
	case platform.Placement == v1alpha1.PlacementGatekeeper:
		if e.reason, e.message, err = c.checkGatekeeper(ctx); err != nil {
			return e, err
		}
	}
	waiting, total, err := c.listPlacedByOther(ctx, platform.Placement)
	if err != nil {
		return e, err
	}
	if e.reason != v1alpha1.ReasonPlacementReady || len(waiting) > 0 {
		e.leftover = wall.PlatformObjects(switchEngine(platform))
	}
	if e.reason == v1alpha1.ReasonPlacementReady && len(waiting) > 0 {
		e.reason = v1alpha1.ReasonSwitchingEngine
		e.message = fmt.Sprintf("%d of %d tenants are not yet observed to be placed by %s, and the previous engine still places their pods: %s",
			len(waiting), total, platform.Placement, strings.Join(waiting[:min(len(waiting), 10)], ", "))
	}
	return e, nil
}

// normalizeVersions maps the kinds of the API server's own engine to the version that the
// walls use, without duplicates. Package apply looks up the served version.
func normalizeVersions(kinds []schema.GroupVersionKind) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, kind := range kinds {
		if i := slices.Index(apply.NativeBetaKinds, kind); i >= 0 {
			kind = apply.NativePlatformKinds[i]
		}
		if !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	return all
}

// listPlacedByOther returns the tenants whose pods another engine was last observed to place.
// It excludes tenants without an observed engine, whose pods no engine places yet.
func (c *Controller) listPlacedByOther(ctx context.Context, engine v1alpha1.PlacementEngine) (names []string, total int, err error) {
	var tenants v1alpha1.TenantList
	if err := c.client.List(ctx, &tenants); err != nil {
		return nil, 0, fmt.Errorf("list tenants: %w", err)
	}
	for i := range tenants.Items {
		if placement := tenants.Items[i].Status.Placement; placement != "" && placement != engine {
			names = append(names, tenants.Items[i].Name)
		}
	}
	return names, len(tenants.Items), nil
}

// switchEngine returns the platform with the other engine.
func switchEngine(platform *estate.Platform) *estate.Platform {
	other := *platform
	other.Placement = v1alpha1.PlacementNative
	if platform.Placement == v1alpha1.PlacementNative {
		other.Placement = v1alpha1.PlacementGatekeeper
	}
	return &other
}

// newPlacementPredicate passes tenants whose placement engine has changed.
func newPlacementPredicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.Tenant)
			after, also := e.ObjectNew.(*v1alpha1.Tenant)
			return ok && also && before.Status.Placement != "" && before.Status.Placement != after.Status.Placement
		},
	}
}
