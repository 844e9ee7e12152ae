package policy

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/rules/attack"
)

// buildDeviceAttacks request devices as only administrators may.
func (s scene) buildDeviceAttacks() []attack.Attack {
	claim := &resourcev1.ResourceClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaim"}, ObjectMeta: s.makeMeta("claim-device-as-admin"),
	}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "other.example.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1, AdminAccess: ptr.To(true),
	}}}
	return attack.WithReason("admin access reaches devices that others use", []string{"https://github.com/kubernetes/enhancements/issues/5018"},
		attack.NewCreate("claim-device-as-admin", "claim devices that others use, as an administrator", attack.ByAdminAccess, claim))
}

// findDeviceClass returns a class that the tenant may request, or "".
func (s scene) findDeviceClass() string {
	switch classes := s.attacker.Allowances.DeviceClasses; {
	case len(classes) == 0:
		return ""
	case classes[0] == "*":
		return "gpu.example.com"
	default:
		return classes[0]
	}
}
