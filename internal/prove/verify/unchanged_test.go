package verify_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/nodes"
	"croft.dev/croft/internal/walls/wall/policy"
)

// testExceptionsRevoked revokes a tenant's exceptions. It fails if objects that use them can no
// longer be changed in other fields, so that for example finalizers could not be removed, or if a
// further use can be added, even to the same list.
func (p *proving) testExceptionsRevoked(t *testing.T) {
	const was, others = "was.example.net", "others.example.net"
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: p.by.Namespaces[0], Name: name}
	}
	service := &corev1.Service{ObjectMeta: meta("was"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}}
	service.Annotations = map[string]string{"external-dns.alpha.kubernetes.io/hostname": was}
	ingress := &networkingv1.Ingress{ObjectMeta: meta("was"), Spec: networkingv1.IngressSpec{
		IngressClassName: ptr.To("croft-verify"),
		Rules:            []networkingv1.IngressRule{{Host: was}},
		TLS:              []networkingv1.IngressTLS{{Hosts: []string{was}}},
	}}
	pod := attack.NewPod(p.by.Namespaces[0], "was", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}, Namespaces: []string{"was"},
		}}}}
	})

	rules := p.findTenantRules(p.by)
	before := rules.Spec.DeepCopy()
	rules.Spec.Domains = append(rules.Spec.Domains, was)
	rules.Spec.Namespaces = append(rules.Spec.Namespaces, "was")
	rules.Spec.ServiceTypes = append(rules.Spec.ServiceTypes, corev1.ServiceTypeNodePort)
	p.changeRules(t, rules)
	for _, o := range []client.Object{service, ingress, pod} {
		p.awaitAllowed(t, func(ctx context.Context) error { return p.admin.Create(ctx, o) })
	}
	rules.Spec = *before
	p.changeRules(t, rules)
	p.awaitRefusal(t, "another Service", attack.ByPolicy("croft-services", "service-type"), func(ctx context.Context) error {
		again := &corev1.Service{ObjectMeta: meta("again"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}}
		return p.admin.Create(ctx, again, client.DryRunAll)
	})
	p.awaitRefusal(t, "another Ingress", attack.ByPolicy("croft-ingresses", "hosts"), func(ctx context.Context) error {
		again := &networkingv1.Ingress{ObjectMeta: meta("again"), Spec: *ingress.Spec.DeepCopy()}
		return p.admin.Create(ctx, again, client.DryRunAll)
	})
	p.awaitRefusal(t, "another pod", attack.ByPolicy(admissionpolicy.PodsPolicy, nodes.AffinityRule), func(ctx context.Context) error {
		again := &corev1.Pod{ObjectMeta: meta("again"), Spec: attack.NewPodSpec()}
		again.Spec.Affinity = pod.Spec.Affinity
		return p.admin.Create(ctx, again, client.DryRunAll)
	})

	for _, o := range []client.Object{service, ingress, pod} {
		changed := o.DeepCopyObject().(client.Object)
		changed.SetLabels(map[string]string{"changed": "otherwise"})
		if err := p.admin.Update(t.Context(), changed, client.DryRunAll); err != nil {
			t.Errorf("what was there cannot be changed otherwise: %v", err)
		}
	}
	for name, c := range map[string]struct {
		policy, rule string
		edit         func(*networkingv1.Ingress)
	}{
		"a host": {"croft-ingresses", "hosts", func(i *networkingv1.Ingress) {
			i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: others})
		}},
		"a host of the same TLS": {"croft-ingresses", "tls-hosts", func(i *networkingv1.Ingress) { i.Spec.TLS[0].Hosts = append(i.Spec.TLS[0].Hosts, others) }},
		"TLS for another host": {"croft-ingresses", "tls-hosts", func(i *networkingv1.Ingress) {
			i.Spec.TLS = append(i.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{others}})
		}},
		"TLS for every host": {"croft-ingresses", "tls-hosts", func(i *networkingv1.Ingress) { i.Spec.TLS[0].Hosts = nil }},
		"an alias that is not the host": {policy.AnnotationsPolicy, policy.AnnotatedHostsRule, func(i *networkingv1.Ingress) {
			i.Annotations = map[string]string{"nginx.ingress.kubernetes.io/server-alias": was}
		}},
	} {
		changed := ingress.DeepCopy()
		c.edit(changed)
		p.awaitRefusal(t, name, attack.ByPolicy(c.policy, c.rule), func(ctx context.Context) error {
			return p.admin.Update(ctx, changed.DeepCopy(), client.DryRunAll)
		})
	}
}

// changeRules changes the rules that the policies read.
func (p *proving) changeRules(t *testing.T, rules *v1alpha1.TenantRules) {
	t.Helper()
	annotations := map[string]any{}
	for key, value := range admissionpolicy.BuildAnnotations(rules.Spec) {
		annotations[key] = value
	}
	if err := apply.New(p.admin).MarkNamespace(t.Context(), rules.Namespace, nil, annotations); err != nil {
		t.Fatal(err)
	}
}

// awaitAllowed waits until the policies allow a request.
func (p *proving) awaitAllowed(t *testing.T, do func(context.Context) error) {
	t.Helper()
	var last error
	if wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = do(t.Context())
		return last == nil, nil
	}) != nil {
		t.Fatal(last)
	}
}

// awaitRefusal waits until the rule refuses a request.
func (p *proving) awaitRefusal(t *testing.T, what string, by attack.Stopper, do func(context.Context) error) {
	t.Helper()
	var last error
	if wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = do(t.Context())
		return last != nil && by.IsRefusal(last), nil
	}) != nil {
		t.Errorf("%s: %s should have refused it, but this is what came: %v", what, by.Name, last)
	}
}
