package doctor_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/prove/scratch"
)

const faulty = `
platform: {clusterName: demo, placement: Gatekeeper, nodeClass: {kwok: {}}, network: {platformNamespaces: [ingress]}}
pools:
  apps: {instances: {instanceTypes: [t3a.large]}, secondaryNetworks: [n4]}
  other: {instances: {instanceTypes: [t3a.large]}}
  cloud: {nodeClass: {aws: {role: nodes, kubelet: {clusterDNS: [10.0.0.10]}}}}
secondaryNetworks: {n4: {zones: [{zone: a, cidr: 10.0.4.0/24, podCIDR: 10.0.4.32/27, subnet: subnet-0123456789abcdef0}]}}
tenants: {shop: {pool: apps, access: [{group: shop, role: operator}], secrets: {registry: {}}, policy: {priorityClasses: [gold], issuers: ['ClusterIssuer/letsencrypt']}}}
`

// tried lists the checks that send requests of their own, outside of Gather.
var tried = []string{"attacks", "kubelets"}

// yesterday is the same for all calls of faults: findings contain it in their messages.
var yesterday = metav1.NewTime(time.Now().Add(-24 * time.Hour))

// makeFaults returns objects with a fault for every check.
func makeFaults() []client.Object {
	old := yesterday
	key := v1alpha1.DefaultNodePoolKey
	pool := func(name string) *karpenterv1.NodePool {
		p := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: old}}
		p.Spec.Template.Labels = map[string]string{key: name}
		p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: key, Value: name, Effect: corev1.TaintEffectNoSchedule}}
		p.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "nobody"}
		p.Spec.Limits = karpenterv1.Limits{corev1.ResourceCPU: resource.MustParse("2")}
		p.Status.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		return p
	}
	node := func(name string, taints ...corev1.Taint) (*corev1.Node, *karpenterv1.NodeClaim) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{key: "other", karpenterv1.NodePoolLabelKey: "other"}}}
		n.Spec.Taints = taints
		c := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: old, Labels: map[string]string{karpenterv1.NodePoolLabelKey: "other"}}}
		c.Status.NodeName = name
		return n, c
	}
	drifted, driftedClaim := node("drifted", corev1.Taint{Key: "stray", Effect: corev1.TaintEffectNoSchedule})
	driftedClaim.StatusConditions().SetTrue(karpenterv1.ConditionTypeDrifted)
	for i := range driftedClaim.Status.Conditions {
		driftedClaim.Status.Conditions[i].LastTransitionTime = old
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "drifted"}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}}
	flux := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "kustomize-controller", Labels: map[string]string{"app.kubernetes.io/part-of": "flux"}}}
	ended := newNamespace("ended", "shop")
	ended.DeletionTimestamp, ended.Finalizers = &old, []string{"example.org/held"}
	left := newNamespace("croft-verify-aaaaa-a", "croft-verify-aaaaa-a")
	scratch.Mark(left, old.Time)
	webhook := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "injector"}, Webhooks: []admissionv1.MutatingWebhook{{
		Name: "inject.example.org",
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
	}}}
	allocations := map[string]any{}
	for i := range 32 {
		allocations[fmt.Sprint(32+i)] = map[string]any{}
	}
	addresses := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "kind": "IPPool", "metadata": map[string]any{"namespace": "kube-system", "name": "n4"},
		"spec": map[string]any{"range": "10.0.4.0/24", "allocations": allocations},
	}}
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: networkingv1.IngressClassSpec{Controller: "example.org/ingress"}}
	all := budget.DeepCopy()
	all.Name = "all"
	contradiction := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "platform"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer,
		Min:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}}}}
	dns := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns", Labels: map[string]string{"k8s-app": "kube-dns"}}}
	dns.Spec.ClusterIP, dns.Spec.Ports = "10.1.0.10", []corev1.ServicePort{{Port: 53}}
	silent := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "no route"}}},
	}}
	issuer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer", "metadata": map[string]any{"name": "letsencrypt"},
		"spec": map[string]any{"acme": map[string]any{"solvers": []any{map[string]any{"http01": map[string]any{"ingress": map[string]any{}}}}}},
	}}
	agreement := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "croft-caller-billing",
		Labels:      map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.TenantLabel: "shop", v1alpha1.ConsentLabel: "billing"},
		Annotations: map[string]string{v1alpha1.UntilAnnotation: old.UTC().Format(time.RFC3339)},
	}}
	preview := &v1alpha1.TenantNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "preview"}}
	preview.Status.Tenant, preview.Status.Until = "shop", &old
	ignored := &v1alpha1.TenantCaller{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"}}
	ignored.Spec.Tenant = "billing"
	var objects []client.Object
	for i := range 100 {
		objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("waiting-%d", i)}})
	}
	return append(objects,
		all, contradiction, dns, silent, issuer, agreement, preview, ignored,
		pool("apps"), pool("foreign"), drifted, driftedClaim, pod, budget, set, flux, left, ended, newNamespace("shop", "shop"), webhook, addresses, class,
	)
}

// TestOneCheck fails if a check alone finds less than with all others, since a step that reads its data is
// missing, with either placement. It also fails if the check load reads the kinds of other checks.
func TestOneCheck(t *testing.T) {
	for _, placement := range []string{"Gatekeeper", "Native"} {
		c := newFakeCluster(t, strings.Replace(faulty, "Gatekeeper", placement, 1), makeFaults()...)
		c.minor, c.remaining = "29", map[string]int64{"Node": 4500}
		for _, want := range doctor.Check(c.gatherWithout(t, "")) {
			clear(c.read)
			if alone := doctor.Check(c.gatherWithout(t, "", want.Check)); len(alone) != 1 || !reflect.DeepEqual(alone[0], want) {
				t.Errorf("%s: croft doctor %s finds %+v, and croft doctor %+v", placement, want.Check, alone, want)
			}
			others := []string{"NetworkPolicy", "DaemonSet", "ResourceQuota"}
			if want.Check == "load" && slices.ContainsFunc(others, func(kind string) bool { return c.read[kind] }) {
				t.Errorf("croft doctor load reads %v", slices.Sorted(maps.Keys(c.read)))
			}
		}
	}
}

// TestUnreadableKinds forbids each kind that doctor reads, one after the other. A check that
// would have found a fault there must not succeed, and no check may have a false finding.
func TestUnreadableKinds(t *testing.T) {
	visit := func(t *testing.T, denied string) (results []doctor.Result, read map[string]bool) {
		c := newFakeCluster(t, faulty, makeFaults()...)
		c.minor, c.remaining = "29", map[string]int64{"Node": 4500}
		return doctor.Check(c.gatherWithout(t, denied)), c.read
	}
	whole := map[string][]string{}
	results, read := visit(t, "")
	for _, r := range results {
		whole[r.Check] = formatFindings(r)
		switch {
		case slices.Contains(tried, r.Check):
			if len(r.Unreadable) == 0 {
				t.Errorf("%s has a check mark, and nothing was tried", r.Check)
			}
		case len(r.Findings) == 0:
			t.Errorf("%s finds nothing: the test needs a fault for it", r.Check)
		case len(r.Unreadable) > 0:
			t.Errorf("%s: not everything was read: %v", r.Check, r.Unreadable)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(read)) {
		t.Run(kind, func(t *testing.T) {
			missed := 0
			results, _ := visit(t, kind)
			for _, r := range results {
				found := formatFindings(r)
				for _, f := range found {
					if !slices.Contains(whole[r.Check], f) && r.Check != "walls" {
						t.Errorf("%s finds %q, which is false", r.Check, f)
					}
				}
				if len(r.Unreadable) > 0 {
					missed++
				} else if len(found) < len(whole[r.Check]) {
					t.Errorf("%s finds %s, and does not report that it could not read: want %s", r.Check, strings.Join(found, "; "), strings.Join(whole[r.Check], "; "))
				}
			}
			if missed <= len(tried) {
				t.Errorf("no check reports that you may not read it")
			}
		})
	}
}
