package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/walls/wall/identity"
)

// testProxyLedger fails if users, whose tokens the API server does not accept, cannot read the cost of their tenant
// through the proxy, or if they can read another tenant's.
func testProxyLedger(t *testing.T, p *proxiedCluster) {
	certificate, key := newCertificate(t)
	address := findFreeAddress(t)
	ledger := p.startCroft(t, "croft-ledger.log", "ledger", "--kubeconfig", p.Kubeconfig, "--data-dir", t.TempDir(), "--leader-elect=false",
		"--authentication-config", p.authentication, "--tls-cert-file", certificate, "--tls-private-key-file", key,
		"--addr", address, "--health-addr", "0", "--metrics-addr", "0")
	next := p.startProxy(t, p.writeDirectKubeconfig(t, p.proxyToken), "--impersonation-role", identity.ProxyRole,
		"--ledger", "https://"+address, "--ledger-ca-file", certificate)
	jane, joe := next.newUser(t, p.jane.token), next.newUser(t, p.joe.token)
	next.awaitReady(t, jane)
	askAs := func(u testUser, args ...string) outcome {
		return next.runCroft(t, append([]string{"cost", "--kubeconfig", u.kubeconfig}, args...)...)
	}
	awaitCondition(t, moments, "the ledger to answer", func(context.Context) error {
		select {
		case <-ledger.ended:
			t.Fatalf("the ledger exited: %v", ledger.err)
		default:
		}
		if o := askAs(jane, "--ledger", "proxy", "-n", ownNamespace); o.status != 0 {
			return errors.New(o.String())
		}
		return nil
	})
	robot := next.newUser(t, p.newServiceAccount(t).token)
	const refused = "you may not read this cost"
	for _, c := range []struct {
		about string
		user  testUser
		args  []string
		// wantText is a part of the output, or of the error with exit status 1.
		wantText string
		status   int
	}{
		{"her tenant", jane, []string{"--ledger", "proxy", "-n", ownNamespace}, "TENANT", 0},
		{"her tenant's charges", jane, []string{"--ledger", "proxy", "-n", ownNamespace, "-o", "focus"}, "BilledCost", 0},
		{"without --ledger", testUser{kubeconfig: setNamespace(t, jane.kubeconfig, ownNamespace)}, nil, "TENANT", 0},
		{"no namespace of hers", jane, nil, refused, 1},
		{"another tenant", jane, []string{"--ledger", "proxy", "-n", otherNamespace}, refused, 1},
		{"no role", joe, []string{"--ledger", "proxy", "-n", ownNamespace}, refused, 1},
		{"a robot without a right", robot, []string{"--ledger", "proxy", "-n", ownNamespace}, refused, 1},
		{"an unknown token", next.newUser(t, "swordfish"), []string{"--ledger", "proxy"}, "is no ledger of croft: it answers with 401", 1},
		{"a proxy without a ledger", p.jane, []string{"--ledger", "proxy", "-n", ownNamespace}, "is no ledger of croft", 1},
		{"a proxy without a ledger, and no --ledger", p.jane, nil, "ask a platform admin for the right to list them", 1},
	} {
		o := askAs(c.user, c.args...)
		text := o.stdout
		if c.status != 0 {
			text = o.stderr
		}
		if o.status != c.status || !strings.Contains(text, c.wantText) {
			t.Errorf("%s: want exit status %d and %q: %s", c.about, c.status, c.wantText, o)
		}
	}
	allowRobot(t, p)
	if o := askAs(robot, "--ledger", "proxy", "-n", ownNamespace); o.status != 0 {
		t.Errorf("a robot with the right: %s", o)
	}
	if log := readFile(t, p.Dir+"/logs/croft-ledger.log"); strings.Contains(log, jane.token) || strings.Contains(log, robot.token) {
		t.Error("the ledger's log has a token")
	}
}

// setNamespace returns a kubeconfig with another namespace in its context.
func setNamespace(t *testing.T, kubeconfig, namespace string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return writeTempFile(t, string(content))
}

// allowRobot lets the robot of the tenant read its cost.
func allowRobot(t *testing.T, p *proxiedCluster) {
	t.Helper()
	rights := kubernetes.NewForConfigOrDie(p.Config).RbacV1()
	meta := metav1.ObjectMeta{Namespace: ownNamespace, Name: "costs"}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"costs"}, Verbs: []string{"get"}}}}
	if _, err := rights.Roles(ownNamespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "costs"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ownNamespace, Name: "default"}}}
	if _, err := rights.RoleBindings(ownNamespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
