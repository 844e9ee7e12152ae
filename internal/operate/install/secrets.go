package install

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

const (
	// SecretsName is the name of the objects of `croft copy-secrets`, of the policy that limits it, and
	// of the ClusterRole that the operator binds in tenants' namespaces.
	SecretsName = rights.Copier
	// SecretsWatchName is the name of its right to watch RoleBindings and namespaces.
	SecretsWatchName = SecretsName + "-watch"
	// SourceFlag is the flag of `croft copy-secrets` with the name of a source.
	SourceFlag = "--source="
	// noSecret is in every list of names of Secrets: RBAC allows all names if a list is empty. Copies
	// cannot have names that begin with croft.
	noSecret = "croft-none"
)

var secretsSelector = map[string]string{"app.kubernetes.io/name": SecretsName}

// buildSecretsObjects returns the objects that run `croft copy-secrets`. Its account may read only the
// sources. The operator binds the ClusterRole in each namespace with a copy, and nothing else binds it.
func buildSecretsObjects(image string, copies []estate.SecretCopy) []client.Object {
	names, sources := []string{noSecret}, []string{noSecret}
	for _, c := range copies {
		names, sources = append(names, c.Name), append(sources, c.Source)
	}
	slices.Sort(names[1:])
	slices.Sort(sources[1:])
	names, sources = slices.Compact(names), slices.Compact(sources)
	all := []client.Object{
		&corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{
				Name: v1alpha1.SecretsNamespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			},
		},
		newServiceAccount(namespace, SecretsName),
		// An apply of a Secret that does not exist is a creation with a name, so that RBAC can limit it to names,
		// unlike a POST. The deletion is for copies of another type.
		&rbacv1.ClusterRole{
			TypeMeta: newRBACType("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: SecretsName},
			Rules: []rbacv1.PolicyRule{nameRule("", []string{"create", "patch", "delete"}, "secrets", names)},
		},
	}
	all = append(all, buildClusterRights(SecretsWatchName, namespace, SecretsName,
		newRule("", []string{"list", "watch"}, "namespaces"),
		newRule("rbac.authorization.k8s.io", []string{"list", "watch"}, "rolebindings"))...)
	all = append(all, buildNamespaceRights(v1alpha1.SecretsNamespace, SecretsName, SecretsName,
		nameRule("", []string{"list", "watch"}, "secrets", sources))...)
	all = append(all, buildNamespaceRights(namespace, SecretsName, SecretsName,
		nameRule("coordination.k8s.io", []string{"create", "patch"}, "leases", []string{SecretsName}))...)
	all = append(all, &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretsName, Labels: secretsSelector},
		Spec: appsv1.DeploymentSpec{
			// Two copiers would both be right, but for a moment one might write the content that the other replaced.
			Replicas: ptr.To[int32](1),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: secretsSelector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: secretsSelector}, Spec: buildSecretsPod(image, sources[1:]),
			},
		},
	})
	all = append(all, protectPods(SecretsName, secretsSelector, admitAll("health"), admitPlatform("metrics"))...)
	return append(all, buildSecretsPolicy().Objects()...)
}

func nameRule(group string, verbs []string, kind string, names []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{kind}, ResourceNames: names, Verbs: verbs}
}

func buildSecretsPod(image string, sources []string) corev1.PodSpec {
	spec := buildPod(image)
	spec.ServiceAccountName = SecretsName
	spec.PriorityClassName = "" // the copies stay while it does not run
	spec.TopologySpreadConstraints = nil
	c := &spec.Containers[0]
	c.Name = SecretsName
	c.Args = []string{"copy-secrets", "--health-addr=:8081", "--metrics-addr=:8080"}
	for _, source := range sources {
		c.Args = append(c.Args, SourceFlag+source)
	}
	c.Ports = []corev1.ContainerPort{
		{Name: "health", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP},
		{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
	}
	c.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
	return spec
}

// buildSecretsPolicy limits the copier to Secrets with croft's label, before and after the write. The answer
// to a patch, and to some deletions, contains the whole object: without the policy, the copier's token could
// read a team's own Secret that has the name of a copy. The answer to a new Secret of a service account's
// token would soon contain that token.
func buildSecretsPolicy() admissionpolicy.Validating {
	isMarked := func(o string) string {
		label := admissionpolicy.Quote(v1alpha1.ManagedByLabel)
		return "has(" + o + ".metadata.labels) && " + label + " in " + o + ".metadata.labels && " +
			o + ".metadata.labels[" + label + "] == " + admissionpolicy.Quote(v1alpha1.ManagedBy)
	}
	return admissionpolicy.Validating{
		Name: SecretsName, IgnoresTenantRules: true, ClusterWide: true,
		Resources: []admissionpolicy.Resource{{Version: "v1", Resources: []string{"secrets"},
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}}},
		MatchConditions: map[string]string{"by-copier": "request.userInfo.username == " + admissionpolicy.Quote(admissionpolicy.CopierUser)},
		Rules: []admissionpolicy.Rule{
			{
				Name: "marked", Summary: "croft copy-secrets writes only Secrets with croft's label",
				Expression: `request.operation == "DELETE" || ` + isMarked("object"),
				Message:    `"croft copy-secrets may write only Secrets with croft's label"`,
			},
			{
				Name: "own-copies", Summary: "croft copy-secrets changes and deletes only Secrets with croft's label",
				Expression: `request.operation == "CREATE" || ` + isMarked("oldObject"),
				Message: `"the namespace has a Secret " + request.name + " of its own, which croft does not replace: ` +
					`delete it, or give the copy another name in croft.yaml"`,
			},
			{
				Name: "no-tokens", Summary: "croft copy-secrets writes no Secrets to which Kubernetes gives a meaning",
				Expression: `request.operation == "DELETE" || !has(object.type) ||
					!(object.type in ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"])`,
				Message: `"croft copy-secrets may not write Secrets with tokens of service accounts or nodes"`,
			},
		},
	}
}
