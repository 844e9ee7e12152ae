package estate

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
)

// allowancesOf are the tenant's own, the platform's where it gives none, and the
// builtin ones where the platform gives none either.
func allowancesOf(defaults, own *v1alpha1.Allowances) v1alpha1.Allowances {
	builtin := builtinAllowances()
	return v1alpha1.Allowances{
		ServiceTypes:                     first(own.ServiceTypes, defaults.ServiceTypes, builtin.ServiceTypes),
		Registries:                       first(own.Registries, defaults.Registries, builtin.Registries),
		ImagePullPolicies:                first(own.ImagePullPolicies, defaults.ImagePullPolicies, builtin.ImagePullPolicies),
		PriorityClasses:                  first(own.PriorityClasses, defaults.PriorityClasses, builtin.PriorityClasses),
		RuntimeClasses:                   first(own.RuntimeClasses, defaults.RuntimeClasses, builtin.RuntimeClasses),
		StorageClasses:                   first(own.StorageClasses, defaults.StorageClasses, builtin.StorageClasses),
		IngressClasses:                   first(own.IngressClasses, defaults.IngressClasses, builtin.IngressClasses),
		GatewayClasses:                   first(own.GatewayClasses, defaults.GatewayClasses, builtin.GatewayClasses),
		CSIDrivers:                       first(own.CSIDrivers, defaults.CSIDrivers, builtin.CSIDrivers),
		MaxTerminationGracePeriodSeconds: cmp.Or(own.MaxTerminationGracePeriodSeconds, defaults.MaxTerminationGracePeriodSeconds, builtin.MaxTerminationGracePeriodSeconds),
		DoNotDisrupt:                     cmp.Or(own.DoNotDisrupt, defaults.DoNotDisrupt, builtin.DoNotDisrupt),
	}
}

// builtinAllowances refuse what reaches beyond the tenant, and leave open what
// only a platform can know the names of.
func builtinAllowances() v1alpha1.Allowances {
	all := []string{"*"}
	return v1alpha1.Allowances{
		ServiceTypes:                     []corev1.ServiceType{corev1.ServiceTypeClusterIP},
		Registries:                       all,
		ImagePullPolicies:                []corev1.PullPolicy{corev1.PullAlways},
		PriorityClasses:                  []string{},
		RuntimeClasses:                   []string{},
		StorageClasses:                   all,
		IngressClasses:                   all,
		GatewayClasses:                   all,
		CSIDrivers:                       []string{},
		MaxTerminationGracePeriodSeconds: ptr.To[int64](3600),
		DoNotDisrupt:                     ptr.To(false),
	}
}

// first is the first list that is given; an empty list is given, nil is not.
func first[T any](lists ...[]T) []T {
	for _, l := range lists {
		if l != nil {
			return l
		}
	}
	return nil
}
