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

// Diff says what Apply would change, as unified diffs of YAML, live against
// wanted, and changes nothing: the API server is asked in a dry run. Objects
// that would stay as they are, are left out. What would be refused is among the
// errors, each naming its object.
func (a *Applier) Diff(ctx context.Context, objects ...client.Object) (string, error) {
	var all strings.Builder
	var errs []error
	for _, o := range objects {
		text, err := a.diff(ctx, o)
		if err != nil {
			errs = append(errs, &ObjectError{Ref: RefOf(o), Err: err})
		}
		all.WriteString(text)
	}
	return all.String(), errors.Join(errs...)
}

func (a *Applier) diff(ctx context.Context, o client.Object) (string, error) {
	want, err := wanted(o)
	if err != nil {
		return "", err
	}
	found, err := a.find(ctx, o, want)
	if err != nil || found.stands {
		return "", err
	}
	if namespace, ok := found.live.(*corev1.Namespace); ok && o.GetLabels()[v1alpha1.TenantLabel] != "" {
		if err := claim(namespace, o.GetLabels()[v1alpha1.TenantLabel]); err != nil {
			return "", err
		}
	}
	before, after := tree{}, want
	if found.live != nil {
		if before, err = treeOf(found.live); err != nil {
			return "", err
		}
		before["apiVersion"], before["kind"] = want["apiVersion"], want["kind"]
	}
	switch dry, err := a.patch(ctx, want, client.DryRunAll); {
	case err == nil:
		after = dry.Object
	// What it stands in is yet to be made, and cannot be asked.
	case found.live == nil && apierrors.IsNotFound(err):
	case roleRefChanged(err):
	default:
		return "", err
	}
	if found.invaded {
		if err := removeForeign(after, found.live, want); err != nil {
			return "", err
		}
	}
	return unified(RefOf(o).String(), before, after)
}

// removeForeign takes from a dry run's outcome what takeOver would let the API
// server take away: a dry run cannot see through two steps.
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

// without takes the field at path out of a value, and does nothing where there
// is none.
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

// unified compares two objects as people would have written them.
func unified(name string, before, after tree) (string, error) {
	b, err := readable(before)
	if err != nil {
		return "", err
	}
	w, err := readable(after)
	if err != nil {
		return "", err
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(b), B: lines(w), FromFile: name + " (live)", ToFile: name + " (wanted)", Context: 3,
	})
	if err != nil {
		return "", fmt.Errorf("compare: %w", err)
	}
	return text, nil
}

func lines(text string) []string {
	return slices.Collect(strings.Lines(text))
}

// readable is an object's YAML without what the API server keeps in it for
// itself.
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
	text, err := yaml.Marshal(t)
	return string(text), err
}
