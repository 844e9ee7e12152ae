package estate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/manifest"
)

// Build checks the objects of a declaration against one another, and builds an estate from the
// valid ones. Every problem names the object that is refused for it, so that one tenant's
// mistake does not affect others.
//
// Without a valid Platform, Build returns nil and never an empty estate, which would be a
// request to delete everything.
func Build(d *manifest.Declaration) (*Estate, document.Problems) {
	w := newChecker(d)
	for _, check := range rules {
		check(w)
	}
	problems := w.problems.Sorted()
	if !w.hasPlatform() {
		return nil, problems
	}
	e := &Estate{Platform: Platform{PlatformSpec: w.platform}, Warnings: w.warnings.Sorted()}
	for i := range d.Networks {
		if n := &d.Networks[i]; w.isValid(manifest.KindNetwork, i) {
			e.Networks = append(e.Networks, n)
		}
	}
	for i := range d.Pools {
		if p := &d.Pools[i]; w.isValid(manifest.KindPool, i) {
			e.Pools = append(e.Pools, resolvePool(&e.Platform, p))
		}
	}
	for i := range d.Tenants {
		if t := &d.Tenants[i]; w.isValid(manifest.KindTenant, i) {
			resolved := resolveTenant(&e.Platform, t, w.listRequested(t), d.Now)
			resolved.ChosenLabels = w.findChosenLabels(resolved)
			resolved.Objects = w.resolveTemplates(t)
			resolved.Networks = w.resolveNetworks(t)
			resolved.Connections, resolved.Pending = w.resolveConnections(t)
			resolved.Consents = w.bindConsents(t)
			resolved.Callers = w.acceptCallers(t).decisions
			e.Tenants = append(e.Tenants, resolved)
		}
	}
	slices.SortFunc(e.Networks, func(a, b *v1alpha1.SecondaryNetwork) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(e.Pools, func(a, b *Pool) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(e.Tenants, func(a, b *Tenant) int { return cmp.Compare(a.Name, b.Name) })
	e.Platform.Groups = listGroups(e)
	e.Platform.Connections = listConnections(e)
	return e, problems
}

// listConnections returns all connections between tenants, sorted by callee and caller.
func listConnections(e *Estate) []Connection {
	var all []Connection
	for _, t := range e.Tenants {
		for _, c := range t.Connections {
			if c.Callee == t.Name || e.FindTenant(c.Callee) == nil {
				all = append(all, c)
			}
		}
	}
	return all
}

// listGroups returns all groups with rights.
func listGroups(e *Estate) []string {
	all := slices.Concat(e.Platform.Admins, e.Platform.Auditors, e.Platform.ClassReaders)
	if e.Platform.Elevation != nil {
		all = append(all, e.Platform.Elevation.Approvers...)
	}
	for _, t := range e.Tenants {
		for _, a := range t.Access {
			all = append(all, a.Group)
		}
		for _, s := range t.Allowances.ShareWith {
			all = append(all, s.Group)
		}
	}
	all = slices.DeleteFunc(all, func(g string) bool { return g == "" || g == "*" || strings.HasPrefix(g, "system:") })
	slices.Sort(all)
	return slices.Compact(all)
}

// builtinTolerations are the keys of taints that device plugins and clouds set on nodes, and
// for which the API server's or a cloud's admission plugins add tolerations to pods.
var builtinTolerations = []string{
	"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi",
	"aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "google.com/tpu",
	"kubernetes.azure.com/scalesetpriority", "cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible", "kubernetes.io/arch",
}

// resolvePlatform sets the schema's defaults in a Platform that was not read from an API
// server.
func resolvePlatform(p v1alpha1.PlatformSpec) v1alpha1.PlatformSpec {
	p.NodePoolKey = cmp.Or(p.NodePoolKey, v1alpha1.DefaultNodePoolKey)
	p.Placement = cmp.Or(p.Placement, v1alpha1.PlacementNative)
	p.Tolerations = firstSet(p.Tolerations, builtinTolerations)
	p.GitOps = cmp.Or(p.GitOps, v1alpha1.GitOpsFlux)
	p.Network.Dialect = cmp.Or(p.Network.Dialect, v1alpha1.DialectKubernetes)
	if len(p.Network.MetadataAddresses) == 0 {
		p.Network.MetadataAddresses = v1alpha1.DefaultMetadataAddresses()
	}
	if p.Elevation != nil {
		elevation := *p.Elevation
		elevation.MaxDuration.Duration = cmp.Or(elevation.MaxDuration.Duration, time.Hour)
		p.Elevation = &elevation
	}
	if p.Proxy != nil {
		p.Proxy = &v1alpha1.Proxy{Impersonation: cmp.Or(p.Proxy.Impersonation, v1alpha1.ImpersonationConstrained)}
	}
	p.TenantDefaults.Egress = cmp.Or(p.TenantDefaults.Egress, v1alpha1.EgressOpen)
	p.TenantDefaults.PodSecurity = cmp.Or(p.TenantDefaults.PodSecurity, v1alpha1.PodSecurityBaseline)
	return p
}

func resolvePool(platform *Platform, p *v1alpha1.Pool) *Pool {
	pool := &Pool{Name: p.Name, PoolSpec: p.Spec, Class: resolveClass(&platform.PlatformSpec, p)}
	if aws := pool.Class.AWS; aws != nil {
		aws.Tags, aws.TagKeys = buildAWSTags(&platform.PlatformSpec, p, aws.TagKeys), nil
	}
	return pool
}

// resolveClass returns the effective node class: the pool's own or the platform's, or, for AWS, the
// pool's merged over the platform's.
func resolveClass(platform *v1alpha1.PlatformSpec, p *v1alpha1.Pool) v1alpha1.NodeClass {
	class := platform.NodeClass
	if p.Spec.NodeClass != nil {
		class = *p.Spec.NodeClass
	}
	if class.AWS == nil {
		return class
	}
	var own *v1alpha1.AWSNodeClass
	if p.Spec.NodeClass != nil {
		own = p.Spec.NodeClass.AWS
	}
	return v1alpha1.NodeClass{AWS: ResolveAWSClass(platform, own)}
}

// FindNextChange returns the next time at which the estate changes with time: an access of a tenant, a
// connection between tenants, a TenantCaller or a freeze ends, or a freeze begins. It returns the zero
// time if there is none.
func (e *Estate) FindNextChange() time.Time {
	var next time.Time
	for _, t := range e.Tenants {
		for _, a := range t.Access {
			if a.Until != nil {
				next = findEarlier(next, a.Until.Time)
			}
		}
		for _, c := range t.Connections {
			next = findEarlier(next, c.Until.Time)
		}
		for i := range t.Callers {
			next = findEarlier(next, t.Callers[i].End.Time)
		}
		next = findEarlier(next, t.FreezeChange.Time)
	}
	return next
}
