package hnc

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// These are annotations of objects that limit or permit their copies.
const (
	annotationPrefix     = "propagate." + draft.HNCGroup + "/"
	selectAnnotation     = annotationPrefix + "select"
	treeSelectAnnotation = annotationPrefix + "treeSelect"
	noneAnnotation       = annotationPrefix + "none"
	allAnnotation        = annotationPrefix + "all"
)

// condition decides about the namespaces that get a copy.
type condition struct {
	selector labels.Selector
	// within and outside are roots of subtrees.
	within, outside []string
}

// parseCondition reads the annotations of an object. HNC copies no object with an annotation that it cannot read.
func parseCondition(o *source.Object) (condition, bool) {
	c := condition{selector: labels.Everything()}
	if text := getAnnotation(o, selectAnnotation); text != "" {
		parsed, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			return c, false
		}
		if c.selector, err = metav1.LabelSelectorAsSelector(parsed); err != nil {
			return c, false
		}
	}
	if text := getAnnotation(o, treeSelectAnnotation); text != "" {
		for _, part := range strings.Split(text, ",") {
			if root, not := strings.CutPrefix(strings.TrimSpace(part), "!"); not {
				c.outside = append(c.outside, root)
			} else {
				c.within = append(c.within, root)
			}
		}
	}
	return c, len(c.within) < 2 // HNC refuses several, too
}

// matches reports whether a namespace gets a copy, and whether the input has the labels that decide about it.
func (c condition) matches(d *draft.Draft, f *forest, namespace string) (matches, known bool) {
	for _, root := range c.within {
		if !f.isWithin(namespace, root) {
			return false, true
		}
	}
	if slices.ContainsFunc(c.outside, func(root string) bool { return f.isWithin(namespace, root) }) {
		return false, true
	}
	if c.selector.Empty() {
		return true, true
	}
	marks, known := d.FindLabels(namespace)
	return known && c.selector.Matches(marks), known
}

// isLimited reports whether an object has an annotation that selects namespaces.
func isLimited(o *source.Object) bool {
	return getAnnotation(o, selectAnnotation) != "" || getAnnotation(o, treeSelectAnnotation) != ""
}

func isSet(o *source.Object, annotation string) bool {
	value, err := strconv.ParseBool(getAnnotation(o, annotation))
	return err == nil && value
}

func getAnnotation(o *source.Object, key string) string {
	return strings.TrimSpace(o.At("metadata", "annotations", key).Text())
}
