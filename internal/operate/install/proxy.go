package install

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/walls/wall/identity"
)

const (
	// proxyName is the name of the proxy's objects and of its ClusterRole.
	proxyName = identity.ProxyRole
	// ProxySecret is the kubernetes.io/tls Secret of the proxy's serving certificate. The
	// platform creates it, for example with cert-manager; the proxy's pods wait for it.
	ProxySecret = "croft-proxy-tls" //nolint:gosec // a name
	proxyPort   = 8443
	// drainSeconds is how long open streams may continue while a pod is replaced.
	drainSeconds = 60
)

const (
	// AuthenticationName is the name of the volume with the AuthenticationConfiguration, which croft ledger may have,
	// too.
	AuthenticationName = "authentication"
	// AuthenticationFlag is the prefix of the argument with the file of the AuthenticationConfiguration.
	AuthenticationFlag = "--authentication-config="
	authenticationDir  = "/etc/croft/authentication"
	authenticationFile = authenticationDir + "/" + AuthenticationName + ".yaml"
)

var proxySelector = map[string]string{"app.kubernetes.io/name": proxyName}

// buildProxyObjects returns the objects that run croft proxy with an
// AuthenticationConfiguration. Its permissions come from the Platform's spec.proxy.
func buildProxyObjects(o *Options) []client.Object {
	meta := func(labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: proxyName, Labels: labels}
	}
	all := []client.Object{
		newServiceAccount(namespace, proxyName),
		&corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta(nil),
			Data: map[string]string{AuthenticationName + ".yaml": o.Authentication},
		},
		&corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta(nil),
			Spec: corev1.ServiceSpec{
				Selector: proxySelector,
				Ports:    []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromString("https"), Protocol: corev1.ProtocolTCP}},
			},
		},
		&appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, ObjectMeta: meta(proxySelector),
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](replicas),
				Selector: &metav1.LabelSelector{MatchLabels: proxySelector},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: proxySelector}, Spec: buildProxyPod(o)},
			},
		},
	}
	// Users connect from anywhere, to one port. Egress is to the API server and to identity
	// providers, whose addresses are not known in advance.
	return append(all, protectPods(proxyName, proxySelector, admitAll("https", "health"))...)
}

func buildProxyPod(o *Options) corev1.PodSpec {
	spec := buildPod(o.Image)
	spec.ServiceAccountName = proxyName
	spec.TerminationGracePeriodSeconds = ptr.To[int64](drainSeconds + 10)
	spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{MatchLabels: proxySelector}
	spec.Volumes = []corev1.Volume{
		newAuthenticationVolume(),
		{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: ProxySecret}}},
	}
	c := &spec.Containers[0]
	c.Name = proxyName
	c.Args = []string{
		"proxy", AuthenticationFlag + authenticationFile,
		"--tls-cert-file=/etc/croft/tls/tls.crt", "--tls-private-key-file=/etc/croft/tls/tls.key",
		"--impersonation-role=" + proxyName, "--addr=:8443", "--health-addr=:8081", "--drain=60s", "--audit-log-path=-",
	}
	c.Ports = []corev1.ContainerPort{
		{Name: "https", ContainerPort: proxyPort, Protocol: corev1.ProtocolTCP},
		{Name: "health", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP},
	}
	c.VolumeMounts = []corev1.VolumeMount{
		newAuthenticationMount(),
		{Name: "tls", MountPath: "/etc/croft/tls", ReadOnly: true},
	}
	if o.ProxyLedger {
		connectProxyLedger(&spec)
	}
	c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
	return spec
}

// newAuthenticationVolume returns the volume with the AuthenticationConfiguration of the proxy.
func newAuthenticationVolume() corev1.Volume {
	return corev1.Volume{Name: AuthenticationName, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: proxyName},
	}}}
}

func newAuthenticationMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: AuthenticationName, MountPath: authenticationDir, ReadOnly: true}
}
