package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/test/sandbox"
)

// teams are the teams of examples/two-tenants.yaml: the tenant, its pool and the group with
// access to it.
var teams = []team{
	{tenant: "tenant-a", pool: "pool-a", group: "team-a"},
	{tenant: "tenant-b", pool: "pool-b", group: "team-b"},
}

type team struct{ tenant, pool, group string }

// twoTenants is a sandbox with the operator, to which the example was applied.
type twoTenants struct {
	*cluster
	file   string
	estate *estate.Estate
}

func startTwoTenants(t *testing.T) *twoTenants {
	t.Helper()
	c := &twoTenants{cluster: startWithCroft(t), file: getExamplePath("two-tenants.yaml")}
	c.estate = buildEstate(t, c.file, readRepositoryFile(t, c.file))
	c.applyFile(t, c.file)
	return c
}

func TestTwoTenants(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // it mostly waits
	c := startTwoTenants(t)

	for _, test := range []struct {
		name string
		run  func(*testing.T, *twoTenants)
	}{
		{"SteadyState", testSteadyState},
		{"Placement", testPlacement},
		{"InstanceTypeAndScaleIn", testInstanceTypeAndScaleIn},
		{"SystemNamespaces", testSystemNamespaces},
		{"Drift", testDrift},
		{"WithoutOperator", testWithoutOperator},
		{"Retain", testRetain},
		{"GracePeriod", testGracePeriod},
		{"Volumes", testVolumes},
		{"Delete", testDelete},
		{"DeleteUnconfirmed", testDeleteUnconfirmed},
		{"Adoption", testAdoption},
		{"Diff", testDiff},
		{"Status", testStatus},
		{"Verify", testVerify},
		{"Interrupt", testInterrupt},
		{"Breaches", testBreaches},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

// testPlacement fails if the MutatingAdmissionPolicy is missing (pods stay Pending), if one of
// the pool's two taints or its label is missing, if a NodePool lacks the pool's instance types,
// or if roles do not let a team run its workloads.
func testPlacement(t *testing.T, c *twoTenants) {
	for _, team := range teams {
		deployment, service := newNginxDeployment(team.tenant, 3)
		createObjects(t, c.newMemberClient(t, team.group), deployment, service)
	}
	for _, team := range teams {
		for _, pod := range c.awaitRunningPods(t, team.tenant, 3) {
			expectPlacement(t, &pod, c.estate.Platform.NodePoolKey, team.pool)
			c.expectPool(t, c.estate, &pod, team.pool)
		}
		c.awaitEndpoints(t, team.tenant, "nginx", 3)
	}
}

// testInstanceTypeAndScaleIn fails if placement removes a pod's own node affinity, or if
// Karpenter does not apply the pool's emptyTTL.
func testInstanceTypeAndScaleIn(t *testing.T, c *twoTenants) {
	const want = "m5.large"
	a := teams[0]
	pod := newNginxPod(a.tenant, "choosy", requireInstanceType(want))
	createObjects(t, c.newMemberClient(t, a.group), pod)

	pod = c.awaitRunning(t, pod)
	expectPlacement(t, pod, c.estate.Platform.NodePoolKey, a.pool)
	node := c.expectPool(t, c.estate, pod, a.pool)
	if got := node.Labels[corev1.LabelInstanceTypeStable]; got != want {
		t.Errorf("the pod runs on a %s, and asked for %s", got, want)
	}

	c.deleteObjects(t, pod)
	c.awaitDeletion(t, node)
}

// testSystemNamespaces fails if a policy selects more than tenants' namespaces, or if croft
// writes anything outside of them.
func testSystemNamespaces(t *testing.T, c *twoTenants) {
	pod := newNginxPod(metav1.NamespaceDefault, "bystander")
	createObjects(t, c.admin, pod)
	t.Cleanup(func() { c.deleteObjects(t, pod) })
	if len(pod.Spec.NodeSelector) > 0 {
		t.Errorf("a pod in default got the nodeSelector %v", pod.Spec.NodeSelector)
	}
	for _, toleration := range pod.Spec.Tolerations {
		if !strings.HasPrefix(toleration.Key, "node.kubernetes.io/") { // Kubernetes' own
			t.Errorf("a pod in default got the toleration %+v", toleration)
		}
	}

	made := c.listEverything(t, ours)
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		var namespace corev1.Namespace
		c.getObject(t, "", name, &namespace)
		if marks := listMarks(&namespace); len(marks) > 0 {
			t.Errorf("namespace %s is marked %v", name, marks)
		}
		created := made.selectNamespace(name).selectObjects(func(ref apply.Ref) bool {
			// The operator's right to read the addresses of the API servers.
			return ref.Namespace != metav1.NamespaceDefault || ref.Name != v1alpha1.ManagedBy || !strings.HasPrefix(ref.Kind, "Role")
		})
		if len(created) > 0 {
			t.Errorf("croft created %s in %s", created, name)
		}
	}
}

// awaitEndpoints waits until a Service has n endpoints.
func (c *cluster) awaitEndpoints(t testing.TB, namespace, service string, n int) {
	t.Helper()
	awaitCondition(t, patience, fmt.Sprintf("service %s/%s to have %d endpoints", namespace, service, n), func(ctx context.Context) error {
		var slices discoveryv1.EndpointSliceList
		err := c.admin.List(ctx, &slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
		have := 0
		for _, slice := range slices.Items {
			have += len(slice.Endpoints)
		}
		if err == nil && have != n {
			err = fmt.Errorf("it has %d", have)
		}
		return err
	})
}

// deleteObjects deletes a test's objects. It also works in clean-ups, when the test's own context
// is cancelled.
func (c *cluster) deleteObjects(t testing.TB, objects ...client.Object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	var errs []error
	for _, o := range objects {
		errs = append(errs, client.IgnoreNotFound(c.admin.Delete(ctx, o)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
