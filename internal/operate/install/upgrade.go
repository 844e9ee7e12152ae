package install

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// kindsName is the name of the objects that upgrade croft's CRDs.
	kindsName = "croft-kinds"
	// kindsSeconds is the time limit for the upgrade of the CRDs, including retries.
	kindsSeconds = 300
)

// UpgradeObjects returns the objects that upgrade croft's CRDs from within the cluster: a Job
// that runs `croft install --kinds`, and its rights. The chart runs it before an upgrade,
// because Helm installs a chart's CRDs but never changes them. The operator does not do it,
// because a release's objects are written before its operator runs, and the operator would
// permanently have the right to change CRDs.
func UpgradeObjects(image string) ([]client.Object, error) {
	kinds, err := loadDefinitions()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.GetName()
	}
	const group, definition = "apiextensions.k8s.io", "customresourcedefinitions"
	all := slices.Concat(
		[]client.Object{newServiceAccount(namespace, kindsName)},
		buildClusterRights(kindsName, namespace, kindsName,
			// For kinds that are new in this version. RBAC cannot limit creation to names.
			newRule(group, []string{"create"}, definition),
			rbacv1.PolicyRule{
				APIGroups: []string{group}, Resources: []string{definition},
				ResourceNames: names, Verbs: []string{"get", "patch", "update"},
			}),
		[]client.Object{buildKindsJob(image)},
	)
	for _, object := range all {
		object.SetLabels(addLabels(object.GetLabels()))
	}
	return all, nil
}

func buildKindsJob(image string) client.Object {
	// The operator's disruption budget and network policy must not select this pod by its
	// label.
	own := map[string]string{"app.kubernetes.io/name": kindsName}
	spec := buildPod(image)
	spec.ServiceAccountName = kindsName
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.TopologySpreadConstraints = nil
	c := &spec.Containers[0]
	c.Name, c.Args = kindsName, []string{"install", "--kinds"}
	c.Ports, c.LivenessProbe, c.ReadinessProbe = nil, nil, nil
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kindsName},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](3), ActiveDeadlineSeconds: ptr.To[int64](kindsSeconds),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: own}, Spec: spec},
		},
	}
}
