package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/test/sandbox"
)

// sick is an estate with many faults: a pool whose first node reaches its limits, a pool
// without its node class, a pool of another cloud, a pool whose nodes do not register, and a
// pool whose nodes may not be removed.
const sick = `
pools:
  full: {instances: {instanceTypes: [m5.large]}, limits: {cpu: "2"}}
  classless: {nodeClass: {ref: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: nobody}}}
  foreign: {nodeClass: {ref: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: nobody}}}
  slow: {instances: {instanceTypes: [m5.large]}, nodeClass: {ref: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: slow}}}
  kept: {instances: {instanceTypes: [m5.large]}, budgets: [{nodes: "0"}], terminationGracePeriod: Never, costCode: %s}
tenants:
  full: {pool: full}
  slow: {pool: slow}
  kept: {pool: kept, policy: {doNotDisrupt: true}}
`

// TestDoctor fails if `croft doctor` reports a finding on a healthy cluster, or misses a fault.
func TestDoctor(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // it mostly waits
	c := &twoTenants{cluster: startWithCroft(t), file: getExamplePath("two-tenants.yaml")}
	c.estate = buildEstate(t, c.file, readRepositoryFile(t, c.file))
	c.applyFile(t, c.file)
	for _, team := range teams {
		deployment, service := newNginxDeployment(team.tenant, 3)
		createObjects(t, c.newMemberClient(t, team.group), deployment, service)
	}
	for _, team := range teams {
		c.awaitRunningPods(t, team.tenant, 3)
	}

	t.Run("healthy", func(t *testing.T) {
		var out outcome
		awaitCondition(t, patience, "doctor to find nothing", func(context.Context) error {
			if out = c.runCroft(t, "doctor"); out.status != 0 || !strings.Contains(out.stdout, "\n0 problems, 0 warnings\n") {
				return fmt.Errorf("it prints %s", out)
			}
			return nil
		})
		if got, want := strings.Count(out.stdout, "✓"), len(doctor.Checks()); got != want {
			t.Errorf("%d checks passed, want %d: %s", got, want, out)
		}
	})
	t.Run("operator dead", func(t *testing.T) { testOperatorDead(t, c) })
	t.Run("auditor", func(t *testing.T) { testAuditor(t, c) })
	t.Run("rights", func(t *testing.T) {
		out := c.runCroft(t, "doctor", "--as", "jane", "--as-group", "team-a").expectExit(t, 1)
		if strings.Contains(out.stdout, "✗") || !strings.Contains(out.stdout, "NodePools: you may not read them") || !strings.Contains(out.stdout, "ask a platform admin") {
			t.Errorf("want what may not be read, and no problems: %s", out)
		}
	})

	createObjects(t, c.admin, &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Spec: kwokv1alpha1.KWOKNodeClassSpec{
		NodeRegistrationDelay: metav1.Duration{Duration: patience * 10},
	}})
	c.runCroftWithInput(t, fmt.Sprintf(sick, "before"), "apply", "-f", "-", "--wait=false").expectExit(t, 0)
	for _, name := range []string{"full", "slow", "kept"} {
		c.awaitCreated(t, newNginxPod(name, "pod"))
	}

	t.Run("limits", func(t *testing.T) {
		c.awaitDoctorFinding(t, "limits", doctor.Problem, 0, "NodePool/full", "2 of 2 cpu")
	})
	t.Run("node-class", func(t *testing.T) {
		c.awaitDoctorFinding(t, "node-classes", doctor.Problem, 0, "KWOKNodeClass/nobody", "NodePool classless names it")
		c.awaitDoctorFinding(t, "node-pools", doctor.Problem, 0, "NodePool/classless", "NodeClassNotFound")
		c.awaitDoctorFinding(t, "node-pools", doctor.Problem, time.Hour, "NodePool/foreign", "Karpenter has not reconciled it")
		c.awaitDoctorFinding(t, "platform", doctor.Problem, 0, "Pool/classless", "NodePoolNotReady")
	})
	t.Run("not-registered", func(t *testing.T) {
		c.awaitDoctorFinding(t, "launches", doctor.Problem, time.Hour, "NodeClaim/slow-", "Node not registered with cluster")
	})
	t.Run("startup-taint", func(t *testing.T) { testDoctorStartupTaint(t, c) })
	t.Run("undeclared-taint", func(t *testing.T) { testDoctorUndeclaredTaint(t, c) })
	t.Run("daemonset", func(t *testing.T) { testDoctorDaemonSet(t, c) })
	t.Run("overlap", func(t *testing.T) { testDoctorOverlap(t, c) })
	t.Run("departures", func(t *testing.T) { testDoctorDepartures(t, c) })
	t.Run("old definitions", func(t *testing.T) { testDoctorOldDefinitions(t, c) })
	t.Run("several", func(t *testing.T) {
		out := c.runCroft(t, "doctor", "-o", "json").expectExit(t, 1)
		var report struct{ Checks []doctor.Result }
		if err := json.Unmarshal([]byte(out.stdout), &report); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if n := doctor.CountProblems(report.Checks); n < 3 {
			t.Errorf("%d problems: %s", n, out)
		}
		if out := c.runCroft(t, "doctor").expectExit(t, 1); !strings.Contains(out.stdout, "fix:") || !strings.Contains(out.stdout, "✓ kinds") {
			t.Errorf("it does not print the fix, or the checks without findings: %s", out)
		}
		c.runCroft(t, "doctor", "now").expectExit(t, 2)
	})
}

// awaitCreated retries until the namespace's rules exist, without which no pod is
// admitted.
func (c *cluster) awaitCreated(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	awaitCondition(t, patience, "pod "+pod.Namespace+"/"+pod.Name+" to be let in", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(c.admin.Create(ctx, pod.DeepCopy()))
	})
}

// awaitDoctorFinding waits until doctor reports the finding, with doctor's clock set ahead by
// later.
func (c *cluster) awaitDoctorFinding(t testing.TB, check string, severity doctor.Severity, later time.Duration, texts ...string) {
	t.Helper()
	version, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, patience, "doctor to find "+strings.Join(texts, ", "), func(ctx context.Context) error {
		seen, err := doctor.Gather(ctx, c.admin, version, doctor.Options{Checks: []string{check}})
		if err != nil {
			return err
		}
		seen.Now = seen.Now.Add(later)
		var all []string
		for _, r := range doctor.Check(seen) {
			for _, f := range r.Findings {
				line := fmt.Sprintf("%s %s: %s: %s", f.Severity, r.Check, f.Object, f.Message)
				all = append(all, line)
				hit := r.Check == check && f.Severity == severity && f.Fix != ""
				for _, text := range texts {
					hit = hit && strings.Contains(line, text)
				}
				if hit {
					return nil
				}
			}
		}
		return fmt.Errorf("it finds\n%s", strings.Join(all, "\n"))
	})
}

func testDoctorStartupTaint(t *testing.T, c *twoTenants) {
	nodePool := newOwnPool()
	nodePool.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: agent, Effect: corev1.TaintEffectNoSchedule}}
	pod := newNginxPod(metav1.NamespaceDefault, "platform", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{agent: "own"} })
	createObjects(t, c.admin, nodePool, pod)
	t.Cleanup(func() { c.deleteObjects(t, pod, nodePool) })
	c.awaitDoctorFinding(t, "launches", doctor.Problem, time.Hour, "NodeClaim/own-", `StartupTaint "example.org/agent:NoSchedule" still exists`)
}

func testDoctorUndeclaredTaint(t *testing.T, c *twoTenants) {
	node := c.awaitRunning(t, newNginxPod("full", "pod")).Spec.NodeName
	c.findNodeClaim(t, node)
	const stray = "example.org/stray"
	c.taintNode(t, node, stray+"=yes:NoSchedule")
	t.Cleanup(func() { c.taintNode(t, node, stray+"-") })
	c.awaitDoctorFinding(t, "taints", doctor.Problem, 0, "Node/"+node, stray)
}

func (c *cluster) taintNode(t testing.TB, node, taint string) {
	t.Helper()
	if _, err := c.Kubectl("taint", "node", node, taint); err != nil {
		t.Error(err)
	}
}

func testDoctorDaemonSet(t *testing.T, c *twoTenants) {
	labels := map[string]string{"app": "agent"}
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: newNginxPod("", "").Spec},
		},
	}
	createObjects(t, c.admin, set)
	t.Cleanup(func() { c.deleteObjects(t, set) })
	c.awaitDoctorFinding(t, "daemonsets", doctor.Warning, 0, "DaemonSet/kube-system/agent", "does not tolerate the taint")
	vital := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"template": {"spec": {"priorityClassName": "system-node-critical"}}}}`))
	if err := c.admin.Patch(t.Context(), set, vital); err != nil {
		t.Fatal(err)
	}
	c.awaitDoctorFinding(t, "daemonsets", doctor.Problem, 0, "DaemonSet/kube-system/agent")
}

func testDoctorOverlap(t *testing.T, c *twoTenants) {
	nodePool := newOwnPool()
	nodePool.Name = "stray"
	nodePool.Spec.Template.Labels[c.estate.Platform.NodePoolKey] = "pool-a"
	createObjects(t, c.admin, nodePool)
	t.Cleanup(func() { c.deleteObjects(t, nodePool) })
	c.awaitDoctorFinding(t, "node-pools", doctor.Problem, 0, "NodePool/stray", "without the taint")
}

// testDoctorDepartures tests a node that no longer matches its pool and may not be replaced, at
// first because of the pool and then also because of a pod.
func testDoctorDepartures(t *testing.T, c *twoTenants) {
	pod := c.awaitRunning(t, newNginxPod("kept", "pod"))
	node := pod.Spec.NodeName
	c.findNodeClaim(t, node)
	c.runCroftWithInput(t, fmt.Sprintf(sick, "after"), "apply", "-f", "-", "--wait=false").expectExit(t, 0)
	c.awaitDoctorFinding(t, "departures", doctor.Warning, time.Hour, "Node/"+node, "drifted")
	hold := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}`))
	if err := c.admin.Patch(t.Context(), pod, hold); err != nil {
		t.Fatal(err)
	}
	c.awaitDoctorFinding(t, "departures", doctor.Problem, time.Hour, "Node/"+node, "kept/pod", "karpenter.sh/do-not-disrupt")
	if story := c.runWhy(t, "node/"+node); !strings.Contains(story, "karpenter.sh/do-not-disrupt") {
		t.Errorf("croft why does not name what blocks it: %s", story)
	}
}

func (c *cluster) runWhy(t testing.TB, args ...string) string {
	t.Helper()
	return c.runCroft(t, append([]string{"why"}, args...)...).expectExit(t, 1).stdout
}

// newOwnPool returns a NodePool of the platform's own, whose nodes have a label and no taint.
func newOwnPool() *karpenterv1.NodePool {
	return &karpenterv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "own"},
		Spec: karpenterv1.NodePoolSpec{Template: karpenterv1.NodeClaimTemplate{
			ObjectMeta: karpenterv1.ObjectMeta{Labels: map[string]string{agent: "own"}},
			Spec: karpenterv1.NodeClaimTemplateSpec{
				NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "pool-a"},
				Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{
					{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m5.large"}},
				},
			},
		}},
	}
}

// testDoctorOldDefinitions removes a field from a CRD, as in an older version. It fails if croft
// does not report the remedy to the user who applies a file, or if half of the file is applied.
func testDoctorOldDefinitions(t *testing.T, c *twoTenants) {
	const name, field = "pools.croft.dev", "costCode"
	awaitCondition(t, patience, name+" to lose a field", func(ctx context.Context) error {
		var definition apiextensionsv1.CustomResourceDefinition
		c.getObject(t, "", name, &definition)
		for i := range definition.Spec.Versions {
			properties := definition.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties
			delete(properties["spec"].Properties, field)
		}
		return c.admin.Update(ctx, &definition)
	})
	awaitCondition(t, patience, "the definition to count", func(context.Context) error {
		if out := c.runCroft(t, "apply", "-f", c.file, "--wait=false"); out.status != 1 {
			return fmt.Errorf("apply prints %s", out)
		}
		return nil
	})
	out := c.runCroftWithInput(t, readRepositoryFile(t, c.file)+"  newcomer: {pool: pool-a}\n", "apply", "-f", "-", "--wait=false").expectExit(t, 1)
	for _, text := range []string{"nothing was written: ", "." + field + ": field not declared in schema", "fix:   apply the definitions"} {
		if !strings.Contains(out.stderr, text) {
			t.Errorf("it does not print %q: %s", text, out)
		}
	}
	if err := c.admin.Get(t.Context(), client.ObjectKey{Name: "newcomer"}, &v1alpha1.Tenant{}); !apierrors.IsNotFound(err) {
		t.Errorf("half of a file was applied: tenant newcomer: %v", err)
	}
	c.awaitDoctorFinding(t, "kinds", doctor.Problem, 0, name, field)
	c.runCroft(t, "install").expectExit(t, 0)
	awaitCondition(t, patience, "apply to succeed", func(context.Context) error {
		if out := c.runCroft(t, "apply", "-f", c.file, "--wait=false"); out.status != 0 {
			return fmt.Errorf("it prints %s", out)
		}
		return nil
	})
}
