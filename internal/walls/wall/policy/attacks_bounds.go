package policy

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// The bounds that these attacks exceed: see policy.yaml of the policies.
const (
	mostFinalizers = 50
	mostHosts      = 250
	mostMarks      = 250
)

// buildBoundsAttacks are objects with lists that croft's own rules would take seconds to evaluate, on an
// API server that all tenants share.
func (s scene) buildBoundsAttacks() []attack.Attack {
	long := func(policy, name, summary string, object client.Object) attack.Attack {
		return attack.NewCreate(name, summary, attack.ByPolicy(policy, admissionpolicy.BoundsRule), object)
	}
	host := s.host
	if host == "" {
		host = s.otherHost
	}
	// A single annotation can name any number of hosts.
	announce := func(object client.Object) client.Object {
		object.SetAnnotations(map[string]string{externalDNS: strings.Repeat(host+",", mostHosts) + host})
		return object
	}
	service := &corev1.Service{TypeMeta: makeCoreMeta("Service"), ObjectMeta: s.makeMeta("announce-more"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	published := &corev1.Service{TypeMeta: makeCoreMeta("Service"), ObjectMeta: s.makeMeta("publish-more")}
	for i := range int32(201) {
		published.Spec.Ports = append(published.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: 1000 + i})
	}
	held := &corev1.ConfigMap{TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: s.makeMeta("held-by-more")}
	for i := range mostFinalizers + 1 {
		held.Finalizers = append(held.Finalizers, fmt.Sprintf("example.com/f-%d", i))
	}
	own := &corev1.Namespace{TypeMeta: makeCoreMeta("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: s.own}}
	labelled := attack.GrantToEveryone(withoutSetup(attack.NewUpdate("label-namespace-more-when-permitted", "put more labels on the namespace than croft evaluates",
		attack.ByPolicy(NamespacesPolicy, admissionpolicy.BoundsRule), own, func(n *corev1.Namespace) {
			for i := range mostMarks {
				n.Labels[fmt.Sprintf("example.com/l-%d", i)] = ""
			}
		})), makePolicyRule("", "namespaces", "get", "update"))
	gateway := attack.NewCustomObject(gateway+"/v1", "Gateway", s.own, "croft-announce-more", map[string]any{
		"gatewayClassName": "croft-verify", "listeners": []any{map[string]any{"name": "http", "port": int64(80), "protocol": "HTTP", "hostname": host}},
	})
	all := []attack.Attack{
		long(admissionpolicy.PodsPolicy, "mount-more", "write a pod with more volumes than croft evaluates", s.makePod("mount-more", func(p *corev1.Pod) {
			for i := range 201 {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			}
		})),
		long(admissionpolicy.PodsPolicy, "note-more", "write a pod with more annotations than croft evaluates", s.makePod("note-more", func(p *corev1.Pod) {
			p.Annotations = map[string]string{}
			for i := range mostMarks + 1 {
				p.Annotations[fmt.Sprintf("example.com/note-%d", i)] = ""
			}
		})),
		long("croft-services", "publish-more", "write a Service with more ports than croft evaluates", published),
		long(AnnotationsPolicy, "announce-more", "name more hosts on a Service than croft evaluates", announce(service)),
		long(AnnotationsPolicy, "announce-more-by-ingress", "name more hosts on an Ingress than croft evaluates", announce(s.makeIngress("announce-more-by-ingress"))),
		long(AnnotationsPolicy, "announce-more-by-route", "name more hosts on an HTTPRoute than croft evaluates", announce(attack.NewCustomObject("gateway.networking.k8s.io/v1", "HTTPRoute", s.own, "croft-announce-more", map[string]any{
			"parentRefs": []any{map[string]any{"name": "web"}}, "hostnames": []any{host},
			"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "web", "port": int64(80)}}}},
		}))),
		long(AnnotationsPolicy, "announce-more-by-gateway", "name more hosts on a Gateway than croft evaluates", announce(gateway)),
		long(FinalizersPolicy, "held-by-more", "write an object with more finalizers than croft evaluates", held),
		labelled,
	}
	return attack.WithReason("all tenants share the API server, and the time of CEL grows with the square of a list's length", nil, all...)
}
