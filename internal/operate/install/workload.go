package install

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

const (
	healthPort  = 8081
	metricsPort = 8080
	// replicas: one is the leader, the other is a standby with filled caches.
	replicas = 2
)

var selector = map[string]string{"app.kubernetes.io/name": name}

// buildSystemNamespace returns croft's namespace, with the strictest Pod Security level.
func buildSystemNamespace() client.Object {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}},
	}
}

// buildElevationsNamespace returns the namespace of the elevations' service accounts. It must
// not contain pods, which could act as one of these accounts.
func buildElevationsNamespace() client.Object {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.ElevationsNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		},
	}
}

func buildWorkload(image string, args []string, ledger bool) []client.Object {
	spec := buildPod(image)
	spec.Containers[0].Args = append(spec.Containers[0].Args, args...)
	if ledger {
		connectLedger(&spec)
	}
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](replicas),
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec:       spec,
			},
		},
	}
	// Egress is to the API server, whose address is not known in advance.
	return append([]client.Object{deployment}, protectPods(name, selector, admitAll("health"), admitPlatform("metrics"))...)
}

// admitAll admits connections to ports from any address.
func admitAll(ports ...string) networkingv1.NetworkPolicyIngressRule {
	var rule networkingv1.NetworkPolicyIngressRule
	for _, port := range ports {
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromString(port))})
	}
	return rule
}

// admitPlatform admits connections to a port from pods of no tenant: the operator's metrics have the names, owners
// and budgets of all tenants.
func admitPlatform(port string) networkingv1.NetworkPolicyIngressRule {
	rule := admitAll(port)
	rule.From = []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.TenantLabel, Operator: metav1.LabelSelectorOpDoesNotExist}},
	}}}
	return rule
}

// protectPods returns a PodDisruptionBudget for pods, and a NetworkPolicy that admits only
// some connections to them.
func protectPods(object string, pods map[string]string, admitted ...networkingv1.NetworkPolicyIngressRule) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: object}
	return []client.Object{
		&policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
			ObjectMeta: meta,
			// With minAvailable, a single replica could never be evicted.
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: ptr.To(intstr.FromInt32(1)),
				Selector:       &metav1.LabelSelector{MatchLabels: pods},
			},
		},
		&networkingv1.NetworkPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
			ObjectMeta: meta,
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: pods},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress:     admitted,
			},
		},
	}
}

func buildPod(image string) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: name,
		PriorityClassName:  "system-cluster-critical",
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   ptr.To(true),
			RunAsUser:      ptr.To[int64](65532),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: selector},
		}},
		Containers: []corev1.Container{{
			Name:  name,
			Image: image,
			Args:  []string{"operator", "--leader-elect", "--health-addr=:8081", "--metrics-addr=:8080"},
			Ports: []corev1.ContainerPort{
				{Name: "health", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
			},
			LivenessProbe:  buildProbe("/healthz"),
			ReadinessProbe: buildProbe("/readyz"),
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				ReadOnlyRootFilesystem:   ptr.To(true),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

func buildProbe(path string) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: path, Port: intstr.FromString("health"),
	}}}
}
