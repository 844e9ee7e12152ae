package policy

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
)

// unknownAnnotation belongs to an add-on that does not exist.
const unknownAnnotation = "croft-verify.example.net/act"

// makeEdge returns an Ingress, or, for a tenant without a host, a Service. Add-ons read the annotations
// of both alike.
func (s scene) makeEdge(name string) client.Object {
	if s.host != "" {
		return s.makeIngress(name)
	}
	return &corev1.Service{
		TypeMeta: makeCoreMeta("Service"), ObjectMeta: s.makeMeta(name),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// buildAddonMirrors have annotations whose effect depends on the tenant.
func (s scene) buildAddonMirrors() []attack.Attack {
	annotated := func(name, key, value string) client.Object {
		o := s.makeEdge(name)
		o.SetAnnotations(map[string]string{key: value})
		return o
	}
	var all []attack.Attack
	if s.host != "" {
		all = append(all, attack.NewCreate("serve-own-alias", "serve hosts of one's own as aliases", attack.Nobody,
			annotated("serve-own-alias", serverAlias, strings.ToUpper(s.host)+", "+s.host)))
	}
	if s.attacker.Allowances.UnknownAnnotations == v1alpha1.UnknownDeny {
		return all
	}
	pod := s.makePod("carry-unknown", func(p *corev1.Pod) { p.Annotations = map[string]string{unknownAnnotation: "now"} })
	carried := attack.WithReason("a list of harmful annotations misses those of the next add-on", nil,
		attack.NewCreate("carry-unknown-annotation-as-allowed", "have an unknown annotation, as the tenant may", attack.Nobody, annotated("carry-as-allowed", unknownAnnotation, "now")),
		attack.NewCreate("carry-unknown-annotation-as-pod-as-allowed", "have an unknown annotation on a pod, as the tenant may", attack.Nobody, pod))
	for i := range carried {
		carried[i].ExpectsWarning = s.attacker.Allowances.UnknownAnnotations == v1alpha1.UnknownWarn
	}
	return append(all, carried...)
}
