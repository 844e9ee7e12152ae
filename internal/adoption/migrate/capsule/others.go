package capsule

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
)

// unrestricting are the kinds of Capsule that do not restrict tenants, with the remedy.
var unrestricting = map[string]string{
	"CapsuleConfiguration": "only Capsule reads it",
	"GlobalProxySettings":  "croft's proxy lists cluster-scoped objects by the tenant's pools and allowances: docs/how-to/proxy.md",
	"ProxySetting":         "croft's proxy lists cluster-scoped objects by the tenant's pools and allowances: docs/how-to/proxy.md",
	"QuantityLedger":       "only Capsule reads it",
	"ResourcePoolClaim":    "requests a part of a ResourcePool: write the sum of the tenant's claims into its quota",
	"RuleStatus":           "only Capsule reads it",
	"TenantOwner":          "write the subject into the access of the tenants",
}

// AccountOthers accounts for the objects of Capsule's other kinds. They are a problem if they restrict
// tenants, since Capsule enforces them only in the namespaces of its own Tenants.
func AccountOthers(d *draft.Draft) {
	for _, o := range d.Objects {
		if o.Skip || o.Group() != draft.CapsuleGroup || o.Kind == "Tenant" {
			continue
		}
		why, known := unrestricting[o.Kind]
		switch {
		case known:
			o.Root().MarkNotKept("%s", why)
		case o.Kind == "GlobalTenantResource" || o.Kind == "TenantResource":
			accountCopies(d, o)
		default:
			d.ReportLost(o.Root(), "croft migrate does not read Capsule's %s, which may restrict tenants: write its restrictions into croft.yaml, such as a tenant's quota", o.Kind)
		}
	}
}

// data are the kinds whose copies do not restrict tenants.
var data = []string{"ConfigMap", "Secret", "ServiceAccount"}

// accountCopies accounts for objects that Capsule copies into the namespaces of its Tenants. It
// deletes the copies with the Tenant.
func accountCopies(d *draft.Draft, o *source.Object) {
	const remedy = "Capsule deletes its copies with its Tenant: write these objects into objects of croft.yaml, if their kind is possible there, or into the tenants' namespaces yourself"
	restricts, whole := false, len(o.At("spec", "resources").Items()) > 0
	for _, resource := range o.At("spec", "resources").Items() {
		if readCopies(d, o, resource) {
			continue
		}
		whole = false
		for _, f := range resource.Fields() {
			switch f.Key() {
			case "additionalMetadata", "context", "namespaceSelector":
			case "namespacedItems", "rawItems":
				restricts = restricts || slices.ContainsFunc(f.Items(), func(item source.Field) bool { return !slices.Contains(data, item.At("kind").Text()) })
			default:
				restricts = true
			}
		}
	}
	if whole {
		o.Root().MarkChanged("objects", "croft.yaml has the manifests; delete this object when croft runs")
		return
	}
	if restricts {
		d.ReportLost(o.Root(), "%s", remedy+"; some of them may restrict the tenant, as a NetworkPolicy does")
		return
	}
	o.Root().MarkNotKept("%s", remedy)
}

// readCopies writes the manifests of a resource into croft.yaml, if it consists of manifests alone that
// croft.yaml may contain for every tenant. It reports whether it did.
func readCopies(d *draft.Draft, o *source.Object, resource source.Field) bool {
	into, to := &d.Platform.TenantDefaults.Objects, "platform.tenantDefaults.objects"
	if o.Kind == "TenantResource" {
		name := d.FindTenant(o.Namespace)
		if name == "" {
			return false
		}
		into, to = &d.Tenants[name].Spec.Objects, draft.TenantField(name, "objects")
	}
	var all []runtime.RawExtension
	for _, f := range resource.Fields() {
		if f.Key() != "rawItems" {
			return false
		}
		for _, item := range f.Items() {
			text, err := json.Marshal(item.Value())
			if err != nil {
				return false
			}
			raw := runtime.RawExtension{Raw: []byte(convertCopyTemplate(estate.EscapeParameters(string(text))))}
			if strings.Contains(string(raw.Raw), "{{") || !slices.Contains(unrestrictedCopies, item.At("kind").Text()) || !estate.AreValidObjects(slices.Concat(*into, all, []runtime.RawExtension{raw})) {
				return false
			}
			all = append(all, raw)
		}
	}
	if len(all) == 0 || o.At("spec", "tenantSelector").Found() || o.At("spec", "scope").Text() == "Tenant" {
		return false
	}
	*into = append(*into, all...)
	resource.MarkKept(to)
	return true
}

// unrestrictedCopies are the kinds that croft.yaml may contain for any tenant. Other kinds have limits that
// depend on the tenant.
var unrestrictedCopies = []string{"ConfigMap", "LimitRange"}

// convertCopyTemplate replaces the templates of Capsule for which croft has parameters.
func convertCopyTemplate(text string) string {
	return strings.NewReplacer(
		"{{tenant.name}}", "$(tenant)", "{{ tenant.name }}", "$(tenant)", "{{namespace}}", "$(namespace)", "{{ namespace }}", "$(namespace)",
	).Replace(text)
}
