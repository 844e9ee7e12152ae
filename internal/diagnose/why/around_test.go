package why_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/why"
)

func newClaim(class *string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: class, VolumeName: "pv-1"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
	}
}

func newIngress(class string) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: networkingv1.IngressSpec{IngressClassName: ptr.To(class), DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
		}},
		Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}}},
	}
}

func newTenant(generation int64, conditions ...metav1.Condition) *v1alpha1.Tenant {
	t := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: generation}}
	t.Status.ObservedGeneration, t.Status.Conditions = 1, conditions
	return t
}

func newNamespace(tenant string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if tenant != "" {
		n.Labels = map[string]string{v1alpha1.TenantLabel: tenant}
	}
	return n
}

// TestAround tests the kinds that are neither scheduled nor create pods. It fails if a
// transient state is reported as Bad, or a permanent fault as Waiting.
func TestAround(t *testing.T) {
	late := &storagev1.StorageClass{VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	served := map[string]*corev1.Service{"web": {Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "web"}}}}
	refused := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNamespaceNotOwned, Message: "namespace shop exists already"}
	for name, c := range map[string]struct {
		kind     string
		object   client.Object
		around   why.Around
		hidden   []string
		events   []corev1.Event
		verdict  why.Verdict
		wantText string
	}{
		"a claim that is bound":        {kind: "persistentvolumeclaim", object: newClaim(ptr.To("fast"), corev1.ClaimBound), verdict: why.Good, wantText: "pv-1"},
		"whose volume is lost":         {kind: "persistentvolumeclaim", object: newClaim(ptr.To("fast"), corev1.ClaimLost), verdict: why.Bad, wantText: "no longer exists"},
		"of no class":                  {kind: "persistentvolumeclaim", object: newClaim(nil, corev1.ClaimPending), verdict: why.Bad, wantText: "no default one"},
		"of a class that is missing":   {kind: "persistentvolumeclaim", object: newClaim(ptr.To("fast"), corev1.ClaimPending), verdict: why.Bad, wantText: "there is no StorageClass fast"},
		"of a class that is hidden":    {kind: "persistentvolumeclaim", object: newClaim(ptr.To("fast"), corev1.ClaimPending), hidden: []string{"storageclass"}, verdict: why.Good, wantText: "ask a platform admin"},
		"that no pod uses":             {kind: "persistentvolumeclaim", object: newClaim(ptr.To("fast"), corev1.ClaimPending), around: why.Around{StorageClass: late}, verdict: why.Waiting, wantText: "no pod uses it"},
		"that a pod uses":              {kind: "persistentvolumeclaim", object: newClaim(ptr.To("fast"), corev1.ClaimPending), around: why.Around{StorageClass: late, Users: []string{"web-1"}}, verdict: why.Waiting, wantText: "croft why pod/web-1 -n shop"},
		"that cannot be provisioned":   {kind: "persistentvolumeclaim", object: newClaim(ptr.To("fast"), corev1.ClaimPending), around: why.Around{StorageClass: late}, events: []corev1.Event{newEvent("PersistentVolumeClaim", "data", "ProvisioningFailed", "ebs", "no quota for volumes")}, verdict: why.Bad, wantText: "no quota for volumes"},
		"an Ingress that is served":    {kind: "ingress", object: newIngress("nginx"), around: why.Around{IngressClass: &networkingv1.IngressClass{}, Services: served, Ready: map[string]int{"web": 2}}, verdict: why.Good, wantText: "ready endpoints"},
		"of no such class":             {kind: "ingress", object: newIngress("nginx"), around: why.Around{Services: served, Ready: map[string]int{"web": 2}}, verdict: why.Bad, wantText: "no IngressClass nginx"},
		"of no such Service":           {kind: "ingress", object: newIngress("nginx"), around: why.Around{IngressClass: &networkingv1.IngressClass{}}, verdict: why.Bad, wantText: "there is no Service web"},
		"whose Service has no pods":    {kind: "ingress", object: newIngress("nginx"), around: why.Around{IngressClass: &networkingv1.IngressClass{}, Services: served}, verdict: why.Bad, wantText: "no pod with the labels {app=web} is ready"},
		"endpoints that are hidden":    {kind: "ingress", object: newIngress("nginx"), hidden: []string{"endpointslice"}, around: why.Around{IngressClass: &networkingv1.IngressClass{}, Services: served}, verdict: why.Good},
		"a tenant that is refused":     {kind: "tenant", object: newTenant(1, refused), verdict: why.Bad, wantText: "exists already"},
		"that is Ready":                {kind: "tenant", object: newTenant(1, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}), verdict: why.Good, wantText: "as the operator last observed it"},
		"that is not observed yet":     {kind: "tenant", object: newTenant(2), verdict: why.Waiting, wantText: "has not observed its latest declaration"},
		"a namespace of no tenant":     {kind: "namespace", object: newNamespace(""), verdict: why.Good, wantText: "belongs to no tenant"},
		"that was kept":                {kind: "namespace", object: newNamespace("gone"), verdict: why.Good, wantText: "was retained from tenant gone"},
		"of a tenant that is not read": {kind: "namespace", object: newNamespace("gone"), hidden: []string{"tenant"}, verdict: why.Good, wantText: "belongs to tenant gone"},
		"of a tenant that is refused":  {kind: "namespace", object: newNamespace("shop"), around: why.Around{Tenant: newTenant(1, refused)}, verdict: why.Bad, wantText: "exists already"},
	} {
		t.Run(name, func(t *testing.T) {
			story := why.ExplainSnapshot(&why.Snapshot{
				Target: why.Target{Kind: c.kind, Namespace: "shop", Name: c.object.GetName()}, Object: c.object, Around: c.around, Hidden: c.hidden, Events: c.events,
			})
			text := story.Summary
			for _, step := range story.Steps {
				text += "\n" + step.Object + ": " + step.Observation
			}
			if story.Verdict != c.verdict || !strings.Contains(text, c.wantText) {
				t.Errorf("%s, want %s and %q:\n%s", story.Verdict, c.verdict, c.wantText, text)
			}
		})
	}
}

// TestStrays fails if a pod on a pool of another tenant is reported as healthy, whether or
// not its node is readable.
func TestStrays(t *testing.T) {
	for name, hidden := range map[string]bool{"by its node": false, "by what it selects": true} {
		t.Run(name, func(t *testing.T) {
			s := newWaitingStep()
			s.Pods[0].Spec.NodeName = "node-1"
			s.Pods[0].Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
			s.Rules = &v1alpha1.TenantRules{Spec: v1alpha1.TenantRulesSpec{Tenant: "tenant-a", Pools: []string{"pool-a"}}}
			if !hidden {
				s.Nodes = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{key: "pool-a"}}}}
			}
			if story := why.ExplainSnapshot(s); story.Verdict != why.Good {
				t.Errorf("it is where it may be: %+v", story)
			}
			s.Rules.Spec.Pools = []string{"pool-b"}
			if story := why.ExplainSnapshot(s); story.Verdict != why.Bad || story.First == nil || story.First.ID != "wrong-pool" {
				t.Errorf("it runs where it may not: %+v", story)
			}
		})
	}
}
