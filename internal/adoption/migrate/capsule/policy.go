package capsule

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/kubernetes"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
)

func readHosts(d *draft.Draft, name string, options source.Field, t *draft.Tenant) {
	to := draft.TenantField(name, "domains")
	hosts := options.At("allowedHostnames")
	for _, h := range hosts.At("allowed").Items() {
		t.Spec.Domains = draft.Distinct(append(t.Spec.Domains, strings.ToLower(h.Text())))
		h.MarkKeptAs(to, "granted only to this tenant, for all kinds of routes")
	}
	if len(hosts.Fields()) == 0 {
		hosts.MarkKept(to)
	}
	if pattern := hosts.At("allowedRegex"); pattern.Text() != "" {
		d.ReportLost(pattern, "croft grants hosts by name, or all hosts below a name with *.: write the hosts that the tenant uses into domains")
	} else {
		pattern.MarkKept(to)
	}
	if !hosts.Found() {
		hosts.MarkUnsetChanged(to, "all hosts were allowed: croft grants hosts by name, and this tenant gets only the hosts of platform.tenantDomain")
	}
	options.At("hostnameCollisionScope").MarkChanged(to, "croft never grants a host to two tenants; it does not compare the Ingresses of one tenant")
	options.At("allowWildcardHostnames").MarkChanged(to, "a tenant may use a wildcard if it was granted one")
}

// lists are the fields that list allowed names.
var lists = []struct {
	path  []string
	field string
	into  func(*v1alpha1.Allowances) *[]string
	// none means that croft allows no value if the list is unset; otherwise it allows any.
	none bool
	// preset is the field of the default, which setDefault sets. It is empty for lists whose default croft does
	// not set.
	preset     string
	setDefault func(a *v1alpha1.Allowances, name string)
}{
	{path: []string{"storageClasses"}, field: "storageClasses", into: func(a *v1alpha1.Allowances) *[]string { return &a.StorageClasses }},
	{path: []string{"ingressOptions", "allowedClasses"}, field: "ingressClasses", into: func(a *v1alpha1.Allowances) *[]string { return &a.IngressClasses }},
	{path: []string{"gatewayOptions", "allowedClasses"}, field: "gatewayClasses", into: func(a *v1alpha1.Allowances) *[]string { return &a.GatewayClasses }},
	{path: []string{"containerRegistries"}, field: "registries", into: func(a *v1alpha1.Allowances) *[]string { return &a.Registries }},
	{
		path: []string{"priorityClasses"}, field: "priorityClasses", into: func(a *v1alpha1.Allowances) *[]string { return &a.PriorityClasses }, none: true,
		preset:     "priorityClass.default",
		setDefault: func(a *v1alpha1.Allowances, name string) { a.PriorityClass = &v1alpha1.PodPriorityClass{Default: name} },
	},
	{
		path: []string{"runtimeClasses"}, field: "runtimeClasses", into: func(a *v1alpha1.Allowances) *[]string { return &a.RuntimeClasses }, none: true,
		preset:     "runtimeClass.default",
		setDefault: func(a *v1alpha1.Allowances, name string) { a.RuntimeClass = &v1alpha1.PodRuntimeClass{Default: name} },
	},
	{path: []string{"deviceClasses"}, field: "deviceClasses", into: func(a *v1alpha1.Allowances) *[]string { return &a.DeviceClasses }, none: true},
}

// readPolicy reads the allowances for the tenant's objects.
func readPolicy(d *draft.Draft, name string, spec source.Field, a *v1alpha1.Allowances) {
	for _, l := range lists {
		f, field := spec.At(l.path...), "policy."+l.field
		until := "all are allowed"
		if l.none {
			until = "none is allowed"
		}
		switch names, patterns := readAllowed(f, draft.TenantField(name, field)); {
		case !f.Found():
			if l.none {
				f.MarkUnsetChanged(draft.TenantField(name, field), "all were allowed: croft allows none by default; name the ones that the tenant needs")
			}
		case len(names) == 0, len(patterns) > 0 && len(f.At("allowed").Texts()) == 0:
			if len(patterns) == 0 {
				patterns = []source.Field{f}
			}
			for _, p := range patterns {
				d.ReportLost(p, `croft allows by name: write the names that the tenant uses into %s, or [] for none; until then %s`, field, until)
			}
			d.LeaveOut(draft.TenantField(name, field), "%s contains no name that croft can allow; until you write names, %s", f.Path(), until)
		default:
			*l.into(a) = names
			if standard := f.At("default"); standard.Text() != "" && l.preset != "" {
				l.setDefault(a, standard.Text())
				standard.MarkKept(draft.TenantField(name, "policy."+l.preset))
			}
			for _, p := range patterns {
				d.ReportLost(p, "croft allows by name: write the names that the tenant uses into %s, which has only the listed ones", field)
			}
		}
		if standard := f.At("default"); !standard.HasOutcome() {
			standard.MarkChanged(draft.TenantField(name, field), "allowed; croft sets no default")
		}
	}
	policies := spec.At("imagePullPolicies")
	to := draft.TenantField(name, "policy.imagePullPolicies")
	for _, p := range policies.Texts() {
		a.ImagePullPolicies = append(a.ImagePullPolicies, corev1.PullPolicy(p))
	}
	policies.MarkKept(to)
	if !policies.Found() {
		policies.MarkUnsetChanged(to, "all were allowed: croft sets Always by default, so that no pod runs an image that another team's secret pulled")
	}
	readServices(d, name, spec.At("serviceOptions"), a)
}

// readAllowed reads a list of allowed names. patterns are the fields that allow by other means than
// names.
func readAllowed(f source.Field, to string) (names []string, patterns []source.Field) {
	exact, standard := f.At("allowed"), f.At("default")
	exact.MarkKept(to)
	names = exact.Texts()
	if standard.Text() != "" {
		names = append(names, standard.Text())
	} else {
		standard.MarkKept(to)
	}
	for _, key := range []string{"allowedRegex", "matchLabels", "matchExpressions"} {
		pattern := f.At(key)
		if isEmpty(pattern) {
			pattern.MarkKept(to)
		} else {
			patterns = append(patterns, pattern)
		}
	}
	return draft.Distinct(names), patterns
}

func readServices(d *draft.Draft, name string, options source.Field, a *v1alpha1.Allowances) {
	to := draft.TenantField(name, "policy.serviceTypes")
	allowed := options.At("allowedServices")
	if !allowed.Found() {
		allowed.MarkUnsetChanged(to, "every type of Service was allowed: croft allows ClusterIP by default; name the types that the tenant needs")
	} else {
		a.ServiceTypes = []corev1.ServiceType{corev1.ServiceTypeClusterIP}
		for _, k := range []struct {
			key  string
			kind corev1.ServiceType
		}{{"nodePort", corev1.ServiceTypeNodePort}, {"loadBalancer", corev1.ServiceTypeLoadBalancer}, {"externalName", corev1.ServiceTypeExternalName}} {
			// By default, Capsule allows each of them.
			f := allowed.At(k.key)
			if !f.Found() || f.IsTrue() {
				a.ServiceTypes = append(a.ServiceTypes, k.kind)
			}
			f.MarkKept(to)
		}
	}
	if ips := options.At("externalIPs", "allowed"); len(ips.Texts()) > 0 {
		ips.MarkNotKept("croft refuses external IPs to every tenant, since they can intercept other traffic: use a load balancer")
	} else {
		ips.MarkKeptAs(to, "croft refuses external IPs to every tenant")
	}
	for _, key := range []string{"forbiddenLabels", "forbiddenAnnotations"} {
		if f := options.At(key); f.Found() {
			d.ReportLost(f, "croft forbids only the annotations of Services that have effects outside of their tenant: keep a policy of your own for the others")
		}
	}
	options.At("additionalMetadata").MarkNotKept("croft does not set custom labels and annotations on Services: set them by a policy of yours")
}

// readNamespaceOptions reads the labels and annotations that Capsule sets on the tenant's
// namespaces.
func readNamespaceOptions(d *draft.Draft, name string, options source.Field) {
	to := draft.TenantField(name, "namespaces")
	options.At("quota").MarkChanged(to, "the platform names them in croft.yaml; selfService.namespaces lets tenants request more, whose names begin with the tenant's name")
	readMetadata(d, name, options.At("additionalMetadata"), false)
	for _, item := range options.At("additionalMetadataList").Items() {
		selector := item.At("namespaceSelector")
		readMetadata(d, name, item, len(selector.Fields()) > 0)
		selector.MarkNotKept("croft has one setting for all namespaces of a tenant")
	}
	for _, key := range []string{"requiredMetadata", "forbiddenLabels", "forbiddenAnnotations", "managedMetadataOnly"} {
		options.At(key).MarkChanged(to, "tenants may not write "+namespaceMetadata)
	}
}

// namespaceMetadata names the labels and annotations that tenants may not write.
const namespaceMetadata = "labels and annotations of namespaces, except for labels that namespace.choose lists"

// capsuleTenant is the name of the tenant in Capsule's templates.
const capsuleTenant = "{{ tenant.name }}"

// readMetadata reads labels and annotations of all or, if some is set, only some namespaces.
func readMetadata(d *draft.Draft, name string, f source.Field, some bool) {
	for _, mark := range append(f.At("labels").Fields(), f.At("annotations").Fields()...) {
		switch {
		case mark.Key() == kubernetes.EnforceLabel:
			kubernetes.SetLevel(d, name, mark, some)
		case mark.Key() == kubernetes.NodeSelectorAnnotation && some:
			d.ReportLost(mark, "places pods of some namespaces of tenant %s: move these namespaces to a separate tenant with its own pool", name)
		case mark.Key() == kubernetes.NodeSelectorAnnotation:
			kubernetes.SelectNodes(d, name, f.Object(), mark)
			kubernetes.SelectLabels(d, name, mark)
		case kubernetes.ReadMark(d, name, mark):
		case some:
			mark.MarkNotKept("croft sets the same labels and annotations on all namespaces of a tenant: existing namespaces keep theirs; set them on new ones by a policy of yours")
		case strings.Contains(strings.ReplaceAll(mark.Text(), capsuleTenant, ""), "{{"):
			mark.MarkNotKept("croft replaces only the tenant's name in values, as %s: set this on new namespaces by a policy of yours", estate.TenantParameter)
		case !kubernetes.KeepMetadata(d, name, mark, strings.ReplaceAll(mark.Text(), capsuleTenant, estate.TenantParameter)):
			mark.MarkNotKept("croft does not set this on namespaces: existing namespaces keep theirs; set it on new ones by a policy of yours")
		}
	}
}

// readRules reads the rules of Capsule 0.13 and later.
func readRules(d *draft.Draft, list source.Field) {
	for _, rule := range list.Items() {
		rule.At("audience").MarkNotKept("see the rest of the rule")
		rule.At("namespaceSelector").MarkNotKept("see the rest of the rule")
		permissions := rule.At("permissions")
		permissions.At("bindings").MarkNotKept("write these people into the tenant's access, and bind ServiceAccounts by RoleBindings of your own")
		permissions.At("promotions").MarkNotKept("croft does not promote ServiceAccounts: bind them by RoleBindings of your own")
		switch enforce := rule.At("enforce"); {
		case !enforce.Found():
		case enforce.At("action").Text() == "audit":
			enforce.MarkNotKept("Capsule refused no requests by it; croft reports its refusals")
		default:
			d.ReportLost(enforce, "croft migrate does not read Capsule's rules: write the allowed values into the tenant's policy, such as registries, serviceTypes and imagePullPolicies, "+
				"and the hosts into domains; keep a policy of your own for the rest")
		}
		for _, q := range rule.At("quota").Items() {
			d.ReportLost(q, "croft migrate does not read quotas of rules: write the limits into the tenant's quota")
		}
	}
}

// accountRest accounts for the fields that croft does not have, with the remedy.
func accountRest(name string, spec source.Field) {
	spec.At("forceTenantPrefix").MarkChanged(draft.TenantField(name, "namespaces"), "the platform names the namespaces in croft.yaml")
	spec.At("podOptions", "additionalMetadata").MarkNotKept("croft does not set custom labels and annotations on pods: set them by a policy of yours")
	spec.At("data").MarkNotKept("only Capsule's templates read it")
	permissions := spec.At("permissions")
	permissions.At("matchOwners").MarkNotKept("write the subjects of these TenantOwners into the tenant's access")
	permissions.At("allowOwnerPromotion").MarkNotKept("croft does not promote ServiceAccounts: bind them by RoleBindings of your own")
}

// harmless are labels and annotations of Capsule's Tenants that only restrict actions that
// croft does not allow to tenants anyway.
var harmless = map[string]string{
	"capsule.clastix.io/forbidden-namespace-labels":             "tenants may not write " + namespaceMetadata,
	"capsule.clastix.io/forbidden-namespace-labels-regexp":      "tenants may not write " + namespaceMetadata,
	"capsule.clastix.io/forbidden-namespace-annotations":        "tenants may not write " + namespaceMetadata,
	"capsule.clastix.io/forbidden-namespace-annotations-regexp": "tenants may not write " + namespaceMetadata,
	"capsule.clastix.io/deny-wildcard":                          "a tenant may use a wildcard if it was granted one",
	"projectcapsule.dev/name":                                   "only Capsule uses it",
	"projectcapsule.dev/created-by":                             "only Capsule uses it",
	"projectcapsule.dev/managed-by":                             "only Capsule uses it",
	"projectcapsule.dev/tenant":                                 "only Capsule uses it",
	"projectcapsule.dev/release":                                "only Capsule uses it",
	"reconcile.projectcapsule.dev/requestedAt":                  "only Capsule uses it",
	tenantLabel: "only Capsule uses it",
}

// readMarks reads the labels and annotations of a Tenant with which older versions of Capsule
// restricted it.
func readMarks(d *draft.Draft, o *source.Object) {
	for _, mark := range append(o.At("metadata", "labels").Fields(), o.At("metadata", "annotations").Fields()...) {
		domain, _, _ := strings.Cut(mark.Key(), "/")
		if domain != draft.CapsuleGroup && !strings.HasSuffix(domain, "."+draft.CapsuleGroup) && !strings.HasSuffix("."+domain, ".projectcapsule.dev") {
			continue
		}
		if mark.Key() == cordonMark || mark.Key() == protectMark {
			continue // readCordon and readProtection read them
		}
		if why, ok := harmless[mark.Key()]; ok {
			mark.MarkNotKept("%s", why)
			continue
		}
		d.ReportLost(mark, "croft migrate does not know this setting of Capsule, which may restrict the tenant: write the restriction into croft.yaml, and remove the setting")
	}
}

// parts are the fields of a Tenant that croft reads, and that have no meaning if they are
// empty.
var parts = []string{
	"additionalRoleBindings", "gatewayOptions", "imagePullPolicies", "ingressOptions", "limitRanges", "namespaceOptions", "networkPolicies",
	"nodeSelector", "owners", "permissions", "podOptions", "resourceQuotas", "rules", "serviceOptions",
}

// ReportUnknown reports the fields of Tenants that no reader has accounted for, since they may
// restrict a tenant.
func ReportUnknown(d *draft.Draft) {
	for _, o := range d.List(draft.CapsuleGroup, "Tenant") {
		for _, part := range o.At("spec").Fields() {
			for _, f := range part.ListUnknown() {
				if isEmpty(f) && slices.Contains(parts, part.Key()) {
					f.MarkOther("is empty")
					continue
				}
				d.ReportLost(f, "croft migrate does not know this field of Capsule, which may restrict the tenant: write the restriction into tenants.%s, and remove the field", draft.ToName(o.Name))
			}
		}
	}
}

func isEmpty(f source.Field) bool {
	return f.Text() == "" && len(f.Fields())+len(f.Items()) == 0
}
