package kubernetes

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// These are annotations of a namespace by which plugins of the API server place its pods.
// PodNodeSelector reads the first, and PodTolerationRestriction the others.
const (
	NodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"
	defaultTolerations     = "scheduler.alpha.kubernetes.io/defaultTolerations"
	allowedTolerations     = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

// ParseNodeSelector returns a namespace's default nodeSelector for its pods, from an annotation.
// It is empty if there is none.
func ParseNodeSelector(o *source.Object) map[string]string {
	return ParseSelector(o.At("metadata", "annotations", NodeSelectorAnnotation))
}

// ParseSelector parses the nodeSelector in an annotation: key=value, separated by commas.
func ParseSelector(annotation source.Field) map[string]string {
	selector := map[string]string{}
	for _, term := range strings.Split(annotation.Text(), ",") {
		if key, value, ok := strings.Cut(term, "="); ok {
			selector[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return selector
}

// ParseDefaultTolerations returns the tolerations that a namespace's annotation adds to its pods.
func ParseDefaultTolerations(o *source.Object) []corev1.Toleration {
	tolerations, _ := parseTolerations(o.At("metadata", "annotations", defaultTolerations))
	return tolerations
}

// parseTolerations parses the JSON list in an annotation.
func parseTolerations(annotation source.Field) ([]corev1.Toleration, error) {
	var tolerations []corev1.Toleration
	if annotation.Text() == "" {
		return nil, nil
	}
	return tolerations, json.Unmarshal([]byte(annotation.Text()), &tolerations)
}

// ReadNodeSelectors places tenants on the pools that the annotations of their namespaces select.
func ReadNodeSelectors(d *draft.Draft) {
	for _, o := range d.List("", "Namespace") {
		name := d.FindTenant(o.Name)
		if name == "" {
			name = draft.ToName(o.Name)
		}
		SelectNodes(d, name, o, o.At("metadata", "annotations", NodeSelectorAnnotation))
		placeByToleration(d, name, o)
	}
}

// SelectNodes places a tenant on the pool that an annotation selects.
func SelectNodes(d *draft.Draft, name string, from *source.Object, annotation source.Field) {
	if pools := d.FindPools(draft.ListSelections(ParseSelector(annotation), annotation)); len(pools) > 0 {
		d.Place(d.AddTenant(name, from), name, annotation, pools...)
		annotation.MarkChanged(draft.TenantField(name, "pool"), "croft also adds the pool's toleration, and refuses pods that select another pool; remove the annotation when croft's walls are in place")
	}
}

// SelectLabels checks that the nodes of a tenant's pool have the labels that an annotation
// selects, other than the key's.
func SelectLabels(d *draft.Draft, name string, annotation source.Field) {
	for _, s := range draft.ListSelections(ParseSelector(annotation), annotation) {
		if s.Key != d.Key {
			d.CheckSelection(d.Tenants[name], name, annotation, s.Key, s.Values[0])
		}
	}
}

// placeByToleration places a namespace without another placement on the pool that its pods tolerate.
func placeByToleration(d *draft.Draft, name string, o *source.Object) {
	if d.Tenants[name] != nil {
		return
	}
	for _, t := range ParseDefaultTolerations(o) {
		if t.Key == d.Key && t.Value != "" {
			at := o.At("metadata", "annotations", defaultTolerations)
			d.Place(d.AddTenant(name, o), name, at, d.FindPool(t.Value))
			at.MarkChanged(draft.TenantField(name, "pool"), "pods only tolerated the pool's taint, and could also run on other nodes: croft also selects the pool")
			return
		}
	}
}

// readDefaultTolerations reads the tolerations that the API server adds to all pods of a
// namespace. croft refuses pods with tolerations that it does not add itself.
func readDefaultTolerations(d *draft.Draft, name string, annotation source.Field) {
	tolerations, err := parseTolerations(annotation)
	if err != nil {
		d.ReportLost(annotation, "is not a list of tolerations in JSON: the API server's plugin PodTolerationRestriction refuses every pod of the namespace; remove the annotation")
		return
	}
	for _, t := range tolerations {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Key == d.Key && t.Operator != corev1.TolerationOpExists && slices.Contains(d.Tenants[name].Pools(), t.Value) {
			continue
		}
		d.ReportLost(annotation, "the API server's plugin PodTolerationRestriction gives every pod of the namespace a toleration of %s, "+
			"which is not the taint of the tenant's pool: croft would refuse the pods, and the tenant would not become Ready; "+
			"remove the annotation, and give the tenant a pool for the nodes with this taint if it needs them", formatTaint(t))
		return
	}
	annotation.MarkKeptAs(draft.TenantField(name, "pool"), "croft adds the toleration of the pool; remove the annotation when croft's walls are in place")
}

// formatTaint describes the taint that a toleration matches.
func formatTaint(t corev1.Toleration) string {
	return strings.TrimSuffix(cmp.Or(t.Key, "every taint")+"="+t.Value, "=")
}

// readAllowedTolerations reads the list of tolerations to which the API server limits the pods
// of a namespace. The toleration that croft adds must be in it.
func readAllowedTolerations(d *draft.Draft, name string, annotation source.Field) {
	allowed, err := parseTolerations(annotation)
	pools := d.Tenants[name].Pools()
	everyPool := !slices.ContainsFunc(pools, func(pool string) bool {
		return !slices.ContainsFunc(allowed, func(t corev1.Toleration) bool { return allowsPool(t, d.Key, pool) })
	})
	if err == nil && (len(allowed) == 0 || everyPool) {
		annotation.MarkChanged(draft.TenantField(name, "pool"), "croft lets pods tolerate the taints of their tenant's pools and taints below node.kubernetes.io/; remove the annotation when croft's walls are in place")
		return
	}
	d.ReportLost(annotation, "the API server's plugin PodTolerationRestriction refuses pods with other tolerations, such as the toleration of the pool that croft adds, "+
		"and the tenant would not become Ready: remove the annotation; croft also refuses tolerations of other pools")
}

// allowsPool reports whether an allowed toleration covers the one that croft adds to the pods of a
// pool.
func allowsPool(t corev1.Toleration, key, pool string) bool {
	if t.Effect != "" || t.Key != key && t.Key != "" {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || t.Key == key && t.Value == pool
}
