package capsule

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/source"
)

func hosts(name string, options source.Field, t *draft.Tenant) {
	to := draft.TenantField(name, "domains")
	hosts := options.At("allowedHostnames")
	for _, h := range hosts.At("allowed").Items() {
		t.Spec.Domains = draft.Distinct(append(t.Spec.Domains, strings.ToLower(h.Text())))
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

// lists are the fields that list allowed names.
var lists = []struct {
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

// policy reads the allowances of the tenant's objects.
func policy(name string, spec source.Field, a *v1alpha1.Allowances) {
	for _, l := range lists {
		f, to := spec.At(l.path...), draft.TenantField(name, "policy."+l.field)
		if !f.Found() {
			if l.unset != "" {
				f.UnsetChanged(to, "%s", l.unset)
			}
			continue
		}
		list := draft.Distinct(f.At("allowed").Texts())
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
	to := draft.TenantField(name, "policy.imagePullPolicies")
	for _, p := range policies.Texts() {
		a.ImagePullPolicies = append(a.ImagePullPolicies, corev1.PullPolicy(p))
	}
	policies.Kept(to)
	if !policies.Found() {
		policies.UnsetChanged(to, "any was allowed: croft makes it Always by default, so that no pod runs an image that somebody else's secret pulled")
	}
	services(name, spec.At("serviceOptions"), a)
}

func services(name string, options source.Field, a *v1alpha1.Allowances) {
	to := draft.TenantField(name, "policy.serviceTypes")
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

// rest reports fields that croft does not have, with the remedy.
func rest(name string, spec source.Field) {
	for key, why := range map[string]string{
		"preventDeletion": "croft destroys nothing by default: deletion: Retain keeps the namespaces of a deleted tenant",
		"cordoned":        "croft does not freeze tenants: take the access away, and set a quota of 0",
	} {
		if f := spec.At(key); f.True() {
			f.Changed(draft.TenantField(name, "deletion"), "%s", why)
		} else {
			f.Kept(draft.TenantField(name, "deletion"))
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
	spec.At("forceTenantPrefix").Changed(draft.TenantField(name, "namespaces"), "the platform names the namespaces in croft.yaml")
}
