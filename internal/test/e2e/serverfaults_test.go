package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/policy"
)

// TestAttacksWhileServersFail creates pods of a registry that the tenant never had, at all of
// three API servers, while the tenant's registries change and a server or a member of etcd
// fails. It fails if one pod is created.
func TestAttacksWhileServersFail(t *testing.T) {
	sandbox.Thorough(t)
	c := startSandbox(t, sandbox.Options{Components: sandbox.WithControllers, Croft: findCroftBinary(t), APIServers: 3, EtcdMembers: 3})
	c.runCroft(t, "apply", "--wait=false", "-f", writeTempFile(t, threeServers)).expectExit(t, 0)
	c.awaitTenantReady(t, "shop")

	attackers := []*attacker{c.startAttacker(t, "kube-apiserver"), c.startAttacker(t, "kube-apiserver-2"), c.startAttacker(t, "kube-apiserver-3")}
	nothing := func(string) error { return nil }
	for i, fault := range []struct {
		name      string
		fail      func(string) error
		component string
		recover   func(string) error
	}{
		{"no fault", nothing, "", nothing},
		{"an API server is frozen", c.Freeze, "kube-apiserver-2", c.Thaw},
		{"an API server is cut off from etcd", c.Cut, "kube-apiserver-3", c.Thaw},
		{"an API server is killed", c.Kill, "kube-apiserver-2", nothing},
		// One of the three is the leader.
		{"a member of etcd is killed", c.Kill, "etcd", nothing},
		{"a member of etcd is killed", c.Kill, "etcd-2", nothing},
		{"a member of etcd is killed", c.Kill, "etcd-3", nothing},
		{"a member of etcd is frozen", c.Freeze, "etcd", c.Thaw},
		{"a member of etcd is frozen", c.Freeze, "etcd-2", c.Thaw},
		{"a member of etcd is frozen", c.Freeze, "etcd-3", c.Thaw},
	} {
		changed := time.Now()
		if err := fault.fail(fault.component); err != nil {
			t.Fatal(err)
		}
		tenant := c.allowRegistry(t, fmt.Sprintf("r%d.example.org", i+1))
		if err := fault.recover(fault.component); err != nil {
			t.Fatal(err)
		}
		c.awaitEnforced(t, tenant, metav1.ConditionTrue)
		for _, a := range attackers {
			a.awaitRefusal(t)
		}
		t.Logf("%s (%s): Ready after %s", fault.name, fault.component, time.Since(changed).Round(time.Millisecond))
	}
	for _, a := range attackers {
		t.Logf("%s: refused %d pods, did not answer %d", a.server, a.refused.Load(), a.unanswered.Load())
		if created := a.created.Load(); created > 0 {
			t.Errorf("%s created %d pods of a registry that the tenant never had", a.server, created)
		}
	}
}

// An attacker creates pods at one API server until the test ends, and counts the answers.
type attacker struct {
	server                       string
	created, refused, unanswered atomic.Int64
}

// startAttacker starts one with an administrator's rights, which no rule excepts.
func (c *cluster) startAttacker(t *testing.T, server string) *attacker {
	t.Helper()
	config, err := c.ConfigAt(server)
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = 5 * time.Second
	to, a := newClient(t, config), &attacker{server: server}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	t.Cleanup(func() { stop(); done.Wait() })
	done.Go(func() {
		for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			a.countAnswer(to.Create(ctx, newPodWithImage("evil.example.org/app")))
		}
	})
	return a
}

func (a *attacker) countAnswer(err error) {
	switch {
	case err == nil:
		a.created.Add(1)
	case attack.ByPolicy(admissionpolicy.PodsPolicy, policy.RegistryRule).IsRefusal(err):
		a.refused.Add(1)
	default:
		a.unanswered.Add(1)
	}
}

// awaitRefusal waits until the server has refused another pod: it is back, and evaluates rules.
func (a *attacker) awaitRefusal(t *testing.T) {
	t.Helper()
	before := a.refused.Load()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, moments, true, func(context.Context) (bool, error) {
		return a.refused.Load() > before, nil
	})
	if err != nil {
		t.Fatalf("%s to refuse a pod again: %v", a.server, err)
	}
}
