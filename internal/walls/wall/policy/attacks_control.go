package policy

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

func makeCoreMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func makePolicyRule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// buildControlAttacks change the tenant's limits, or write objects that controllers act on.
func (s scene) buildControlAttacks() []attack.Attack {
	held := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: s.makeMeta(name)}
	}
	stay := func(o client.Object) { o.SetFinalizers([]string{"example.com/stay"}) }
	byFinalizers := attack.ByPolicy(FinalizersPolicy, FinalizersRule)
	byPods := attack.ByPolicy(admissionpolicy.PodsPolicy, FinalizersRule)
	finalized := func(o client.Object, finalizers ...string) client.Object {
		o.SetFinalizers(finalizers)
		return o
	}
	// toldByTenant sends the request as a controller of the whole cluster that creates an
	// object from a tenant's template.
	toldByTenant := func(a attack.Attack) attack.Attack {
		a.AsGroups = []string{"system:masters"}
		return a
	}
	template := func(name string) client.Object {
		return s.makeDeployment(name, func(t *corev1.PodTemplateSpec) { t.Finalizers = []string{"example.com/stay"} })
	}
	all := attack.WithReason("a finalizer that no controller removes keeps its namespace, and the tenant's name, for ever", nil,
		attack.NewCreate("stay-for-ever", "write an object that cannot be deleted, by a finalizer", byFinalizers, finalized(held("stay"), "example.com/stay")),
		attack.NewCreate("stay-for-ever-as-pod", "write a pod that cannot be deleted, by a finalizer", byPods, finalized(s.makePod("stay"), "example.com/stay")),
		attack.NewUpdate("stay-for-ever-later", "keep an existing object from being deleted, by a finalizer", byFinalizers, held("stay-for-ever-later"),
			func(c *corev1.ConfigMap) { stay(c) }),
		attack.NewCreate("stay-for-ever-as-claim", "write an object with the finalizer of volume claims, which no controller removes", byFinalizers, finalized(held("stay-as-claim"), claimFinalizer)),
		attack.NewCreate("stay-for-ever-as-job", "write an object with the finalizer of Jobs' pods, which no controller removes", byFinalizers, finalized(held("stay-as-job"), jobFinalizer)),
		attack.NewCreate("stay-for-dependents", "write an object that waits for others when it is deleted", byFinalizers, finalized(held("stay-for-dependents"), metav1.FinalizerDeleteDependents)),
		attack.NewCreate("stay-for-ever-as-pod-of-claim", "write a pod with the finalizer of volume claims, which no controller removes", byPods, finalized(s.makePod("stay-as-claim"), claimFinalizer)),
		attack.NewCreate("stay-for-ever-in-template", "put a finalizer on the pods of a Deployment", attack.ByWarning(admissionpolicy.PodTemplatesPolicy, FinalizersRule), template("stay-in-template")),
		toldByTenant(attack.NewCreate("stay-for-ever-by-template", "have a controller create a pod with the finalizer that a template has", byPods, finalized(s.makePod("stay-by-template"), "example.com/stay"))),
		toldByTenant(attack.NewCreate("stay-for-ever-by-claim-template", "have a controller create a volume claim with the finalizer that a StatefulSet's claim template has", byFinalizers, finalized(s.makeVolumeClaim("stay-by-claim-template"), "example.com/stay"))),
		attack.NewCreate("use-known-finalizer", "write a pod with the finalizer of Jobs' pods", attack.Nobody, finalized(s.makePod("protected"), jobFinalizer)),
		attack.NewCreate("use-finalizer-of-claims", "write a volume claim with its own finalizer", attack.Nobody, finalized(s.makeVolumeClaim("protected"), claimFinalizer)),
		attack.NewCreate("write-a-configmap", "write a ConfigMap", attack.Nobody, held("write-a-configmap")),
	)
	owned := func(o client.Object, apiVersion, kind string) client.Object {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: s.own, UID: "0c1f7d5e-3c4b-4a5e-9d67-0123456789ab", BlockOwnerDeletion: ptr.To(true)}})
		return o
	}
	byOwners := attack.ByPolicy(FinalizersPolicy, OwnersRule)
	all = append(all, attack.WithReason("an owner is deleted only after its dependents, and lookups of missing owners keep the garbage collector busy", nil,
		attack.NewCreate("be-owned-by-namespace", "write an object that its Namespace waits for when it is deleted", byOwners, owned(held("of-namespace"), "v1", "Namespace")),
		attack.NewCreate("be-owned-by-node", "write an object that a Node waits for when it is deleted", byOwners, owned(held("of-node"), "v1", "Node")),
		attack.NewCreate("be-owned-by-nodeclaim", "write an object that a NodeClaim waits for when it is deleted", byOwners, owned(held("of-nodeclaim"), "karpenter.sh/v1", "NodeClaim")),
		attack.NewCreate("be-owned-by-tenant", "write an object that the Tenant waits for when it is deleted", byOwners, owned(held("of-tenant"), v1alpha1.GroupVersion.String(), "Tenant")),
		attack.NewUpdate("be-owned-by-node-later", "make a Node wait for an existing object", byOwners, held("of-node-later"),
			func(c *corev1.ConfigMap) { owned(c, "v1", "Node") }),
		// The owner's kind is unknown. If the garbage collector found that an owner does not
		// exist, it would delete the owned object, sometimes before the attack changes it.
		attack.NewUpdate("be-owned-by-node-of-that-uid", "make a Node of the same uid wait for an object that another object owns", byOwners,
			owned(held("of-unknown-later"), "example.com/v1", "Owner"), func(o client.Object) { owned(o, "v1", "Node") }),
		attack.NewCreate("be-owned-by-node-as-pod", "write a pod that a Node waits for when it is deleted", attack.ByPolicy(admissionpolicy.PodsPolicy, OwnersRule), owned(s.makePod("of-node"), "v1", "Node")),
		attack.NewCreate("be-owned-by-a-configmap", "write an object that another one owns", attack.Nobody, owned(held("of-configmap"), "v1", "ConfigMap")),
	)...)
	return append(append(append(all, s.buildMarkAttacks()...), s.buildNamespaceAttacks()...), s.buildDeviceAttacks()...)
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
