package capsule

import "croft.dev/croft/internal/adoption/migrate/draft"

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
			accountReplication(d, o)
		default:
			d.ReportLost(o.Root(), "croft migrate does not read Capsule's %s, which may restrict tenants: write its restrictions into croft.yaml, such as a tenant's quota", o.Kind)
		}
	}
}
