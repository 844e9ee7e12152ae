package trial

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// removeDefaults removes everything that no rule set from a cluster's response: the API server's
// defaults, its counters and timestamps, and other field managers' fields of an existing
// object. It keeps changed fields that were sent, and new entries of lists, labels, annotations
// and node selectors.
func removeDefaults(sent, got map[string]any, exists bool) (before, after map[string]any) {
	return difference{exists}.compareObject("", sent, got)
}

// limitRanger is the annotation in which the API server reports defaults of a LimitRange.
const limitRanger = "kubernetes.io/limit-ranger"

type difference struct {
	// exists reports whether the object existed before.
	exists bool
}

func (d difference) compareObject(field string, sent, got map[string]any) (before, after map[string]any) {
	before, after = map[string]any{}, map[string]any{}
	for key, value := range sent {
		now, there := got[key]
		switch {
		case there:
			before[key], after[key] = d.compareValue(key, value, now)
		case !isEmpty(value) && key != "stringData": // of a Secret, where it becomes data
			before[key] = value
		}
	}
	for key, value := range got {
		if _, there := sent[key]; there || !d.isNew(field, key) {
			continue
		}
		switch key {
		case limitRanger:
			continue
		case "tolerations":
			value = filterTolerations(value)
		case "labels", "annotations":
			_, value = d.compareValue(key, map[string]any{}, value)
		}
		if !isEmpty(value) {
			after[key] = value
		}
	}
	return before, after
}

// isNew reports whether a field was not sent and is not a default.
func (d difference) isNew(field, key string) bool {
	switch field {
	case "nodeSelector":
		return true
	case "labels", "annotations":
		return !d.exists
	case "spec":
		return key == "nodeSelector" || key == "tolerations" || key == "affinity"
	case "metadata":
		return !d.exists && (key == "labels" || key == "annotations")
	default:
		return false
	}
}

func (d difference) compareValue(key string, sent, got any) (before, after any) {
	switch value := sent.(type) {
	case map[string]any:
		if now, ok := got.(map[string]any); ok {
			return d.compareObject(key, value, now)
		}
	case []any:
		if now, ok := got.([]any); ok {
			return d.compareList(key, value, now)
		}
	}
	if isEquivalent(sent, got) {
		return got, got
	}
	return sent, got
}

func (d difference) compareList(key string, sent, got []any) (was, is any) {
	before, after := []any{}, []any{}
	for i, entry := range got {
		if i < len(sent) {
			one, other := d.compareValue(key, sent[i], entry)
			before, after = append(before, one), append(after, other)
		} else if (key != "tolerations" || !isEmpty(filterTolerations([]any{entry}))) && !isTokenVolume(entry) {
			after = append(after, entry)
		}
	}
	return append(before, sent[min(len(sent), len(got)):]...), after
}

// filterTolerations removes the tolerations that every pod gets.
func filterTolerations(value any) any {
	kept := []any{}
	list, _ := value.([]any)
	for _, entry := range list {
		if t, ok := entry.(map[string]any); ok && !strings.HasPrefix(fmt.Sprint(t["key"]), "node.kubernetes.io/") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// isTokenVolume reports whether an entry is the volume of the token that every pod gets, or its
// mount.
func isTokenVolume(entry any) bool {
	e, ok := entry.(map[string]any)
	return ok && strings.HasPrefix(fmt.Sprint(e["name"]), "kube-api-access-")
}

// isEquivalent reports whether two values are notations of the same value, such as 1000m and 1.
func isEquivalent(sent, got any) bool {
	a, b := fmt.Sprint(sent), fmt.Sprint(got)
	if a == b || isEmpty(sent) && isEmpty(got) {
		return true
	}
	one, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	other, err := resource.ParseQuantity(b)
	return err == nil && one.Cmp(other) == 0
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case bool:
		return !value
	case int64:
		return value == 0
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	default:
		return false
	}
}
