package hnc

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

const (
	// inheritedFrom is the label of a copy with the namespace of the original object.
	inheritedFrom = draft.HNCGroup + "/inherited-from"
	// quotaLabel is the label of the ResourceQuotas that HNC writes for a HierarchicalResourceQuota.
	quotaLabel = draft.HNCGroup + "/hrq"
)

// These are the modes in which HNC copies the objects of a kind.
const (
	modePropagate      = "Propagate"
	modeAllowPropagate = "AllowPropagate"
	modeIgnore         = "Ignore"
	modeRemove         = "Remove"
)

// propagated is an object that HNC copies from a namespace into descendants.
type propagated struct {
	// object is the original object, or the first copy if the input does not have it.
	object *source.Object
	// from is the namespace of the original object.
	from string
	// copied are the copies in the input.
	copied []*source.Object
	// selects reports whether a namespace gets a copy, and whether that is known.
	selects func(namespace string) (selected, known bool)
}

// listPropagated returns the objects that HNC copies.
func listPropagated(d *draft.Draft, f *forest) []propagated {
	modes, configured := readModes(d)
	originals, copied := map[string]*source.Object{}, map[string][]*source.Object{}
	var ids []string
	for _, o := range d.Objects {
		if o.Skip || o.Namespace == "" || o.Group() == draft.HNCGroup {
			continue
		}
		from := getInheritedFrom(o)
		if from == "" && !f.hasChildren[o.Namespace] {
			continue
		}
		id := getID(o, cmp.Or(from, o.Namespace))
		if originals[id] == nil && copied[id] == nil {
			ids = append(ids, id)
		}
		if from == "" {
			originals[id] = o
		} else {
			copied[id] = append(copied[id], o)
		}
	}
	var all []propagated
	for _, id := range ids {
		o := originals[id]
		if o == nil {
			all = append(all, newCopies(copied[id]))
			continue
		}
		mode, known := modes[getResource(o)]
		known = known || configured
		if p, ok := newPropagated(d, f, o, copied[id], mode, known); ok {
			all = append(all, p)
		}
	}
	return all
}

// readModes returns the modes of the kinds, by group and resource, and whether the input has them.
func readModes(d *draft.Draft) (modes map[string]string, configured bool) {
	modes = map[string]string{}
	for _, o := range d.List(draft.HNCGroup, "HNCConfiguration") {
		configured = true
		for _, r := range o.At("spec", "resources").Items() {
			modes[r.At("group").Text()+"/"+r.At("resource").Text()] = cmp.Or(r.At("mode").Text(), modePropagate)
		}
	}
	// HNC always copies these.
	modes[draft.RBACGroup+"/roles"], modes[draft.RBACGroup+"/rolebindings"] = modePropagate, modePropagate
	return modes, configured
}

// newPropagated returns an object with the namespaces that get a copy of it, and whether HNC copies it. Without a mode
// of its kind, annotations and the copies in the input decide.
func newPropagated(d *draft.Draft, f *forest, o *source.Object, copied []*source.Object, mode string, known bool) (propagated, bool) {
	c, valid := parseCondition(o)
	p := propagated{object: o, from: o.Namespace, copied: copied, selects: func(namespace string) (bool, bool) {
		if namespace == o.Namespace || !f.isWithin(namespace, o.Namespace) {
			return false, true
		}
		return c.matches(d, f, namespace)
	}}
	requested := isLimited(o) || isSet(o, allAnnotation)
	switch {
	case !f.hasChildren[o.Namespace], !valid, isSet(o, noneAnnotation), isExcluded(o):
		return p, false
	case known:
		return p, mode == modePropagate || mode == modeAllowPropagate && requested
	default:
		return p, requested || len(copied) > 0
	}
}

// newCopies returns an object of which the input has only copies.
func newCopies(copied []*source.Object) propagated {
	return propagated{object: copied[0], from: getInheritedFrom(copied[0]), copied: copied, selects: func(namespace string) (bool, bool) {
		return slices.ContainsFunc(copied, func(o *source.Object) bool { return o.Namespace == namespace }), true
	}}
}

// isExcluded reports whether HNC does not copy an object in any mode, or croft wrote it.
func isExcluded(o *source.Object) bool {
	finalizers := o.At("metadata", "finalizers").Items()
	_, openShift := o.At("metadata", "annotations").TextMap()["openshift.io/description"]
	return draft.IsManaged(o) || len(finalizers) > 0 || openShift || o.At("metadata", "labels", "cattle.io/creator").Text() == "norman" ||
		o.Kind == "ConfigMap" && slices.Contains([]string{"istio-ca-root-cert", "kube-root-ca.crt"}, o.Name) ||
		o.Kind == "Secret" && slices.Contains([]string{"kubernetes.io/service-account-token", "helm.sh/release.v1"}, o.At("type").Text())
}

func getInheritedFrom(o *source.Object) string {
	return o.At("metadata", "labels", inheritedFrom).Text()
}

func getID(o *source.Object, namespace string) string {
	return o.Group() + "/" + o.Kind + "/" + namespace + "/" + o.Name
}

// getResource returns the group and the resource of an object's kind.
func getResource(o *source.Object) string {
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: o.Group(), Version: o.Version(), Kind: o.Kind})
	return resource.Group + "/" + resource.Resource
}
