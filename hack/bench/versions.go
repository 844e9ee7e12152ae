package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

// readVersions returns the resource versions of all croft objects, rendered and declared. They also
// show writes of other clients, such as a controller that conflicts with croft.
func readVersions(ctx context.Context, c client.Reader) (map[string]string, error) {
	marked := client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	all := map[string]string{}
	for _, kind := range slices.Concat(apply.PlatformKinds, apply.NativePlatformKinds, apply.PoolKinds, apply.TenantKinds,
		[]schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Namespace")}) {
		if err := addVersions(ctx, c, all, kind, marked); err != nil {
			return nil, err
		}
	}
	for _, kind := range []string{"Platform", "Pool", "Tenant", "SecondaryNetwork"} {
		if err := addVersions(ctx, c, all, v1alpha1.GroupVersion.WithKind(kind)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addVersions skips kinds that the cluster does not have, such as other clouds' node classes.
func addVersions(ctx context.Context, c client.Reader, to map[string]string, kind schema.GroupVersionKind, opts ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list, opts...); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	for _, o := range list.Items {
		to[kind.Kind+" "+client.ObjectKeyFromObject(&o).String()] = o.ResourceVersion
	}
	return nil
}

// listMoved returns the names of the objects that were written, created or deleted in between.
func listMoved(before, after map[string]string) []string {
	names := []string{}
	for name, version := range after {
		if before[name] != version {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
