package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
)

// TestRestore deletes all declared objects while tenants work, as by accident, and applies them
// again. It fails if a network is open at any moment; if a pod is restarted, deleted, refused
// or admitted without placement; if a node is deleted; if the tenants' members have more rights
// than before; or if they do not regain their rights afterwards. It is of the third tier (make
// test-all): testRetain deletes one tenant.
func TestRestore(t *testing.T) {
	t.Parallel() // it mostly waits
	sandbox.Thorough(t)
	c := startWithCroft(t)
	file := getExamplePath("two-tenants.yaml")
	c.applyFile(t, file)
	for _, team := range teams {
		deployment, _ := newNginxDeployment(team.tenant, 2)
		createObjects(t, c.newMemberClient(t, team.group), deployment)
	}
	for _, team := range teams {
		c.awaitRunningPods(t, team.tenant, 2)
	}
	seen := c.startObserverWithoutAccess(t, buildEstate(t, file, readRepositoryFile(t, file)))

	c.runKubectl(t, "", "delete", "tenants,pools,platforms", "--all", "--wait=false").expectExit(t, 0)
	for _, team := range teams {
		c.awaitDeletion(t, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: team.tenant}})
	}
	for _, team := range teams {
		t.Run("the pool of "+team.tenant+" waits", func(t *testing.T) {
			awaitCondition(t, moments, "the pool to report why it stays", func(ctx context.Context) error {
				pool := &v1alpha1.Pool{}
				if err := c.admin.Get(ctx, client.ObjectKey{Name: team.pool}, pool); err != nil {
					if apierrors.IsNotFound(err) {
						t.Fatal("it is deleted, and Karpenter drains its nodes")
					}
					return err
				}
				for _, condition := range pool.Status.Conditions {
					if condition.Reason == v1alpha1.ReasonInUse && strings.Contains(condition.Message, "(of tenant "+team.tenant+")") {
						return nil
					}
				}
				return fmt.Errorf("%+v", pool.Status.Conditions)
			})
		})
	}
	seen.traffic.awaitPlaced(t, 20)

	// An object that is being deleted cannot be kept. Without its finalizer it is deleted at
	// once, and the objects that croft made from it remain, as docs/how-to/backup.md explains.
	for _, team := range teams {
		c.runKubectl(t, "", "patch", "pool", team.pool, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`).expectExit(t, 0)
	}
	c.applyFile(t, file)
	for _, team := range teams {
		c.awaitTenantReady(t, team.tenant)
		createObjects(t, c.newMemberClient(t, team.group), newNginxPod(team.tenant, trafficName+"again"))
	}
	seen.expectNoViolations(t)
	c.expectWallsHold(t)
	c.runCroft(t, "status").expectExit(t, 0)
}
