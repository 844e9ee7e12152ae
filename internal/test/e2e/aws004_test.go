package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// buildDocument004File returns the example on AWS with one more pool and tenant. The pool is the
// Provisioner of document 004: small spot instances with Bottlerocket, a taint, and
// ttlSecondsAfterEmpty: 30.
func buildDocument004File(t testing.TB) string {
	t.Helper()
	const pool = `pools:
  dev:
    instances: {capacityTypes: [spot], requirements: [{key: karpenter.k8s.aws/instance-size, operator: In, values: [small, medium, large]}]}
    emptyTTL: 30s
    nodeClass: {aws: {amiAlias: bottlerocket@latest}}
`
	return strings.Replace(buildAWSFile(t), "pools:\n", pool, 1) + "  inflate: {pool: dev}\n"
}

// inEmpty is the maximum delay of an empty node's deletion. Karpenter checks every ten seconds,
// waits another fifteen to confirm, and on a busy machine repeats both. Without emptyTTL, the
// node would stay for an hour.
const inEmpty = 3 * time.Minute

// testDocument004 runs the scenario of document 004: there is no node; two pods get a new node;
// half a minute after the pods are deleted the node is deleted.
func testDocument004(t *testing.T, c *twoTenants) {
	c.applyContent(t, buildDocument004File(t))
	c.awaitServiceAccount(t, "inflate")
	nodes := func(ctx context.Context) ([]corev1.Node, error) {
		var list corev1.NodeList
		err := c.admin.List(ctx, &list, client.MatchingLabels{karpenterv1.NodePoolLabelKey: "dev"})
		return list.Items, err
	}
	if before, err := nodes(t.Context()); err != nil || len(before) > 0 {
		t.Fatalf("there are nodes before there are pods: %v, %v", before, err)
	}
	deployment, _ := newNginxDeployment("inflate", 2)
	createObjects(t, c.admin, deployment)
	for _, pod := range c.awaitRunningPods(t, "inflate", 2) {
		expectPlacement(t, &pod, c.estate.Platform.NodePoolKey, "dev")
	}
	made, err := nodes(t.Context())
	if err != nil || len(made) != 1 {
		t.Fatalf("two small pods take %d nodes: %v", len(made), err)
	}
	instance := c.findInstance(t, &made[0])
	if instance.Capacity != "spot" || made[0].Labels[karpenterv1.CapacityTypeLabelKey] != "spot" {
		t.Errorf("it is %s, and spot was asked for", instance.Capacity)
	}

	c.deleteObjects(t, deployment)
	var emptied time.Time
	awaitCondition(t, patience, "the node to be empty", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.admin.List(ctx, &pods, client.InNamespace("inflate")); err != nil {
			return err
		}
		if emptied = time.Now(); len(pods.Items) > 0 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return nil
	})
	var removed time.Time
	awaitCondition(t, 30*time.Second+inEmpty+patience, "the node to go", func(ctx context.Context) error {
		var claims karpenterv1.NodeClaimList
		if err := c.admin.List(ctx, &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: "dev"}); err != nil {
			return err
		}
		if removed = time.Now(); len(claims.Items) > 0 && claims.Items[0].DeletionTimestamp == nil {
			return errors.New("it is still there")
		}
		return nil
	})
	// The test observes the pods' end a moment later than Karpenter.
	if after := removed.Sub(emptied); after < 25*time.Second || after > 30*time.Second+inEmpty {
		t.Errorf("the node goes %s after its last pod, and emptyTTL is 30s", after)
	}
	c.awaitDeletion(t, &made[0])
	c.awaitTermination(t, instance.ID)
}
