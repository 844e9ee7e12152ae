package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
)

// prompt is the time limit for a pod of one tenant to get a node while another tenant creates
// the worst admitted load. On an idle machine it takes two to five seconds, and on a busy one
// half a minute.
const prompt = time.Minute

// TestScheduling fails if one tenant's scheduling constraints delay another tenant's pods. It
// first tries the constraints that croft refuses. Then it creates the worst admitted ones and
// measures the time until the other tenant's pods run.
func TestScheduling(t *testing.T) {
	sandbox.Thorough(t) // the walls' attacks test the constraints that slow a scheduler
	t.Parallel()        // it mostly waits
	c := &twoTenants{cluster: startWithCroft(t), file: getExamplePath("two-tenants.yaml")}
	c.estate = buildEstate(t, c.file, readRepositoryFile(t, c.file))
	c.applyFile(t, c.file)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *twoTenants)
	}{
		{"AntiAffinity", testSchedulingAntiAffinity},
		{"LabelOracle", testSchedulingLabelOracle},
		{"ManyTerms", testSchedulingManyTerms},
		{"Devices", testSchedulingDevices},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// These rules must refuse the requests of this test.
var (
	byAffinity = attack.ByPolicy(admissionpolicy.PodsPolicy, "affinity-namespaces")
	byTerms    = attack.ByPolicy(admissionpolicy.PodsPolicy, "scheduling-terms")
	byDevices  = attack.ByPolicy("croft-device-claims", "device-class")
)

// selectOthers selects every namespace but one.
func selectOthers(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{namespace}},
	}}
}

// testSchedulingAntiAffinity tries to keep all pods of other tenants off all nodes: anti-affinity
// also applies to pods that are created later.
func testSchedulingAntiAffinity(t *testing.T, c *twoTenants) {
	repellent := newNginxPod("tenant-a", "repellent", func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelOSStable, NamespaceSelector: selectOthers("tenant-a"), LabelSelector: &metav1.LabelSelector{},
			}},
		}}
	})
	err := c.newMemberClient(t, "team-a").Create(t.Context(), repellent)
	expectRefusal(t, "anti-affinity to everybody else's pods", err, byAffinity)
	if err == nil {
		t.Cleanup(func() { c.deleteObjects(t, repellent) })
		c.awaitRunning(t, repellent)
	}
	t.Logf("tenant-b's pod runs after %s", c.measurePodStart(t, "tenant-b", "repelled"))
}

// measurePodStart creates a pod and returns the time until it ran.
func (c *cluster) measurePodStart(t testing.TB, namespace, name string) time.Duration {
	t.Helper()
	pod, started := newNginxPod(namespace, name), time.Now()
	createObjects(t, c.admin, pod)
	t.Cleanup(func() { c.deleteObjects(t, pod) })
	awaitCondition(t, prompt, "pod "+namespace+"/"+name+" to run", func(ctx context.Context) error {
		live := &corev1.Pod{}
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(pod), live); err != nil {
			return err
		}
		return checkRunning(live)
	})
	return time.Since(started)
}

// testSchedulingLabelOracle tries to learn from the scheduler whether another tenant has a pod with
// a label: the attacker's pod is scheduled only if so.
func testSchedulingLabelOracle(t *testing.T, c *twoTenants) {
	secret := newNginxPod("tenant-b", "secret")
	secret.Labels = map[string]string{"codename": "heron"}
	createObjects(t, c.admin, secret)
	t.Cleanup(func() { c.deleteObjects(t, secret) })
	c.awaitRunning(t, secret)
	c.awaitRunning(t, c.createNginxPod(t, "tenant-a", "neighbour")) // a node of the tenant's own, on which the attacker's pod can run
	for name, known := range map[string]bool{"heron": true, "stork": false} {
		question := newNginxPod("tenant-a", "question-"+name, func(spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelOSStable, Namespaces: []string{"tenant-b"},
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"codename": name}},
				}},
			}}
		})
		err := c.newMemberClient(t, "team-a").Create(t.Context(), question)
		expectRefusal(t, "affinity to tenant-b's pods", err, byAffinity)
		if err != nil {
			continue
		}
		t.Cleanup(func() { c.deleteObjects(t, question) })
		awaitCondition(t, moments, "the scheduler to look at the question", func(ctx context.Context) error {
			live := &corev1.Pod{}
			if err := c.admin.Get(ctx, client.ObjectKeyFromObject(question), live); err != nil {
				return err
			}
			for _, condition := range live.Status.Conditions {
				if condition.Type == corev1.PodScheduled {
					answer := condition.Status == corev1.ConditionTrue
					t.Errorf("tenant-a asks whether tenant-b has a pod %s: %v, and it is %v", name, answer, known)
					return nil
				}
			}
			return fmt.Errorf("it has not")
		})
	}
}

func (c *cluster) createNginxPod(t testing.TB, namespace, name string) *corev1.Pod {
	t.Helper()
	pod := newNginxPod(namespace, name)
	createObjects(t, c.admin, pod)
	t.Cleanup(func() { c.deleteObjects(t, pod) })
	return pod
}

// testSchedulingManyTerms makes the scheduler and Karpenter evaluate many terms for every pod.
func testSchedulingManyTerms(t *testing.T, c *twoTenants) {
	const pods = 150
	terms := func(n int) func(*corev1.PodSpec) {
		var all []corev1.PodAffinityTerm
		for i := range n {
			all = append(all, corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprintf("none-%d", i): "none"}},
			})
		}
		return func(spec *corev1.PodSpec) {
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: all}}
		}
	}
	before := c.measurePodStart(t, "tenant-b", "before")
	member, most := c.newMemberClient(t, "team-a"), 3000
	err := member.Create(t.Context(), newNginxPod("tenant-a", "many", terms(most)))
	expectRefusal(t, "3,000 terms of anti-affinity", err, byTerms)
	if err != nil {
		most = 10
	}
	for i := range pods {
		pod := newNginxPod("tenant-a", fmt.Sprintf("many-%d", i), terms(most), func(spec *corev1.PodSpec) {
			spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		})
		createObjects(t, member, pod)
	}
	t.Cleanup(func() {
		if err := c.admin.DeleteAllOf(context.WithoutCancel(t.Context()), &corev1.Pod{}, client.InNamespace("tenant-a")); err != nil {
			t.Error(err)
		}
	})
	t.Logf("tenant-b's pod runs after %s; it was %s before %d pods with %d terms", c.measurePodStart(t, "tenant-b", "during"), before, pods, most)
}

// testSchedulingDevices claims devices in ways that require a long search by the scheduler.
func testSchedulingDevices(t *testing.T, c *twoTenants) {
	const driver, devices = "gpu.example.com", 8
	node := c.awaitRunning(t, c.createNginxPod(t, "tenant-a", "first")).Spec.NodeName
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i)})
	}
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + driver + `"`},
		}}},
	}
	createObjects(t, c.admin, class, slice)
	t.Cleanup(func() { c.deleteObjects(t, class, slice) })

	c.awaitRunning(t, c.createNginxPod(t, "tenant-b", "resident")) // so that tenant-b's pods need no new node
	before := c.measurePodStart(t, "tenant-b", "before-devices")
	const requests, alternatives = 9, 8
	for i := range 3 {
		claim := newResourceClaim("tenant-a", fmt.Sprintf("slow-%d", i), newAlternativeRequests(driver, requests, alternatives)...)
		err := c.newMemberClient(t, "team-a").Create(t.Context(), claim)
		expectRefusal(t, "a claim of devices without a grant", err, byDevices)
		if err == nil {
			c.createClaimingPod(t, "team-a", "tenant-a", claim)
		}
	}
	t.Logf("tenant-b's pod runs after %s; it was %s before", c.measurePodStart(t, "tenant-b", "during-devices"), before)
	if t.Failed() {
		return
	}

	c.applyContent(t, "tenants:\n  granted: {pool: pool-a, access: [{group: team-granted, role: operator}], policy: {deviceClasses: ["+driver+"]}}\n")
	member := c.newMemberClient(t, "team-granted")
	slow := newResourceClaim("granted", "slow", newAlternativeRequests(driver, requests, alternatives)...)
	expectRefusal(t, "a claim with many requests and alternatives", member.Create(t.Context(), slow), attack.ByPolicy("croft-device-claims", "device-bounds"))
	fine := newResourceClaim("granted", "fine", newExactRequest(driver, "true"))
	createObjects(t, member, fine)
	c.awaitRunning(t, c.createClaimingPod(t, "team-granted", "granted", fine))
	// This is the maximum that is admitted. The last of eight requests fits nowhere, so the
	// scheduler tries every combination of the others.
	for i := range 3 {
		many, none := newResourceClaim("granted", fmt.Sprintf("many-%d", i)), newResourceClaim("granted", fmt.Sprintf("none-%d", i))
		for range 4 {
			many.Spec.Devices.Requests = append(many.Spec.Devices.Requests, newExactRequest(driver, "true"))
			none.Spec.Devices.Requests = append(none.Spec.Devices.Requests, newExactRequest(driver, "true"))
		}
		none.Spec.Devices.Requests[3] = newExactRequest(driver, "false")
		for j := range 4 {
			many.Spec.Devices.Requests[j].Name, none.Spec.Devices.Requests[j].Name = fmt.Sprint("r", j), fmt.Sprint("r", j)
		}
		createObjects(t, member, many, none)
		c.createClaimingPod(t, "team-granted", "granted", many, none)
	}
	t.Logf("tenant-b's pod runs after %s while the largest admissible claims wait; it was %s before", c.measurePodStart(t, "tenant-b", "during-claims"), before)
}

// createClaimingPod creates a pod that uses claims, and deletes both when the test ends.
func (c *cluster) createClaimingPod(t testing.TB, group, namespace string, claims ...*resourcev1.ResourceClaim) *corev1.Pod {
	t.Helper()
	pod := newNginxPod(namespace, claims[0].Name, func(spec *corev1.PodSpec) {
		for _, claim := range claims {
			spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: claim.Name, ResourceClaimName: &claim.Name})
		}
	})
	createObjects(t, c.newMemberClient(t, group), pod)
	t.Cleanup(func() {
		c.deleteObjects(t, pod)
		for _, claim := range claims {
			c.deleteObjects(t, claim)
		}
	})
	return pod
}

func newResourceClaim(namespace, name string, requests ...resourcev1.DeviceRequest) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}},
	}
}

// newAlternativeRequests returns requests with several alternatives each.
func newAlternativeRequests(class string, requests, alternatives int) []resourcev1.DeviceRequest {
	var all []resourcev1.DeviceRequest
	for r := range requests {
		request := resourcev1.DeviceRequest{Name: fmt.Sprint("r", r)}
		for a := range alternatives {
			request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
				Name: fmt.Sprint("a", a), DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			})
		}
		all = append(all, request)
	}
	return all
}

// newExactRequest returns a request for one device that matches an expression.
func newExactRequest(class, expression string) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
	}}
}
