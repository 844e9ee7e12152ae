package install

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// DashboardName is the name of the dashboard's objects, and of the Secret with its files. The
	// platform creates the Secret; its key session-keys is required.
	DashboardName = "croft-dashboard"
	// DashboardTLS is the kubernetes.io/tls Secret of the dashboard's serving certificate. The
	// platform creates it, for example with cert-manager.
	DashboardTLS  = "croft-dashboard-tls"
	dashboardPort = 9443
	dnsPort       = 53
)

// DefaultDashboardEgress returns the TCP ports of most API servers and identity providers, and of
// croft proxy.
func DefaultDashboardEgress() []int32 { return []int32{443, 6443, proxyPort} }

var dashboardSelector = map[string]string{"app.kubernetes.io/name": DashboardName}

// buildDashboardObjects returns the objects that run croft dashboard. Its ServiceAccount has no role,
// and its pods have no token: each request to the cluster carries a user's token.
func buildDashboardObjects(image string, args []string, egress []int32) []client.Object {
	meta := func(labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: DashboardName, Labels: labels}
	}
	return []client.Object{
		&corev1.ServiceAccount{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: meta(nil),
			AutomountServiceAccountToken: ptr.To(false),
		},
		&corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta(nil),
			Spec: corev1.ServiceSpec{
				Selector: dashboardSelector,
				Ports:    []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromString("https"), Protocol: corev1.ProtocolTCP}},
				// The tabs of a browser renew a token only once if they reach the same replica.
				SessionAffinity: corev1.ServiceAffinityClientIP,
			},
		},
		&appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, ObjectMeta: meta(dashboardSelector),
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](replicas),
				Selector: &metav1.LabelSelector{MatchLabels: dashboardSelector},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: dashboardSelector}, Spec: buildDashboardPod(image, args)},
			},
		},
		&policyv1.PodDisruptionBudget{
			TypeMeta: metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"}, ObjectMeta: meta(nil),
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: dashboardSelector}},
		},
		buildDashboardPolicy(meta(nil), egress),
	}
}

// buildDashboardPolicy allows connections of users to one port, and connections to name servers, API
// server and identity provider. Their addresses are not known in advance, so the ports limit them: no
// metadata service and no port of most applications is among these.
func buildDashboardPolicy(meta metav1.ObjectMeta, egress []int32) client.Object {
	if len(egress) == 0 {
		egress = DefaultDashboardEgress()
	}
	servers := make([]networkingv1.NetworkPolicyPort, len(egress))
	for i, port := range egress {
		servers[i] = networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromInt32(port)), Protocol: ptr.To(corev1.ProtocolTCP)}
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"}, ObjectMeta: meta,
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: dashboardSelector},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromString("https"))}}}},
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{Ports: []networkingv1.NetworkPolicyPort{
					{Port: ptr.To(intstr.FromInt32(dnsPort)), Protocol: ptr.To(corev1.ProtocolUDP)},
					{Port: ptr.To(intstr.FromInt32(dnsPort)), Protocol: ptr.To(corev1.ProtocolTCP)},
				}},
				{Ports: servers},
			},
		},
	}
}

func buildDashboardPod(image string, args []string) corev1.PodSpec {
	spec := buildPod(image)
	spec.ServiceAccountName = DashboardName
	spec.AutomountServiceAccountToken = ptr.To(false)
	spec.PriorityClassName = ""
	spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{MatchLabels: dashboardSelector}
	spec.Volumes = []corev1.Volume{
		{Name: "files", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: DashboardName}}},
		{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: DashboardTLS}}},
		// Kubernetes writes this ConfigMap into every namespace.
		{Name: "cluster", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
		}}},
	}
	c := &spec.Containers[0]
	c.Name = DashboardName
	c.Args = append([]string{
		"dashboard", "--listen=:9443", "--session-key-file=/etc/croft/dashboard/session-keys",
		"--tls-cert-file=/etc/croft/tls/tls.crt", "--tls-private-key-file=/etc/croft/tls/tls.key",
		"--server=https://kubernetes.default.svc", "--certificate-authority=/etc/croft/cluster/ca.crt",
	}, args...)
	c.Ports = []corev1.ContainerPort{{Name: "https", ContainerPort: dashboardPort, Protocol: corev1.ProtocolTCP}}
	c.LivenessProbe, c.ReadinessProbe = buildDashboardProbe(), buildDashboardProbe()
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: "files", MountPath: "/etc/croft/dashboard", ReadOnly: true},
		{Name: "tls", MountPath: "/etc/croft/tls", ReadOnly: true},
		{Name: "cluster", MountPath: "/etc/croft/cluster", ReadOnly: true},
	}
	return spec
}

func buildDashboardProbe() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: "/healthz", Port: intstr.FromString("https"), Scheme: corev1.URISchemeHTTPS,
	}}}
}
