package migrate

import (
	"encoding/json"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/multus"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// accountOthers accounts for objects of other kinds, and for labels and annotations of older versions
// of Karpenter in them.
func accountOthers(d *draft.Draft) {
	for _, o := range d.Objects {
		if o.Skip || o.IsAccounted() {
			continue
		}
		if draft.IsRead(o) && o.Kind != "ConstraintTemplate" && o.Kind != "Role" && o.Kind != "ClusterRole" {
			continue
		}
		if strings.HasSuffix(o.Kind, "Role") && o.Group() == draft.RBACGroup {
			o.Root().MarkOther("no converted binding uses it: it stays as it is")
			continue
		}
		if isPlacingPolicy(o) {
			const why = "may select the nodes of pods, and croft migrate does not read policies of this kind"
			o.Root().MarkNotKept(why)
			d.ReportProblem(o.Root(), "%s: write the pools of its namespaces into croft.yaml yourself, and delete it when croft runs", why)
			continue
		}
		o.Root().MarkOther("croft migrate does not read %s: it stays as it is", o.Kind)
		o.VisitLeaves(func(f source.Field) { reportRefused(d, o, f) })
	}
}

// reportRefused finds fields of a workload that croft refuses in tenants' pods, or that Karpenter no
// longer reads. In a tenant's namespace such a field is a problem.
func reportRefused(d *draft.Draft, o *source.Object, f source.Field) {
	var reason string
	switch key := f.Key(); {
	case key == "karpenter.sh/do-not-evict":
		reason = "Karpenter v1 reads karpenter.sh/do-not-disrupt instead: write that, and set policy.doNotDisrupt: true for the tenant, since croft refuses it otherwise"
	case key == "karpenter.sh/do-not-disrupt":
		reason = "croft refuses it to tenants' pods unless the tenant has policy.doNotDisrupt: true"
	case strings.HasPrefix(key, "karpenter.sh/provisioner-name"):
		reason = "Karpenter v1 uses karpenter.sh/nodepool instead; pods of tenants need neither, since croft places them"
	case key == multus.Annotation && !draft.IsManaged(o):
		reason = "croft attaches tenants' pods to the networks that they are granted: declare secondaryNetworks, name them in tenants.*.networks, and request them by " + v1alpha1.NetworksAnnotation
	default:
		return
	}
	f.MarkNotKept("%s", reason)
	if d.FindTenant(o.Namespace) != "" {
		d.ReportProblem(f, "%s", reason)
	}
}

// isPlacingPolicy reports whether an object is a policy of another engine that changes where
// pods run.
func isPlacingPolicy(o *source.Object) bool {
	if draft.IsManaged(o) || o.Group() != "kyverno.io" && o.Group() != "policies.kyverno.io" && o.Kind != "MutatingAdmissionPolicy" {
		return false
	}
	text, err := json.Marshal(o.Content)
	return err == nil && slices.ContainsFunc([]string{"nodeSelector", "nodeAffinity", "tolerations", "nodeName"}, func(field string) bool {
		return strings.Contains(string(text), field)
	})
}
