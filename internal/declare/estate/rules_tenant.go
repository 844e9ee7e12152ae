package estate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

func checkTenantPools(w *checker, t *v1alpha1.Tenant) []finding {
	if len(t.Spec.Pools) == 0 {
		if why := w.explainMissing(manifest.KindPool, t.Spec.Pool); why != "" {
			return makeFinding(field.NewPath("spec", "pool"), "%s", why)
		}
		return nil
	}
	var all []finding
	for i, name := range t.Spec.Pools {
		if why := w.explainMissing(manifest.KindPool, name); why != "" {
			all = append(all, makeFinding(field.NewPath("spec", "pools").Index(i), "%s", why)...)
		}
	}
	return all
}

// checkSystemNames keeps tenants out of the namespaces of Kubernetes, of croft and of the
// platform's services. The rule includes the tenant's own name, even if its namespaces have
// other names, because users would confuse the two.
func checkSystemNames(w *checker, t *v1alpha1.Tenant) []finding {
	if whose := w.findSystemOwner(t.Name); whose != "" {
		return makeFinding(field.NewPath("metadata", "name"), "%s is the name of a namespace of %s; choose another name for the tenant", t.Name, whose)
	}
	var all []finding
	for i, ns := range t.Spec.Namespaces {
		if whose := w.findSystemOwner(ns); whose != "" {
			all = append(all, makeFinding(field.NewPath("spec", "namespaces").Index(i), "%s is a namespace of %s; choose another", ns, whose)...)
		}
	}
	return all
}

// findSystemOwner returns the owner of a namespace that no tenant can have, or "".
func (w *checker) findSystemOwner(namespace string) string {
	switch {
	case namespace == "default" || strings.HasPrefix(namespace, "kube-"):
		return "Kubernetes"
	case slices.Contains([]string{v1alpha1.SystemNamespace, v1alpha1.ElevationsNamespace, v1alpha1.AgentNamespace, v1alpha1.SecretsNamespace}, namespace):
		return "croft"
	case slices.Contains(w.platform.Network.PlatformNamespaces, namespace),
		slices.ContainsFunc(ListDNSPods(&w.platform.Network), func(p v1alpha1.DNSPods) bool { return p.Namespace == namespace }):
		return "the platform"
	}
	return ""
}

// checkMetadataDenied refuses exceptions that would give access to a node's credentials.
func checkMetadataDenied(w *checker, t *v1alpha1.Tenant) []finding {
	var all []finding
	metadata := ListMetadataAddresses(&w.platform.Network)
	for i, cidr := range t.Spec.Network.AllowCIDRs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue // the schema refuses it
		}
		// One finding is enough: the others would have the same message.
		held := slices.IndexFunc(metadata, prefix.Contains)
		if held >= 0 {
			all = append(all, makeFinding(field.NewPath("spec", "network", "allowCIDRs").Index(i),
				"%s contains the instance metadata address %s, to which no tenant may connect; name smaller networks around it, or remove it from platform.network.metadataAddresses if your clouds do not use it",
				cidr, metadata[held])...)
		}
	}
	return all
}

// checkAllowCIDRs refuses CIDRs that NetworkPolicies refuse: an address within a network
// instead of the network's own.
func checkAllowCIDRs(_ *checker, t *v1alpha1.Tenant) []finding {
	var all []finding
	for i, cidr := range t.Spec.Network.AllowCIDRs {
		at := field.NewPath("spec", "network", "allowCIDRs").Index(i)
		prefix, err := netip.ParsePrefix(cidr)
		switch {
		case err != nil: // the schema refuses it
		case prefix.Addr().Is4In6():
			all = append(all, makeFinding(at, "%s is an IPv4 network written as IPv6; write it like 10.0.0.0/8", cidr)...)
		case prefix != prefix.Masked():
			all = append(all, makeFinding(at, "%s is not a network; write %s, or %s for that address alone",
				cidr, prefix.Masked(), netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen()))...)
		}
	}
	return all
}

// checkTenantAdmins warns of a tenant's group whose members are the platform's admins, and so
// may remove the tenant's walls.
func checkTenantAdmins(w *checker, t *v1alpha1.Tenant) []finding {
	var all []finding
	for i, access := range prefixGroups(w.platform.GroupPrefix, t.Spec.Access) {
		if access.Group != "" && slices.Contains(w.platform.Admins, access.Group) {
			all = append(all, makeWarning(field.NewPath("spec", "access").Index(i).Child("group"),
				"%s is among the platform's admins, so its members may delete the walls of tenant %s; name another group here, or remove it from platform.admins", access.Group, t.Name)...)
		}
	}
	return all
}

// checkAccessExpiry warns of access that has ended.
func checkAccessExpiry(w *checker, t *v1alpha1.Tenant) []finding {
	var all []finding
	for i, access := range t.Spec.Access {
		if access.Ended(w.Now) {
			all = append(all, makeWarning(field.NewPath("spec", "access").Index(i).Child("until"),
				"this access expired at %s; remove the entry, or write a later time",
				access.Until.UTC().Format(time.RFC3339))...)
		}
	}
	return all
}

// checkDefaultClasses refuses a default class that the tenant may not use: croft would set it on pods, and then
// refuse them. The default and the list may come from the Platform.
func checkDefaultClasses(w *checker, t *v1alpha1.Tenant) []finding {
	may := mergeAllowances(&w.platform.TenantDefaults.Policy, &t.Spec.Policy.Allowances)
	var all []finding
	for _, class := range []struct {
		field, name, list string
		allowed           []string
	}{
		{"priorityClass", may.PriorityClass.Default, "priorityClasses", may.PriorityClasses},
		{"runtimeClass", may.RuntimeClass.Default, "runtimeClasses", may.RuntimeClasses},
	} {
		at := field.NewPath("spec", "policy", class.field, "default")
		switch {
		case class.name == "":
		case !slices.Contains(class.allowed, class.name) && !slices.Contains(class.allowed, "*"):
			all = append(all, makeFinding(at, "%s is not one of the tenant's %s; add it to policy.%s, or choose another default",
				class.name, class.list, class.list)...)
		case class.field == "priorityClass" && w.platform.Placement == v1alpha1.PlacementGatekeeper:
			all = append(all, makeFinding(at, "Gatekeeper cannot set a priority class, since it cannot remove the priority that the pod has without one; leave it out, or set platform.placement to %s",
				v1alpha1.PlacementNative)...)
		}
	}
	return all
}

func checkTenantResources(_ *checker, t *v1alpha1.Tenant) []finding {
	at := field.NewPath("spec")
	return checkResources(at.Child("quota"), t.Spec.Quota, at.Child("limits"), t.Spec.Limits)
}

// checkNamespaceOwners refuses a namespace to all tenants except the oldest that declares
// it. A namespace that was granted on request belongs to its tenant: declared names are never
// granted, so the declaration is younger.
func checkNamespaceOwners(w *checker) {
	owners, asked := map[string]manifest.Object{}, map[string]string{}
	for i := range w.Tenants {
		for ns, anchor := range w.listRequested(&w.Tenants[i]) {
			owners[ns] = w.objects[manifest.KindTenant][i]
			asked[ns] = fmt.Sprintf(", by its TenantNamespace %s/%s", anchor, ns)
		}
	}
	for _, i := range sortByAge(w.Tenants) {
		t := w.objects[manifest.KindTenant][i]
		for j, ns := range listNamespaces(&w.Tenants[i]) {
			owner, taken := owners[ns]
			if !taken {
				owners[ns] = t
				continue
			}
			if owner.Name == t.Name {
				continue
			}
			at := field.NewPath("metadata", "name")
			if len(w.Tenants[i].Spec.Namespaces) > 0 {
				at = field.NewPath("spec", "namespaces").Index(j)
			}
			w.refuse(t, at, "namespace %s belongs to tenant %s%s already%s; choose another for %s", ns, owner.Name, w.FormatLocation(owner), asked[ns], t.Name)
		}
	}
}
