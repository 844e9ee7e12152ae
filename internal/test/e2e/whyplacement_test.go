package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/why"
)

func testWhyPlacement(t *testing.T, c *faultyCluster) {
	c.awaitCause(t, "placement-missing", "", "pod/older", "-n", "older")
	outside := newNginxPod(metav1.NamespaceDefault, "outside")
	createObjects(t, c.admin, outside)
	t.Cleanup(func() { c.deleteObjects(t, outside) })
	story := c.awaitCause(t, "placement-missing", "", "pod/outside", "-n", metav1.NamespaceDefault)
	if !slices.ContainsFunc(story.Steps, func(s why.Step) bool { return s.Finding != nil && s.Finding.ID == "taint-not-tolerated" }) {
		t.Errorf("Karpenter's own word is not in it: %+v", story.Steps)
	}
}

// testWhyUnmetRequests requests nodes that the pool of tenant-a does not create.
func testWhyUnmetRequests(t *testing.T, c *faultyCluster) {
	for id, edit := range map[string]func(*corev1.PodSpec){
		"label-unknown":     func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"example.org/gpu": "yes"} },
		"requirement-unmet": requireInstanceType("p4d.24xlarge"),
		"no-instance-type": func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500")}
		},
		"affinity-unmet": func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nobody"}},
			}}}}
		},
		"claim-unbound": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}}
		},
	} {
		t.Run(id, func(t *testing.T) {
			pod := newNginxPod("tenant-a", id, edit)
			createObjects(t, c.newMemberClient(t, "team-a"), pod)
			t.Cleanup(func() { c.deleteObjects(t, pod) })
			c.awaitCause(t, id, "", "pod/"+id, "-n", "tenant-a")
			c.expectDiscreet(t, c.awaitCause(t, id, "team-a", "pod/"+id, "-n", "tenant-a"))
		})
	}
}

// expectDiscreet fails the test if a story reveals others' objects to a member of tenant-a.
func (c *faultyCluster) expectDiscreet(t testing.TB, story why.Story) {
	t.Helper()
	text, err := json.Marshal(story)
	if err != nil {
		t.Fatal(err)
	}
	var nodes corev1.NodeList
	var claims karpenterv1.NodeClaimList
	for _, list := range []client.ObjectList{&nodes, &claims} {
		if err := c.admin.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	secrets := []string{"pool-b", "tenant-b", "tiny", "classless", "frugal"}
	for _, n := range nodes.Items {
		secrets = append(secrets, n.Name)
	}
	for _, n := range claims.Items {
		secrets = append(secrets, n.Name)
	}
	for _, secret := range secrets {
		if strings.Contains(string(text), secret) {
			t.Errorf("the story for a member of tenant-a contains %s: %s", secret, text)
		}
	}
}

func testWhyLimits(t *testing.T, c *faultyCluster) {
	pod := newNginxPod("tiny", "pod")
	createObjects(t, c.admin, pod)
	t.Cleanup(func() { c.deleteObjects(t, pod) })
	c.awaitCause(t, "limits-exceeded", "", "pod/pod", "-n", "tiny")
	// As a viewer: the readable objects of the namespace are enough to find the cause.
	c.awaitCause(t, "limits-exceeded", "team-tiny", "pod/pod", "-n", "tiny")
	out := c.runCroft(t, "why", "pod/pod", "-n", "tiny", "--as", "jane", "--as-group", "team-tiny").expectExit(t, 1)
	for _, want := range []string{"pod/pod in tiny: waits for a node\n\n  cause: the pool has reached its limits", "\n  who:   a platform admin\n", "\n✗ karpenter", "\n? pool"} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("want %q: %s", want, out)
		}
	}
}

// testWhyVolumeZone requests a volume in a zone in which the pool creates no nodes.
func testWhyVolumeZone(t *testing.T, c *faultyCluster) {
	gib := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "far"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: gib, AccessModes: modes, StorageClassName: "static", ClaimRef: &corev1.ObjectReference{Namespace: "zoned", Name: "far"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-far"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"far-away"}}},
			}}}},
		},
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "zoned", Name: "far"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeName: "far", StorageClassName: ptr.To("static"), Resources: corev1.VolumeResourceRequirements{Requests: gib},
		},
	}
	createObjects(t, c.admin, volume, claim)
	t.Cleanup(func() { c.deleteObjects(t, claim, volume) })
	pod := newNginxPod("zoned", "far", func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "far"},
		}}}
	})
	createObjects(t, c.admin, pod)
	t.Cleanup(func() { c.deleteObjects(t, pod) })
	c.awaitCause(t, "volume-zone", "", "pod/far", "-n", "zoned")
}

// testWhyAntiAffinity creates a pod of the platform that keeps a tenant's pod away, which no rule
// forbids. The platform's admin gets the pod's name, and the tenant is referred to the admin.
func testWhyAntiAffinity(t *testing.T, c *faultyCluster) {
	everybody := metav1.LabelSelector{MatchLabels: map[string]string{"app": "shy"}}
	nodePool := newOwnPool()
	nodePool.Name = "shunned"
	nodePool.Spec.Template.Labels = map[string]string{agent: "shunned"}
	shunner := newNginxPod(metav1.NamespaceDefault, "shunner", func(s *corev1.PodSpec) {
		s.NodeSelector = map[string]string{agent: "shunned"}
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelOSStable, NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &everybody,
		}}}}
	})
	createObjects(t, c.admin, nodePool, shunner)
	t.Cleanup(func() { c.deleteObjects(t, shunner, nodePool) })
	c.awaitRunning(t, shunner)
	shy := newNginxPod("tenant-a", "shy")
	shy.Labels = everybody.MatchLabels
	createObjects(t, c.newMemberClient(t, "team-a"), shy)
	t.Cleanup(func() { c.deleteObjects(t, shy) })

	story := c.awaitCause(t, "anti-affinity-of-others", "", "pod/shy", "-n", "tenant-a")
	if !strings.Contains(story.First.Symptom, "default/shunner") {
		t.Errorf("the symptom for a platform admin does not name the other pod: %s", story.First.Symptom)
	}
	story = c.awaitCause(t, "anti-affinity-of-others", "team-a", "pod/shy", "-n", "tenant-a")
	c.expectDiscreet(t, story)
	text := fmt.Sprint(story)
	if strings.Contains(text, "shunner") {
		t.Errorf("a tenant's story names another tenant's pod: %s", text)
	}
	if !slices.ContainsFunc(story.Steps, func(s why.Step) bool {
		return s.Verdict == why.Hidden && strings.Contains(s.Observation, "croft why pod/shy -n tenant-a")
	}) {
		t.Errorf("a tenant's story does not name whom to ask: %s", text)
	}
}
