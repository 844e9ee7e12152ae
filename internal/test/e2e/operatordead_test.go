package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// testOperatorDead fails if a command reports no problem while the operator is down and walls
// are missing.
func testOperatorDead(t *testing.T, c *twoTenants) {
	if out := c.runCroft(t, "status").expectExit(t, 0); !strings.HasPrefix(out.stdout, "OPERATOR   alive, ") {
		t.Errorf("status does not report that the operator is alive: %s", out)
	}
	if err := c.Stop("croft"); err != nil {
		t.Fatal(err)
	}
	started := false
	start := func() {
		if !started {
			started = true
			if err := c.Start("croft"); err != nil {
				t.Errorf("the operator does not come back: %v", err)
			}
		}
	}
	t.Cleanup(start)

	a := teams[0]
	t.Run("existing walls", func(t *testing.T) {
		out := c.runCroft(t, "status").expectExit(t, 1)
		expectOutput(t, out, "OPERATOR   no operator for ", "NoOperator")
		if strings.Contains(out.stdout, "True") {
			t.Errorf("Ready is believed without an operator: %s", out)
		}
	})

	down := []client.Object{
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "croft-network-floor"}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "croft-pods"}},
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "croft-pods"}},
	}
	for _, o := range down {
		if err := c.admin.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	ours := client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	if err := c.admin.DeleteAllOf(t.Context(), &networkingv1.NetworkPolicy{}, client.InNamespace(a.tenant), ours); err != nil {
		t.Fatal(err)
	}
	other := teams[1].tenant
	var policies networkingv1.NetworkPolicyList
	if err := c.admin.List(t.Context(), &policies, client.InNamespace(other), ours); err != nil {
		t.Fatal(err)
	}
	opened := &policies.Items[0]
	opened.Spec.Ingress = append(opened.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
	if err := c.admin.Update(t.Context(), opened, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}

	t.Run("status", func(t *testing.T) {
		expectOutput(t, c.runCroft(t, "status").expectExit(t, 1), "MISSING", "CHANGED", "NetworkPolicy "+other+"/"+opened.Name)
		expectOutput(t, c.runCroft(t, "status", "-o", "json").expectExit(t, 1), `"ValidatingAdmissionPolicyBinding croft-network-floor"`, `"alive": false`)
	})
	t.Run("doctor", func(t *testing.T) {
		var out outcome
		awaitCondition(t, moments, "the API server to forget the policies", func(context.Context) error {
			if out = c.runCroft(t, "doctor").expectExit(t, 1); !strings.Contains(joinOutput(out), "let-everybody-in: BREACHED") {
				return fmt.Errorf("doctor prints %s", out)
			}
			return nil
		})
		expectOutput(t, out, "✗ operator", "no operator for ", "✗ walls", "✗ attacks", "ValidatingAdmissionPolicyBinding croft-pods is missing",
			"Tenant/"+a.tenant+": NetworkPolicy "+a.tenant+"/", "NetworkPolicy "+other+"/"+opened.Name+" was changed by somebody", "of 6 attacks")
	})
	t.Run("apply", func(t *testing.T) {
		begun := time.Now()
		out := c.runCroft(t, "apply", "-f", c.file).expectExit(t, 1)
		expectOutput(t, out, "the objects have no effect until an operator runs", "the objects were written, but have no effect yet: no operator for ", "croft install --image", "croft render")
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("apply waited %s without an operator", took)
		}
		expectOutput(t, c.runCroft(t, "apply", "-f", c.file, "--wait=false").expectExit(t, 0), "the objects have no effect until an operator runs")
	})

	start()
	awaitCondition(t, patience, "the walls to stand again", func(context.Context) error {
		for _, command := range []string{"status", "doctor"} {
			if out := c.runCroft(t, command); out.status != 0 {
				return fmt.Errorf("%s prints %s", command, out)
			}
		}
		return nil
	})
}

// testAuditor fails if verify reports that the walls withstood the attacks to a user who may
// read everything and impersonate no user: the API server refuses each request for lack of the
// right to impersonate, not because of a wall.
func testAuditor(t *testing.T, c *twoTenants) {
	createObjects(t, c.admin, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "auditor"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
	}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "auditor"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "auditor"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "auditor"},
	})
	c.runCroft(t, "status", "--as", "auditor").expectExit(t, 0)
	out := c.runCroft(t, "doctor", "--as", "auditor").expectExit(t, 1)
	expectOutput(t, out, "attacks: you may not impersonate members of tenant", "0 problems", "? attacks", "✓ walls")
}

// joinOutput returns a command's output on one line, without its line breaks.
func joinOutput(o outcome) string { return strings.Join(strings.Fields(o.stdout+" "+o.stderr), " ") }

// expectOutput ends the test unless a command's output contains all of the texts.
func expectOutput(t testing.TB, o outcome, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(joinOutput(o), strings.Join(strings.Fields(text), " ")) {
			t.Errorf("it does not print %q: %s", text, o)
		}
	}
}
