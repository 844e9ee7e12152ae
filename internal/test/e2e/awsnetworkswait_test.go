package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/test/sandbox"
)

// testNetworksWait fails if a pod is scheduled to a node before the node's agent has reported
// that its networks are ready, or is not scheduled afterwards. The test acts as the agent, with
// its rights. In network n3 each node has its own prefixes, and the test fails if the node's
// file does not list them.
func testNetworksWait(t *testing.T, n *networkedCluster) {
	n.scaleTenant(t, 0)
	awaitCondition(t, patience, "all nodes to go", func(ctx context.Context) error {
		var nodes corev1.NodeList
		err := n.admin.List(ctx, &nodes, client.HasLabels{"karpenter.sh/nodepool"})
		if err == nil && len(nodes.Items) > 0 {
			err = fmt.Errorf("there are %d", len(nodes.Items))
		}
		return err
	})
	objects, err := install.Objects(install.Options{Image: "croft:test", Agent: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if (o.GetName() == install.AgentName || o.GetName() == install.NodesName) && o.GetObjectKind().GroupVersionKind().Kind != "DaemonSet" {
			createObjects(t, n.admin, o)
		}
	}
	n.reservePrefixes(t, "n3")
	n.applyContent(t, strings.NewReplacer(
		"secondaryNetworks: [n3, n6]", "secondaryNetworks: [n3, n6]\n    waitForNetworks: true", "  n3:\n", "  n3:\n    prefixesPerNode: 1\n",
	).Replace(n.file))
	multus := createMultus(t, n, &corev1.Toleration{Key: v1alpha1.NetworksTaint, Operator: corev1.TolerationOpExists})
	n.scaleTenant(t, 1)

	node := &corev1.Node{}
	awaitCondition(t, patience, "the list of a tainted node's interfaces", func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := n.admin.List(ctx, &nodes, client.MatchingLabels{v1alpha1.NodeNetworksLabel: "true"}); err != nil || len(nodes.Items) == 0 {
			return errors.Join(err, errors.New("there is no node with the agent's label"))
		}
		node = &nodes.Items[0]
		if node.Labels["karpenter.sh/registered"] != "true" {
			return errors.New("it is not registered")
		}
		listed, err := secondary.ReadNodeNetworks(node.Annotations[v1alpha1.NodeNetworksAnnotation])
		if err != nil || len(listed) != 2 {
			return fmt.Errorf("it lists %v: %w", listed, err)
		}
		return n.checkPrefix(ctx, node, listed[0])
	})
	pending := func(node *corev1.Node) bool {
		return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.NetworksTaint })
	}
	if !pending(node) {
		t.Errorf("the node has the taints %v before its networks are ready", node.Spec.Taints)
	}
	patch := func(on, format string, values ...any) error {
		as := rest.CopyConfig(n.Config)
		as.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:croft-agent:croft-agent", Groups: []string{"system:serviceaccounts", "system:authenticated"},
			Extra: map[string][]string{"authentication.kubernetes.io/node-name": {on}},
		}
		return newClient(t, as).Status().Patch(t.Context(), node.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil, format, values...)))
	}
	setReady := func(status corev1.ConditionStatus, on string) error {
		return patch(on, `{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Test","message":""}]}}`, v1alpha1.ConditionNetworksReady, status)
	}
	if err := setReady(corev1.ConditionTrue, "another"); err == nil || !strings.Contains(err.Error(), "[own-node]") {
		t.Errorf("another node's agent: %v", err)
	}
	if err := patch(node.Name, `{"metadata":{"annotations":{%q:"[]"}}}`, v1alpha1.NodeNetworksAnnotation); err == nil || !strings.Contains(err.Error(), "[own-annotation]") {
		t.Errorf("the operator's list, by the agent: %v", err)
	}
	if err := patch(node.Name, `{"metadata":{"annotations":{%q:"{}"}}}`, v1alpha1.BootAnnotation); err != nil {
		t.Errorf("the agent's annotation: %v", err)
	}
	if err := setReady(corev1.ConditionFalse, node.Name); err != nil {
		t.Fatal(err)
	}
	n.awaitNodeCondition(t, node, v1alpha1.ReasonLinksPending, "Test")
	if !pending(node) {
		t.Errorf("the node has the taints %v while an interface is missing", node.Spec.Taints)
	}
	if node.Annotations[v1alpha1.BootAnnotation] != "{}" {
		t.Errorf("the node has the annotations %v", node.Annotations)
	}
	if err := setReady(corev1.ConditionTrue, node.Name); err != nil {
		t.Fatal(err)
	}
	n.awaitNodeCondition(t, node, v1alpha1.ReasonPluginsPending, "DaemonSet kube-system/kube-multus-ds has no pod on the node, since it does not tolerate the taint "+v1alpha1.DefaultNodePoolKey)
	if !pending(node) {
		t.Errorf("the node has the taints %v before Multus is Ready", node.Spec.Taints)
	}
	if err := n.admin.Patch(t.Context(), multus, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}`))); err != nil {
		t.Fatal(err)
	}
	pods := n.awaitRunningPods(t, "core", 1)
	n.awaitNodeCondition(t, node, v1alpha1.ReasonPodNetworksReady, "kube-multus-ds")
	if pods[0].Spec.NodeName != node.Name {
		t.Errorf("the pod is on %s, not on %s", pods[0].Spec.NodeName, node.Name)
	}
}

// createMultus creates a DaemonSet like Multus's own, whose pods tolerate only the given taint.
func createMultus(t *testing.T, n *networkedCluster, only *corev1.Toleration) *appsv1.DaemonSet {
	t.Helper()
	own := map[string]string{"app": "multus", "name": "multus"}
	d := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: secondary.PluginsNamespace, Name: "kube-multus-ds", Labels: own},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: own},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: own}, Spec: corev1.PodSpec{
				HostNetwork: true, Tolerations: []corev1.Toleration{*only}, Containers: []corev1.Container{{Name: "kube-multus", Image: "multus"}},
			}},
		},
	}
	createObjects(t, n.admin, d)
	t.Cleanup(func() {
		if err := n.admin.Delete(context.WithoutCancel(t.Context()), d); err != nil {
			t.Error(err)
		}
	})
	return d
}

// awaitNodeCondition waits until the Node's condition has the reason and the message, and reads the
// Node.
func (n *networkedCluster) awaitNodeCondition(t *testing.T, node *corev1.Node, reason, message string) {
	t.Helper()
	awaitCondition(t, patience, "the node to wait for "+reason, func(ctx context.Context) error {
		if err := n.admin.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == v1alpha1.ConditionPodNetworksReady && c.Reason == reason && strings.HasPrefix(c.Message, message) {
				return nil
			}
		}
		return fmt.Errorf("it has the conditions %v", node.Status.Conditions)
	})
}

// reservePrefixes reserves the addresses of a network's pods, as croft networks plan proposes.
func (n *networkedCluster) reservePrefixes(t *testing.T, network string) {
	t.Helper()
	account, err := n.Component(sandbox.AWS)
	if err != nil {
		t.Fatal(err)
	}
	api := ec2.New(ec2.Options{
		BaseEndpoint: aws.String(account.Address), Region: "us-west-2",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	})
	o := &v1alpha1.SecondaryNetwork{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: network}, o); err != nil {
		t.Fatal(err)
	}
	for _, z := range o.Spec.Zones {
		if _, err := api.CreateSubnetCidrReservation(t.Context(), &ec2.CreateSubnetCidrReservationInput{
			SubnetId: aws.String(z.Subnet), Cidr: aws.String(z.PodCIDR), ReservationType: ec2types.SubnetCidrReservationTypePrefix,
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// checkPrefix returns an error if a node's file does not contain exactly the addresses of
// one prefix of its zone's reservation.
func (n *networkedCluster) checkPrefix(ctx context.Context, node *corev1.Node, own secondary.NodeNetwork) error {
	o := &v1alpha1.SecondaryNetwork{}
	if err := n.admin.Get(ctx, client.ObjectKey{Name: own.Network}, o); err != nil {
		return err
	}
	for i := range o.Spec.Zones {
		z := &o.Spec.Zones[i]
		if z.Zone != node.Labels[corev1.LabelTopologyZone] {
			continue
		}
		// podCIDR is a /27, which has two /28 prefixes.
		for _, at := range []string{".32/28", ".48/28"} {
			prefix := netip.MustParsePrefix(strings.TrimSuffix(z.PodCIDR, ".32/27") + at)
			if own.ZoneFile == secondary.NodeFile(o.Name, z, []netip.Prefix{prefix}) {
				return nil
			}
		}
	}
	return fmt.Errorf("the node's file of %s has other addresses than those of a prefix: %s", own.Network, own.ZoneFile)
}
