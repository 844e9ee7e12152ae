package kubernetes

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
)

// ReadQuotas reads the quotas and limits of tenants' namespaces.
func ReadQuotas(d *draft.Draft) {
	hard := map[string]map[string]corev1.ResourceList{} // by tenant and namespace
	for _, o := range d.List("", "ResourceQuota") {
		name := d.FindTenant(o.Namespace)
		if name == "" {
			o.Root().MarkOther("is in namespace %s, which belongs to no tenant", o.Namespace)
			continue
		}
		source.AccountMetadata(o, draft.TenantField(name, "quota"))
		if hard[name] == nil {
			hard[name] = map[string]corev1.ResourceList{}
		}
		list := hard[name][o.Namespace]
		if list == nil {
			list = corev1.ResourceList{}
		}
		AddQuota(d, name, o.At("spec"), list, keepObject)
		// An empty quota removes croft's default quota, but only croft writes one for that
		// purpose.
		if len(list) > 0 || draft.IsManaged(o) {
			hard[name][o.Namespace] = list
		}
	}
	for name, namespaces := range hard {
		setQuota(d, name, namespaces)
	}
	for _, o := range d.List("", "LimitRange") {
		name := d.FindTenant(o.Namespace)
		if name == "" {
			o.Root().MarkOther("is in namespace %s, which belongs to no tenant", o.Namespace)
			continue
		}
		source.AccountMetadata(o, draft.TenantField(name, "limits"))
		ReadContainerLimits(d, name, o.At("spec", "limits"), keepObject)
	}
}

// UnkeptFunc accounts for a part of a quota or of limits that croft.yaml cannot express.
type UnkeptFunc func(d *draft.Draft, f source.Field, reason, kind string)

// keepObject is an Unkept for separate objects, which croft leaves unchanged.
func keepObject(_ *draft.Draft, f source.Field, reason, kind string) {
	f.MarkNotKept("%s: keep this %s in addition to croft's", reason, kind)
}

// AddQuota adds one quota to the others of its namespace. The smaller of two values of a resource
// is used.
func AddQuota(d *draft.Draft, name string, spec source.Field, into corev1.ResourceList, unkept UnkeptFunc) {
	to := draft.TenantField(name, "quota")
	for _, key := range []string{"scopes", "scopeSelector"} {
		if spec.At(key).Found() {
			unkept(d, spec.At(key), "a tenant's quota counts all its objects", "ResourceQuota")
			spec.At("hard").MarkNotKept("applies only to some objects")
			return
		}
	}
	for _, f := range spec.At("hard").Fields() {
		quantity, err := resource.ParseQuantity(f.Text())
		if err != nil {
			f.MarkNotKept("is not a quantity")
			d.ReportProblem(f, "%q is not a quantity; write one such as 100 or 400Gi", f.Text())
			continue
		}
		at := corev1.ResourceName(f.Key())
		if other, twice := into[at]; !twice || quantity.Cmp(other) < 0 {
			into[at] = quantity
		}
		f.MarkKept(to)
	}
}

// setQuota adds up the quotas of a tenant's namespaces: croft divides the sum among them by
// their use.
func setQuota(d *draft.Draft, name string, namespaces map[string]corev1.ResourceList) {
	if len(namespaces) == 0 {
		return
	}
	total := corev1.ResourceList{}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		for key, quantity := range namespaces[namespace] {
			sum := total[key]
			sum.Add(quantity)
			total[key] = sum
		}
	}
	if equality.Semantic.DeepEqual(total, estate.BuiltinQuota(&v1alpha1.PlatformSpec{})) {
		return // croft's own default
	}
	d.Tenants[name].Spec.Quota = total
}

// ReadContainerLimits reads the limits for containers in a LimitRange.
func ReadContainerLimits(d *draft.Draft, name string, list source.Field, unkept UnkeptFunc) {
	to := draft.TenantField(name, "limits")
	for _, item := range list.Items() {
		if kind := item.At("type").Text(); kind != string(corev1.LimitTypeContainer) {
			unkept(d, item, "a tenant's limits apply to containers, and not to "+kind+"s", "LimitRange")
			continue
		}
		if ratio := item.At("maxLimitRequestRatio"); ratio.Found() {
			unkept(d, ratio, "croft does not limit the ratio of limits to requests", "LimitRange")
		}
		var limits v1alpha1.ContainerLimits
		if err := item.Decode(&limits); err != nil {
			item.MarkNotKept("cannot be read: %v", err)
			continue
		}
		item.MarkKept(to)
		spec := &d.Tenants[name].Spec
		switch {
		case equality.Semantic.DeepEqual(&limits, estate.BuiltinLimits()):
		case spec.Limits == nil:
			spec.Limits = &limits
		case !equality.Semantic.DeepEqual(*spec.Limits, limits):
			unkept(d, item, "another namespace of the tenant, or another LimitRange, has other limits for containers, which apply to all namespaces of the tenant", "LimitRange")
		}
	}
	list.MarkKept(to)
}
