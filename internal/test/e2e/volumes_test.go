package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/policy"
)

// testVolumes fails if a controller of Kubernetes claims or mounts a volume for a tenant that
// the tenant itself may not: the StatefulSet controller may create claims in the whole cluster,
// and an admitted pod gets any disk that it names. It also fails if croft refuses the claims of
// Kubernetes' own volume controller.
func testVolumes(t *testing.T, c *twoTenants) {
	a := teams[0]
	member := c.newMemberClient(t, a.group)
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "volumes-test"},
		Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}
	ofB, leftover, fit := newVolume("pv-of-b", class.Name, "5Gi"), newVolume("pv-left-over", "", "5Gi"), newVolume("pv-to-find", class.Name, "1Gi")
	createObjects(t, c.admin, class, ofB, leftover)
	t.Cleanup(func() { c.deleteObjects(t, class, ofB, leftover, fit) })

	t.Run("by the StatefulSet controller", func(t *testing.T) {
		set := newStatefulSet(a.tenant, "thief", newVolumeClaim(a.tenant, "d", class.Name, "5Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = ofB.Name }))
		createObjects(t, member, set)
		t.Cleanup(func() { c.deleteObjects(t, set) })
		defer c.expectUnbound(t, ofB)
		c.awaitRefusalEvent(t, a.tenant, "StatefulSet", set.Name, admissionpolicy.RefusalPrefix(policy.VolumeRule))
	})
	t.Run("by the older annotation", func(t *testing.T) {
		claim := newVolumeClaim(a.tenant, "annotated", class.Name, "5Gi", func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: ""}
		})
		expectRefusal(t, "a claim with an empty class by annotation", member.Create(t.Context(), claim), attack.ByPolicy(policy.ClaimsPolicy, policy.StorageClassRule))
		c.expectUnbound(t, leftover)
	})
	t.Run("by an ephemeral volume", func(t *testing.T) {
		claim := newVolumeClaim("", "", class.Name, "5Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = ofB.Name })
		pod := newNginxPod(a.tenant, "thief", func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim.Spec},
			}}}}
		})
		expectRefusal(t, "an ephemeral volume that names its volume", member.Create(t.Context(), pod), attack.ByPolicy(admissionpolicy.PodsPolicy, policy.ClaimTemplatesRule))
		c.expectUnbound(t, ofB)
	})
	t.Run("by a disk's ID", func(t *testing.T) {
		deployment, _ := newNginxDeployment(a.tenant, 1)
		deployment.Name = "disks"
		deployment.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
			AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-0123456789abcdef0"},
		}}}
		createObjects(t, member, deployment)
		t.Cleanup(func() { c.deleteObjects(t, deployment) })
		defer c.expectNoMount(t, a.tenant, func(v corev1.Volume) bool { return v.AWSElasticBlockStore != nil })
		c.awaitRefusalEvent(t, a.tenant, "ReplicaSet", deployment.Name+"-", admissionpolicy.RefusalPrefix(policy.VolumeTypesRule))
	})
	t.Run("as a team does", func(t *testing.T) {
		createObjects(t, c.admin, fit)
		set := newStatefulSet(a.tenant, "honest", newVolumeClaim(a.tenant, "d", class.Name, "1Gi"))
		createObjects(t, member, set)
		t.Cleanup(func() { c.deleteObjects(t, set, newVolumeClaim(a.tenant, "d-honest-0", class.Name, "1Gi")) })
		pod := c.awaitRunning(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.tenant, Name: "honest-0"}})
		var claim corev1.PersistentVolumeClaim
		c.getObject(t, a.tenant, "d-honest-0", &claim)
		// ofB fits, too: a claim without a volume name may be bound to any free volume.
		if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != fit.Name {
			t.Errorf("pod %s runs, and its claim is %s with volume %q", pod.Name, claim.Status.Phase, claim.Spec.VolumeName)
		}
	})
	t.Run("as an administrator restores", func(t *testing.T) {
		claim := newVolumeClaim(a.tenant, "restored", class.Name, "5Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = ofB.Name })
		createObjects(t, c.admin, claim)
		t.Cleanup(func() { c.deleteObjects(t, claim) })
		awaitCondition(t, moments, "the claim to be bound", func(ctx context.Context) error {
			if err := c.admin.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
				return err
			}
			if claim.Status.Phase != corev1.ClaimBound {
				return fmt.Errorf("it is %s", claim.Status.Phase)
			}
			return nil
		})
	})
}

// newVolume returns a PersistentVolume, which is not bound.
func newVolume(name, class, size string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName:       class,
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "192.0.2.1", Path: "/" + name}},
		},
	}
}

func newVolumeClaim(namespace, name, class, size string, edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	for _, edit := range edits {
		edit(claim)
	}
	return claim
}

// newStatefulSet returns a StatefulSet of one pod, which mounts its claim.
func newStatefulSet(namespace, name string, claim *corev1.PersistentVolumeClaim) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	spec := newNginxPod(namespace, "").Spec
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: claim.Name, MountPath: "/data"}}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim},
		},
	}
}

// awaitRefusalEvent waits until a controller reports the refusal in an event. If the request
// succeeded, there is no such event.
func (c *cluster) awaitRefusalEvent(t testing.TB, namespace, kind, name, refusal string) {
	t.Helper()
	awaitCondition(t, moments, fmt.Sprintf("an event of %s %s with the message %s", kind, name, refusal), func(ctx context.Context) error {
		var events corev1.EventList
		if err := c.admin.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "FailedCreate" && e.InvolvedObject.Kind == kind && strings.HasPrefix(e.InvolvedObject.Name, name) && strings.Contains(e.Message, refusal) {
				return nil
			}
		}
		return fmt.Errorf("there is none among %d events", len(events.Items))
	})
}

// expectNoMount fails the test if a pod with such a volume was admitted.
func (c *cluster) expectNoMount(t testing.TB, namespace string, such func(corev1.Volume) bool) {
	t.Helper()
	var pods corev1.PodList
	if err := c.admin.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Error(err)
	}
	for _, pod := range pods.Items {
		if slices.ContainsFunc(pod.Spec.Volumes, such) {
			t.Errorf("pod %s mounts it on node %q, and is %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase)
		}
	}
}

// expectUnbound fails the test if the volume is bound to a claim.
func (c *cluster) expectUnbound(t testing.TB, v *corev1.PersistentVolume) {
	t.Helper()
	var live corev1.PersistentVolume
	c.getObject(t, "", v.Name, &live)
	if live.Spec.ClaimRef != nil || live.Status.Phase == corev1.VolumeBound {
		t.Errorf("volume %s is %s, and claimed by %+v", v.Name, live.Status.Phase, live.Spec.ClaimRef)
	}
}
