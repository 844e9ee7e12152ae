package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/test/sandbox"
)

// whyEstate has pools with faults: one whose limits are too small for all of its instance
// types, one without its node class, one whose class no controller handles, and one whose nodes
// do not register. Each has a tenant.
const whyEstate = `
pools:
  tiny: {instances: {instanceTypes: [m5.large]}, limits: {cpu: "1"}}
  classless: {nodeClass: {ref: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: nobody}}}
  zoned: {instances: {requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a]}]}}
  slow: {instances: {instanceTypes: [m5.large]}, nodeClass: {ref: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: slow}}}
tenants:
  tiny: {pool: tiny, access: [{group: team-tiny, role: viewer}]}
  classless: {pool: classless, access: [{group: team-classless, role: operator}]}
  slow: {pool: slow}
  zoned: {pool: zoned}
  older: {pool: pool-a, namespaces: [older]}
  frugal: {pool: pool-a, quota: {pods: "1"}, access: [{group: team-frugal, role: operator}]}
  thrifty:
    {pool: pool-a, namespaces: [thrifty, thrifty-prod], quota: {pods: "4"}, quotaMinimums: {thrifty-prod: {pods: "3"}},
     access: [{group: team-thrifty, role: operator}]}
`

// faultyCluster is a sandbox with faults.
type faultyCluster struct{ *twoTenants }

// TestWhy fails if `croft why` does not name the cause of a message of the real scheduler,
// Karpenter or API server, if it names another cause first, or if it reveals others' objects to
// a tenant.
func TestWhy(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // it mostly waits
	c := &faultyCluster{&twoTenants{cluster: startWithCroft(t), file: getExamplePath("two-tenants.yaml")}}
	c.estate = buildEstate(t, c.file, readRepositoryFile(t, c.file))
	c.applyFile(t, c.file)
	// This namespace and its pod are older than their tenant.
	createObjects(t, c.admin,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "older", Annotations: map[string]string{v1alpha1.AdoptAnnotation: "older"}}},
		&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Spec: kwokv1alpha1.KWOKNodeClassSpec{
			NodeRegistrationDelay: metav1.Duration{Duration: patience * 10},
		}})
	c.awaitServiceAccount(t, "older")
	createObjects(t, c.admin, newNginxPod("older", "older"))
	c.runCroftWithInput(t, whyEstate, "apply", "-f", "-", "--wait=false").expectExit(t, 0)

	for _, test := range []struct {
		name string
		run  func(*testing.T, *faultyCluster)
	}{
		{"healthy", testWhyHealthy},
		{"quota", testWhyQuota},
		{"quota-reserved", testWhyQuotaReserved},
		{"policy", testWhyPolicy},
		{"admission", testWhyAdmission},
		{"rollout", testWhyRollout},
		{"job", testWhyJob},
		{"placement", testWhyPlacement},
		{"asked-too-much", testWhyUnmetRequests},
		{"limits", testWhyLimits},
		{"node-class", testWhyNodeClass},
		{"not-registered", testWhyNotRegistered},
		{"startup-taint", testWhyStartupTaint},
		{"unregistered-taint-missing", testWhyUnregisteredTaint},
		{"volume-zone", testWhyVolumeZone},
		{"anti-affinity", testWhyAntiAffinity},
		{"held", testWhyHeld},
		{"budgets-overlap", testWhyBudgetsOverlap},
		{"budget-uncounted", testWhyBudgetUncounted},
		{"deletion", testWhyDeletion},
		{"rights", testWhyRights},
		{"node-class-unknown", testWhyNodeClassUnknown},
		{"node-class-terminating", testWhyNodeClassTerminating},
		{"without-kubelet", testWhyWithoutKubelet},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// awaitServiceAccount waits for the service account without which no pod is admitted.
func (c *cluster) awaitServiceAccount(t testing.TB, namespace string) {
	t.Helper()
	awaitCondition(t, patience, "the service account of "+namespace, func(ctx context.Context) error {
		return c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
}

// explainAs runs `croft why` as a member of a team, or as the administrator if team is empty.
func (c *faultyCluster) explainAs(t testing.TB, team string, args ...string) (why.Story, outcome) {
	t.Helper()
	args = append([]string{"why", "-o", "json"}, args...)
	if team != "" {
		args = append(args, "--as", "jane", "--as-group", team)
	}
	out := c.runCroft(t, args...)
	var story why.Story
	// Without output, the object does not exist yet.
	if err := json.Unmarshal([]byte(out.stdout), &story); err != nil && out.stdout != "" {
		t.Fatalf("%v: %s", err, out)
	}
	return story, out
}

// awaitCause waits until croft why names a cause first, and returns the story.
func (c *faultyCluster) awaitCause(t testing.TB, id, team string, args ...string) why.Story {
	t.Helper()
	var story why.Story
	awaitCondition(t, patience, "croft why "+strings.Join(args, " ")+" to report "+id, func(context.Context) error {
		var out outcome
		story, out = c.explainAs(t, team, args...)
		if story.First == nil || story.First.ID != id || out.status != 1 {
			return fmt.Errorf("it prints %s", out)
		}
		return nil
	})
	return story
}

// awaitStep expects a cause in the story, for conditions that resolve themselves with time.
func (c *faultyCluster) awaitStep(t testing.TB, id string, args ...string) {
	t.Helper()
	awaitCondition(t, patience, "croft why "+strings.Join(args, " ")+" to wait for "+id, func(context.Context) error {
		story, out := c.explainAs(t, "", args...)
		if !slices.ContainsFunc(story.Steps, func(s why.Step) bool { return s.Finding != nil && s.Finding.ID == id }) {
			return fmt.Errorf("it prints %s", out)
		}
		return nil
	})
}

func testWhyHealthy(t *testing.T, c *faultyCluster) {
	deployment, _ := newNginxDeployment("tenant-a", 1)
	createObjects(t, c.newMemberClient(t, "team-a"), deployment)
	t.Cleanup(func() { c.deleteObjects(t, deployment) })
	var pod corev1.Pod
	// The pod may change: kube-controller-manager evicts a pod from a new node while its cache
	// still has the taint with which Karpenter registers nodes.
	awaitCondition(t, patience, "croft why to find nothing", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.admin.List(ctx, &pods, client.InNamespace("tenant-a")); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("there are %d pods, or one that does not run", len(pods.Items))
		}
		pod = pods.Items[0]
		for _, args := range [][]string{
			{"pod/" + pod.Name, "-n", "tenant-a"}, {"deployment", "nginx", "-n", "tenant-a"}, {"node/" + pod.Spec.NodeName}, {"nodepool/pool-a"},
		} {
			out := c.runCroft(t, append([]string{"why"}, args...)...)
			first, rest, _ := strings.Cut(out.stdout, "\n")
			// For a node, croft why also prints the duration of the start.
			alone := rest == "" || strings.HasPrefix(args[0], "node/") && strings.HasPrefix(rest, "\nit took ") && strings.Count(rest, "\n") == 2
			if out.status != 0 || !strings.Contains(first, "nothing is wrong") || !alone {
				return fmt.Errorf("want one line: %s", out)
			}
		}
		return nil
	})
	if out := c.runCroft(t, "why", "pod/"+pod.Name, "-n", "tenant-a"); !strings.Contains(out.stdout, pod.Spec.NodeName) {
		t.Errorf("it does not name the pod's node: %s", out)
	}
	c.runCroft(t, "why", "pod/missing", "-n", "tenant-a").expectExit(t, 1)
	c.runCroft(t, "why", "gateway/missing").expectExit(t, 2)
}

// testWhyRights expects one line that names the missing right and refers to a platform admin.
func testWhyRights(t *testing.T, c *faultyCluster) {
	for _, args := range [][]string{{"node/any"}, {"nodepool/pool-b"}, {"pod/any", "-n", "tenant-b"}} {
		out := c.runCroft(t, append([]string{"why", "--as", "jane", "--as-group", "team-a"}, args...)...).expectExit(t, 1)
		if !strings.Contains(out.stderr, "you may not read") || !strings.Contains(out.stderr, "ask a platform admin") || strings.Count(out.stderr, "\n") != 1 {
			t.Errorf("want one line that names whom to ask: %s", out)
		}
	}
}
