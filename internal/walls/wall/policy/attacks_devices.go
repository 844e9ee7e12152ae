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

// buildDeviceAttacks request devices as a team would, as only administrators may, and in ways that occupy
// the scheduler.
func (s scene) buildDeviceAttacks() []attack.Attack {
	return slices.Concat(s.buildDeviceClaimAttacks(), s.buildSlowClaimAttacks(), s.buildDevicePodAttacks())
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

func (s scene) makeResourceClaim(name string, requests ...resourcev1.DeviceRequest) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaim"}, ObjectMeta: s.makeMeta(name),
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}},
	}
}

func (s scene) makeResourceClaimTemplate(name string, requests ...resourcev1.DeviceRequest) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaimTemplate"}, ObjectMeta: s.makeMeta(name),
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: s.makeResourceClaim(name, requests...).Spec},
	}
}

// requestExactly requests a number of devices of one class. requestAnyOf requests one device of the first
// class that has a free one.
func requestExactly(name, class string, count int64, edits ...func(*resourcev1.ExactDeviceRequest)) resourcev1.DeviceRequest {
	request := resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
	}}
	for _, edit := range edits {
		edit(request.Exactly)
	}
	return request
}

func requestAnyOf(name string, classes ...string) resourcev1.DeviceRequest {
	request := resourcev1.DeviceRequest{Name: name}
	for i, class := range classes {
		request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: fmt.Sprint("choice-", i), DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		})
	}
	return request
}

func repeatRequest(n int, of func(name string) resourcev1.DeviceRequest) []resourcev1.DeviceRequest {
	var all []resourcev1.DeviceRequest
	for i := range n {
		all = append(all, of(fmt.Sprint("request-", i)))
	}
	return all
}

// buildDeviceClaimAttacks request classes that the tenant may not request, and classes that it may.
func (s scene) buildDeviceClaimAttacks() []attack.Attack {
	own, byClass := s.findDeviceClass(), attack.ByPolicy(DevicesPolicy, DeviceClassRule)
	const other = "other.example.com"
	as := func(admin *resourcev1.ExactDeviceRequest) { admin.AdminAccess = ptr.To(true) }
	all := attack.WithReason("admin access reaches devices that others use", []string{"https://github.com/kubernetes/enhancements/issues/5018"},
		attack.NewCreate("claim-device-as-admin", "claim devices that others use, as an administrator", attack.ByAdminAccess, s.makeResourceClaim("claim-device-as-admin", requestExactly("gpu", other, 1, as))))
	if !slices.Contains(s.attacker.Allowances.DeviceClasses, "*") {
		creating := func(name, summary string, o client.Object) attack.Attack {
			return attack.NewCreate(name, summary, byClass, o)
		}
		all = append(all, attack.WithReason("devices are the most expensive part of a node, and every tenant's pods wait while the scheduler searches for them", nil,
			creating("claim-other-device", "claim a device of a class that is not the tenant's", s.makeResourceClaim("claim-other-device", requestExactly("gpu", other, 1))),
			creating("claim-all-other-devices", "claim all devices of a class that is not the tenant's", s.makeResourceClaim("claim-all-other-devices", requestExactly("gpu", other, 0,
				func(r *resourcev1.ExactDeviceRequest) { r.AllocationMode = resourcev1.DeviceAllocationModeAll }))),
			creating("claim-other-device-by-template", "have a device of a class that is not the tenant's claimed for pods", s.makeResourceClaimTemplate("claim-other-device", requestExactly("gpu", other, 1))),
		)...)
		if own != "" {
			all = append(all,
				creating("claim-other-device-as-alternative", "claim a device of another class if none of one's own is free", s.makeResourceClaim("claim-other-device-as-alternative", requestAnyOf("gpu", own, other))),
				creating("claim-other-device-second", "claim a device of another class together with one of one's own", s.makeResourceClaim("claim-other-device-second", requestExactly("gpu", own, 1), requestExactly("nic", other, 1))),
			)
		}
	}
	if own == "" {
		return all
	}
	return append(all,
		attack.NewCreate("claim-a-device", "claim a device", attack.Nobody, s.makeResourceClaim("claim-a-device", requestExactly("gpu", own, 1))),
		attack.NewCreate("claim-some-devices", "claim as many devices as one claim may, by as many requests", attack.Nobody,
			s.makeResourceClaim("claim-some-devices", repeatRequest(maxDeviceRequests, func(name string) resourcev1.DeviceRequest {
				return requestExactly(name, own, maxDevices/maxDeviceRequests)
			})...)),
		attack.NewCreate("claim-all-devices", "claim all devices of a node", attack.Nobody,
			s.makeResourceClaim("claim-all-devices", requestExactly("gpu", own, 0, func(r *resourcev1.ExactDeviceRequest) { r.AllocationMode = resourcev1.DeviceAllocationModeAll }))),
		attack.NewCreate("claim-one-of-several-devices", "claim the first device that is free", attack.Nobody, s.makeResourceClaim("claim-one-of-several-devices", requestAnyOf("gpu", own, own))),
		attack.NewCreate("claim-devices-for-pods", "have a device claimed for each pod", attack.Nobody, s.makeResourceClaimTemplate("claim-devices-for-pods", requestExactly("gpu", own, 1))),
	)
}

// buildSlowClaimAttacks request the tenant's own classes in ways that take the scheduler long.
func (s scene) buildSlowClaimAttacks() []attack.Attack {
	own := s.findDeviceClass()
	if own == "" {
		return nil
	}
	slow := func(name, summary string, requests ...resourcev1.DeviceRequest) attack.Attack {
		return attack.NewCreate(name, summary, attack.ByPolicy(DevicesPolicy, DeviceBoundsRule), s.makeResourceClaim(name, requests...))
	}
	selectors := slices.Repeat([]resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `true`}}}, maxDeviceSelectors+1)
	return attack.WithReason("the scheduler tries combinations of devices for seconds, and places no other pod meanwhile", []string{"https://github.com/kubernetes/enhancements/issues/4381"},
		slow("claim-by-many-requests", "claim devices by more requests than a claim may have",
			repeatRequest(maxDeviceRequests+1, func(name string) resourcev1.DeviceRequest { return requestExactly(name, own, 1) })...),
		slow("claim-by-many-alternatives", "claim devices by requests with alternatives, together more than a claim may have",
			repeatRequest(maxDeviceRequests/2+1, func(name string) resourcev1.DeviceRequest { return requestAnyOf(name, own, own) })...),
		slow("claim-many-devices", "claim more devices by one request than a claim may", requestExactly("gpu", own, maxDevices+1)),
		slow("claim-many-devices-together", "claim more devices by two requests than a claim may", requestExactly("gpu", own, maxDevices), requestExactly("nic", own, 1)),
		slow("claim-by-many-selectors", "have each device evaluated by more expressions than a claim may have", requestExactly("gpu", own, 1, func(r *resourcev1.ExactDeviceRequest) { r.Selectors = selectors })),
		attack.NewCreate("claim-many-devices-by-template", "have more devices claimed for each pod than a claim may", attack.ByPolicy(DevicesPolicy, DeviceBoundsRule),
			s.makeResourceClaimTemplate("claim-many-devices", requestExactly("gpu", own, maxDevices+1))),
	)
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
