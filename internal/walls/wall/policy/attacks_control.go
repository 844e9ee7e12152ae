package policy

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/rules/attack"
)

func makeCoreMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func makePolicyRule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// buildControlAttacks change the tenant's limits, or croft's own objects.
func (s scene) buildControlAttacks() []attack.Attack {
	return append(append(s.buildMarkAttacks(), s.buildNamespaceAttacks()...), s.buildDeviceAttacks()...)
}

// LeaseCount is a kind of object whose quota is zero in a scratch tenant.
const LeaseCount corev1.ResourceName = "count/leases.coordination.k8s.io"

// buildShareAttacks take more than the tenant's share.
func (s scene) buildShareAttacks() []attack.Attack {
	var all []attack.Attack
	open := attack.NewCreate("leave-memory-open", "run a container without a memory request or limit, which could take the whole node", attack.ByMutation("LimitRange"),
		s.makePod("leave-memory-open", func(p *corev1.Pod) {
			delete(p.Spec.Containers[0].Resources.Requests, corev1.ResourceMemory)
			delete(p.Spec.Containers[0].Resources.Limits, corev1.ResourceMemory)
		}))
	open.Outcome = attack.ExpectType(func(p *corev1.Pod) error {
		if p.Spec.Containers[0].Resources.Requests.Memory().IsZero() {
			return fmt.Errorf("the container still requests no memory")
		}
		return nil
	})
	idle := attack.NewCreate("run-without-requests", "run a container without CPU and memory, which gets the defaults of the LimitRange", attack.Nobody,
		s.makePod("run-without-requests", func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }))
	given := s.attacker.Limits.DefaultRequest
	idle.Outcome = attack.ExpectType(func(p *corev1.Pod) error {
		for name := range given {
			if _, ok := p.Spec.Containers[0].Resources.Requests[name]; !ok {
				return fmt.Errorf("the container requests no %s", name)
			}
		}
		return nil
	})
	all = append(all, open, idle)
	_, cpu := s.attacker.Quota[corev1.ResourceRequestsCPU]
	if cpu {
		all = append(all, attack.NewCreate("exceed-quota", "ask for more CPU than the quota", attack.ByQuota, s.makePod("exceed-quota", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1M")
			p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1M")
		})))
	}
	lease := &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"}, ObjectMeta: s.makeMeta("lease"),
	}
	if leases, ok := s.attacker.Quota[LeaseCount]; ok && leases.IsZero() {
		all = append(all, attack.NewCreate("exceed-object-count", "write more objects of a kind than the quota, and fill the control plane", attack.ByQuota, lease))
	} else {
		all = append(all, attack.NewCreate("hold-a-lease", "hold a Lease, as for the election of a leader", attack.Nobody, lease))
	}
	return attack.WithReason("resources that one tenant takes are not available to others", nil, all...)
}
