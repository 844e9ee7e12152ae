package migrate

import (
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/adoption/migrate/capsule"
	"croft.dev/croft/internal/adoption/migrate/chart"
	"croft.dev/croft/internal/adoption/migrate/declared"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/gatekeeper"
	"croft.dev/croft/internal/adoption/migrate/hnc"
	"croft.dev/croft/internal/adoption/migrate/karpenter"
	"croft.dev/croft/internal/adoption/migrate/kubernetes"
	"croft.dev/croft/internal/adoption/migrate/multus"
	"croft.dev/croft/internal/adoption/migrate/network"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/document"
)

// Result is the result of a migration.
type Result struct {
	// File is croft.yaml. croft check accepts it, except for missing fields that the problems
	// name.
	File *draft.File
	// Manifests are node classes that croft.yaml refers to and croft does not write.
	Manifests []*unstructured.Unstructured
	// Findings account for every input value.
	Findings []source.Finding
	// Notes are general remarks.
	Notes []string
	// Problems require a decision or correction by the user.
	Problems document.Problems
}

// Count returns the number of values with an outcome.
func (r *Result) Count(outcome source.Outcome) int {
	n := 0
	for _, f := range r.Findings {
		if f.Outcome == outcome {
			n += max(1, f.Leaves)
		}
	}
	return n
}

// Migrate converts objects into an estate. The order matters: readers that define tenants run
// before readers of their namespaces.
func Migrate(objects []*source.Object, problems document.Problems, o draft.Options) *Result {
	d := draft.New(objects, o)
	d.Problems = problems
	for _, step := range []func(*draft.Draft){
		replaceVariables,
		karpenter.ReadSettings,
		declared.ReadObjects,
		chart.ReadGlobals,
		karpenter.ChooseKey,
		karpenter.ReadProvisioners,
		karpenter.ReadNodePools,
		chart.Read,
		declared.ReadRules,
		capsule.ReadTenants,
		kubernetes.ReadNodeSelectors,
		gatekeeper.ReadPools,
		gatekeeper.ReadDomains,
		hnc.ReadTrees,
		kubernetes.ReadNamespaces,
		capsule.ReadCordonedNamespaces,
		kubernetes.ReadObjects,
		hnc.ReadObjects,
		kubernetes.ReadAccess,
		kubernetes.ReadSharing,
		kubernetes.ReadQuotas,
		hnc.ReadQuotas,
		func(d *draft.Draft) { network.ReadPolicies(d, capsule.ReadPolicies(d)) },
		hnc.ReadOthers,
		multus.ReportDefinitions,
		capsule.ReportUnknown,
		capsule.AccountOthers,
		accountOthers,
		completeFields,
	} {
		step(d)
	}
	return buildResult(d)
}

// buildResult completes the findings and checks the resulting file.
func buildResult(d *draft.Draft) *Result {
	r := &Result{Manifests: d.Manifests, Notes: d.Notes}
	r.File = d.BuildFile()
	r.Problems = slices.Concat(d.Problems, r.File.DropRefused(d.Reported))
	r.Problems = append(r.Problems, slices.Concat(findLostPlacements(d, r), findMisplacedWorkloads(d, r))...)
	for _, object := range d.Objects {
		for _, f := range object.Findings() {
			d.Rename(&f)
			r.Findings = append(r.Findings, f)
		}
	}
	slices.SortStableFunc(r.Problems, func(a, b document.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return r
}

// removeDuplicates drops objects that were read twice. If two differ, the first is kept.
func removeDuplicates(objects []*source.Object) ([]*source.Object, document.Problems) {
	var (
		kept     []*source.Object
		problems document.Problems
		seen     = map[string]*source.Object{}
	)
	for _, o := range objects {
		if o.Kind == source.KindValues {
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
		if isSameJSON(first.Content, o.Content) {
			o.Root().MarkOther("the input has the same object at %s", first.Place())
		} else {
			problems = append(problems, o.Problem(nil, "this object is ignored, since it has the name of the object at %s and differs from it: keep one of them", first.Place()))
			o.Root().MarkNotKept("another object with this name, at %s, comes first in the input and differs: keep one of them", first.Place())
		}
		o.Skip = true
	}
	return kept, problems
}

func isSameJSON(a, b map[string]any) bool {
	one, err := json.Marshal(a)
	two, wrong := json.Marshal(b)
	return err == nil && wrong == nil && string(one) == string(two)
}
