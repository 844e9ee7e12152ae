package policy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// buildDeviceAttacks request devices as only administrators may, and by pods.
func (s scene) buildDeviceAttacks() []attack.Attack {
	claim := &resourcev1.ResourceClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaim"}, ObjectMeta: s.makeMeta("claim-device-as-admin"),
	}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "other.example.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1, AdminAccess: ptr.To(true),
	}}}
	return append(attack.WithReason("admin access reaches devices that others use", []string{"https://github.com/kubernetes/enhancements/issues/5018"},
		attack.NewCreate("claim-device-as-admin", "claim devices that others use, as an administrator", attack.ByAdminAccess, claim)),
		s.buildDevicePodAttacks()...)
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

// buildDevicePodAttacks use claims, and request devices without a claim.
func (s scene) buildDevicePodAttacks() []attack.Attack {
	byPods := func(rule string) attack.Stopper { return attack.ByPolicy(admissionpolicy.PodsPolicy, rule) }
	claims := func(n int) []corev1.PodResourceClaim {
		var all []corev1.PodResourceClaim
		for i := range n {
			all = append(all, corev1.PodResourceClaim{Name: fmt.Sprint("claim-", i), ResourceClaimName: ptr.To(fmt.Sprint("croft-claim-", i))})
		}
		return all
	}
	device := func(class string, in func(*corev1.PodSpec) *corev1.Container) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			c := in(p)
			if c.Resources.Limits == nil {
				c.Resources.Limits = corev1.ResourceList{}
			}
			c.Resources.Limits[corev1.ResourceName(deviceResource+class)] = resource.MustParse("1")
		}
	}
	container := func(p *corev1.PodSpec) *corev1.Container { return &p.Containers[0] }
	initial := func(p *corev1.PodSpec) *corev1.Container {
		p.InitContainers = []corev1.Container{*p.Containers[0].DeepCopy()}
		p.InitContainers[0].Name = "init"
		return &p.InitContainers[0]
	}
	pod := func(name string, edit func(*corev1.PodSpec)) client.Object {
		return s.makePod(name, func(p *corev1.Pod) { edit(&p.Spec) })
	}
	template := func(name string, edit func(*corev1.PodSpec)) client.Object {
		return s.makeDeployment(name, func(t *corev1.PodTemplateSpec) { edit(&t.Spec) })
	}
	many := func(p *corev1.PodSpec) { p.ResourceClaims = claims(maxDeviceClaims + 1) }
	all := []attack.Attack{
		attack.NewCreate("use-many-claims", "use more claims of devices than a pod may", byPods(DeviceClaimsRule), pod("use-many-claims", many)),
		attack.NewCreate("use-many-claims-in-template", "use more claims of devices than a pod may, by a Deployment", attack.ByWarning(admissionpolicy.PodTemplatesPolicy, DeviceClaimsRule), template("use-many-claims", many)),
		attack.NewCreate("use-some-claims", "use as many claims of devices as a pod may", attack.Nobody, pod("use-some-claims", func(p *corev1.PodSpec) { p.ResourceClaims = claims(maxDeviceClaims) })),
	}
	if !slices.Contains(s.attacker.Allowances.DeviceClasses, "*") {
		all = append(all,
			attack.NewCreate("run-with-other-device", "ask for a device of a class that is not the tenant's by a container's resources", byPods(DeviceClassRule), pod("run-with-other-device", device("other.example.com", container))),
			attack.NewCreate("init-with-other-device", "ask for a device of a class that is not the tenant's by an init container's resources", byPods(DeviceClassRule), pod("init-with-other-device", device("other.example.com", initial))),
			attack.NewCreate("run-with-other-device-in-template", "ask for a device of a class that is not the tenant's by a Deployment", attack.ByWarning(admissionpolicy.PodTemplatesPolicy, DeviceClassRule),
				template("run-with-other-device", device("other.example.com", container))),
		)
	}
	if own := s.findDeviceClass(); own != "" {
		all = append(all, attack.NewCreate("run-with-a-device", "ask for a device by a container's resources", attack.Nobody, pod("run-with-a-device", device(own, container))))
	}
	return attack.WithReason("devices are the most expensive part of a node, and every tenant's pods wait while the scheduler searches for them", nil, all...)
}
