// Package status writes conditions. They are computed in one place from observations, and
// sent to the API server once, and only if they have changed.
package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
)

// longest is the maximum length of a message, in bytes. The API allows eight times as much,
// which is too long to read.
const longest = 4096

// Set sets one condition.
func Set(s *v1alpha1.Status, generation int64, condition string, value metav1.ConditionStatus, reason, message string) {
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + " …"
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: condition, Status: value, ObservedGeneration: generation, Reason: reason, Message: message,
	})
}

// Accept sets Accepted, and reports whether it is True.
func Accept(s *v1alpha1.Status, generation int64, hasPlatform bool, problems document.Problems) bool {
	switch {
	case !hasPlatform:
		Set(s, generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNoPlatform,
			"the cluster has no valid Platform named "+v1alpha1.PlatformName+" yet: without one, croft creates nothing")
		return false
	case len(problems) > 0:
		Set(s, generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid, formatProblems(problems))
		return false
	default:
		Set(s, generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "")
		return true
	}
}

// formatProblems omits the object's own name, which is displayed next to the message.
func formatProblems(problems document.Problems) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.Message
		if p.Field != "" {
			lines[i] = p.Field + ": " + p.Message
		}
	}
	return strings.Join(lines, "\n")
}

// SetReady sets Ready to the status, reason and message of the first condition that is not True,
// or to True.
func SetReady(s *v1alpha1.Status, generation int64, conditions ...string) {
	s.ObservedGeneration = generation
	for _, name := range conditions {
		condition := meta.FindStatusCondition(s.Conditions, name)
		switch {
		case condition == nil:
			Set(s, generation, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonPending, name+" is not known yet")
			return
		case condition.Status != metav1.ConditionTrue:
			Set(s, generation, v1alpha1.ConditionReady, condition.Status, condition.Reason, condition.Message)
			return
		}
	}
	Set(s, generation, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
}

// SetNotReady sets Ready to False for a reason that no other condition has.
func SetNotReady(s *v1alpha1.Status, generation int64, reason, message string) {
	s.ObservedGeneration = generation
	Set(s, generation, v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
}

// SetNetworkReady sets Ready of a SecondaryNetwork, and its progress. Two controllers write its
// conditions, each only on clusters to which the condition applies. Missing conditions do not
// count.
func SetNetworkReady(s *v1alpha1.Status, generation int64) {
	summed := []string{v1alpha1.ConditionAccepted}
	for _, optional := range []string{v1alpha1.ConditionInterfacesReady, v1alpha1.ConditionAddressesAvailable} {
		if meta.FindStatusCondition(s.Conditions, optional) != nil {
			summed = append(summed, optional)
		}
	}
	SetReady(s, generation, summed...)
	SetProgress(s, generation, false)
}

// FindChanged returns a condition if its status, reason or message has changed.
func FindChanged(before, after *v1alpha1.Status, name string) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Conditions, name), meta.FindStatusCondition(after.Conditions, name)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return nil
	}
	return is
}

// Writer writes statuses for one controller, and remembers its last writes, because the
// cache may lag behind them. Only the difference to the cached status is written. Without
// the memory, a status that changes back before the cache has caught up would look
// unchanged.
type Writer struct {
	client client.Client

	mu sync.Mutex
	// written are the resource versions after the last writes, by name.
	written map[string]string
}

// NewWriter returns a Writer for objects that are read from the client's cache.
func NewWriter(c client.Client) *Writer { return &Writer{client: c, written: map[string]string{}} }

// Patch writes the status of an object, unless it is unchanged or the object was deleted.
// If before is older than the last written status, Patch writes nothing and returns a
// conflict.
func (w *Writer) Patch(ctx context.Context, before, after client.Object) error {
	if w.isStale(before) {
		return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "status"}, before.GetName(),
			errors.New("the cache does not have the last status yet"))
	}
	data, err := client.MergeFrom(before).Data(after)
	if err != nil || string(data) == "{}" {
		return err
	}
	err = w.client.Status().Patch(ctx, after, client.RawPatch(types.MergePatchType, data))
	switch {
	case apierrors.IsNotFound(err):
		w.Forget(before.GetName())
		return nil
	case err != nil:
		return fmt.Errorf("patch status: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[before.GetName()] = after.GetResourceVersion()
	return nil
}

// isStale reports whether an object is older than the last written status.
func (w *Writer) isStale(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.written[o.GetName()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), written)
	if err == nil && order < 0 {
		return true
	}
	delete(w.written, o.GetName())
	return false
}

// Forget frees the memory of a deleted object.
func (w *Writer) Forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, name)
}
