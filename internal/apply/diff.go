package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
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
	objects, err := a.inServedVersion(objects)
	if err != nil {
		return nil, err
	}
	var all Differences
	var errs []error
	for _, o := range objects {
		differences, err := a.diff(ctx, o)
		if err != nil {
			errs = append(errs, &ObjectError{Ref: RefOf(o), Err: err})
		}
		all = append(all, differences...)
	}
	return all, errors.Join(errs...)
}

// diff returns one difference, or none.
func (a *Applier) diff(ctx context.Context, o client.Object) (Differences, error) {
	want, err := wanted(o)
	if err != nil {
		return nil, err
	}
	found, err := a.find(ctx, o, want)
	if err != nil || found.stands {
		return nil, err
	}
	if namespace, ok := found.live.(*corev1.Namespace); ok && o.GetLabels()[v1alpha1.TenantLabel] != "" {
		if err := Claim(namespace, o.GetLabels()[v1alpha1.TenantLabel]); err != nil {
			return nil, err
		}
	}
	before, after := tree{}, want
	if found.live != nil {
		if before, err = treeOf(found.live); err != nil {
			return nil, err
		}
		before["apiVersion"], before["kind"] = want["apiVersion"], want["kind"]
	}
	switch dry, err := a.patch(ctx, want, client.DryRunAll); {
	case err == nil:
		after = dry.Object
	// The object's namespace does not exist yet, so a dry run is not possible.
	case found.live == nil && apierrors.IsNotFound(err):
	case roleRefChanged(err):
	case mayNotPatch(err):
		if after, err = laidOverLive(before, want, found.live); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	if found.invaded {
		if err := removeForeign(after, found.live, want); err != nil {
			return nil, err
		}
	}
	return compare(RefOf(o), before, after)
}

// mayNotPatch reports whether RBAC refused the request. Only the operator writes walls, but
// people who may read them may see their changes.
func mayNotPatch(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot patch resource ")
}

// laidOverLive returns the result of applying want over a live object, computed without the
// API server: fields outside want stay, except for those that croft applied. If croft last
// applied other content, defaults in the elements of lists cannot be distinguished from
// leftovers, so the lists are shown as desired.
func laidOverLive(before, want tree, live client.Object) (tree, error) {
	after := laidOver(before, want, signature(before) == signature(want))
	if live == nil {
		return after, nil
	}
	kind, _ := want["kind"].(string)
	owned, err := ownershipOf(kind, live.GetManagedFields())
	if err != nil || owned.ours == nil {
		return after, err
	}
	owned.ours.Iterate(func(path fieldpath.Path) {
		if !says(want, path) && !notes.Has(path) {
			without(after, path)
		}
	})
	return after, nil
}

func laidOver(before, want tree, merge bool) tree {
	after := runtime.DeepCopyJSON(before)
	for name, value := range want {
		after[name] = valueOver(after[name], value, merge)
	}
	return after
}

func valueOver(before, want any, merge bool) any {
	switch want := want.(type) {
	case tree:
		if before, ok := before.(tree); ok {
			return laidOver(before, want, merge)
		}
	case []any:
		before, ok := before.([]any)
		if !ok || !merge || len(before) != len(want) {
			break
		}
		all := make([]any, len(want))
		for i := range want {
			all[i] = valueOver(before[i], want[i], merge)
		}
		return all
	}
	return want
}

// removeForeign removes the fields from a dry run's result that takeOver would remove. The
// removal takes two requests, which a dry run cannot combine.
func removeForeign(after tree, live client.Object, want tree) error {
	kind, _ := want["kind"].(string)
	owned, err := ownershipOf(kind, live.GetManagedFields())
	if err != nil {
		return err
	}
	for path := range owned.foreign.All() {
		if !says(want, path) {
			without(after, path)
		}
	}
	return nil
}

// without removes the field at path from a value, if it exists.
func without(v any, path fieldpath.Path) any {
	step, rest := path[0], path[1:]
	switch v := v.(type) {
	case tree:
		child, ok := descend(v, step)
		switch {
		case !ok:
		case len(rest) == 0:
			delete(v, *step.FieldName)
		default:
			v[*step.FieldName] = without(child, rest)
		}
		return v
	case []any:
		i := elementAt(v, step)
		switch {
		case i < 0:
		case len(rest) == 0:
			return slices.Delete(slices.Clone(v), i, i+1)
		default:
			v[i] = without(v[i], rest)
		}
		return v
	default:
		return v
	}
}

// compare returns the difference between two states of an object, without the API server's
// bookkeeping. An empty state means that the object does not exist.
func compare(ref Ref, before, after tree) (Differences, error) {
	b, err := readable(before)
	if err != nil {
		return nil, err
	}
	w, err := readable(after)
	if err != nil {
		return nil, err
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(b), B: lines(w), FromFile: ref.String() + " (live)", ToFile: ref.String() + " (wanted)", Context: 3,
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

func lines(text string) []string {
	return slices.Collect(strings.Lines(text))
}

// readable returns an object's YAML without the API server's bookkeeping.
func readable(t tree) (string, error) {
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
	unnoted(t)
	text, err := yaml.Marshal(t)
	return string(text), err
}
