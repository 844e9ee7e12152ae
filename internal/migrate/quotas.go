package migrate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
)

// quotas read what the namespaces of tenants may ask for.
func (d *draft) quotas() {
	hard := map[string]map[string]corev1.ResourceList{} // by tenant and namespace
	for _, o := range d.of("", "ResourceQuota") {
		name := d.tenantOf(o.Namespace)
		if name == "" {
			o.Root().Other("is in namespace %s, which is no tenant's", o.Namespace)
			continue
		}
		frame(o, tenantField(name, "quota"))
		if hard[name] == nil {
			hard[name] = map[string]corev1.ResourceList{}
		}
		list := hard[name][o.Namespace]
		if list == nil {
			list = corev1.ResourceList{}
		}
		d.hard(name, o.At("spec"), list)
		// An empty quota lifts croft's own bounds, and only croft writes one to say so.
		if len(list) > 0 || managed(o) {
			hard[name][o.Namespace] = list
		}
	}
	for name, namespaces := range hard {
		d.setQuota(name, namespaces)
	}
	for _, o := range d.of("", "LimitRange") {
		name := d.tenantOf(o.Namespace)
		if name == "" {
			o.Root().Other("is in namespace %s, which is no tenant's", o.Namespace)
			continue
		}
		frame(o, tenantField(name, "limits"))
		d.containerLimits(name, o.At("spec", "limits"))
	}
}

// hard adds one quota to those of its namespace. Of two on one thing the smaller
// holds.
func (d *draft) hard(name string, spec Field, into corev1.ResourceList) {
	to := tenantField(name, "quota")
	for _, key := range []string{"scopes", "scopeSelector"} {
		if spec.At(key).Found() {
			spec.At(key).NotKept("a tenant's quota counts all its objects: keep this ResourceQuota beside croft's")
			spec.At("hard").NotKept("holds for some objects only: keep this ResourceQuota beside croft's")
			return
		}
	}
	for _, f := range spec.At("hard").Fields() {
		quantity, err := resource.ParseQuantity(f.Text())
		if err != nil {
			f.NotKept("is no quantity")
			d.problem(f, "%q is no quantity; write one such as 100 or 400Gi", f.Text())
			continue
		}
		at := corev1.ResourceName(f.Key())
		if other, twice := into[at]; !twice || quantity.Cmp(other) < 0 {
			into[at] = quantity
		}
		f.Kept(to)
	}
	spec.Kept(to)
}

// setQuota adds up the namespaces of a tenant: croft divides the whole among them,
// by what each uses.
func (d *draft) setQuota(name string, namespaces map[string]corev1.ResourceList) {
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
	if equality.Semantic.DeepEqual(total, estate.BuiltinQuota(nil)) {
		return // croft's own bounds
	}
	d.tenants[name].spec.Quota = total
}

// containerLimits reads the part of a LimitRange that is about containers.
func (d *draft) containerLimits(name string, list Field) {
	to := tenantField(name, "limits")
	for _, item := range list.Items() {
		if kind := item.At("type").Text(); kind != string(corev1.LimitTypeContainer) {
			item.NotKept("a tenant's limits are those of containers: keep this LimitRange beside croft's for %ss", kind)
			continue
		}
		item.At("maxLimitRequestRatio").NotKept("croft bounds no ratio of limits to requests: keep this LimitRange beside croft's for it")
		var limits v1alpha1.ContainerLimits
		if err := item.Into(&limits); err != nil {
			item.NotKept("cannot be read: %v", err)
			continue
		}
		item.Kept(to)
		spec := &d.tenants[name].spec
		switch {
		case equality.Semantic.DeepEqual(&limits, estate.BuiltinLimits()):
		case spec.Limits == nil:
			spec.Limits = &limits
		case !equality.Semantic.DeepEqual(*spec.Limits, limits):
			item.NotKept("another namespace of the tenant, or another LimitRange, has others, which hold for all: make them agree")
		}
	}
	list.Kept(to)
}
