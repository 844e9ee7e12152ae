package apply

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ref identifies an object in a cluster.
type Ref struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// RefOf returns the Ref of an object whose TypeMeta is set.
func RefOf(o client.Object) Ref {
	return Ref{o.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(o)}
}

// String formats an object for messages, such as "NetworkPolicy shop/croft-dns".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Action is the outcome for an object.
type Action string

const (
	// Created means that the object did not exist.
	Created Action = "created"
	// Adopted means that the namespace existed, and that an admin's annotation assigned it
	// to the tenant.
	Adopted Action = "adopted"
	// Configured means that the object existed, and differed from the desired one.
	Configured Action = "configured"
	// Recreated means that the object was deleted and created again, because an immutable
	// field had to change.
	Recreated Action = "recreated"
	// Unchanged means that nothing was written.
	Unchanged Action = "unchanged"
	// Deleted means that the object was croft's and is no longer desired.
	Deleted Action = "deleted"
	// Released means that croft no longer manages the namespace.
	Released Action = "released"
	// Skipped means that nothing was written, because the object depends on one that could
	// not be written.
	Skipped Action = "skipped"
	// Failed means that the cluster refused the object. Change.Err has the reason.
	Failed Action = "failed"
)

// Change is the outcome for one object.
type Change struct {
	Ref
	Action Action
	// RevertedManagers are the sorted names of the field managers, other than croft, whose fields were
	// removed or reset.
	RevertedManagers []string
	// Err is set if Action is Failed. It names the object.
	Err error
}

// String returns one line in kubectl's format, with the namespace, because objects of the
// same name exist in many: "networkpolicy.networking.k8s.io/croft-dns created in shop".
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

// HasWritten reports whether anything was written to the cluster.
func (c Change) HasWritten() bool {
	switch c.Action {
	case Unchanged, Skipped, Failed:
		return false
	default:
		return true
	}
}
