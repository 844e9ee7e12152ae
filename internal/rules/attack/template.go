package attack

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewTemplate returns a pod template that every wall allows, changed by edits.
func NewTemplate(edits ...func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "croft-verify"}}, Spec: NewPodSpec()}
	for _, edit := range edits {
		edit(&t)
	}
	return t
}

// NewDeployment returns a Deployment with a template.
func NewDeployment(namespace, name string, template corev1.PodTemplateSpec) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta: makeAppsMeta("Deployment"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
}

// NewPodControllers returns one object of each kind from which controllers create pods, all with the
// same template.
func NewPodControllers(namespace, name string, template corev1.PodTemplateSpec) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	once := template
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := batchv1.JobSpec{Template: once}
	core := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
	batch := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: kind}
	}
	return []client.Object{
		NewDeployment(namespace, name, template),
		&appsv1.StatefulSet{TypeMeta: makeAppsMeta("StatefulSet"), ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}},
		&appsv1.DaemonSet{TypeMeta: makeAppsMeta("DaemonSet"), ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		&appsv1.ReplicaSet{TypeMeta: makeAppsMeta("ReplicaSet"), ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
		&corev1.ReplicationController{TypeMeta: core("ReplicationController"), ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{
			Replicas: ptr.To[int32](0), Selector: template.Labels, Template: &template}},
		&corev1.PodTemplate{TypeMeta: core("PodTemplate"), ObjectMeta: meta, Template: template},
		&batchv1.Job{TypeMeta: batch("Job"), ObjectMeta: meta, Spec: job},
		&batchv1.CronJob{TypeMeta: batch("CronJob"), ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}},
	}
}

func makeAppsMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kind}
}
