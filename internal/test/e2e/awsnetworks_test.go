package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cloud/iam"
	"croft.dev/croft/internal/network/attach"
	"croft.dev/croft/internal/test/sandbox"
)

// telco is an estate with a pool in two secondary networks, each with a subnet in each zone.
const telco = `platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  admins: [platform-admins]
  nodeClass: {aws: {role: KarpenterNodeRole-demo}}
pools:
  telco:
    instances: {capacityTypes: [on-demand], instanceTypes: [m5.large, m5.xlarge]}
    emptyTTL: 10s
    costCode: org1
    secondaryNetworks: [n3, n6]
tenants:
  core: {pool: telco}
secondaryNetworks:
`

// networkedCluster is a cluster with secondary networks on a simulated account.
type networkedCluster struct {
	*cluster
	file string
}

// TestAWSNetworks runs the life cycle of nodes in secondary networks, with Karpenter's own AWS
// provider. The interfaces are created and deleted with their nodes, even if the operator stops
// in between.
func TestAWSNetworks(t *testing.T) {
	sandbox.Thorough(t) // TestKeeper and TestKeeperRecoversFromKills of the sandbox's module test the parts
	t.Parallel()        // it mostly waits
	n := &networkedCluster{cluster: startSandbox(t, sandbox.Options{Croft: findCroftBinary(t), With: []string{sandbox.AWS}, AWSSpeed: awsSpeed})}
	var b strings.Builder
	b.WriteString(telco)
	for i, name := range []string{"n3", "n6"} {
		fmt.Fprintf(&b, "  %s:\n    zones:\n", name)
		for j, zone := range []string{"us-west-2a", "us-west-2b", "us-west-2c"} {
			at := 64 + 8*i + j
			subnet, err := n.AWSSubnet(t.Context(), zone, fmt.Sprintf("10.0.%d.0/24", at))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "      - {zone: %s, subnet: %s, cidr: 10.0.%d.0/24, podCIDR: 10.0.%d.32/27}\n", zone, subnet, at, at)
		}
	}
	n.file = b.String()
	n.applyContent(t, n.file)
	n.awaitServiceAccount(t, "core")
	t.Run("Attached", func(t *testing.T) { testNetworksAttached(t, n) })
	t.Run("OperatorKilled", func(t *testing.T) { testNetworksOperatorKilled(t, n) })
	t.Run("NeverAttached", func(t *testing.T) { testNetworksNeverAttached(t, n) })
	t.Run("Wait", func(t *testing.T) { testNetworksWait(t, n) })
	t.Run("Journal", func(t *testing.T) { testNetworksJournal(t, n) })
	t.Run("NothingIsLeft", func(t *testing.T) { testNetworksNothingIsLeft(t, n) })
	t.Run("IAM", func(t *testing.T) { testNetworksIAM(t, n) })
}

// listCreatedInterfaces returns the interfaces that the operator created.
func (n *networkedCluster) listCreatedInterfaces(ctx context.Context) ([]sandbox.AWSInterface, error) {
	all, err := n.AWSInterfaces(ctx)
	return slices.DeleteFunc(all, func(i sandbox.AWSInterface) bool { return i.Tags[attach.NetworkTag] == "" }), err
}

// awaitInterfaces waits until the node of a pod has its two interfaces with the expected settings,
// and returns the node's instance.
func (n *networkedCluster) awaitInterfaces(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	node := &corev1.Node{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
		t.Fatal(err)
	}
	instance := n.findInstance(t, node)
	awaitCondition(t, patience, "two interfaces of "+instance.ID, func(ctx context.Context) error {
		made, err := n.listCreatedInterfaces(ctx)
		if err != nil {
			return err
		}
		networks := map[string]bool{}
		for _, i := range made {
			if i.Attachment == nil || i.Attachment.Instance != instance.ID {
				continue
			}
			if !i.Attachment.DeleteOnTermination || i.SourceDestCheck {
				return fmt.Errorf("%s is attached, and not as it is to be: %+v", i.ID, i)
			}
			for tag, want := range map[string]string{attach.ClusterTag: "demo", attach.PoolTag: "telco", "CostCode": "org1", attach.UnmanagedTag: "true"} {
				if i.Tags[tag] != want {
					t.Errorf("%s has tag %s: %q, not %q", i.ID, tag, i.Tags[tag], want)
				}
			}
			networks[i.Tags[attach.NetworkTag]] = true
		}
		if !networks["n3"] || !networks["n6"] {
			return fmt.Errorf("it is in %v; there are %+v", networks, made)
		}
		return nil
	})
	return instance.ID
}

// scaleTenant sets the tenant's number of pods. Each pod needs a node of its own.
func (n *networkedCluster) scaleTenant(t *testing.T, replicas int) {
	t.Helper()
	n.runKubectl(t, "", "scale", "deployment/nginx", "-n", "core", fmt.Sprintf("--replicas=%d", replicas)).expectExit(t, 0)
}

// testNetworksAttached fails if a node lacks an interface, or if the status of a network is not
// ready.
func testNetworksAttached(t *testing.T, n *networkedCluster) {
	deployment, _ := newNginxDeployment("core", 1)
	deployment.Spec.Template.Spec.TopologySpreadConstraints = nil
	deployment.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: deployment.Spec.Selector, TopologyKey: corev1.LabelHostname}},
	}}
	createObjects(t, n.admin, deployment)
	pods := n.awaitRunningPods(t, "core", 1)
	n.awaitInterfaces(t, &pods[0])
	awaitCondition(t, moments, "the networks' condition", func(ctx context.Context) error {
		var list v1alpha1.SecondaryNetworkList
		if err := n.admin.List(ctx, &list); err != nil {
			return err
		}
		for _, network := range list.Items {
			if !meta.IsStatusConditionTrue(network.Status.Conditions, v1alpha1.ConditionInterfacesReady) {
				return fmt.Errorf("%s: %+v", network.Name, network.Status.Conditions)
			}
		}
		return nil
	})
}

// testNetworksOperatorKilled fails if interfaces are attached only if the operator keeps
// running. It kills the operator after it has created the first of them.
func testNetworksOperatorKilled(t *testing.T, n *networkedCluster) {
	before, err := n.listCreatedInterfaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.scaleTenant(t, 3)
	awaitCondition(t, patience, "an interface of a new node", func(ctx context.Context) error {
		made, err := n.listCreatedInterfaces(ctx)
		if err == nil && len(made) == len(before) {
			err = fmt.Errorf("there are %d, as before", len(made))
		}
		return err
	})
	if err := n.Kill("croft"); err != nil {
		t.Fatal(err)
	}
	pods := n.awaitRunningPods(t, "core", 3)
	for i := range pods {
		n.awaitInterfaces(t, &pods[i])
	}
	made, err := n.listCreatedInterfaces(t.Context())
	if err != nil || len(made) != 2*3 {
		t.Errorf("three nodes have %d interfaces: %v", len(made), err)
	}
}

// testNetworksNeverAttached fails if interfaces that were never attached outlive the node that
// they were created for.
func testNetworksNeverAttached(t *testing.T, n *networkedCluster) {
	if err := n.AWSFault(t.Context(), "throttled", "--action", "ec2:AttachNetworkInterface"); err != nil {
		t.Fatal(err)
	}
	n.scaleTenant(t, 4)
	loose := func(ctx context.Context) (all []string, err error) {
		made, err := n.listCreatedInterfaces(ctx)
		for _, i := range made {
			if i.Attachment == nil {
				all = append(all, i.ID)
			}
		}
		return all, err
	}
	awaitCondition(t, patience, "two interfaces that are not attached", func(ctx context.Context) error {
		ids, err := loose(ctx)
		if err == nil && len(ids) != 2 {
			err = fmt.Errorf("there are %v", ids)
		}
		return err
	})
	n.awaitRunningPods(t, "core", 4)
	n.scaleTenant(t, 3)
	awaitCondition(t, patience, "them to go", func(ctx context.Context) error {
		ids, err := loose(ctx)
		if err == nil && len(ids) > 0 {
			err = fmt.Errorf("there are %v", ids)
		}
		return err
	})
	if err := n.AWSClear(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// testNetworksNothingIsLeft fails if an interface outlives its node.
func testNetworksNothingIsLeft(t *testing.T, n *networkedCluster) {
	n.scaleTenant(t, 0)
	awaitCondition(t, patience, "all interfaces to go", func(ctx context.Context) error {
		made, err := n.listCreatedInterfaces(ctx)
		if err == nil && len(made) > 0 {
			err = fmt.Errorf("there are %d", len(made))
		}
		return err
	})
}

// testNetworksIAM fails if the policy that `croft iam` prints for the operator does not allow a
// call that the operator made in the preceding tests, or if it allows an action that no call
// needed.
func testNetworksIAM(t *testing.T, n *networkedCluster) {
	calls, err := n.AWSCalls(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	statements := iam.Location{Partition: "aws", Region: "us-west-2", Account: "111122223333"}.
		Resolve(iam.OperatorRights(buildEstate(t, "telco.yaml", n.file)))
	var requests []iam.Request
	failed := map[string]int{}
	for _, call := range calls {
		if call.KeyID != "AKIACROFT" {
			continue
		}
		if call.Error != "" {
			failed[call.Action+": "+call.Error]++
		}
		for _, need := range call.Authorizations {
			requests = append(requests, iam.Request{Action: need.Action, Resources: need.Resources, Context: need.Context})
		}
	}
	t.Logf("the operator's calls need %d requests to be allowed; refused were %v", len(requests), failed)
	for _, r := range requests {
		if !iam.Allows(statements, r) {
			t.Errorf("the policy does not allow %s on %v with %v", r.Action, r.Resources, r.Context)
		}
	}
	for _, s := range statements {
		for _, action := range s.Actions {
			if !slices.ContainsFunc(requests, func(r iam.Request) bool { return !iam.Allows(removeAction(statements, action), r) }) {
				t.Errorf("the policy allows %s, and no call needs it", action)
			}
		}
	}
}
