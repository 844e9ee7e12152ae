// Package decision logs the result of each reconcile in one line.
package decision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"croft.dev/croft/internal/operate/apply"
)

// Log logs a reconcile of an object of a kind, at info level if it wrote anything or if Ready
// has changed, and at debug level otherwise. ready is nil if Ready has not changed.
func Log(ctx context.Context, kind string, object client.Object, began time.Time, changes []apply.Change, ready *metav1.Condition) {
	written := countWritten(changes)
	level := 0
	if written == "" && ready == nil {
		level = 1
	}
	values := []any{
		kind, object.GetName(), "generation", object.GetGeneration(),
		"duration", time.Since(began).Round(time.Millisecond).String(),
	}
	if written != "" {
		values = append(values, "changes", written)
	}
	if ready != nil {
		values = append(values, "ready", string(ready.Status), "reason", ready.Reason)
		if ready.Message != "" {
			values = append(values, "message", ready.Message)
		}
	}
	log.FromContext(ctx).V(level).Info("reconciled a "+kind, values...)
}

// countWritten returns the number of written objects by action, such as "3 created, 1 deleted".
func countWritten(changes []apply.Change) string {
	counts := map[apply.Action]int{}
	for _, change := range changes {
		if change.HasWritten() {
			counts[change.Action]++
		}
	}
	var parts []string
	for _, action := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[action], action))
	}
	return strings.Join(parts, ", ")
}
