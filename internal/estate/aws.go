package estate

import (
	"cmp"
	"maps"
	"strings"

	"croft.dev/croft/api/v1alpha1"
)

// AWSClass returns the effective class of a pool: its own class merged over the Platform's,
// with short forms expanded into selector terms and every default set. A nil own class inherits
// everything. The tags are the declared ones; croft's own tags depend on the pool.
func AWSClass(p *v1alpha1.PlatformSpec, own *v1alpha1.AWSNodeClass) *v1alpha1.AWSNodeClass {
	class := inFull(own)
	if base := p.NodeClass.AWS; base != nil {
		class = layOver(inFull(base), class)
	}
	writeOut(p, class)
	return class
}

// inFull expands the short forms into their terms. A nil class results in an empty one.
func inFull(class *v1alpha1.AWSNodeClass) *v1alpha1.AWSNodeClass {
	if class == nil {
		return &v1alpha1.AWSNodeClass{}
	}
	c := class.DeepCopy()
	if c.AMIAlias != "" {
		c.AMISelectorTerms, c.AMIAlias = []v1alpha1.AMISelectorTerm{{Alias: c.AMIAlias}}, ""
	}
	c.AMIFamily = cmp.Or(c.AMIFamily, familyOfTerms(c.AMISelectorTerms))
	if tags := c.Discovery; tags != nil {
		if c.SubnetSelectorTerms == nil {
			c.SubnetSelectorTerms = []v1alpha1.SubnetSelectorTerm{{Tags: tags}}
		}
		if c.SecurityGroupSelectorTerms == nil {
			c.SecurityGroupSelectorTerms = []v1alpha1.SecurityGroupSelectorTerm{{Tags: maps.Clone(tags)}}
		}
		c.Discovery = nil
	}
	return c
}

// familyOfTerms returns the family of the first alias, or "" if there is none.
func familyOfTerms(terms []v1alpha1.AMISelectorTerm) v1alpha1.AMIFamily {
	for _, t := range terms {
		name, _, _ := strings.Cut(string(t.Alias), "@")
		for _, family := range aliased {
			if name == strings.ToLower(string(family)) {
				return family
			}
		}
	}
	return ""
}

// aliased are the families that have aliases.
var aliased = []v1alpha1.AMIFamily{v1alpha1.FamilyAL2023, v1alpha1.FamilyBottlerocket, v1alpha1.FamilyAL2}

// layOver returns the upper class with its unset fields taken from the base. The short forms of
// both must be expanded.
func layOver(base, upper *v1alpha1.AWSNodeClass) *v1alpha1.AWSNodeClass {
	c := upper.DeepCopy()
	if c.Role == "" && c.InstanceProfile == "" {
		c.Role, c.InstanceProfile = base.Role, base.InstanceProfile
	}
	c.AMIFamily = cmp.Or(c.AMIFamily, base.AMIFamily)
	c.AMISelectorTerms = listOr(c.AMISelectorTerms, base.AMISelectorTerms)
	c.SubnetSelectorTerms = listOr(c.SubnetSelectorTerms, base.SubnetSelectorTerms)
	c.SecurityGroupSelectorTerms = listOr(c.SecurityGroupSelectorTerms, base.SecurityGroupSelectorTerms)
	c.AssociatePublicIPAddress = cmp.Or(c.AssociatePublicIPAddress, base.AssociatePublicIPAddress)
	c.CapacityReservationSelectorTerms = listOr(c.CapacityReservationSelectorTerms, base.CapacityReservationSelectorTerms)
	c.Tags = both(base.Tags, c.Tags)
	c.TagKeys = keysOver(base.TagKeys, c.TagKeys)
	c.Kubelet = kubeletOver(base.Kubelet, c.Kubelet)
	c.UserData = cmp.Or(c.UserData, base.UserData)
	c.BlockDeviceMappings = listOr(c.BlockDeviceMappings, base.BlockDeviceMappings)
	c.InstanceStorePolicy = cmp.Or(c.InstanceStorePolicy, base.InstanceStorePolicy)
	c.MetadataOptions = metadataOver(base.MetadataOptions, c.MetadataOptions)
	c.DetailedMonitoring = cmp.Or(c.DetailedMonitoring, base.DetailedMonitoring)
	return c
}

func listOr[T any](list, otherwise []T) []T {
	if list != nil {
		return list
	}
	return otherwise
}

func mapOr[M ~map[K]V, K comparable, V any](m, otherwise M) M {
	if m != nil {
		return m
	}
	return otherwise
}

// both merges two maps. The upper map's value is used for a key in both.
func both(base, upper map[string]string) map[string]string {
	if base == nil {
		return upper
	}
	all := maps.Clone(base)
	maps.Copy(all, upper)
	return all
}

func keysOver(base, upper *v1alpha1.AWSTagKeys) *v1alpha1.AWSTagKeys {
	if base == nil || upper == nil {
		return cmp.Or(upper, base)
	}
	return &v1alpha1.AWSTagKeys{
		CostCode: cmp.Or(upper.CostCode, base.CostCode),
		Project:  cmp.Or(upper.Project, base.Project),
		NodePool: cmp.Or(upper.NodePool, base.NodePool),
	}
}

func kubeletOver(base, upper *v1alpha1.AWSKubelet) *v1alpha1.AWSKubelet {
	if base == nil || upper == nil {
		return cmp.Or(upper, base)
	}
	return &v1alpha1.AWSKubelet{
		ClusterDNS:                  listOr(upper.ClusterDNS, base.ClusterDNS),
		MaxPods:                     cmp.Or(upper.MaxPods, base.MaxPods),
		PodsPerCore:                 cmp.Or(upper.PodsPerCore, base.PodsPerCore),
		SystemReserved:              mapOr(upper.SystemReserved, base.SystemReserved),
		KubeReserved:                mapOr(upper.KubeReserved, base.KubeReserved),
		EvictionHard:                mapOr(upper.EvictionHard, base.EvictionHard),
		EvictionSoft:                mapOr(upper.EvictionSoft, base.EvictionSoft),
		EvictionSoftGracePeriod:     mapOr(upper.EvictionSoftGracePeriod, base.EvictionSoftGracePeriod),
		EvictionMaxPodGracePeriod:   cmp.Or(upper.EvictionMaxPodGracePeriod, base.EvictionMaxPodGracePeriod),
		ImageGCHighThresholdPercent: cmp.Or(upper.ImageGCHighThresholdPercent, base.ImageGCHighThresholdPercent),
		ImageGCLowThresholdPercent:  cmp.Or(upper.ImageGCLowThresholdPercent, base.ImageGCLowThresholdPercent),
		CPUCFSQuota:                 cmp.Or(upper.CPUCFSQuota, base.CPUCFSQuota),
	}
}

func metadataOver(base, upper *v1alpha1.MetadataOptions) *v1alpha1.MetadataOptions {
	if base == nil || upper == nil {
		return cmp.Or(upper, base)
	}
	return &v1alpha1.MetadataOptions{
		HTTPEndpoint:            cmp.Or(upper.HTTPEndpoint, base.HTTPEndpoint),
		HTTPProtocolIPv6:        cmp.Or(upper.HTTPProtocolIPv6, base.HTTPProtocolIPv6),
		HTTPPutResponseHopLimit: cmp.Or(upper.HTTPPutResponseHopLimit, base.HTTPPutResponseHopLimit),
		HTTPTokens:              cmp.Or(upper.HTTPTokens, base.HTTPTokens),
	}
}
