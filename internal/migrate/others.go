package migrate

import (
	"strings"

	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/source"
)

// others accounts for objects of other kinds, and for their labels and annotations of
// older versions of Karpenter.
func others(d *draft.Draft) {
	for _, o := range d.Objects {
		if o.Skip || o.Accounted() {
			continue
		}
		if draft.Reads(o) && o.Kind != "ConstraintTemplate" && o.Kind != "Role" && o.Kind != "ClusterRole" {
			continue
		}
		if strings.HasSuffix(o.Kind, "Role") && o.Group() == draft.RBACGroup {
			o.Root().Other("no binding of a tenant's namespace becomes access by it: it stays as it is")
			continue
		}
		o.Root().Other("croft does not read %s: it stays as it is", o.Kind)
		o.Leaves(former)
	}
}

// former finds the names of old that a workload may still say.
func former(f source.Field) {
	switch key := f.Key(); {
	case key == "karpenter.sh/do-not-evict":
		f.NotKept("Karpenter v1 reads karpenter.sh/do-not-disrupt in its place: write that, and give the tenant policy.doNotDisrupt: true, without which croft refuses it")
	case key == "karpenter.sh/do-not-disrupt":
		f.NotKept("croft refuses it to tenants' pods unless the tenant has policy.doNotDisrupt: true")
	case strings.HasPrefix(key, "karpenter.sh/provisioner-name"):
		f.NotKept("Karpenter v1 has karpenter.sh/nodepool in its place; pods of tenants need neither, since croft places them")
	}
}
