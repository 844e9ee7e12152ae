package verify

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall"
)

// Absent reports, in one clause, that the cluster has no walls to attack, or returns "" if it
// has some. Without this check, verify would wait a minute for an ordinary pod to be admitted,
// and report hundreds of breaches with the same cause.
func (s *Scratch) Absent(ctx context.Context, c client.Client) (string, error) {
	return findAbsentPolicies(ctx, c, s.platform)
}

// Absent reports, in one clause, that the cluster has no walls to attack, or returns "" if it
// has some.
func (x *Existing) Absent(ctx context.Context, c client.Client) (string, error) {
	if absent, err := findAbsentPolicies(ctx, c, x.platform); absent != "" || err != nil {
		return absent, err
	}
	for _, name := range x.attacker.Namespaces {
		switch err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}); {
		case err == nil || apierrors.IsForbidden(err):
			return "", nil
		case !apierrors.IsNotFound(err):
			return "", err
		}
	}
	return "tenant " + x.attacker.Name + " has no namespace in the cluster", nil
}

// findAbsentPolicies names the first kind of admission policies and bindings of which the cluster
// has none of the platform's. If only some of a kind are missing, or the caller may not list
// the kind, there are walls to attack.
func findAbsentPolicies(ctx context.Context, c client.Client, platform *estate.Platform) (string, error) {
	var kinds []schema.GroupVersionKind
	names := map[schema.GroupVersionKind][]string{}
	for _, o := range wall.PlatformObjects(platform) {
		kind := o.GetObjectKind().GroupVersionKind()
		if kind.Group != admissionv1.GroupName {
			continue
		}
		if names[kind] == nil {
			kinds = append(kinds, kind)
		}
		names[kind] = append(names[kind], o.GetName())
	}
	for _, kind := range kinds {
		served, err := apply.ServedKind(c.RESTMapper(), kind)
		if err != nil {
			return "", err
		}
		var live metav1.PartialObjectMetadataList
		live.SetGroupVersionKind(served.GroupVersion().WithKind(kind.Kind + "List"))
		switch err := c.List(ctx, &live); {
		case apierrors.IsForbidden(err):
		case err != nil && !meta.IsNoMatchError(err):
			return "", err
		case !slices.ContainsFunc(live.Items, func(o metav1.PartialObjectMetadata) bool { return slices.Contains(names[kind], o.Name) }):
			return fmt.Sprintf("the cluster has none of croft's %d objects of the kind %s", len(names[kind]), kind.Kind), nil
		}
	}
	return "", nil
}
