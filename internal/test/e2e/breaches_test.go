package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/identity"
	"croft.dev/croft/internal/walls/wall/network"
)

// testBreaches fails if verify does not report an object that was removed by hand, or reports
// it on the wrong line, or if the operator does not restore it.
func testBreaches(t *testing.T, c *twoTenants) {
	if err := c.Stop("croft"); err != nil {
		t.Fatal(err)
	}
	running := false
	t.Cleanup(func() {
		if !running {
			if err := c.Start("croft"); err != nil {
				t.Errorf("the operator does not come back: %v", err)
			}
		}
	})
	a := teams[0].tenant
	for _, object := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: admissionpolicy.PodsPolicy}},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: a, Name: network.IsolationPolicy}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: a, Name: identity.ClusterRoleName(v1alpha1.RoleOperator)}},
	} {
		c.disturbObject(t, object, "")
	}
	tests := []struct {
		// args are verify's arguments, and breached are the attacks that are expected to succeed.
		args     []string
		breached []string
	}{
		{[]string{"--attack", "tolerate-every-taint,call-any-tenant"}, []string{"tolerate-every-taint", "call-any-tenant"}},
		{[]string{"--attack", "write-secret", "--tenant", a}, []string{"write-secret"}},
	}
	// The attacks that the removed objects stopped.
	healed := [][]string{append([]string{"verify"}, tests[0].args...), append([]string{"verify"}, tests[1].args...)}
	if sandbox.All() {
		tests[0].args, tests[1].args = []string{"--wall", "nodes,network"}, []string{"--wall", "identity", "--tenant", a}
		healed = [][]string{{"verify"}, {"verify", "--tenant", a}}
	}
	for _, test := range tests {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			awaitCondition(t, moments, fmt.Sprintf("%v to be BREACHED", test.breached), func(context.Context) error {
				answer := c.runCroft(t, append([]string{"verify", "-o", "json"}, test.args...)...)
				var report struct {
					Results []verify.Result `json:"results"`
				}
				unmarshalOutput(t, answer, &report)
				for _, name := range test.breached {
					if answer.status != 1 || !slices.ContainsFunc(report.Results, func(r verify.Result) bool { return r.Name == name && r.Result == verify.Breached }) {
						return fmt.Errorf("%s is not: %s", name, answer)
					}
				}
				return nil
			})
		})
	}
	if err := c.Start("croft"); err != nil {
		t.Fatal(err)
	}
	running = true
	awaitCondition(t, patience, "everything to hold again", func(context.Context) error {
		for _, args := range healed {
			if out := c.runCroft(t, args...); out.status != 0 {
				return fmt.Errorf("it does not: %s", out)
			}
		}
		return nil
	})
}

// testInterrupt fails if verify leaves its scratch tenants behind when it is interrupted or
// reaches its time limit.
func testInterrupt(t *testing.T, c *twoTenants) {
	scratch := func(ctx context.Context) ([]string, error) {
		namespaces, err := c.listTenantNamespaces(ctx)
		var names []string
		for _, n := range namespaces {
			if strings.HasPrefix(n.Name, "croft-verify-") && n.DeletionTimestamp == nil {
				names = append(names, n.Name)
			}
		}
		return names, err
	}
	isClean := func(t *testing.T) {
		if left, err := scratch(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("verify ended and left %v: %v", left, err)
		}
	}
	t.Run("Ctrl-C", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), findCroftBinary(t), "verify")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
		var stderr bytes.Buffer
		cmd.Dir, cmd.Stderr = root, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitCondition(t, moments, "a scratch tenant", func(ctx context.Context) error {
			names, err := scratch(ctx)
			if err == nil && len(names) == 0 {
				err = errors.New("there is none")
			}
			return err
		})
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 130 || !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("it ended with %v and printed: %s", err, stderr.String())
		}
		isClean(t)
	})
	t.Run("--timeout", func(t *testing.T) {
		out := c.runCroft(t, "verify", "--timeout", "500ms").expectExit(t, 1)
		if !strings.Contains(out.stderr, "within 500ms") {
			t.Errorf("it does not report the timeout: %s", out)
		}
		isClean(t)
	})
}
