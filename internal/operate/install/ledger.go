package install

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/declare/rights"
)

const (
	// LedgerName is the name of the ledger's objects, and of the optional ConfigMap with its
	// files, such as prices.yaml. The platform creates the ConfigMap.
	LedgerName = "croft-ledger"
	// LedgerTLS is the kubernetes.io/tls Secret of the ledger's serving certificate. The
	// platform creates it, for example with cert-manager.
	LedgerTLS = "croft-ledger-tls"
	// DefaultLedgerStorage is the default size of the ledger's volume.
	DefaultLedgerStorage = "1Gi"
	ledgerPort           = 8443
)

var ledgerSelector = map[string]string{"app.kubernetes.io/name": LedgerName}

// buildLedgerObjects returns the objects that run croft ledger. The PersistentVolumeClaim is of no
// kind that an uninstallation deletes, so that its records outlive it.
func buildLedgerObjects(o *Options) []client.Object {
	meta := func(labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: LedgerName, Labels: labels}
	}
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: meta(nil),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: o.getLedgerStorage()},
			},
		},
	}
	if o.LedgerStorageClass != "" {
		claim.Spec.StorageClassName = &o.LedgerStorageClass
	}
	return slices.Concat(
		[]client.Object{newServiceAccount(namespace, LedgerName)},
		buildClusterRights(LedgerName, namespace, LedgerName, buildLedgerRules()...),
		buildNamespaceRights(namespace, LedgerName, LedgerName,
			newRule("coordination.k8s.io", []string{"get", "create", "update"}, "leases"),
			newRule("", []string{"create"}, "events"),
			// Copies of the last hours. An apply of a ConfigMap that does not exist is a creation with a name, so that
			// RBAC can limit it to names, unlike a POST.
			nameRule("", []string{"get", "create", "patch"}, "configmaps", rights.ListCopyNames())),
		[]client.Object{
			claim,
			&corev1.Service{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta(nil),
				Spec: corev1.ServiceSpec{
					Selector: ledgerSelector,
					Ports:    []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromString("https"), Protocol: corev1.ProtocolTCP}},
				},
			},
			&appsv1.Deployment{
				TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, ObjectMeta: meta(ledgerSelector),
				Spec: appsv1.DeploymentSpec{
					// A second replica would need the same volume, and most volumes are mounted on one node.
					Replicas: ptr.To[int32](1),
					Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
					Selector: &metav1.LabelSelector{MatchLabels: ledgerSelector},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: ledgerSelector}, Spec: buildLedgerPod(o)},
				},
			},
		},
		// Users connect from anywhere, to one port. Metrics are for the platform's Prometheus.
		protectPods(LedgerName, ledgerSelector, admitAll("https", "health"), admitPlatform("metrics")),
	)
}

// LedgerMount is the name of the operator's and the proxy's volume for their connection to the ledger, and LedgerFlag
// the prefix of their arguments.
const (
	LedgerMount = "ledger"
	LedgerFlag  = "--ledger"
	ledgerFiles = "/var/run/croft/ledger"
	ledgerURL   = "=https://" + LedgerName + "." + namespace + ".svc"
	// ledgerTokenSeconds is the lifetime of the operator's token for the ledger. The kubelet renews it.
	ledgerTokenSeconds = 3600
)

// connectLedger lets the operator ask the ledger for the cost of tenants: with a token that only the ledger
// accepts, and the certificate authority of the ledger's Secret, but not its key.
func connectLedger(spec *corev1.PodSpec) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: LedgerMount, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: budget.Audience, ExpirationSeconds: ptr.To[int64](ledgerTokenSeconds), Path: "token",
			}},
			{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: LedgerTLS}, Items: ledgerAuthority(), Optional: ptr.To(true),
			}},
		},
	}}})
	c := &spec.Containers[0]
	c.Args = append(c.Args, LedgerFlag+ledgerURL,
		LedgerFlag+"-token-file="+ledgerFiles+"/token", LedgerFlag+"-certificate-authority="+ledgerFiles+"/ca.crt")
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: LedgerMount, MountPath: ledgerFiles, ReadOnly: true})
}

// connectProxyLedger lets the proxy forward requests for costs. It gets the certificate authority of the ledger's Secret,
// but neither the key nor a token: it forwards the users' own.
func connectProxyLedger(spec *corev1.PodSpec) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: LedgerMount, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: LedgerTLS, Items: ledgerAuthority(), Optional: ptr.To(true),
	}}})
	c := &spec.Containers[0]
	c.Args = append(c.Args, LedgerFlag+ledgerURL, LedgerFlag+"-ca-file="+ledgerFiles+"/ca.crt")
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: LedgerMount, MountPath: ledgerFiles, ReadOnly: true})
}

// ledgerAuthority selects the certificate authority of the ledger's Secret.
func ledgerAuthority() []corev1.KeyToPath { return []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}} }

// getLedgerStorage returns the size of the ledger's volume.
func (o *Options) getLedgerStorage() resource.Quantity {
	if o.LedgerStorage.IsZero() {
		return resource.MustParse(DefaultLedgerStorage)
	}
	return o.LedgerStorage
}

// buildLedgerRules returns the ledger's cluster-wide rights: the objects on which costs depend, the usage of
// pods, and reviews of users' tokens and rights.
func buildLedgerRules() []rbacv1.PolicyRule {
	watch := []string{"list", "watch"}
	return []rbacv1.PolicyRule{
		newRule("", watch, "nodes", "pods", "namespaces", "persistentvolumes", "services"),
		newRule("karpenter.sh", watch, "nodeclaims"),
		newRule("metrics.k8s.io", []string{"list"}, "pods"),
		newRule(v1alpha1.GroupVersion.Group, watch, "tenants"),
		newRule("authentication.k8s.io", []string{"create"}, "tokenreviews"),
		newRule("authorization.k8s.io", []string{"create"}, "subjectaccessreviews"),
	}
}

func buildLedgerPod(o *Options) corev1.PodSpec {
	spec := buildPod(o.Image)
	spec.ServiceAccountName = LedgerName
	spec.PriorityClassName = "" // no wall depends on it
	spec.TopologySpreadConstraints = nil
	spec.SecurityContext.FSGroup = spec.SecurityContext.RunAsUser
	spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: LedgerName}}},
		{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: LedgerTLS}}},
		{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: LedgerName}, Optional: ptr.To(true),
		}}},
	}
	c := &spec.Containers[0]
	c.Name = LedgerName
	c.Args = []string{
		"ledger", "--data-dir=/var/lib/croft", "--addr=:8443", "--health-addr=:8081", "--metrics-addr=:8080",
		"--tls-cert-file=/etc/croft/tls/tls.crt", "--tls-private-key-file=/etc/croft/tls/tls.key",
	}
	c.Ports = []corev1.ContainerPort{
		{Name: "https", ContainerPort: ledgerPort, Protocol: corev1.ProtocolTCP},
		{Name: "health", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP},
		{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
	}
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: "data", MountPath: "/var/lib/croft"},
		{Name: "tls", MountPath: "/etc/croft/tls", ReadOnly: true},
		{Name: "files", MountPath: "/etc/croft/ledger", ReadOnly: true},
	}
	if o.ProxyLedger {
		spec.Volumes = append(spec.Volumes, newAuthenticationVolume())
		c.Args = append(c.Args, AuthenticationFlag+authenticationFile)
		c.VolumeMounts = append(c.VolumeMounts, newAuthenticationMount())
	}
	c.Args = append(c.Args, o.LedgerArgs...)
	return spec
}
