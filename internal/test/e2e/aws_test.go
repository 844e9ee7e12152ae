package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/test/sandbox"
)

// awsSpeed is the factor by which simulated instances start and stop faster than real ones.
const awsSpeed = 8

// buildAWSFile returns examples/two-tenants.yaml with EC2 instances as nodes.
func buildAWSFile(t testing.TB) string {
	t.Helper()
	const kwok = "nodeClass: {kwok: {}}"
	file := readRepositoryFile(t, getExamplePath("two-tenants.yaml"))
	if !strings.Contains(file, kwok) {
		t.Fatalf("the example has no %q any more", kwok)
	}
	return strings.Replace(file, kwok, "nodeClass: {aws: {role: KarpenterNodeRole-demo}}", 1)
}

// TestAWS runs the walk-through on a simulated AWS account, with Karpenter's own AWS provider.
func TestAWS(t *testing.T) {
	sandbox.Thorough(t)
	t.Parallel() // it mostly waits
	c := startSandbox(t, sandbox.Options{Croft: findCroftBinary(t), With: []string{sandbox.AWS}, AWSSpeed: awsSpeed})
	file := buildAWSFile(t)
	c.applyContent(t, file)
	two := &twoTenants{cluster: c, file: writeTempFile(t, file), estate: buildEstate(t, "two-tenants.yaml", file)}
	t.Run("Placement", func(t *testing.T) { testPlacement(t, two) })
	t.Run("Launched", func(t *testing.T) { testLaunched(t, two) })
	t.Run("Interruption", func(t *testing.T) { testInterruption(t, two) })
	t.Run("InstanceTypeAndScaleIn", func(t *testing.T) { testInstanceTypeAndScaleIn(t, two) })
	t.Run("Document004", func(t *testing.T) { testDocument004(t, two) })
	t.Run("NothingIsLeft", func(t *testing.T) { testNothingIsLeft(t, two) })
	t.Run("IAM", func(t *testing.T) { testIAM(t, two) })
}

// testLaunched fails if a pool's settings do not reach the instances (tags, metadata service,
// taints), or if a node sets its pool's label itself: then any node could.
func testLaunched(t *testing.T, c *twoTenants) {
	key := c.estate.Platform.NodePoolKey
	for _, team := range teams {
		pods := c.awaitRunningPods(t, team.tenant, 3)
		node := c.expectPool(t, c.estate, &pods[0], team.pool)
		instance := c.findInstance(t, node)
		for tag, want := range map[string]string{
			"NodePool": team.pool, "Project": team.pool, "CostCode": team.group,
			"karpenter.sh/nodepool": team.pool, "eks:eks-cluster-name": "demo", "kubernetes.io/cluster/demo": "owned",
		} {
			if got := instance.Tags[tag]; got != want {
				t.Errorf("instance %s of %s has tag %s: %q, not %q", instance.ID, team.pool, tag, got, want)
			}
		}
		for option, want := range map[string]string{"HttpTokens": "required", "HttpPutResponseHopLimit": "1", "HttpEndpoint": "enabled"} {
			if got := instance.Data.MetadataOptions[option]; got != want {
				t.Errorf("the metadata service of %s has %s: %q, not %q", team.pool, option, got, want)
			}
		}
		userData, err := base64.StdEncoding.DecodeString(instance.Data.UserData)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"registerWithTaints", "key: " + key, "value: " + team.pool, "karpenter.sh/unregistered"} {
			if !strings.Contains(string(userData), want) {
				t.Errorf("the user data of %s does not contain %s:\n%s", team.pool, want, userData)
			}
		}
		if strings.Contains(string(userData), key+"="+team.pool) {
			t.Errorf("the user data of %s makes the kubelet set %s itself, which the API server forbids:\n%s", team.pool, key, userData)
		}
	}
}

// findInstance returns the instance of a node.
func (c *cluster) findInstance(t testing.TB, node *corev1.Node) sandbox.AWSInstance {
	t.Helper()
	instances, err := c.AWSInstances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(instances, func(i sandbox.AWSInstance) bool {
		return node.Spec.ProviderID == "aws:///"+i.Zone+"/"+i.ID
	})
	if i < 0 {
		t.Fatalf("node %s has the provider ID %s, and no instance has", node.Name, node.Spec.ProviderID)
	}
	return instances[i]
}

// testInterruption fails if Karpenter does not receive the interruption of a spot instance, or
// if the replacement pods run on nodes of another pool.
func testInterruption(t *testing.T, c *twoTenants) {
	b := teams[1]
	pods := c.awaitRunningPods(t, b.tenant, 3)
	node := c.expectPool(t, c.estate, &pods[0], b.pool)
	instance := c.findInstance(t, node)
	if instance.Capacity != "spot" {
		t.Fatalf("%s runs on an instance that is %s, and spot is cheaper", b.tenant, instance.Capacity)
	}
	if err := c.AWSInterrupt(t.Context(), instance.ID); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, patience, "the pods to leave the instance", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.admin.List(ctx, &pods, client.InNamespace(b.tenant)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.Spec.NodeName == node.Name {
				return fmt.Errorf("pod %s is still on it", pod.Name)
			}
		}
		return nil
	})
	for _, pod := range c.awaitRunningPods(t, b.tenant, 3) {
		expectPlacement(t, &pod, c.estate.Platform.NodePoolKey, b.pool)
		c.expectPool(t, c.estate, &pod, b.pool)
	}
	c.awaitDeletion(t, node)
	c.awaitTermination(t, instance.ID)
}

// awaitTermination waits until an instance is terminated.
func (c *cluster) awaitTermination(t testing.TB, id string) {
	t.Helper()
	awaitCondition(t, patience, "instance "+id+" to be terminated", func(ctx context.Context) error {
		instances, err := c.AWSInstances(ctx)
		if err != nil {
			return err
		}
		for _, i := range instances {
			if i.ID == id && i.State != "terminated" {
				return fmt.Errorf("it is %s", i.State)
			}
		}
		return nil
	})
}

// testNothingIsLeft fails if a resource in the account outlives the pool that it was created
// for.
func testNothingIsLeft(t *testing.T, c *twoTenants) {
	if left, err := c.AWSLeft(t.Context()); len(left) == 0 {
		t.Fatalf("nothing was made in the account, and this test would not notice anything: %v", err)
	}
	for _, command := range [][]string{
		{"delete", "deployments", "--all", "-n", "tenant-a"},
		{"delete", "deployments", "--all", "-n", "tenant-b"},
		{"delete", "tenants.croft.dev,pools.croft.dev", "--all", "--wait=false"},
	} {
		c.runKubectl(t, "", command...).expectExit(t, 0)
	}
	// A deleted Tenant keeps its walls, and these keep the Pool. So the test stops the operator
	// and deletes the NodePools and node classes itself.
	if err := c.Stop("croft"); err != nil {
		t.Fatal(err)
	}
	c.runKubectl(t, "", "delete", "nodepools,ec2nodeclasses", "--all", "--timeout=120s").expectExit(t, 0)
	if left, err := c.AWSLeft(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("still in the account: %v, %v", left, err)
	}
}
