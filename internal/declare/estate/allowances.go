package estate

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
)

// These are the default maximum sizes of a tenant's objects, in bytes. BuiltinQuota bounds the
// number of objects. A change of one requires a change of the other, so that
// estatetest.MaxTenantBytes keeps the value that docs/explanation/walls.md states.
const (
	MaxObjectBytes      = 256 << 10
	MaxOtherObjectBytes = 48 << 10
	// MaxNoteBytes is the maximum size of Events, Leases, Elevations and TenantCallers, which are always
	// small.
	MaxNoteBytes = 8 << 10
)

// mergeAllowances returns the tenant's own allowances. A missing value is taken from the platform,
// and if it has none, from the built-in allowances.
func mergeAllowances(defaults, own *v1alpha1.Allowances) v1alpha1.Allowances {
	builtin := builtinAllowances()
	maxObjectBytes := cmp.Or(own.MaxObjectBytes, defaults.MaxObjectBytes, builtin.MaxObjectBytes)
	return v1alpha1.Allowances{
		ServiceTypes:                     firstSet(own.ServiceTypes, defaults.ServiceTypes, builtin.ServiceTypes),
		Registries:                       firstSet(own.Registries, defaults.Registries, builtin.Registries),
		ImagePullPolicies:                firstSet(own.ImagePullPolicies, defaults.ImagePullPolicies, builtin.ImagePullPolicies),
		Images:                           cmp.Or(own.Images, defaults.Images, builtin.Images),
		PriorityClasses:                  firstSet(own.PriorityClasses, defaults.PriorityClasses, builtin.PriorityClasses),
		PriorityClass:                    cmp.Or(own.PriorityClass, defaults.PriorityClass, builtin.PriorityClass),
		RuntimeClasses:                   firstSet(own.RuntimeClasses, defaults.RuntimeClasses, builtin.RuntimeClasses),
		RuntimeClass:                     cmp.Or(own.RuntimeClass, defaults.RuntimeClass, builtin.RuntimeClass),
		Seccomp:                          cmp.Or(own.Seccomp, defaults.Seccomp),
		HostUsers:                        cmp.Or(own.HostUsers, defaults.HostUsers),
		ServiceAccountToken:              cmp.Or(own.ServiceAccountToken, defaults.ServiceAccountToken),
		Trial:                            firstSet(own.Trial, defaults.Trial, builtin.Trial),
		StorageClasses:                   firstSet(own.StorageClasses, defaults.StorageClasses, builtin.StorageClasses),
		IngressClasses:                   firstSet(own.IngressClasses, defaults.IngressClasses, builtin.IngressClasses),
		GatewayClasses:                   firstSet(own.GatewayClasses, defaults.GatewayClasses, builtin.GatewayClasses),
		Issuers:                          firstSet(own.Issuers, defaults.Issuers, builtin.Issuers),
		IssuerTypes:                      firstSet(own.IssuerTypes, defaults.IssuerTypes, builtin.IssuerTypes),
		SourceHosts:                      firstSet(own.SourceHosts, defaults.SourceHosts, builtin.SourceHosts),
		CSIDrivers:                       firstSet(own.CSIDrivers, defaults.CSIDrivers, builtin.CSIDrivers),
		DeviceClasses:                    firstSet(own.DeviceClasses, defaults.DeviceClasses, builtin.DeviceClasses),
		VolumeTypes:                      firstSet(own.VolumeTypes, defaults.VolumeTypes, builtin.VolumeTypes),
		VolumeAttributesClasses:          firstSet(own.VolumeAttributesClasses, defaults.VolumeAttributesClasses, builtin.VolumeAttributesClasses),
		MaxVolumeSize:                    cmp.Or(own.MaxVolumeSize, defaults.MaxVolumeSize, builtin.MaxVolumeSize),
		ShareWith:                        firstSet(own.ShareWith, defaults.ShareWith, builtin.ShareWith),
		CloudIdentities:                  firstSet(own.CloudIdentities, defaults.CloudIdentities, builtin.CloudIdentities),
		ClusterIPs:                       firstSet(own.ClusterIPs, defaults.ClusterIPs, builtin.ClusterIPs),
		LoadBalancerClasses:              firstSet(own.LoadBalancerClasses, defaults.LoadBalancerClasses, builtin.LoadBalancerClasses),
		MaxTokenExpirationSeconds:        cmp.Or(own.MaxTokenExpirationSeconds, defaults.MaxTokenExpirationSeconds, builtin.MaxTokenExpirationSeconds),
		TokenSecrets:                     cmp.Or(own.TokenSecrets, defaults.TokenSecrets, builtin.TokenSecrets),
		MaxTerminationGracePeriodSeconds: cmp.Or(own.MaxTerminationGracePeriodSeconds, defaults.MaxTerminationGracePeriodSeconds, builtin.MaxTerminationGracePeriodSeconds),
		MaxObjectBytes:                   maxObjectBytes,
		MaxHelmReleaseBytes:              cmp.Or(own.MaxHelmReleaseBytes, defaults.MaxHelmReleaseBytes, maxObjectBytes),
		MaxOtherObjectBytes:              cmp.Or(own.MaxOtherObjectBytes, defaults.MaxOtherObjectBytes, builtin.MaxOtherObjectBytes),
		DoNotDisrupt:                     cmp.Or(own.DoNotDisrupt, defaults.DoNotDisrupt, builtin.DoNotDisrupt),
		Annotations:                      firstSet(own.Annotations, defaults.Annotations, builtin.Annotations),
		UnknownAnnotations:               cmp.Or(own.UnknownAnnotations, defaults.UnknownAnnotations, builtin.UnknownAnnotations),
	}
}

// builtinAllowances refuses objects that affect others, and allows any value of fields for
// which only a platform can name the valid values.
func builtinAllowances() v1alpha1.Allowances {
	all := []string{"*"}
	return v1alpha1.Allowances{
		ServiceTypes:                     []corev1.ServiceType{corev1.ServiceTypeClusterIP},
		Registries:                       all,
		ImagePullPolicies:                []corev1.PullPolicy{corev1.PullAlways},
		Images:                           &v1alpha1.Images{},
		PriorityClasses:                  []string{},
		PriorityClass:                    &v1alpha1.PodPriorityClass{},
		RuntimeClasses:                   []string{},
		RuntimeClass:                     &v1alpha1.PodRuntimeClass{},
		Trial:                            []string{},
		StorageClasses:                   all,
		IngressClasses:                   all,
		GatewayClasses:                   all,
		Issuers:                          all,
		IssuerTypes:                      []string{"selfSigned", "ca"},
		SourceHosts:                      all,
		CSIDrivers:                       []string{},
		DeviceClasses:                    []string{},
		VolumeTypes:                      []v1alpha1.VolumeType{},
		VolumeAttributesClasses:          []string{},
		MaxVolumeSize:                    ptr.To(resource.MustParse("1Ti")),
		ShareWith:                        []v1alpha1.Sharer{},
		CloudIdentities:                  []string{},
		ClusterIPs:                       []string{},
		LoadBalancerClasses:              []string{},
		MaxTokenExpirationSeconds:        ptr.To[int64](86400),
		TokenSecrets:                     ptr.To(false),
		MaxTerminationGracePeriodSeconds: ptr.To[int64](3600),
		MaxObjectBytes:                   ptr.To[int64](MaxObjectBytes),
		MaxHelmReleaseBytes:              ptr.To[int64](MaxObjectBytes),
		MaxOtherObjectBytes:              ptr.To[int64](MaxOtherObjectBytes),
		DoNotDisrupt:                     ptr.To(false),
		Annotations:                      []string{},
		UnknownAnnotations:               v1alpha1.UnknownWarn,
	}
}

// firstSet returns the first list that is not nil. An empty list counts as set.
func firstSet[T any](lists ...[]T) []T {
	for _, l := range lists {
		if l != nil {
			return l
		}
	}
	return nil
}
