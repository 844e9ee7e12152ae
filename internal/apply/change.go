package apply

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ref names an object in a cluster.
type Ref struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// RefOf returns the Ref of an object whose TypeMeta is set.
func RefOf(o client.Object) Ref {
	return Ref{o.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(o)}
}

// String is how messages name an object: "NetworkPolicy shop/croft-dns".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Action is what became of an object.
type Action string

const (
	// Created says that the object was not there.
	Created Action = "created"
	// Adopted says that the namespace was there, and that an admin's annotation
	// gave it to the tenant.
	Adopted Action = "adopted"
	// Configured says that the object was there, and was not as wanted.
	Configured Action = "configured"
	// Recreated says that the object had an immutable field, and was deleted and created
	// anew.
	Recreated Action = "recreated"
	// Unchanged says that nothing was written.
	Unchanged Action = "unchanged"
	// Deleted says that the object was croft's and is no longer desired.
	Deleted Action = "deleted"
	// Released says that the namespace is no longer croft's to keep.
	Released Action = "released"
	// Skipped says that nothing was written, since the object depends on one that could
	// not be written.
	Skipped Action = "skipped"
	// Failed says that the cluster refused; Change.Err says why.
	Failed Action = "failed"
)

// Change is what became of one object.
type Change struct {
	Ref
	Action Action
	// Undid are the field managers, other than croft, whose fields were taken
	// away or set back, sorted.
	Undid []string
	// Err is set where Action is Failed. It names the object.
	Err error
}

// String is one line in kubectl's format, with the namespace, since objects of the same
// name exist in many: "networkpolicy.networking.k8s.io/croft-dns created in shop".
func (c Change) String() string {
	var b strings.Builder
	b.WriteString(strings.ToLower(c.Kind))
	if c.Group != "" {
		b.WriteString("." + c.Group)
	}
	fmt.Fprintf(&b, "/%s %s", c.Name, c.Action)
	if c.Namespace != "" {
		b.WriteString(" in " + c.Namespace)
	}
	return b.String()
}

// Wrote reports whether anything was written to the cluster.
func (c Change) Wrote() bool {
	switch c.Action {
	case Unchanged, Skipped, Failed:
		return false
	default:
		return true
	}
}
