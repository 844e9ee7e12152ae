package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/network"
)

// bump is the number by which the first restore raises etcd's revision. As docs/how-to/backup.md
// explains, it must be more than the number of changes since the snapshot, or clients miss
// changes. The next restore of the same snapshot has to raise it by more.
const bump = 1_000_000_000

// TestRestoreEtcd restores etcd from a snapshot while tenants work: first while croft's
// operator keeps running, with caches that are newer than the snapshot, and then without an
// operator. It fails if a pod or a node of the snapshot is lost or restarted, if an attack
// succeeds at any moment after the API server's first response, or if croft apply of the same
// file does not restore the tenant and the access that changed since. It is of the third tier
// (make test-all): it needs `make etcd`. TestTwoTenants tests the walls without an operator.
func TestRestoreEtcd(t *testing.T) {
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
	snapshot := filepath.Join(t.TempDir(), "snapshot.db")
	before := c.listWorkingPods(t)
	c.runEtcdctl(t, "snapshot", "save", snapshot)

	late := team{tenant: "tenant-late", pool: teams[1].pool, group: "team-late"}
	later := writeTempFile(t, strings.Replace(readRepositoryFile(t, file), "      - {group: auditors, role: viewer}\n",
		"  "+late.tenant+": {pool: "+late.pool+", access: [{group: "+late.group+", role: operator}]}\n", 1))
	work := func(t *testing.T) {
		c.applyFile(t, later)
		c.awaitAuditorAccess(t, false)
		deployment, _ := newNginxDeployment(late.tenant, 1)
		createObjects(t, c.newMemberClient(t, late.group), deployment)
		c.awaitRunningPods(t, late.tenant, 1)
	}
	work(t)

	for _, with := range []struct {
		name     string
		operator bool
		bump     int
	}{{"the operator runs on", true, bump}, {"without an operator", false, 2 * bump}} {
		t.Run(with.name, func(t *testing.T) {
			if !with.operator {
				if err := c.Stop("croft"); err != nil {
					t.Fatal(err)
				}
			}
			c.restoreEtcd(t, snapshot, with.bump)

			// The cluster has the state of the snapshot again.
			if err := c.admin.Get(t.Context(), client.ObjectKey{Name: late.tenant}, &v1alpha1.Tenant{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s is there after the restore: %v", late.tenant, err)
			}
			c.awaitAuditorAccess(t, true)
			for _, team := range teams {
				c.expectAttacksRefused(t, team)
				pod := newNginxPod(team.tenant, "afterwards")
				createObjects(t, c.newMemberClient(t, team.group), pod)
				expectPlacement(t, pod, v1alpha1.DefaultNodePoolKey, team.pool)
				c.awaitRunning(t, pod)
				c.deleteObjects(t, pod)
			}
			c.expectWallsHold(t)

			if !with.operator {
				c.resumeOperator(t)
			}
			work(t)
			for _, team := range append(slices.Clone(teams), late) {
				c.awaitTenantReady(t, team.tenant)
			}
			c.expectWallsHold(t)
			c.runCroft(t, "status").expectExit(t, 0)
			c.expectSamePods(t, before)
		})
	}
	c.runCroft(t, "verify").expectExit(t, 0)
}

// restoreEtcd replaces etcd's data with a snapshot: the API server stops, then etcd; etcdutl
// writes the data, and both start again. All other components keep running. Attacks are tried
// all the time.
func (c *cluster) restoreEtcd(t *testing.T, snapshot string, bump int) {
	t.Helper()
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if err := c.Stop(name); err != nil {
			t.Fatal(err)
		}
	}
	// A member that has data ignores these addresses when it starts.
	const peer = "https://localhost:2380"
	data := filepath.Join(c.Dir, "etcd")
	c.runEtcdTool(t, "etcdutl", "snapshot", "restore", snapshot, "--data-dir", data+".restored",
		"--name", "sandbox", "--initial-cluster", "sandbox="+peer, "--initial-advertise-peer-urls", peer,
		"--bump-revision", strconv.Itoa(bump), "--mark-compacted")
	if err := errors.Join(os.RemoveAll(data), os.Rename(data+".restored", data)); err != nil {
		t.Fatal(err)
	}
	end := c.startAttack(t, teams[0])
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := c.Start(name); err != nil {
			t.Fatal(err)
		}
	}
	end()
}

// startAttack tries an attack until end is called, and until it was refused ten times. It
// fails if the attack succeeds.
func (c *cluster) startAttack(t *testing.T, team team) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	member := c.newMemberClient(t, team.group)
	tried, refused := 0, make(chan struct{})
	var attacks sync.WaitGroup
	attacks.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for answers := 0; ctx.Err() == nil; tried++ {
			err := member.Create(ctx, newNginxPod(team.tenant, "stowaway", tolerateEverything))
			switch {
			case err == nil:
				t.Error("a pod that tolerates everything got through while the API server started")
				return
			case checkRefusal(err, byPlacement) == nil:
				if answers++; answers == 10 {
					close(refused)
				}
			}
			<-tick.C
		}
	})
	return func() {
		t.Helper()
		select {
		case <-refused:
		case <-time.After(moments):
			t.Errorf("%s did not refuse the attack ten times", byPlacement.Name)
		}
		stop()
		attacks.Wait()
		t.Logf("attacked %d times while the API server started", tried)
	}
}

// expectAttacksRefused fails if an attack succeeds on one of the walls that are stored in etcd.
func (c *cluster) expectAttacksRefused(t *testing.T, team team) {
	t.Helper()
	member := c.newMemberClient(t, team.group)
	expectRefusal(t, "a pod that tolerates everything",
		member.Create(t.Context(), newNginxPod(team.tenant, "stowaway", tolerateEverything)), byPlacement)
	expectRefusal(t, "a NetworkPolicy that lets everybody in", member.Create(t.Context(), newOpenPolicy(team.tenant)), byFloor)
	isolation := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: team.tenant, Name: network.IsolationPolicy}}
	expectRefusal(t, "deleting croft's NetworkPolicy", member.Delete(t.Context(), isolation), byProtection)
	for _, other := range teams {
		if other != team {
			expectForbidden(t, "reading another tenant's pods", member.List(t.Context(), &corev1.PodList{}, client.InNamespace(other.tenant)))
		}
	}
}

// awaitAuditorAccess waits until the auditors' access to tenant-b is as given.
func (c *cluster) awaitAuditorAccess(t *testing.T, want bool) {
	t.Helper()
	auditor, namespace := c.newMemberClient(t, "auditors"), teams[1].tenant
	awaitCondition(t, patience, fmt.Sprintf("auditors to see %s: %t", namespace, want), func(ctx context.Context) error {
		err := auditor.List(ctx, &corev1.PodList{}, client.InNamespace(namespace))
		if err != nil && !apierrors.IsForbidden(err) || (err == nil) != want {
			return fmt.Errorf("they get %w", err)
		}
		return nil
	})
}

// listWorkingPods returns the pods of the teams, by name, and their nodes.
func (c *cluster) listWorkingPods(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, team := range teams {
		for _, pod := range c.awaitRunningPods(t, team.tenant, 2) {
			restarts := int32(0)
			for _, status := range pod.Status.ContainerStatuses {
				restarts += status.RestartCount
			}
			all["pod "+pod.Namespace+"/"+pod.Name] = fmt.Sprintf("%s on %s since %s, %d restarts", pod.UID, pod.Spec.NodeName, pod.Status.StartTime, restarts)
			node := &corev1.Node{}
			c.getObject(t, "", pod.Spec.NodeName, node)
			all["node "+node.Name] = string(node.UID)
		}
	}
	return all
}

// expectSamePods fails unless the same pods run on the same nodes.
func (c *cluster) expectSamePods(t testing.TB, before map[string]string) {
	t.Helper()
	if after := c.listWorkingPods(t); !maps.Equal(before, after) {
		t.Errorf("other pods are at work than before: %v, %v", after, before)
	}
}

// runEtcdctl runs etcdctl with the rights of the API server.
func (c *cluster) runEtcdctl(t testing.TB, args ...string) {
	t.Helper()
	etcd, err := c.Component("etcd")
	if err != nil {
		t.Fatal(err)
	}
	pki := func(name string) string { return filepath.Join(c.Dir, "pki", name) }
	c.runEtcdTool(t, "etcdctl", append([]string{"--endpoints", etcd.Address, "--cacert", pki("etcd-ca.crt"),
		"--cert", pki("kube-apiserver-etcd-client.crt"), "--key", pki("kube-apiserver-etcd-client.key")}, args...)...)
}

// runEtcdTool runs a program that `make etcd` builds.
func (c *cluster) runEtcdTool(t testing.TB, name string, args ...string) {
	t.Helper()
	path, err := sandbox.FindTool(name)
	if err != nil {
		t.Fatalf("%v: run `make etcd`", err)
	}
	runCommand(t, exec.CommandContext(t.Context(), path, args...), "").expectExit(t, 0)
}
