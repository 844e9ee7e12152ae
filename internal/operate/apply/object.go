package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// finding is the result of comparing a live object with the desired one.
type finding struct {
	// live is nil if the object does not exist.
	live client.Object
	// upToDate reports whether no write is needed.
	upToDate bool
	// hasIntruders reports whether other managers own fields that only croft may set.
	hasIntruders bool
	// revertedManagers are the managers whose changes a write will undo.
	revertedManagers []string
}

// applyObject applies one object. If it is in a namespace that is new, it is only read from the cache.
func (a *Applier) applyObject(ctx context.Context, o client.Object, isNew bool) (Action, []string, error) {
	want, err := buildPatch(o)
	if err != nil {
		return Failed, nil, err
	}
	found, err := a.inspectObject(ctx, o, want, isNew)
	if err != nil {
		return Failed, nil, err
	}
	if found.upToDate {
		return Unchanged, nil, nil
	}
	action, err := a.writeOver(ctx, o, want, found)
	if found.live == nil && a.writes != nil && (isNullRefused(err) || isRoleRefChange(err)) {
		// The cache lacks the objects of other clients that have the name of croft's.
		if found, err = a.compareObject(ctx, a.live, o, want); err != nil {
			return Failed, nil, err
		}
		action, err = a.writeOver(ctx, o, want, found)
	}
	return action, found.revertedManagers, err
}

// writeOver writes an object over the one that was found.
func (a *Applier) writeOver(ctx context.Context, o client.Object, want tree, found finding) (Action, error) {
	key := a.makeWriteKey(o)
	defer a.writes.beginWrite(key)()
	if found.hasIntruders {
		if err := a.takeOver(ctx, found.live); err != nil {
			return Failed, err
		}
	}
	action, written, err := a.writeObject(ctx, o, want, found.live)
	if err != nil {
		return Failed, err
	}
	after, err := compareLive(o, written, want)
	if err == nil && after.hasIntruders {
		// Another client's object, or its change since the comparison.
		if err = a.takeOver(ctx, written); err == nil {
			if written, err = a.patchObject(ctx, want); err == nil {
				after, err = compareLive(o, written, want)
			}
		}
	}
	if err != nil {
		return Failed, err
	}
	if after.upToDate {
		a.writes.record(key, written)
	}
	return action, nil
}

// requireVersion makes a write fail with a conflict unless the object has this version. It is for
// decisions that depend on the object's content.
func requireVersion(version string, want tree) tree {
	want = runtime.DeepCopyJSON(want)
	if metadata, ok := want["metadata"].(tree); ok {
		metadata["resourceVersion"] = version
	}
	return want
}

// inspectObject reads an object and compares it. If a cached object differs, it is read again from
// the API server, because the next write depends on it. In a new namespace this would be a
// needless request for each object of a new tenant.
func (a *Applier) inspectObject(ctx context.Context, o client.Object, want tree, isNew bool) (finding, error) {
	// Before the read: an event in between would end the wait for a write that this read does not show.
	isPending := a.writes.isPending(a.makeWriteKey(o))
	found, err := a.compareObject(ctx, a.client, o, want)
	if err != nil || found.upToDate || a.live == nil || isNew && found.live == nil || a.trustsCache(o, found.live, isPending) {
		return found, err
	}
	return a.compareObject(ctx, a.live, o, want)
}

// trustsCache reports whether a write may depend on the cached object, which is nil if the cache has none. isPending
// reports whether the cache may have lacked a write to it. A Namespace decides about its whole content, and another
// client may have deleted it and created it again.
func (a *Applier) trustsCache(o, cached client.Object, isPending bool) bool {
	_, isNamespace := o.(*corev1.Namespace)
	switch {
	case a.writes == nil || isNamespace:
		return false
	case cached == nil:
		return !isPending
	default:
		return !a.writes.isBehind(a.makeWriteKey(o), cached)
	}
}

// getLiveReader returns a reader that reads from the API server.
func (a *Applier) getLiveReader() client.Reader {
	if a.live != nil {
		return a.live
	}
	return a.client
}

func (a *Applier) compareObject(ctx context.Context, reader client.Reader, o client.Object, want tree) (finding, error) {
	live, err := a.readObject(ctx, reader, o)
	if err != nil || live == nil {
		return finding{}, err
	}
	return compareLive(o, live, want)
}

// compareLive compares an object of the API server with the desired one, which is o and, as a patch, want.
func compareLive(o, live client.Object, want tree) (finding, error) {
	owned, err := parseOwnership(o.GetObjectKind().GroupVersionKind().Kind, live.GetManagedFields())
	if err != nil {
		return finding{}, err
	}
	same, err := isSettled(live, want)
	if err != nil {
		return finding{}, err
	}
	found := finding{
		live:             live,
		upToDate:         same && owned.ours != nil && len(owned.intruders) == 0 && !owned.hasAbandoned(want),
		hasIntruders:     len(owned.intruders) > 0,
		revertedManagers: owned.intruders,
	}
	if !same {
		found.revertedManagers = slices.Compact(slices.Sorted(slices.Values(append(listRelabellers(live, want), owned.intruders...))))
	}
	return found, nil
}

// readObject returns nil if the object does not exist.
func (a *Applier) readObject(ctx context.Context, reader client.Reader, o client.Object) (client.Object, error) {
	live, err := a.newObject(o)
	if err != nil {
		return nil, err
	}
	switch err := reader.Get(ctx, client.ObjectKeyFromObject(o), live); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read: %w", err)
	}
	return live, nil
}

// newObject returns an empty object of the kind and the Go type of another.
func (a *Applier) newObject(o client.Object) (client.Object, error) {
	gvk := o.GetObjectKind().GroupVersionKind()
	if _, ok := o.(runtime.Unstructured); ok {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		return u, nil
	}
	made, err := a.client.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	typed, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", made)
	}
	return typed, nil
}

// writeObject applies the desired object. A binding's role is immutable, so a binding with
// another role is deleted and created again, which interrupts access for a moment. No other
// object is ever deleted to be replaced. It returns the written object.
func (a *Applier) writeObject(ctx context.Context, o client.Object, want tree, live client.Object) (Action, client.Object, error) {
	if version := o.GetResourceVersion(); version != "" {
		want = requireVersion(version, want)
	}
	written, err := a.patchObject(ctx, want)
	if live != nil && isNullRefused(err) {
		if err = a.emptyMaps(ctx, want, live); err == nil {
			written, err = a.patchObject(ctx, want)
		}
	}
	if isRoleRefChange(err) && live != nil && live.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
		if err := a.client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.GetUID())}); client.IgnoreNotFound(err) != nil {
			return Failed, nil, fmt.Errorf("delete, to recreate it with another role: %w", err)
		}
		written, err = a.patchObject(ctx, want)
		return Recreated, written, err
	}
	switch {
	case err != nil:
		return Failed, nil, err
	case live == nil:
		return Created, written, nil
	case written.GetResourceVersion() == live.GetResourceVersion():
		return Unchanged, written, nil
	default:
		return Configured, written, nil
	}
}

// isNullRefused reports whether the API server refused a null that server-side apply itself has
// written: it sets a map to null when it removes the last entry of a map that is to be empty.
func isNullRefused(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), `"null"`)
}

// emptyMaps removes the entries of all maps that are to be empty. The next apply then has nothing to
// remove from them.
func (a *Applier) emptyMaps(ctx context.Context, want tree, live client.Object) error {
	before, err := makeTree(live)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(listEntriesToRemove(before, want))
	if err != nil {
		return err
	}
	target, ok := live.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", live)
	}
	return a.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagedBy))
}

// listEntriesToRemove returns a merge patch with null for each entry of a map that is empty in want.
func listEntriesToRemove(before, want tree) tree {
	patch := tree{}
	for name, value := range want {
		desired, isMap := value.(tree)
		have, _ := before[name].(tree)
		switch {
		case !isMap:
		case len(desired) > 0:
			if inner := listEntriesToRemove(have, desired); len(inner) > 0 {
				patch[name] = inner
			}
		case len(have) > 0:
			nulls := tree{}
			for key := range have {
				nulls[key] = nil
			}
			patch[name] = nulls
		}
	}
	return patch
}

func (a *Applier) patchObject(ctx context.Context, want tree, opts ...client.ApplyOption) (*unstructured.Unstructured, error) {
	u := wrapTree(runtime.DeepCopyJSON(want))
	opts = append(opts, client.FieldOwner(v1alpha1.ManagedBy), client.ForceOwnership)
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...); err != nil {
		return nil, err
	}
	return u, nil
}

// moveForeignFields makes croft the owner of the fields that other managers added, so that the next
// apply removes them. It fails if the object has changed since the comparison.
func (a *Applier) takeOver(ctx context.Context, live client.Object) error {
	gvk, err := a.client.GroupVersionKindFor(live)
	if err != nil {
		return err
	}
	entries, err := moveForeignFields(gvk.Kind, gvk.GroupVersion().String(), live.GetManagedFields())
	if err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		// A replacement and not a test: so a change in between is reported as a conflict.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	target, ok := live.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", live)
	}
	if err := a.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(v1alpha1.ManagedBy)); err != nil {
		return fmt.Errorf("take over fields: %w", err)
	}
	return nil
}
