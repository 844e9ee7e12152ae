package capsule

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/kubernetes"
	"croft.dev/croft/internal/migrate/source"
)

func hosts(d *draft.Draft, name string, options source.Field, t *draft.Tenant) {
	to := draft.TenantField(name, "domains")
	hosts := options.At("allowedHostnames")
	for _, h := range hosts.At("allowed").Items() {
		t.Spec.Domains = draft.Distinct(append(t.Spec.Domains, strings.ToLower(h.Text())))
		h.KeptAs(to, "granted to this tenant alone, on everything that routes")
	}
	if len(hosts.Fields()) == 0 {
		hosts.Kept(to)
	}
	if pattern := hosts.At("allowedRegex"); pattern.Text() != "" {
		d.Lost(pattern, "croft grants hosts by name, or all below one by *.: write those that the tenant uses into domains")
	} else {
		pattern.Kept(to)
	}
	if !hosts.Found() {
		hosts.UnsetChanged(to, "any host was allowed: croft grants hosts by name, and this tenant gets none but those of platform.tenantDomain")
	}
	options.At("hostnameCollisionScope").Changed(to, "croft never lets two tenants have one host; it does not compare the Ingresses of one tenant")
	options.At("allowWildcardHostnames").Changed(to, "a tenant may use a wildcard if it was granted one")
}

// lists are the fields that list allowed names.
var lists = []struct {
	path  []string
	field string
	into  func(*v1alpha1.Allowances) *[]string
	// none means that croft allows no value if the list is unset; otherwise it allows any.
	none bool
}{
	{[]string{"storageClasses"}, "storageClasses", func(a *v1alpha1.Allowances) *[]string { return &a.StorageClasses }, false},
	{[]string{"ingressOptions", "allowedClasses"}, "ingressClasses", func(a *v1alpha1.Allowances) *[]string { return &a.IngressClasses }, false},
	{[]string{"gatewayOptions", "allowedClasses"}, "gatewayClasses", func(a *v1alpha1.Allowances) *[]string { return &a.GatewayClasses }, false},
	{[]string{"containerRegistries"}, "registries", func(a *v1alpha1.Allowances) *[]string { return &a.Registries }, false},
	{[]string{"priorityClasses"}, "priorityClasses", func(a *v1alpha1.Allowances) *[]string { return &a.PriorityClasses }, true},
	{[]string{"runtimeClasses"}, "runtimeClasses", func(a *v1alpha1.Allowances) *[]string { return &a.RuntimeClasses }, true},
	{[]string{"deviceClasses"}, "deviceClasses", func(a *v1alpha1.Allowances) *[]string { return &a.DeviceClasses }, true},
}

// policy reads the allowances for the tenant's objects.
func policy(d *draft.Draft, name string, spec source.Field, a *v1alpha1.Allowances) {
	for _, l := range lists {
		f, field := spec.At(l.path...), "policy."+l.field
		until := "any is allowed"
		if l.none {
			until = "none is allowed"
		}
		switch names, patterns := allowed(f, draft.TenantField(name, field)); {
		case !f.Found():
			if l.none {
				f.UnsetChanged(draft.TenantField(name, field), "any was allowed: croft allows none by default; name those that the tenant needs")
			}
		case len(names) == 0, len(patterns) > 0 && len(f.At("allowed").Texts()) == 0:
			if len(patterns) == 0 {
				patterns = []source.Field{f}
			}
			for _, p := range patterns {
				d.Lost(p, `croft allows by name: write the names that the tenant uses into %s, or [] for none; until then %s`, field, until)
			}
			d.LeaveOut(draft.TenantField(name, field), "%s names nothing that croft can allow; until you write it, %s", f.Path(), until)
		default:
			*l.into(a) = names
			for _, p := range patterns {
				d.Lost(p, "croft allows by name: write the names that the tenant uses into %s, which has only those that are listed", field)
			}
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
	services(d, name, spec.At("serviceOptions"), a)
}

// allowed reads a list of allowed names. patterns are the fields that allow by other means than
// names.
func allowed(f source.Field, to string) (names []string, patterns []source.Field) {
	exact, standard := f.At("allowed"), f.At("default")
	exact.Kept(to)
	names = exact.Texts()
	if standard.Text() != "" {
		names = append(names, standard.Text())
		standard.Changed(to, "allowed; croft sets no default")
	}
	standard.Kept(to)
	for _, key := range []string{"allowedRegex", "matchLabels", "matchExpressions"} {
		pattern := f.At(key)
		if isEmpty(pattern) {
			pattern.Kept(to)
		} else {
			patterns = append(patterns, pattern)
		}
	}
	return draft.Distinct(names), patterns
}

func services(d *draft.Draft, name string, options source.Field, a *v1alpha1.Allowances) {
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
			// By default, Capsule allows each of them.
			f := allowed.At(k.key)
			if !f.Found() || f.True() {
				a.ServiceTypes = append(a.ServiceTypes, k.kind)
			}
			f.Kept(to)
		}
	}
	if ips := options.At("externalIPs", "allowed"); len(ips.Texts()) > 0 {
		ips.NotKept("croft refuses external IPs to every tenant, since they take over others' traffic: use a load balancer")
	} else {
		ips.KeptAs(to, "croft refuses external IPs to every tenant")
	}
	for _, key := range []string{"forbiddenLabels", "forbiddenAnnotations"} {
		if f := options.At(key); f.Found() {
			d.Lost(f, "croft forbids the annotations of Services that reach beyond their tenant, and no others: keep a policy of your own for these")
		}
	}
	options.At("additionalMetadata").NotKept("croft sets no labels and annotations of your own on Services: set them by a policy of yours")
}

// namespaceOptions reads the labels and annotations that Capsule sets on the tenant's
// namespaces.
func namespaceOptions(d *draft.Draft, name string, options source.Field) {
	to := draft.TenantField(name, "namespaces")
	options.At("quota").Changed(to, "the platform names them in croft.yaml; selfService.namespaces lets tenants ask for more, whose names begin with the tenant's")
	metadata(d, name, options.At("additionalMetadata"), false)
	for _, item := range options.At("additionalMetadataList").Items() {
		selector := item.At("namespaceSelector")
		metadata(d, name, item, len(selector.Fields()) > 0)
		selector.NotKept("croft has one setting for all namespaces of a tenant")
	}
	for _, key := range []string{"requiredMetadata", "forbiddenLabels", "forbiddenAnnotations", "managedMetadataOnly"} {
		options.At(key).Changed(to, "tenants write no labels and annotations of namespaces under croft")
	}
}

// metadata reads labels and annotations of all or, if some is set, only some namespaces.
func metadata(d *draft.Draft, name string, f source.Field, some bool) {
	for _, mark := range append(f.At("labels").Fields(), f.At("annotations").Fields()...) {
		switch {
		case mark.Key() == kubernetes.EnforceLabel:
			kubernetes.Level(d, name, mark, some)
		case mark.Key() == kubernetes.NodeSelectorAnnotation && some:
			d.Lost(mark, "places pods of some namespaces of tenant %s: make them a tenant of their own, on a pool of their own", name)
		case mark.Key() == kubernetes.NodeSelectorAnnotation:
			kubernetes.SelectNodes(d, name, f.Object(), mark)
			kubernetes.SelectLabels(d, name, mark)
		case !kubernetes.Mark(d, name, mark):
			mark.NotKept("croft sets no labels and annotations of your own: namespaces that exist keep theirs; set them on new ones by a policy of yours")
		}
	}
}

// rules reads the rules of Capsule 0.13 and later.
func rules(d *draft.Draft, list source.Field) {
	for _, rule := range list.Items() {
		rule.At("audience").NotKept("belongs to the rest of the rule")
		rule.At("namespaceSelector").NotKept("belongs to the rest of the rule")
		permissions := rule.At("permissions")
		permissions.At("bindings").NotKept("write these people into the tenant's access, and bind ServiceAccounts by RoleBindings of your own")
		permissions.At("promotions").NotKept("croft promotes no ServiceAccounts: bind them by RoleBindings of your own")
		switch enforce := rule.At("enforce"); {
		case !enforce.Found():
		case enforce.At("action").Text() == "audit":
			enforce.NotKept("refused nothing: croft reports what it refuses")
		default:
			d.Lost(enforce, "croft reads no rules of Capsule's: write what this one allows into the tenant's policy, such as registries, serviceTypes and imagePullPolicies, "+
				"what it grants into domains, and keep a policy of your own for the rest")
		}
		for _, q := range rule.At("quota").Items() {
			d.Lost(q, "croft reads no quotas of rules: write the limits into the tenant's quota")
		}
	}
}

// rest accounts for the fields that croft does not have, with the remedy.
func rest(d *draft.Draft, name string, spec source.Field) {
	to := draft.TenantField(name, "deletion")
	if f := spec.At("preventDeletion"); f.True() {
		f.Changed(to, "croft destroys nothing by default: deletion: Retain keeps the namespaces of a deleted tenant")
	} else {
		f.Kept(to)
	}
	if f := spec.At("cordoned"); f.True() {
		d.Lost(f, "croft does not freeze tenants: take the tenant's access away, and set a quota of 0")
	} else {
		f.Kept(draft.TenantField(name, "access"))
	}
	spec.At("forceTenantPrefix").Changed(draft.TenantField(name, "namespaces"), "the platform names the namespaces in croft.yaml")
	spec.At("podOptions", "additionalMetadata").NotKept("croft sets no labels and annotations of your own on pods: set them by a policy of yours")
	spec.At("data").NotKept("only Capsule's templates read it")
	permissions := spec.At("permissions")
	permissions.At("matchOwners").NotKept("write the subjects of these TenantOwners into the tenant's access")
	permissions.At("allowOwnerPromotion").NotKept("croft promotes no ServiceAccounts: bind them by RoleBindings of your own")
}

// harmless are labels and annotations of Capsule's Tenants that only restrict actions that
// croft does not allow to tenants anyway.
var harmless = map[string]string{
	"capsule.clastix.io/forbidden-namespace-labels":             "tenants write no labels of namespaces under croft",
	"capsule.clastix.io/forbidden-namespace-labels-regexp":      "tenants write no labels of namespaces under croft",
	"capsule.clastix.io/forbidden-namespace-annotations":        "tenants write no annotations of namespaces under croft",
	"capsule.clastix.io/forbidden-namespace-annotations-regexp": "tenants write no annotations of namespaces under croft",
	"capsule.clastix.io/deny-wildcard":                          "a tenant may use a wildcard if it was granted one",
	"capsule.clastix.io/protected":                              "croft destroys nothing by default: deletion: Retain keeps the namespaces of a deleted tenant",
	"projectcapsule.dev/name":                                   "Capsule's own",
	"projectcapsule.dev/created-by":                             "Capsule's own",
	"projectcapsule.dev/managed-by":                             "Capsule's own",
	"projectcapsule.dev/tenant":                                 "Capsule's own",
	"projectcapsule.dev/release":                                "Capsule's own",
	"reconcile.projectcapsule.dev/requestedAt":                  "Capsule's own",
	tenantLabel: "Capsule's own",
}

// marks reads the labels and annotations of a Tenant with which older versions of Capsule
// restricted it.
func marks(d *draft.Draft, o *source.Object) {
	for _, mark := range append(o.At("metadata", "labels").Fields(), o.At("metadata", "annotations").Fields()...) {
		domain, _, _ := strings.Cut(mark.Key(), "/")
		if domain != draft.CapsuleGroup && !strings.HasSuffix(domain, "."+draft.CapsuleGroup) && !strings.HasSuffix("."+domain, ".projectcapsule.dev") {
			continue
		}
		if why, ok := harmless[mark.Key()]; ok {
			mark.NotKept("%s", why)
			continue
		}
		d.Lost(mark, "croft migrate does not know this setting of Capsule's, which may restrict the tenant: write what it asks for into croft.yaml, and take it out")
	}
}

// parts are the fields of a Tenant that croft reads, and that have no meaning if they are
// empty.
var parts = []string{
	"additionalRoleBindings", "gatewayOptions", "imagePullPolicies", "ingressOptions", "limitRanges", "namespaceOptions", "networkPolicies",
	"nodeSelector", "owners", "permissions", "podOptions", "resourceQuotas", "rules", "serviceOptions",
}

// Unknown reports the fields of Tenants that no reader has accounted for, since they may
// restrict a tenant.
func Unknown(d *draft.Draft) {
	for _, o := range d.Of(draft.CapsuleGroup, "Tenant") {
		for _, part := range o.At("spec").Fields() {
			for _, f := range part.Unknown() {
				if isEmpty(f) && slices.Contains(parts, part.Key()) {
					f.Other("is empty")
					continue
				}
				d.Lost(f, "croft migrate does not know this field of Capsule's, which may restrict the tenant: write what it asks for into tenants.%s, and take the field out", draft.AsName(o.Name))
			}
		}
	}
}

func isEmpty(f source.Field) bool {
	return f.Text() == "" && len(f.Fields())+len(f.Items()) == 0
}
