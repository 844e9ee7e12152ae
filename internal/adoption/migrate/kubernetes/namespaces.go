package kubernetes

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
)

const podSecurity = "pod-security.kubernetes.io/"

// EnforceLabel is the label with the Pod Security level that a namespace enforces.
const EnforceLabel = podSecurity + "enforce"

// ReadNamespaces reads the labels and annotations of tenants' namespaces.
func ReadNamespaces(d *draft.Draft) {
	for _, o := range d.List("", "Namespace") {
		name := d.FindTenant(o.Name)
		if name == "" {
			o.Root().MarkOther("belongs to no tenant: no object of the input assigns a pool to it")
			continue
		}
		readNamespace(d, name, o)
	}
}

func readNamespace(d *draft.Draft, name string, o *source.Object) {
	to := "tenants." + name
	source.AccountMetadata(o, to)
	o.At("spec").MarkOther("set by the cluster")
	managed := draft.IsManaged(o)
	if managed {
		readSizes(d.Tenants[name], o.At("metadata", "annotations"))
	}
	for _, l := range append(o.At("metadata", "labels").Fields(), o.At("metadata", "annotations").Fields()...) {
		switch key := l.Key(); {
		case managed && isCommon(d, name, l) && KeepMetadata(d, name, l, l.Text()):
		case key == EnforceLabel:
			SetLevel(d, name, l, !isCommon(d, name, l))
		case key == NodeSelectorAnnotation:
			SelectLabels(d, name, l)
		case ReadMark(d, name, l):
		case strings.HasPrefix(key, "croft.dev/"), key == v1alpha1.ManagedByLabel && l.Text() == v1alpha1.ManagedBy:
			l.MarkKept(to)
		case strings.HasPrefix(key, "kubectl.kubernetes.io/"):
		default:
			l.MarkOther("stays on the namespace: croft adds its own labels, and removes none")
		}
	}
	if !managed && o.At("metadata", "annotations", v1alpha1.AdoptAnnotation).Text() != name && !slices.Contains(d.NotAdoptable, name) {
		d.NotAdoptable = append(d.NotAdoptable, name)
	}
}

// readSizes reads the maximum sizes of objects back, which are in no TenantRules.
func readSizes(t *draft.Tenant, annotations source.Field) {
	read := func(key string, builtin int64) *int64 {
		size, err := strconv.ParseInt(annotations.At(key).Text(), 10, 64)
		if err != nil || size == builtin {
			return nil
		}
		return &size
	}
	may := &t.Spec.Policy.Allowances
	may.MaxObjectBytes = read(v1alpha1.MaxObjectBytesAnnotation, estate.MaxObjectBytes)
	may.MaxHelmReleaseBytes = read(v1alpha1.MaxHelmReleaseBytesAnnotation, ptr.Deref(may.MaxObjectBytes, estate.MaxObjectBytes))
	may.MaxOtherObjectBytes = read(v1alpha1.MaxOtherObjectBytesAnnotation, estate.MaxOtherObjectBytes)
}

// ReadMark reads a label or an annotation of a tenant's namespaces, other than its Pod Security
// level and its node selector. It reports whether croft supports it.
func ReadMark(d *draft.Draft, name string, mark source.Field) bool {
	t := d.Tenants[name]
	level := draft.TenantField(name, "policy.podSecurity")
	switch key := mark.Key(); {
	case strings.HasPrefix(key, podSecurity+"warn"), key == EnforceLabel+"-version" && mark.Text() == "latest":
		mark.MarkKeptAs(level, "croft sets it, for the level that it enforces")
	case key == EnforceLabel+"-version":
		mark.MarkChanged(level, "croft enforces the latest version of the level")
	case key == v1alpha1.CostCodeLabel:
		t.Spec.CostCode = mark.Text()
		mark.MarkKept(draft.TenantField(name, "costCode"))
	case draft.IsCostCode(key) && t.Spec.CostCode == "":
		t.Spec.CostCode = mark.Text()
		mark.MarkChanged(draft.TenantField(name, "costCode"), "namespaces get it as the label %s", v1alpha1.CostCodeLabel)
	case key == defaultTolerations:
		readDefaultTolerations(d, name, mark)
	case key == allowedTolerations:
		readAllowedTolerations(d, name, mark)
	default:
		return false
	}
	return true
}

// KeepMetadata writes a label or an annotation of all of a tenant's namespaces into the Tenant. It
// reports whether croft.yaml can set it.
func KeepMetadata(d *draft.Draft, name string, mark source.Field, value string) bool {
	if !SetMetadata(d, name, mark.Key(), value, isAnnotation(mark)) {
		return false
	}
	to := "namespace.labels"
	if isAnnotation(mark) {
		to = "namespace.annotations"
	}
	mark.MarkKept(draft.TenantField(name, to))
	return true
}

// SetMetadata is KeepMetadata for a key and a value that are not a field of labels or annotations.
func SetMetadata(d *draft.Draft, name, key, value string, annotation bool) bool {
	entry := map[string]string{key: value}
	m := v1alpha1.NamespaceMetadata{Labels: entry}
	if annotation {
		m = v1alpha1.NamespaceMetadata{Annotations: entry}
	}
	if !estate.IsValidMetadata(&m, name) {
		return false
	}
	metadata := &d.Tenants[name].Spec.Namespace
	metadata.Labels, metadata.Annotations = addEntries(metadata.Labels, m.Labels), addEntries(metadata.Annotations, m.Annotations)
	return true
}

func addEntries(all, more map[string]string) map[string]string {
	if all == nil {
		return more
	}
	maps.Copy(all, more)
	return all
}

func isAnnotation(mark source.Field) bool { return mark.Parent() == "annotations" }

// isCommon reports whether all namespaces of a tenant have a label or an annotation.
func isCommon(d *draft.Draft, name string, mark source.Field) bool {
	field := "labels"
	if isAnnotation(mark) {
		field = "annotations"
	}
	return !slices.ContainsFunc(d.Namespaces(name), func(namespace string) bool {
		o := d.Find("", "Namespace", namespace)
		return o == nil || o.At("metadata", field, mark.Key()).Text() != mark.Text()
	})
}

// levels are the Pod Security levels, the strictest last.
var levels = []v1alpha1.PodSecurityLevel{v1alpha1.PodSecurityPrivileged, v1alpha1.PodSecurityBaseline, v1alpha1.PodSecurityRestricted}

// SetLevel sets a tenant's Pod Security level to the level of its namespaces, or of some of them.
// The stricter of two levels is used.
func SetLevel(d *draft.Draft, name string, l source.Field, some bool) {
	t := d.Tenants[name]
	to := draft.TenantField(name, "policy.podSecurity")
	level := v1alpha1.PodSecurityLevel(l.Text())
	otherwise := cmp.Or(d.Platform.TenantDefaults.PodSecurity, v1alpha1.PodSecurityBaseline)
	had := cmp.Or(t.Spec.Policy.PodSecurity, otherwise)
	hasLevel := t.Level.Found() || t.Spec.Policy.PodSecurity != ""
	switch stricter := slices.Index(levels, level) - slices.Index(levels, had); {
	case !slices.Contains(levels, level):
		d.ReportLost(l, "%q is not a Pod Security level; write privileged, baseline or restricted", l.Text())
	case level == v1alpha1.PodSecurityPrivileged && some:
		d.ReportLost(l, "is the level of some namespaces of tenant %s, and croft has one level for a tenant: move them to a separate tenant", name)
	case hasLevel && stricter < 0:
		l.MarkChanged(to, "another label requires %s, which is stricter and applies to all namespaces of the tenant", had)
	case hasLevel && stricter == 0:
		l.MarkKept(to)
	default:
		if hasLevel {
			t.Level.MarkChanged(to, "another label requires %s, which is stricter and applies to all namespaces of the tenant", level)
		}
		t.Level, t.Spec.Policy.PodSecurity = l, level
		if level == otherwise {
			t.Spec.Policy.PodSecurity = ""
		}
		if some {
			l.MarkChanged(to, "some namespaces of the tenant had it: croft has one level for all of them")
		} else {
			l.MarkKept(to)
		}
	}
}
