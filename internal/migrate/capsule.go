package migrate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"croft.dev/croft/api/v1alpha1"
)

const (
	capsuleGroup = "capsule.clastix.io"
	capsuleLabel = "capsule.clastix.io/tenant"
)

// capsuleSelectors are the keys that Capsule's Tenants select nodes by.
func (d *draft) capsuleSelectors() map[string]bool {
	keys := map[string]bool{}
	for _, o := range d.of(capsuleGroup, "Tenant") {
		for _, f := range o.At("spec", "nodeSelector").Fields() {
			keys[f.Key()] = true
		}
	}
	return keys
}

// capsuleTenants become tenants.
func (d *draft) capsuleTenants() {
	for _, o := range d.of(capsuleGroup, "Tenant") {
		name := asName(o.Name)
		frame(o, "tenants."+name)
		t := d.addTenant(name, o)
		spec := o.At("spec")
		d.capsuleNamespaces(name, o, t)
		d.capsulePool(name, spec.At("nodeSelector"), t)
		d.capsulePeople(name, spec)
		d.capsuleQuota(name, spec, t)
		capsulePolicy(name, spec, &t.spec.Policy.Allowances)
		d.capsuleHosts(name, spec.At("ingressOptions"), t)
		capsuleRest(name, spec)
	}
}

func (d *draft) capsuleNamespaces(name string, o *Object, t *tenant) {
	list := o.At("status", "namespaces")
	names := list.Texts()
	for _, n := range d.of("", "Namespace") {
		if n.At("metadata", "labels", capsuleLabel).Text() == o.Name {
			names = append(names, n.Name)
		}
	}
	names = distinct(names)
	slices.Sort(names)
	to := tenantField(name, "namespaces")
	switch {
	case len(names) == 0:
		list.UnsetChanged(to, "no namespace of this tenant was read, from its status or by the label %s: it gets one of its own name", capsuleLabel)
	case !slices.Equal(names, []string{name}):
		d.has(t, name, names)
	}
	if list.Found() {
		list.Kept(to)
	}
}

func (d *draft) capsulePool(name string, selector Field, t *tenant) {
	for _, f := range selector.Fields() {
		if f.Key() == d.key {
			d.place(t, name, f, d.poolNamed(f.Text()))
			continue
		}
		f.NotKept("croft selects nodes by %s alone: give the pool instances.requirements for it", d.key)
	}
}

// capsulePeople are the owners, and whoever additional bindings name.
func (d *draft) capsulePeople(name string, spec Field) {
	prefix := d.groupPrefix()
	for _, owner := range spec.At("owners").Items() {
		if owner.At("kind").Text() == "ServiceAccount" {
			owner.NotKept("croft's access is for people: give the ServiceAccount a RoleBinding to croft-operator in the tenant's namespaces")
			continue
		}
		role, why := v1alpha1.RoleOperator, "an owner becomes operator, who runs workloads and makes no namespaces: the platform names these in croft.yaml"
		if roles := owner.At("clusterRoles").Texts(); len(roles) > 0 {
			for _, r := range roles {
				if r == "capsule-namespace-deleter" {
					continue
				}
				if like, said := d.roleOf("ClusterRole", "", r); like != "" {
					role, why = like, said
				}
			}
		}
		d.subject(name, owner, prefix, role, why)
		owner.At("clusterRoles").Changed(tenantField(name, "access"), "%s", why)
		owner.At("proxySettings").NotKept("croft has no proxy: people reach the API server itself")
	}
	spec.At("owners").Kept(tenantField(name, "access"))
	for _, b := range spec.At("additionalRoleBindings").Items() {
		role, why := d.roleOf("ClusterRole", "", b.At("clusterRoleName").Text())
		for _, s := range b.At("subjects").Items() {
			if s.At("kind").Text() == "ServiceAccount" {
				s.NotKept("croft's access is for people: bind the ServiceAccount by a RoleBinding of your own")
				continue
			}
			d.subject(name, s, prefix, role, why)
		}
		if role == "" {
			b.At("clusterRoleName").NotKept("%s", why)
		} else {
			b.At("clusterRoleName").Changed(tenantField(name, "access"), "%s", why)
		}
	}

}

// capsuleQuota reads quotas and limits.
func (d *draft) capsuleQuota(name string, spec Field, t *tenant) {
	quotas := spec.At("resourceQuotas")
	perNamespace := quotas.At("scope").Text() == "Namespace"
	total := corev1.ResourceList{}
	for _, item := range quotas.At("items").Items() {
		d.hard(name, item, total)
	}
	to := tenantField(name, "quota")
	quotas.Kept(to)
	if perNamespace {
		n := int64(len(d.namespaces(name)))
		for key, quantity := range total {
			quantity.Mul(n)
			total[key] = quantity
		}
		quotas.At("scope").Changed(to, "each namespace had this; a tenant's quota is for all its namespaces together, %d of them, and divided by what each uses", n)
	} else {
		quotas.At("scope").Kept(to)
	}
	if len(total) > 0 {
		t.spec.Quota = total
	}
	for _, item := range spec.At("limitRanges", "items").Items() {
		d.containerLimits(name, item.At("limits"))
	}
	spec.At("limitRanges").Kept(tenantField(name, "limits"))
	most := spec.At("namespaceOptions", "quota")
	most.Changed(tenantField(name, "namespaces"), "tenants make no namespaces themselves: the platform names them in croft.yaml")
}

// capsulePolicies are the network policies that Capsule writes into a tenant's
// namespaces.
func (d *draft) capsulePolicies() map[string][]policy {
	all := map[string][]policy{}
	for _, o := range d.of(capsuleGroup, "Tenant") {
		name := asName(o.Name)
		for _, item := range o.At("spec", "networkPolicies", "items").Items() {
			p := policy{&networkingv1.NetworkPolicy{}, o, item}
			p.Namespace = d.namespaces(name)[0]
			if err := item.Into(&p.Spec); err != nil {
				item.NotKept("cannot be read: %v", err)
				continue
			}
			defaulted(p.NetworkPolicy)
			d.judged(name, p)
			all[name] = append(all[name], p)
		}
		o.At("spec", "networkPolicies").Kept(wall)
	}
	return all
}

func (d *draft) capsuleHosts(name string, options Field, t *tenant) {
	to := tenantField(name, "domains")
	hosts := options.At("allowedHostnames")
	for _, h := range hosts.At("allowed").Items() {
		t.spec.Domains = distinct(append(t.spec.Domains, strings.ToLower(h.Text())))
		h.KeptAs(to, "granted to this tenant alone, on everything that routes")
	}
	if pattern := hosts.At("allowedRegex"); pattern.Text() != "" {
		pattern.NotKept("croft grants hosts by name, or all below one by *.: write those that the tenant really has")
	} else {
		pattern.Kept(to)
	}
	if !hosts.Found() {
		hosts.UnsetChanged(to, "any host was allowed: croft grants hosts by name, and this tenant gets none but those of platform.tenantDomain")
	}
	options.At("hostnameCollisionScope").Changed(to, "croft never lets two tenants have one host")
	options.At("allowWildcardHostnames").Changed(to, "a tenant may use a wildcard if it was granted one")
}

// number of kinds below that name what is allowed in a list.
var capsuleLists = []struct {
	path  []string
	field string
	into  func(*v1alpha1.Allowances) *[]string
	// unset says how croft's default is stricter than none, if it is.
	unset string
}{
	{[]string{"storageClasses"}, "storageClasses", func(a *v1alpha1.Allowances) *[]string { return &a.StorageClasses }, ""},
	{[]string{"ingressOptions", "allowedClasses"}, "ingressClasses", func(a *v1alpha1.Allowances) *[]string { return &a.IngressClasses }, ""},
	{[]string{"gatewayOptions", "allowedClasses"}, "gatewayClasses", func(a *v1alpha1.Allowances) *[]string { return &a.GatewayClasses }, ""},
	{[]string{"containerRegistries"}, "registries", func(a *v1alpha1.Allowances) *[]string { return &a.Registries }, ""},
	{[]string{"priorityClasses"}, "priorityClasses", func(a *v1alpha1.Allowances) *[]string { return &a.PriorityClasses },
		"any priority class was allowed: croft allows none by default; name those that the tenant needs"},
	{[]string{"runtimeClasses"}, "runtimeClasses", func(a *v1alpha1.Allowances) *[]string { return &a.RuntimeClasses },
		"any runtime class was allowed: croft allows none by default; name those that the tenant needs"},
}

// capsulePolicy reads what the tenant's objects may use.
func capsulePolicy(name string, spec Field, a *v1alpha1.Allowances) {
	for _, l := range capsuleLists {
		f, to := spec.At(l.path...), tenantField(name, "policy."+l.field)
		if !f.Found() {
			if l.unset != "" {
				f.UnsetChanged(to, "%s", l.unset)
			}
			continue
		}
		list := distinct(f.At("allowed").Texts())
		if list == nil {
			list = []string{}
		}
		*l.into(a) = list
		f.Kept(to)
		if pattern := f.At("allowedRegex"); pattern.Text() != "" {
			pattern.NotKept("croft allows by name: write those that the tenant really uses into policy.%s", l.field)
		}
		for _, key := range []string{"matchLabels", "matchExpressions", "default"} {
			f.At(key).NotKept("croft allows by name, and sets no default: write the names into policy.%s", l.field)
		}
	}
	policies := spec.At("imagePullPolicies")
	to := tenantField(name, "policy.imagePullPolicies")
	for _, p := range policies.Texts() {
		a.ImagePullPolicies = append(a.ImagePullPolicies, corev1.PullPolicy(p))
	}
	policies.Kept(to)
	if !policies.Found() {
		policies.UnsetChanged(to, "any was allowed: croft makes it Always by default, so that no pod runs an image that somebody else's secret pulled")
	}
	capsuleServices(name, spec.At("serviceOptions"), a)
}

func capsuleServices(name string, options Field, a *v1alpha1.Allowances) {
	to := tenantField(name, "policy.serviceTypes")
	allowed := options.At("allowedServices")
	if !allowed.Found() {
		allowed.UnsetChanged(to, "every type of Service was allowed: croft allows ClusterIP by default; name those that the tenant needs")
	} else {
		a.ServiceTypes = []corev1.ServiceType{corev1.ServiceTypeClusterIP}
		for _, k := range []struct {
			key  string
			kind corev1.ServiceType
		}{{"nodePort", corev1.ServiceTypeNodePort}, {"loadBalancer", corev1.ServiceTypeLoadBalancer}, {"externalName", corev1.ServiceTypeExternalName}} {
			// Capsule's default for each is to allow it.
			if f := allowed.At(k.key); !f.Found() || f.True() {
				a.ServiceTypes = append(a.ServiceTypes, k.kind)
			}
		}
		allowed.Kept(to)
	}
	if ips := options.At("externalIPs", "allowed"); len(ips.Texts()) > 0 {
		ips.NotKept("croft refuses external IPs to every tenant, since they take over others' traffic: use a load balancer")
	} else {
		options.At("externalIPs").KeptAs(to, "croft refuses external IPs to every tenant")
	}
}

// capsuleRest says of what croft has no field for what to do.
func capsuleRest(name string, spec Field) {
	for key, why := range map[string]string{
		"preventDeletion": "croft destroys nothing by default: deletion: Retain keeps the namespaces of a deleted tenant",
		"cordoned":        "croft does not freeze tenants: take the access away, and set a quota of 0",
	} {
		if f := spec.At(key); f.True() {
			f.Changed(tenantField(name, "deletion"), "%s", why)
		} else {
			f.Kept(tenantField(name, "deletion"))
		}
	}
	for _, path := range [][]string{
		{"namespaceOptions", "additionalMetadata"}, {"namespaceOptions", "additionalMetadataList"}, {"serviceOptions", "additionalMetadata"}, {"podOptions"},
	} {
		spec.At(path...).NotKept("croft sets no labels and annotations of your own: set them on the namespaces, or by a policy of yours")
	}
	for _, key := range []string{"forbiddenLabels", "forbiddenAnnotations"} {
		spec.At("namespaceOptions", key).Changed("tenants."+name, "tenants write no namespaces at all under croft")
		spec.At("serviceOptions", key).NotKept("croft does not look at these on Services: keep a policy of yours for it")
	}
	spec.At("deviceClasses").NotKept("croft does not look at device classes: keep a policy of yours for it")
	spec.At("forceTenantPrefix").Changed(tenantField(name, "namespaces"), "the platform names the namespaces in croft.yaml")
}
