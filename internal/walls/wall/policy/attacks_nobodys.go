package policy

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
)

// buildOutsideMirrors are requests that are forbidden to tenants, sent by a kubelet or in a namespace
// outside of all tenants. Every policy on tenants must allow them.
func (s scene) buildOutsideMirrors() []attack.Attack {
	may := func(name, summary string, o client.Object, groups, resources string, verbs ...string) attack.Attack {
		return attack.SendOutsideTenants(s.own, attack.NewCreate("free-"+name, summary, attack.Nobody, o),
			rbacv1.PolicyRule{APIGroups: strings.Split(groups, " "), Resources: strings.Split(resources, " "), Verbs: append(verbs, "create")})
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: "croft-free-" + name} }
	pod := attack.NewPod("", "croft-free-eviction", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "croft-verify" })
	annotated := attack.NewCreate("free-annotated-pod", "have an unknown annotation on a pod", attack.Nobody, attack.NewPod("", "croft-free-annotated", func(p *corev1.Pod) {
		p.Spec.ServiceAccountName, p.Annotations = "croft-verify", map[string]string{unknownAnnotation: "now"}
	}))
	annotated.Setup = []client.Object{&corev1.ServiceAccount{TypeMeta: makeCoreMeta("ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Name: "croft-verify"}}}
	eviction := attack.NewCreate("free-eviction", "evict a pod with a grace period of a day", attack.Nobody, pod)
	eviction.Setup = []client.Object{&corev1.ServiceAccount{TypeMeta: makeCoreMeta("ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Name: "croft-verify"}}, pod}
	eviction.Request.Subresource = "eviction"
	eviction.Request.Body = &policyv1.Eviction{
		TypeMeta: metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](86400)},
	}
	service := &corev1.Service{
		TypeMeta: makeCoreMeta("Service"), ObjectMeta: meta("service"),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	service.Annotations = map[string]string{unknownAnnotation: "now"}
	kept := &corev1.ConfigMap{TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: meta("configmap")}
	kept.Finalizers = []string{"example.com/stay"}
	full := &corev1.ConfigMap{TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: meta("large-configmap"), Data: map[string]string{"file": strings.Repeat("x", 900<<10)}}
	limits := &corev1.LimitRange{TypeMeta: makeCoreMeta("LimitRange"), ObjectMeta: meta("limits")}
	limits.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	identity := &corev1.ServiceAccount{TypeMeta: makeCoreMeta("ServiceAccount"), ObjectMeta: meta("account")}
	identity.Annotations = map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::999999999999:role/any"}
	everybody := &rbacv1.RoleBinding{
		TypeMeta: makeRBACMeta("RoleBinding"), ObjectMeta: meta("access"), Subjects: []rbacv1.Subject{makeGroup("system:authenticated")},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-" + string(v1alpha1.RoleViewer)},
	}
	role := &rbacv1.Role{TypeMeta: makeRBACMeta("Role"), ObjectMeta: metav1.ObjectMeta{Name: "croft free role"}}
	event := &corev1.Event{
		TypeMeta: makeCoreMeta("Event"), ObjectMeta: meta("event"), Type: corev1.EventTypeWarning, Reason: "FailedMount", Source: corev1.EventSource{Component: "kubelet"},
	}
	event.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: s.own + "-free-event", Name: "any"}
	scaler := s.makeAutoscaler("free-autoscaler", 11)
	certificate := s.makeCertificate("free-certificate", []any{s.otherHost})
	drivers := &storagev1.CSINode{TypeMeta: metav1.TypeMeta{APIVersion: storagev1.SchemeGroupVersion.String(), Kind: "CSINode"}, ObjectMeta: metav1.ObjectMeta{Name: s.own}}
	drivers.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: s.own, UID: "0c1f7d5e-3c4b-4a5e-9d67-0123456789ab"}}
	route := s.makeRoute("HTTPRoute", "free-route")
	setField(route, []any{map[string]any{"name": "web", "namespace": s.other}}, "spec", "parentRefs")
	return []attack.Attack{
		attack.SendAsKubelet(s.own, attack.NewCreate("register-a-node", "write a CSINode that its Node owns, without which no node becomes Ready", attack.Nobody, drivers)),
		attack.SendOutsideTenants(s.own, eviction, makePolicyRule("", "pods/eviction", "create")),
		attack.SendOutsideTenants(s.own, annotated, makePolicyRule("", "pods", "create")),
		may("service", "open a port on every node by a Service, with an unknown annotation", service, "", "services"),
		may("configmap", "write an object with a finalizer", kept, "", "configmaps"),
		may("large-configmap", "write a ConfigMap of 900 KiB", full, "", "configmaps"),
		may("limits", "write a LimitRange with croft's mark", limits, "", "limitranges"),
		may("account", "give a service account an identity at a cloud", identity, "", "serviceaccounts"),
		may("access", "bind a role to everybody who is signed in", everybody, rbacv1.GroupName, "rolebindings clusterroles", "bind"),
		may("role", "write a Role with a name that is not printable", role, rbacv1.GroupName, "roles"),
		may("event", "write an event in the name of the kubelet", event, "", "events"),
		may("budget", "write a PodDisruptionBudget that allows no eviction", &policyv1.PodDisruptionBudget{
			TypeMeta: metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"}, ObjectMeta: meta("budget"),
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0))},
		}, "policy", "poddisruptionbudgets"),
		may("claim", "claim a volume by its name", s.makeVolumeClaim("free-claim", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "any" }), "", "persistentvolumeclaims"),
		may("devices", "claim devices of any class", attack.NewCustomObject("resource.k8s.io/v1", "ResourceClaim", "", "croft-free-devices", map[string]any{
			"devices": map[string]any{"requests": []any{map[string]any{"name": "one", "exactly": map[string]any{"deviceClassName": "any.example.com", "allocationMode": "ExactCount", "count": int64(1)}}}},
		}), "resource.k8s.io", "resourceclaims"),
		may("slice", "write the addresses behind a Service", &discoveryv1.EndpointSlice{
			TypeMeta:   metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
			ObjectMeta: meta("slice"), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.7.7"}}},
		}, "discovery.k8s.io", "endpointslices"),
		may("deployment", "write a Deployment whose pods tolerate everything", attack.NewDeployment("", "croft-free-deployment", attack.NewTemplate(func(t *corev1.PodTemplateSpec) {
			t.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		})), "apps", "deployments"),
		may("autoscaler", "scale by many metrics", scaler, "autoscaling", "horizontalpodautoscalers"),
		may("ingress", "serve any host by an Ingress", s.makeIngress("free-ingress", func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = s.otherHost }), "networking.k8s.io", "ingresses"),
		may("route", "route every host by an HTTPRoute", route, gateway, "httproutes"),
		may("gateway", "listen for every host by a Gateway", s.makeGateway("free-gateway", ""), gateway, "gateways"),
		may("grant", "let any route send requests to a Service by a ReferenceGrant", attack.NewCustomObject(gateway+"/v1", "ReferenceGrant", "", "croft-free-grant", map[string]any{
			"from": []any{map[string]any{"group": gateway, "kind": "HTTPRoute", "namespace": s.other}}, "to": []any{map[string]any{"group": "", "kind": "Service"}},
		}), gateway, "referencegrants"),
		may("certificate", "ask cert-manager to certify any host", certificate, "cert-manager.io", "certificates"),
		may("issuer", "have cert-manager ask any Vault", attack.NewCustomObject("cert-manager.io/v1", "Issuer", "", "croft-free-issuer", map[string]any{
			"vault": map[string]any{"path": "pki/sign/any", "server": "https://vault.example.com", "auth": map[string]any{"tokenSecretRef": map[string]any{"name": "vault", "key": "token"}}},
		}), "cert-manager.io", "issuers"),
		may("kustomization", "have Flux apply manifests with its own rights", attack.NewCustomObject("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "", "croft-free-kustomization", map[string]any{
			"interval": "1m", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "app"},
		}), "kustomize.toolkit.fluxcd.io", "kustomizations"),
		may("source", "have Flux fetch with the platform's cloud identity", attack.NewCustomObject("source.toolkit.fluxcd.io/v1", "OCIRepository", "", "croft-free-source", map[string]any{
			"interval": "1m", "url": "oci://registry.example.com/other/app", "provider": "aws",
		}), "source.toolkit.fluxcd.io", "ocirepositories"),
		may("application", "have Argo CD apply to any namespace", attack.NewCustomObject("argoproj.io/v1alpha1", "Application", "", "croft-free-application", map[string]any{
			"project": "default", "destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": s.other},
		}), "argoproj.io", "applications"),
	}
}

func makeRBACMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
