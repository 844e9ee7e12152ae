package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/estate"
)

// Options are what a person says beside what is read.
type Options struct {
	// ClusterName fills in where nothing that was read names the cluster, and
	// shell variables that stand for it.
	ClusterName string
	// Kwok puts every pool on simulated nodes, to try the result on a sandbox.
	Kwok bool
	// GroupPrefix is put before groups by the API server; found out if empty.
	GroupPrefix string
	// HoldNodes keeps nodes that run from being replaced when croft takes over the
	// NodePool that they came from.
	HoldNodes bool
}

// Result is what comes of a migration.
type Result struct {
	// File is croft.yaml. It is what croft check takes, but for the fields that
	// problems say are to be filled in.
	File *File
	// Manifests are node classes that croft.yaml refers to and croft does not write.
	Manifests []*unstructured.Unstructured
	// Findings account for every value that was read.
	Findings []Finding
	// Notes are what is to be known of the whole.
	Notes []string
	// Problems are what a person has to put right.
	Problems estate.Problems
}

// Count is how many values had an outcome.
func (r *Result) Count(outcome Outcome) int {
	n := 0
	for _, f := range r.Findings {
		if f.Outcome == outcome {
			n += max(1, f.Leaves)
		}
	}
	return n
}

// Migrate turns objects into an estate. The order matters: whoever says which
// tenants there are comes before whoever speaks of their namespaces.
func Migrate(objects []*Object, problems estate.Problems, o Options) *Result {
	d := newDraft(objects, o)
	d.problems = problems
	for _, step := range []func(*draft){
		(*draft).fillIn,
		(*draft).settings,
		(*draft).declared,
		(*draft).globals,
		(*draft).chooseKey,
		(*draft).provisioners,
		(*draft).nodePools,
		(*draft).values,
		(*draft).rules,
		(*draft).capsuleTenants,
		(*draft).assigns,
		(*draft).selecting,
		(*draft).domains,
		(*draft).namespaceObjects,
		(*draft).access,
		(*draft).sharing,
		(*draft).quotas,
		(*draft).networks,
		(*draft).others,
		(*draft).complete,
	} {
		step(d)
	}
	return d.result()
}

// result settles the account and checks what came of it.
func (d *draft) result() *Result {
	r := &Result{Manifests: d.manifests, Notes: d.notes}
	r.File = d.file()
	r.Problems = slices.Concat(d.problems, r.File.settle(d.told))
	for _, object := range d.objects {
		for _, f := range object.findings() {
			d.rename(&f)
			r.Findings = append(r.Findings, f)
		}
	}
	slices.SortStableFunc(r.Problems, func(a, b estate.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return r
}

// unique drops objects that were read twice. Of two that differ the first counts.
func unique(objects []*Object) ([]*Object, estate.Problems) {
	var (
		kept     []*Object
		problems estate.Problems
		seen     = map[string]*Object{}
	)
	for _, o := range objects {
		if o.Kind == kindValues {
			kept = append(kept, o)
			continue
		}
		id := o.Group() + "/" + o.ID()
		first, twice := seen[id]
		if !twice {
			seen[id] = o
			kept = append(kept, o)
			continue
		}
		kept = append(kept, o)
		if same(first.Content, o.Content) {
			o.Root().Other("the same object was read from %s", first.Place())
		} else {
			problems = append(problems, o.problem(nil, "is another object of this name than the one at %s, which counts: keep one of them", first.Place()))
			o.Root().NotKept("another object of this name was read first, from %s, and differs: keep one of them", first.Place())
		}
		o.skip = true
	}
	return kept, problems
}

func same(a, b map[string]any) bool {
	one, err := json.Marshal(a)
	two, wrong := json.Marshal(b)
	return err == nil && wrong == nil && string(one) == string(two)
}

// note adds what is to be known of the whole.
func (d *draft) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(d.notes, n) {
		d.notes = append(d.notes, n)
	}
}
