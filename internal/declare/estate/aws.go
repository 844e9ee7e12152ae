package estate

import (
	"cmp"
	"maps"
	"strings"

	"croft.dev/croft/api/v1alpha1"
)

// ResolveAWSClass returns the effective class of a pool: its own class merged over the Platform's,
// with short forms expanded into selector terms and every default set. A nil own class inherits
// everything. The tags are the declared ones; croft's own tags depend on the pool.
func ResolveAWSClass(p *v1alpha1.PlatformSpec, own *v1alpha1.AWSNodeClass) *v1alpha1.AWSNodeClass {
	class := expandShortForms(own)
	if base := p.NodeClass.AWS; base != nil {
		class = mergeClasses(expandShortForms(base), class)
	}
	setAWSDefaults(p, class)
	return class
}

// expandShortForms expands the short forms into their terms. A nil class results in an empty one.
func expandShortForms(class *v1alpha1.AWSNodeClass) *v1alpha1.AWSNodeClass {
	if class == nil {
		return &v1alpha1.AWSNodeClass{}
	}
	c := class.DeepCopy()
	if c.AMIAlias != "" {
		c.AMISelectorTerms, c.AMIAlias = []v1alpha1.AMISelectorTerm{{Alias: c.AMIAlias}}, ""
	}
	c.AMIFamily = cmp.Or(c.AMIFamily, findFamily(c.AMISelectorTerms))
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

// findFamily returns the family of the first alias, or "" if there is none.
func findFamily(terms []v1alpha1.AMISelectorTerm) v1alpha1.AMIFamily {
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

// mergeClasses returns the upper class with its unset fields taken from the base. The short forms of
// both must be expanded.
func mergeClasses(base, upper *v1alpha1.AWSNodeClass) *v1alpha1.AWSNodeClass {
	c := upper.DeepCopy()
	if c.Role == "" && c.InstanceProfile == "" {
		c.Role, c.InstanceProfile = base.Role, base.InstanceProfile
	}
	c.AMIFamily = cmp.Or(c.AMIFamily, base.AMIFamily)
	c.AMISelectorTerms = defaultList(c.AMISelectorTerms, base.AMISelectorTerms)
	c.SubnetSelectorTerms = defaultList(c.SubnetSelectorTerms, base.SubnetSelectorTerms)
	c.SecurityGroupSelectorTerms = defaultList(c.SecurityGroupSelectorTerms, base.SecurityGroupSelectorTerms)
	c.AssociatePublicIPAddress = cmp.Or(c.AssociatePublicIPAddress, base.AssociatePublicIPAddress)
	c.CapacityReservationSelectorTerms = defaultList(c.CapacityReservationSelectorTerms, base.CapacityReservationSelectorTerms)
	c.Tags = mergeMaps(base.Tags, c.Tags)
	c.TagKeys = mergeTagKeys(base.TagKeys, c.TagKeys)
	c.Kubelet = mergeKubelets(base.Kubelet, c.Kubelet)
	c.UserData = cmp.Or(c.UserData, base.UserData)
	c.BlockDeviceMappings = defaultList(c.BlockDeviceMappings, base.BlockDeviceMappings)
	c.InstanceStorePolicy = cmp.Or(c.InstanceStorePolicy, base.InstanceStorePolicy)
	c.MetadataOptions = mergeMetadataOptions(base.MetadataOptions, c.MetadataOptions)
	c.DetailedMonitoring = cmp.Or(c.DetailedMonitoring, base.DetailedMonitoring)
	return c
}

func defaultList[T any](list, otherwise []T) []T {
	if list != nil {
		return list
	}
	return otherwise
}

func defaultMap[M ~map[K]V, K comparable, V any](m, otherwise M) M {
	if m != nil {
		return m
	}
	return otherwise
}

// mergeMaps merges two maps. The upper map's value is used for a key in both.
func mergeMaps(base, upper map[string]string) map[string]string {
	if base == nil {
		return upper
	}
	all := maps.Clone(base)
	maps.Copy(all, upper)
	return all
}

func mergeTagKeys(base, upper *v1alpha1.AWSTagKeys) *v1alpha1.AWSTagKeys {
	if base == nil || upper == nil {
		return cmp.Or(upper, base)
	}
	return &v1alpha1.AWSTagKeys{
		CostCode: cmp.Or(upper.CostCode, base.CostCode),
		Project:  cmp.Or(upper.Project, base.Project),
		NodePool: cmp.Or(upper.NodePool, base.NodePool),
	}
}

func mergeKubelets(base, upper *v1alpha1.AWSKubelet) *v1alpha1.AWSKubelet {
	if base == nil || upper == nil {
		return cmp.Or(upper, base)
	}
	return &v1alpha1.AWSKubelet{
		ClusterDNS:                  defaultList(upper.ClusterDNS, base.ClusterDNS),
		MaxPods:                     cmp.Or(upper.MaxPods, base.MaxPods),
		PodsPerCore:                 cmp.Or(upper.PodsPerCore, base.PodsPerCore),
		SystemReserved:              defaultMap(upper.SystemReserved, base.SystemReserved),
		KubeReserved:                defaultMap(upper.KubeReserved, base.KubeReserved),
		EvictionHard:                defaultMap(upper.EvictionHard, base.EvictionHard),
		EvictionSoft:                defaultMap(upper.EvictionSoft, base.EvictionSoft),
		EvictionSoftGracePeriod:     defaultMap(upper.EvictionSoftGracePeriod, base.EvictionSoftGracePeriod),
		EvictionMaxPodGracePeriod:   cmp.Or(upper.EvictionMaxPodGracePeriod, base.EvictionMaxPodGracePeriod),
		ImageGCHighThresholdPercent: cmp.Or(upper.ImageGCHighThresholdPercent, base.ImageGCHighThresholdPercent),
		ImageGCLowThresholdPercent:  cmp.Or(upper.ImageGCLowThresholdPercent, base.ImageGCLowThresholdPercent),
		CPUCFSQuota:                 cmp.Or(upper.CPUCFSQuota, base.CPUCFSQuota),
	}
}

func mergeMetadataOptions(base, upper *v1alpha1.MetadataOptions) *v1alpha1.MetadataOptions {
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
