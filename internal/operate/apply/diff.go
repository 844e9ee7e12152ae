package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
)

// Difference is the change of one object.
type Difference struct {
	Ref
	// Action is Created, Configured or Deleted.
	Action Action
	// Text is a unified diff of YAML, from the live object to the desired one.
	Text string
}

// Differences are the changes of several objects, in the order of their writes.
type Differences []Difference

// String concatenates the objects' unified diffs.
func (d Differences) String() string {
	var all strings.Builder
	for _, difference := range d {
		all.WriteString(difference.Text)
	}
	return all.String()
}

// Diff returns the changes that Apply would make, without making them. It sends dry runs.
// It omits unchanged objects. The error joins the API server's refusals, each with the name
// of its object.
func (a *Applier) Diff(ctx context.Context, objects ...client.Object) (Differences, error) {
	objects, err := a.convertToServed(objects)
	if err != nil {
		return nil, err
	}
	found, errs := make([]Differences, len(objects)), make([]error, len(objects))
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i, o := range objects {
		group.Go(func() error {
			var err error
			if found[i], err = a.diffObject(ctx, o); err != nil {
				errs[i] = &ObjectError{Ref: RefOf(o), Err: err}
			}
			return nil
		})
	}
	_ = group.Wait() // errs has the errors of all objects
	return slices.Concat(found...), errors.Join(errs...)
}

// diffObject returns one difference, or none.
func (a *Applier) diffObject(ctx context.Context, o client.Object) (Differences, error) {
	want, err := buildPatch(o)
	if err != nil {
		return nil, err
	}
	// A dry run also shows an object that the list does not have yet.
	found, err := a.inspectObject(ctx, o, want, true)
	if err != nil || found.upToDate {
		return nil, err
	}
	if namespace, ok := found.live.(*corev1.Namespace); ok && o.GetLabels()[v1alpha1.TenantLabel] != "" {
		if err := CheckClaim(namespace, o.GetLabels()[v1alpha1.TenantLabel]); err != nil {
			return nil, err
		}
	}
	before, after := tree{}, want
	if found.live != nil {
		if before, err = makeTree(found.live); err != nil {
			return nil, err
		}
		before["apiVersion"], before["kind"] = want["apiVersion"], want["kind"]
	}
	switch dry, err := a.patchObject(ctx, want, client.DryRunAll); {
	case err == nil:
		after = dry.Object
	// The object's namespace does not exist yet, so a dry run is not possible.
	case found.live == nil && apierrors.IsNotFound(err):
	case isRoleRefChange(err):
	case isPatchForbidden(err), isNullRefused(err):
		if after, err = mergeOverLive(before, want, found.live); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	if found.hasIntruders {
		if err := removeForeign(after, found.live, want); err != nil {
			return nil, err
		}
	}
	return diffTrees(RefOf(o), before, after)
}

// isPatchForbidden reports whether RBAC refused the request. Only the operator writes walls, but
// people who may read them may see their changes.
func isPatchForbidden(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot patch resource ")
}

// mergeOverLive returns the result of applying want over a live object, computed without the
// API server: fields outside want stay, except for fields that croft applied. If croft last
// applied other content, defaults in the elements of lists cannot be distinguished from
// leftovers, so the lists are shown as desired.
func mergeOverLive(before, want tree, live client.Object) (tree, error) {
	after := mergeTree(before, want, getSignature(before) == getSignature(want))
	if live == nil {
		return after, nil
	}
	kind, _ := want["kind"].(string)
	owned, err := parseOwnership(kind, live.GetManagedFields())
	if err != nil || owned.ours == nil {
		return after, err
	}
	owned.ours.Iterate(func(path fieldpath.Path) {
		if !hasField(want, path) && !notes.Has(path) {
			removeField(after, path)
		}
	})
	return after, nil
}

func mergeTree(before, want tree, merge bool) tree {
	after := runtime.DeepCopyJSON(before)
	for name, value := range want {
		after[name] = mergeValue(after[name], value, merge)
	}
	return after
}

func mergeValue(before, want any, merge bool) any {
	switch want := want.(type) {
	case tree:
		if before, ok := before.(tree); ok {
			return mergeTree(before, want, merge)
		}
	case []any:
		before, ok := before.([]any)
		if !ok || !merge || len(before) != len(want) {
			break
		}
		all := make([]any, len(want))
		for i := range want {
			all[i] = mergeValue(before[i], want[i], merge)
		}
		return all
	}
	return want
}

// removeForeign removes the fields from a dry run's result that moveForeignFields would remove. The
// removal takes two requests, which a dry run cannot combine.
func removeForeign(after tree, live client.Object, want tree) error {
	kind, _ := want["kind"].(string)
	owned, err := parseOwnership(kind, live.GetManagedFields())
	if err != nil {
		return err
	}
	for path := range owned.foreign.All() {
		if !hasField(want, path) {
			removeField(after, path)
		}
	}
	return nil
}

// removeField removes the field at path from a value, if it exists.
func removeField(v any, path fieldpath.Path) any {
	step, rest := path[0], path[1:]
	switch v := v.(type) {
	case tree:
		child, ok := descendPath(v, step)
		switch {
		case !ok:
		case len(rest) == 0:
			delete(v, *step.FieldName)
		default:
			v[*step.FieldName] = removeField(child, rest)
		}
		return v
	case []any:
		i := findElement(v, step)
		switch {
		case i < 0:
		case len(rest) == 0:
			return slices.Delete(slices.Clone(v), i, i+1)
		default:
			v[i] = removeField(v[i], rest)
		}
		return v
	default:
		return v
	}
}

// diffTrees returns the difference between two states of an object, without the API server's
// bookkeeping. An empty state means that the object does not exist.
func diffTrees(ref Ref, before, after tree) (Differences, error) {
	b, err := renderYAML(before)
	if err != nil {
		return nil, err
	}
	w, err := renderYAML(after)
	if err != nil {
		return nil, err
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: splitLines(b), B: splitLines(w), FromFile: ref.String() + " (live)", ToFile: ref.String() + " (desired)", Context: 3,
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("compare: %w", err)
	case text == "":
		return nil, nil
	case len(before) == 0:
		return Differences{{ref, Created, text}}, nil
	case len(after) == 0:
		return Differences{{ref, Deleted, text}}, nil
	default:
		return Differences{{ref, Configured, text}}, nil
	}
}

func splitLines(text string) []string {
	return slices.Collect(strings.Lines(text))
}

// renderYAML returns an object's YAML without the API server's bookkeeping.
func renderYAML(t tree) (string, error) {
	if len(t) == 0 {
		return "", nil
	}
	t = runtime.DeepCopyJSON(t)
	delete(t, "status")
	if metadata, ok := t["metadata"].(tree); ok {
		for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
			delete(metadata, field)
		}
	}
	dropNulls(t)
	stripBookkeeping(t)
	text, err := yaml.Marshal(t)
	return string(text), err
}
