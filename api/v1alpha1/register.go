package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "croft.dev", Version: "v1alpha1"}

// SchemeBuilder collects the functions that add this package's kinds to a scheme.
var SchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Platform{}, &PlatformList{},
		&Pool{}, &PoolList{},
		&Tenant{}, &TenantList{},
		&SecondaryNetwork{}, &SecondaryNetworkList{},
		&TenantRules{}, &TenantRulesList{},
		&Elevation{}, &ElevationList{},
		&TenantNamespace{}, &TenantNamespaceList{},
		&TenantCaller{}, &TenantCallerList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds this package's kinds to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
