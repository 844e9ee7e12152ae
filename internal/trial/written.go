package trial

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// written removes everything that no rule set from a cluster's response: the API server's
// defaults, its counters and timestamps, and other field managers' fields of an existing
// object. It keeps changed fields that were sent, and new entries of lists, labels, annotations
// and node selectors.
func written(sent, got map[string]any, stands bool) (was, is map[string]any) {
	return difference{stands}.object("", sent, got)
}

// limitRanger is the annotation in which the API server reports defaults of a LimitRange.
const limitRanger = "kubernetes.io/limit-ranger"

type difference struct {
	// stands reports whether the object existed before.
	stands bool
}

func (d difference) object(field string, sent, got map[string]any) (was, is map[string]any) {
	was, is = map[string]any{}, map[string]any{}
	for key, value := range sent {
		now, there := got[key]
		switch {
		case there:
			was[key], is[key] = d.value(key, value, now)
		case !empty(value) && key != "stringData": // of a Secret, where it becomes data
			was[key] = value
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
			value = ownTolerations(value)
		case "labels", "annotations":
			_, value = d.value(key, map[string]any{}, value)
		}
		if !empty(value) {
			is[key] = value
		}
	}
	return was, is
}

// isNew reports whether a field was not sent and is not a default.
func (d difference) isNew(field, key string) bool {
	switch field {
	case "nodeSelector":
		return true
	case "labels", "annotations":
		return !d.stands
	case "spec":
		return key == "nodeSelector" || key == "tolerations" || key == "affinity"
	case "metadata":
		return !d.stands && (key == "labels" || key == "annotations")
	default:
		return false
	}
}

func (d difference) value(key string, sent, got any) (was, is any) {
	switch value := sent.(type) {
	case map[string]any:
		if now, ok := got.(map[string]any); ok {
			return d.object(key, value, now)
		}
	case []any:
		if now, ok := got.([]any); ok {
			return d.list(key, value, now)
		}
	}
	if same(sent, got) {
		return got, got
	}
	return sent, got
}

func (d difference) list(key string, sent, got []any) (was, is any) {
	before, after := []any{}, []any{}
	for i, entry := range got {
		if i < len(sent) {
			one, other := d.value(key, sent[i], entry)
			before, after = append(before, one), append(after, other)
		} else if (key != "tolerations" || !empty(ownTolerations([]any{entry}))) && !ofToken(entry) {
			after = append(after, entry)
		}
	}
	return append(before, sent[min(len(sent), len(got)):]...), after
}

// ownTolerations removes the tolerations that every pod gets.
func ownTolerations(value any) any {
	own := []any{}
	list, _ := value.([]any)
	for _, entry := range list {
		if t, ok := entry.(map[string]any); ok && !strings.HasPrefix(fmt.Sprint(t["key"]), "node.kubernetes.io/") {
			own = append(own, entry)
		}
	}
	return own
}

// ofToken reports whether an entry is the volume of the token that every pod gets, or its
// mount.
func ofToken(entry any) bool {
	e, ok := entry.(map[string]any)
	return ok && strings.HasPrefix(fmt.Sprint(e["name"]), "kube-api-access-")
}

// same reports whether two values are notations of the same value, such as 1000m and 1.
func same(sent, got any) bool {
	a, b := fmt.Sprint(sent), fmt.Sprint(got)
	if a == b || empty(sent) && empty(got) {
		return true
	}
	one, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	other, err := resource.ParseQuantity(b)
	return err == nil && one.Cmp(other) == 0
}

func empty(value any) bool {
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
