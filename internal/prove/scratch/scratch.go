// Package scratch identifies the objects of `croft verify`'s scratch tenants, and the
// objects that a killed run has left behind. It does no I/O.
package scratch

import (
	"regexp"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Prefix is the prefix of the names of all cluster-scoped objects that a run creates.
const Prefix = "croft-verify-"

// grace is the time after its end in which a run may still be cleaning up. Unmarked is the
// maximum duration of a run whose objects do not record its end.
const (
	grace    = 3 * time.Minute
	Unmarked = 30 * time.Minute
)

// names matches the names of a run's objects: the prefix, the run, the letter of one of its
// two tenants, and a suffix within that tenant. Cluster-wide objects of a wall have a name of
// the wall before it, such as croft-guard-.
var names = regexp.MustCompile("^(?:croft-[a-z]+-)?" + Prefix + "([a-z0-9]{5})-[ab](-.+)?$")

// RunOf returns the run of an object with this name, or "" if it belongs to no run.
func RunOf(name string) string {
	if parts := names.FindStringSubmatch(name); parts != nil {
		return parts[1]
	}
	return ""
}

// Mark records in an object that it belongs to a run, and the end of the run.
func Mark(o client.Object, end time.Time) {
	labels, annotations := map[string]string{}, map[string]string{}
	for k, v := range o.GetLabels() {
		labels[k] = v
	}
	for k, v := range o.GetAnnotations() {
		annotations[k] = v
	}
	labels[v1alpha1.ScratchLabel] = "verify"
	annotations[v1alpha1.ScratchUntilAnnotation] = end.Add(grace).UTC().Format(time.RFC3339)
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// Run contains the objects of one run.
type Run struct {
	Name    string
	Objects []client.Object
	// Until is the time until which the run may need its objects.
	Until time.Time
	// marked means that the objects record the end of the run.
	marked bool
}

// FindExpired groups the objects of runs that are over, by run. declared are the names of Tenants:
// objects of a declared tenant belong to no run, regardless of their names. A name alone is
// no proof: an object of a run must have its mark or the label of its own tenant.
func FindExpired(objects []client.Object, declared []string, now time.Time) []Run {
	taken := map[string]bool{}
	for _, name := range declared {
		taken[RunOf(name)] = true
	}
	var order []string
	runs := map[string]*Run{}
	reported := map[string]bool{}
	for _, o := range objects {
		name, owner := RunOf(o.GetName()), o.GetLabels()[v1alpha1.TenantLabel]
		if name == "" || taken[name] || owner != "" && RunOf(owner) != name {
			continue
		}
		reported[name] = reported[name] || owner != "" || o.GetLabels()[v1alpha1.ScratchLabel] != ""
		if runs[name] == nil {
			runs[name] = &Run{Name: name}
			order = append(order, name)
		}
		runs[name].addObject(o)
	}
	var left []Run
	for _, name := range order {
		if r := runs[name]; reported[name] && now.After(r.Until) {
			left = append(left, *r)
		}
	}
	return left
}

// addObject adds an object. If some objects are marked, only they determine the end: an attack
// prepares objects that must look like another user's, and are not marked.
func (r *Run) addObject(o client.Object) {
	r.Objects = append(r.Objects, o)
	until, err := time.Parse(time.RFC3339, o.GetAnnotations()[v1alpha1.ScratchUntilAnnotation])
	marked := err == nil
	if !marked {
		until = o.GetCreationTimestamp().Add(Unmarked)
	}
	switch {
	case marked && !r.marked:
		r.Until, r.marked = until, true
	case marked == r.marked && until.After(r.Until):
		r.Until = until
	}
}
