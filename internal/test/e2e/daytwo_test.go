package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/network"
)

// dayOne is the initial estate, with the parts that the steps change later.
const (
	dayOne = `
platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  admins: [platform-admins]
  nodeClass: {kwok: {}}
pools:
  small:
    instances: {instanceTypes: [t3a.medium]}
    ` + workingHours + `
  large: {instances: {instanceTypes: [m5.large]}}
tenants:
  shop:
    pool: small
    ` + shopNamespaces + `
    access: [{group: team-shop, role: operator}]
    ` + shopDomains + `
  bank:
    pool: large
    access: [{group: team-bank, role: operator}]
`
	workingHours   = `budgets: [{nodes: "0", schedule: 0 8 * * *, duration: 8h}]`
	shopNamespaces = `namespaces: [shop, shop-test]`
	shopDomains    = `domains: [shop.example.org]`
)

// dayTwo is a sandbox with the operator, and the file that was applied to it last.
type dayTwo struct {
	*cluster
	file string
}

// TestDayTwo fails if status, doctor, diff or the events are wrong after one of the changes
// that a platform team makes after the first day. Each step begins with the state that the last
// one left.
func TestDayTwo(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // it mostly waits
	d := &dayTwo{cluster: startWithCroft(t), file: dayOne}
	d.applyContent(t, d.file)
	deployment, _ := newNginxDeployment("shop", 2)
	createObjects(t, d.newMemberClient(t, "team-shop"), deployment)
	d.awaitRunningPods(t, "shop", 2)
	d.awaitHealthy(t)

	for _, step := range []struct {
		name string
		run  func(*testing.T, *dayTwo)
		// proved names the tests of `make e2e` and `make race` that cover the step; only
		// `make test-all` then runs it.
		proved string
	}{
		{"a pool is changed", testDayTwoPool, ""},
		{"it is rolled back", testDayTwoRollback, ""},
		{"a tenant moves to another pool", testDayTwoMove, "TestMove"},
		{"a namespace is added, and removed", testDayTwoNamespaces, ""},
		{"a domain goes to another tenant", testDayTwoDomain, "TestTenant/a_domain_is_another's,_and_then_is_not"},
		{"a tenant is deleted and declared again", testDayTwoAgain, "TestTwoTenants/Retain, and the next step"},
		{"a tenant is renamed", testDayTwoRename, ""},
		{"walls are broken", testDayTwoDrift, "TestTwoTenants/Drift"},
		{"an invalid tenant is written outside of the file", testDayTwoInvalid, ""},
		{"two admins apply different files", testDayTwoAdmins, ""},
		{"the operator is away, and back", testDayTwoOperator, "TestTwoTenants/WithoutOperator, TestDoctor/operator_dead"},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			if step.proved != "" {
				sandbox.Thorough(t)
			}
			step.run(t, d)
		}) {
			return
		}
	}
}

// editAndApply changes the file, checks the output of diff for the change, and applies it.
func (d *dayTwo) editAndApply(t *testing.T, from, to string, shows ...string) {
	t.Helper()
	d.file = replaceFirst(t, d.file, from, to)
	out := d.runCroftWithInput(t, d.file, "diff", "-f", "-").expectExit(t, 1)
	for _, want := range shows {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("diff does not show %q: %s", want, out)
		}
	}
	d.applyContent(t, d.file)
}

// awaitHealthy waits until status, doctor and diff find no problem.
func (d *dayTwo) awaitHealthy(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"status"}, {"doctor"}, {"diff", "-f", "-"}} {
		awaitCondition(t, patience, args[0]+" to find nothing wrong", func(context.Context) error {
			if out := d.runCroftWithInput(t, d.file, args...); out.status != 0 || args[0] == "diff" && out.stdout != "" {
				return errors.New(out.String())
			}
			return nil
		})
	}
}

// awaitOutput waits until a command exits with the status and prints all of the texts.
func (d *dayTwo) awaitOutput(t *testing.T, status int, args string, wants ...string) {
	t.Helper()
	awaitCondition(t, patience, "croft "+args+" to print the expected output", func(context.Context) error {
		out := d.runCroftWithInput(t, d.file, strings.Fields(args)...)
		if out.status != status {
			return fmt.Errorf("exit status %d, want %d: %s", out.status, status, out)
		}
		for _, want := range wants {
			if !strings.Contains(out.stdout+out.stderr, want) {
				return fmt.Errorf("it does not print %q: %s", want, out)
			}
		}
		return nil
	})
}

// awaitEvent waits for an event of a tenant with all of the texts.
func (d *dayTwo) awaitEvent(t *testing.T, tenant, reason string, wants ...string) {
	t.Helper()
	awaitCondition(t, patience, "an event "+reason+" of tenant "+tenant, func(ctx context.Context) error {
		var events corev1.EventList
		if err := d.admin.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		var notes []string
		for _, e := range events.Items {
			if e.InvolvedObject.Kind != "Tenant" || e.InvolvedObject.Name != tenant || e.Reason != reason {
				continue
			}
			notes = append(notes, e.Message)
		}
		for _, want := range wants {
			if !strings.Contains(strings.Join(notes, "\n"), want) {
				return fmt.Errorf("none names %s: %q", want, notes)
			}
		}
		return nil
	})
}

func (d *dayTwo) getBudgets(t *testing.T, pool string) []karpenterv1.Budget {
	t.Helper()
	nodePool := &karpenterv1.NodePool{}
	d.getObject(t, "", pool, nodePool)
	return nodePool.Spec.Disruption.Budgets
}

func testDayTwoPool(t *testing.T, d *dayTwo) {
	d.editAndApply(t, workingHours, `budgets: [{nodes: "0"}]`, "Pool small", "NodePool small", "schedule: 0 8 * * *")
	if got := d.getBudgets(t, "small"); len(got) != 1 || got[0].Schedule != nil || got[0].Duration != nil {
		t.Errorf("the schedule was taken out of the file, and the NodePool has %+v", got)
	}
	d.awaitHealthy(t)
}

func testDayTwoRollback(t *testing.T, d *dayTwo) {
	d.editAndApply(t, `budgets: [{nodes: "0"}]`, workingHours, "NodePool small", "schedule: 0 8 * * *")
	if got := d.getBudgets(t, "small"); len(got) != 1 || got[0].Schedule == nil {
		t.Errorf("the file is as it was before, and the NodePool has %+v", got)
	}
	d.awaitHealthy(t)
}

func testDayTwoMove(t *testing.T, d *dayTwo) {
	d.editAndApply(t, "pool: small\n    "+shopNamespaces, "pool: large\n    "+shopNamespaces, "Tenant shop", "+  pool: large")
	d.awaitOutput(t, 1, "doctor misplaced-pods", "Tenant/shop", "croft move tenant shop")
	pods := d.awaitRunningPods(t, "shop", 2)
	d.awaitOutput(t, 1, "why pod/"+pods[0].Name+" -n shop", "may not")

	d.runCroft(t, "move", "tenant", "shop", "--yes").expectExit(t, 0)
	e := buildEstate(t, "croft.yaml", d.file)
	for _, pod := range d.awaitRunningPods(t, "shop", 2) {
		d.expectPool(t, e, &pod, "large")
	}
	d.awaitHealthy(t)
}

func testDayTwoNamespaces(t *testing.T, d *dayTwo) {
	d.editAndApply(t, shopNamespaces, "namespaces: [shop, shop-test, shop-dev]", "Namespace shop-dev", "RoleBinding shop-dev/croft-operator")
	d.awaitEvent(t, "shop", "NamespaceCreated", "shop-dev")
	d.awaitHealthy(t)
	member := d.newMemberClient(t, "team-shop")
	if err := member.List(t.Context(), &corev1.PodList{}, client.InNamespace("shop-dev")); err != nil {
		t.Errorf("the namespace is the team's, and it may not look into it: %v", err)
	}

	d.editAndApply(t, "namespaces: [shop, shop-test, shop-dev]", shopNamespaces, "RoleBinding shop-dev/croft-operator (live)")
	awaitCondition(t, moments, "people to lose access", func(ctx context.Context) error {
		if err := member.List(ctx, &corev1.PodList{}, client.InNamespace("shop-dev")); err == nil {
			return errors.New("they may still list pods in shop-dev")
		}
		return nil
	})
	d.awaitHealthy(t)
}

func testDayTwoDomain(t *testing.T, d *dayTwo) {
	taken := replaceFirst(t, d.file, "access: [{group: team-bank, role: operator}]", "access: [{group: team-bank, role: operator}]\n    domains: [shop.example.org]")
	for _, command := range []string{"check", "diff", "apply"} {
		out := d.runCroftWithInput(t, taken, command, "-f", "-").expectExit(t, 2)
		if !strings.Contains(out.stderr, "shop.example.org") || !strings.Contains(out.stderr, "bank") || !strings.Contains(out.stderr, "shop") {
			t.Errorf("it does not name the domain and both tenants: %s", out)
		}
	}
	d.awaitHealthy(t)

	d.file = replaceFirst(t, taken, shopDomains, "")
	d.runCroftWithInput(t, d.file, "diff", "-f", "-").expectExit(t, 1)
	d.applyContent(t, d.file)
	if got := d.getTenant(t, "bank").Status.Domains; !strings.Contains(strings.Join(got, " "), "shop.example.org") {
		t.Errorf("tenant bank has the domains %v", got)
	}
	d.awaitHealthy(t)
}

func testDayTwoAgain(t *testing.T, d *dayTwo) {
	before := &corev1.Namespace{}
	d.getObject(t, "", "bank", before)
	d.runCroft(t, "delete", "tenant", "bank", "--yes", "--wait-timeout", patience.String()).expectExit(t, 0)
	d.awaitEvent(t, "bank", "Deleted", "access is removed")
	d.awaitOutput(t, 0, "status", "RETAINED")
	d.awaitOutput(t, 1, "diff -f -", "Tenant bank", "RoleBinding bank/croft-operator")

	d.applyContent(t, d.file)
	after := &corev1.Namespace{}
	d.getObject(t, "", "bank", after)
	if before.UID != after.UID {
		t.Error("the namespace of a tenant that was kept is another")
	}
	d.awaitHealthy(t)
}

func testDayTwoRename(t *testing.T, d *dayTwo) {
	d.runCroft(t, "delete", "tenant", "bank", "--yes", "--wait-timeout", patience.String()).expectExit(t, 0)
	d.file = replaceFirst(t, d.file, "  bank:\n", "  savings:\n    namespaces: [bank]\n")
	refused := d.runCroftWithInput(t, d.file, "apply", "-f", "-", "--wait-timeout", patience.String()).expectExit(t, 1)
	if !strings.Contains(refused.stderr, "`croft adopt tenant savings -f croft.yaml`") {
		t.Fatalf("apply does not name the command that gives the namespace to the new tenant: %s", refused)
	}
	d.awaitOutput(t, 1, "status", "savings", v1alpha1.ReasonNamespaceNotOwned)
	d.awaitEvent(t, "savings", v1alpha1.ReasonNamespaceNotOwned, "bank")
	d.awaitOutput(t, 1, "doctor", "Tenant/savings")
	d.runCroftWithInput(t, d.file, "adopt", "tenant", "savings", "-f", "-", "--yes").expectExit(t, 0)
	d.applyContent(t, d.file)
	d.awaitHealthy(t)
}

func testDayTwoDrift(t *testing.T, d *dayTwo) {
	policies := []string{network.DNSPolicy, network.IsolationPolicy}
	for _, name := range policies {
		d.disturbObject(t, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}, "")
	}
	d.awaitEvent(t, "shop", "Repaired", "NetworkPolicy shop/"+policies[0], "NetworkPolicy shop/"+policies[1])
	d.disturbObject(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, `{"metadata": {"labels": {"`+v1alpha1.TenantLabel+`": null}}}`)
	awaitCondition(t, moments, "the namespace to be the tenant's again", func(ctx context.Context) error {
		namespace := &corev1.Namespace{}
		if err := d.admin.Get(ctx, client.ObjectKey{Name: "shop"}, namespace); err != nil {
			return err
		}
		if namespace.Labels[v1alpha1.TenantLabel] != "shop" {
			return errors.New("its label is missing")
		}
		return nil
	})
	d.awaitHealthy(t)
}

func testDayTwoInvalid(t *testing.T, d *dayTwo) {
	bad := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "stray"}, Spec: v1alpha1.TenantSpec{Pool: "nowhere"}}
	createObjects(t, d.admin, bad)
	t.Cleanup(func() { d.deleteObjects(t, bad) })
	awaitCondition(t, moments, "the tenant to be called invalid", func(ctx context.Context) error {
		if err := d.admin.Get(ctx, client.ObjectKeyFromObject(bad), bad); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(bad.Status.Conditions, v1alpha1.ConditionAccepted); c == nil || c.Reason != v1alpha1.ReasonInvalid {
			return fmt.Errorf("its condition is %+v", c)
		}
		return nil
	})
	d.awaitOutput(t, 1, "status", "stray", v1alpha1.ReasonInvalid)
	d.awaitOutput(t, 1, "doctor", "Tenant/stray")
	d.awaitEvent(t, "stray", v1alpha1.ReasonInvalid, "nowhere")
	d.awaitOutput(t, 0, "diff -f -", "in the cluster", "stray")
	d.applyContent(t, d.file)
	d.deleteObjects(t, bad)
	d.awaitDeletion(t, bad)
	d.awaitHealthy(t)
}

func testDayTwoAdmins(t *testing.T, d *dayTwo) {
	other := "tenants: {lab: {pool: large, access: [{group: team-lab, role: operator}]}}\n"
	outcomes := make(chan outcome, 2)
	for _, file := range []string{d.file, other} {
		go func() {
			outcomes <- d.runCroftWithInput(t, file, "apply", "-f", "-", "--wait-timeout", patience.String())
		}()
	}
	for range 2 {
		if out := <-outcomes; out.status != 0 {
			t.Errorf("of two admins one is refused: %s", out)
		}
	}
	d.awaitOutput(t, 0, "diff -f -", "lab", "--prune")
	d.runCroftWithInput(t, d.file, "apply", "-f", "-", "--prune", "--yes", "--wait-timeout", patience.String()).expectExit(t, 0)
	d.awaitDeletion(t, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "lab"}})
	if err := d.newMemberClient(t, "team-lab").List(t.Context(), &corev1.PodList{}, client.InNamespace("lab")); err == nil {
		t.Error("the tenant is deleted, but its members may still list pods")
	}
	d.awaitHealthy(t)
}

func testDayTwoOperator(t *testing.T, d *dayTwo) {
	if err := d.Stop("croft"); err != nil {
		t.Fatal(err)
	}
	d.disturbObject(t, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: network.DNSPolicy}}, "")
	d.awaitOutput(t, 1, "status", "no operator", network.DNSPolicy)
	d.awaitOutput(t, 1, "doctor", "no operator", network.DNSPolicy)
	d.awaitOutput(t, 1, "diff -f -", "NetworkPolicy shop/"+network.DNSPolicy)
	d.awaitOutput(t, 1, "apply -f -", "no operator")

	if err := d.Start("croft"); err != nil {
		t.Fatal(err)
	}
	d.awaitHealthy(t)

}
