package install

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// VerifyName is the name of the CronJob that runs croft verify, of its service account
	// and of its rights.
	VerifyName = "croft-verify"
	// verifyTimeout is the time limit of a run, and verifySeconds the limit of its pod. The
	// scratch tenants are deleted after verifyTimeout.
	verifyTimeout, verifySeconds = "10m", 900
	// lateSeconds is how late a run may start. After that it is skipped.
	lateSeconds = 3600
)

// buildVerifyObjects returns the objects that run `croft verify --record` on a schedule.
//
// The attacks impersonate people, and the scratch tenants are created as a member of
// system:masters. So the only right is to impersonate, which amounts to all rights: RBAC
// cannot limit it to names that each run generates.
func buildVerifyObjects(image, schedule string) []client.Object {
	return slices.Concat(
		[]client.Object{newServiceAccount(namespace, VerifyName)},
		buildClusterRights(VerifyName, namespace, VerifyName, newRule("", []string{"impersonate"}, "users", "groups")),
		[]client.Object{buildVerifyJob(image, schedule)},
	)
}

func buildVerifyJob(image, schedule string) client.Object {
	// The operator's disruption budget and network policy must not select this pod by its
	// label.
	own := map[string]string{"app.kubernetes.io/name": VerifyName}
	spec := buildPod(image)
	spec.ServiceAccountName = VerifyName
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.TopologySpreadConstraints = nil
	spec.PriorityClassName = "" // a run may wait
	c := &spec.Containers[0]
	c.Name = VerifyName
	c.Args = []string{"verify", "--record", "--timeout=" + verifyTimeout, "--as=" + VerifyName, "--as-group=system:masters"}
	c.Ports, c.LivenessProbe, c.ReadinessProbe = nil, nil, nil
	return &batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "CronJob"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: VerifyName},
		Spec: batchv1.CronJobSpec{
			Schedule: schedule, ConcurrencyPolicy: batchv1.ForbidConcurrent, StartingDeadlineSeconds: ptr.To[int64](lateSeconds),
			SuccessfulJobsHistoryLimit: ptr.To[int32](1), FailedJobsHistoryLimit: ptr.To[int32](3),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				// A breached wall fails the Job, and would fail it again.
				BackoffLimit: ptr.To[int32](0), ActiveDeadlineSeconds: ptr.To[int64](verifySeconds),
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: own}, Spec: spec},
			}},
		},
	}
}
