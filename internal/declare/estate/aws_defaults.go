package estate

import (
	"cmp"
	"strings"

	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
)

// discoveryTag is the tag with which Karpenter's own guides mark a cluster's resources.
const discoveryTag = "karpenter.sh/discovery"

// setAWSDefaults sets unset fields to safe values, so that nothing depends on the provider's
// defaults. docs/reference/aws.md gives the reasons.
func setAWSDefaults(p *v1alpha1.PlatformSpec, c *v1alpha1.AWSNodeClass) {
	if c.AMISelectorTerms == nil && c.AMIFamily != v1alpha1.FamilyCustom {
		c.AMIFamily = cmp.Or(c.AMIFamily, v1alpha1.FamilyAL2023)
		alias := strings.ToLower(string(c.AMIFamily)) + "@latest"
		c.AMISelectorTerms = []v1alpha1.AMISelectorTerm{{Alias: v1alpha1.AMIAlias(alias)}}
	}
	if c.SubnetSelectorTerms == nil {
		c.SubnetSelectorTerms = []v1alpha1.SubnetSelectorTerm{{Tags: map[string]string{discoveryTag: p.ClusterName}}}
	}
	if c.SecurityGroupSelectorTerms == nil {
		c.SecurityGroupSelectorTerms = []v1alpha1.SecurityGroupSelectorTerm{{Tags: map[string]string{discoveryTag: p.ClusterName}}}
	}
	c.AssociatePublicIPAddress = cmp.Or(c.AssociatePublicIPAddress, ptr.To(false))
	c.DetailedMonitoring = cmp.Or(c.DetailedMonitoring, ptr.To(false))
	// With a hop limit of one, only the node itself gets a response, and no pod on it.
	c.MetadataOptions = mergeMetadataOptions(&v1alpha1.MetadataOptions{
		HTTPEndpoint: "enabled", HTTPProtocolIPv6: "disabled", HTTPPutResponseHopLimit: ptr.To[int64](1), HTTPTokens: "required",
	}, c.MetadataOptions)
	if len(p.ClusterDNS) > 0 {
		c.Kubelet = mergeKubelets(&v1alpha1.AWSKubelet{ClusterDNS: p.ClusterDNS}, c.Kubelet)
	}
	if c.BlockDeviceMappings == nil {
		c.BlockDeviceMappings = buildDefaultDisks(c.AMIFamily)
	}
	for i := range c.BlockDeviceMappings {
		protectVolume(&c.BlockDeviceMappings[i].EBS)
	}
}

// buildDefaultDisks returns the disks that a family's images use, in Karpenter's default sizes.
// Bottlerocket uses one disk for itself and one for pods' data. The disks of custom images are
// unknown.
func buildDefaultDisks(family v1alpha1.AMIFamily) []v1alpha1.BlockDeviceMapping {
	disk := func(name string, size v1alpha1.VolumeSize) v1alpha1.BlockDeviceMapping {
		return v1alpha1.BlockDeviceMapping{DeviceName: name, EBS: v1alpha1.EBSVolume{VolumeSize: size}}
	}
	switch family {
	case v1alpha1.FamilyCustom:
		return nil
	case v1alpha1.FamilyBottlerocket:
		return []v1alpha1.BlockDeviceMapping{disk("/dev/xvda", "4Gi"), disk("/dev/xvdb", "20Gi")}
	default:
		return []v1alpha1.BlockDeviceMapping{disk("/dev/xvda", "20Gi")}
	}
}

// protectVolume sets the defaults of a volume: it is encrypted and deleted with its node.
func protectVolume(v *v1alpha1.EBSVolume) {
	v.DeleteOnTermination = cmp.Or(v.DeleteOnTermination, ptr.To(true))
	v.VolumeType = cmp.Or(v.VolumeType, "gp3")
	if v.SnapshotID == "" {
		// EC2 accepts no encryption setting for a volume from a snapshot.
		v.Encrypted = cmp.Or(v.Encrypted, ptr.To(true))
	}
}
