package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/test/sandbox"
)

// declaringCluster is a cluster with croft's kinds and policies, and without an operator.
type declaringCluster struct {
	*sandbox.Cluster
	admin client.Client
}

// runCroft runs croft as the cluster's administrator.
func (d *declaringCluster) runCroft(t *testing.T, stdin, line string) (status int, stdout, stderr string) {
	t.Helper()
	return runCroft(t, stdin, append(strings.Fields(line), "--kubeconfig", d.Kubeconfig)...)
}

// awaitCondition waits until condition returns nil. It fails the test after two minutes.
func awaitCondition(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		err := condition(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

const estateOfTwo = `platform: {clusterName: demo, tenantDomain: tenants.example.org, nodeClass: {kwok: {}}}
pools:
  apps: {instances: {instanceTypes: [t3a.large]}}
  spare: {}
tenants:
  shop: {pool: apps, access: [{group: shoppers, role: operator}], quota: {requests.cpu: "4", pods: "10"}}
`

// TestCluster tests the output of commands about a cluster. All parts share one sandbox.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.WithControllers})
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	d := &declaringCluster{cluster, admin}
	testInstallCheck(t, d)
	if status, _, stderr := d.runCroft(t, "", "install"); status != 0 {
		t.Fatalf("croft install: exit status %d: %s", status, stderr)
	}
	for _, step := range []struct {
		name string
		do   func(*testing.T, *declaringCluster)
	}{
		{"apply as data", testApplyAsData}, {"requests", testRequests}, {"verify before the walls", testVerifyWithoutWalls}, {"diff as data", testDiffAsData}, {"diff with deletions", testDiffDeletions}, {"apply over others", testApplyConflicts},
		{"protected tenants", testTenantProtection}, {"status", testStatusUse}, {"completion", testCompletion},
		{"delete pool", testPoolDeletion}, {"verify without rights", testVerifyMissingRights}, {"verify after a killed run", testVerifySweep}, {"uninstall", testUninstall},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(t, d) }) {
			return // the next steps depend on this one
		}
	}
}

func testApplyAsData(t *testing.T, d *declaringCluster) {
	status, stdout, stderr := d.runCroft(t, "", "apply --wait=false -o json -f "+writeConfig(t, estateOfTwo))
	var report struct {
		Changes []struct{ Kind, Name, Action string }
		Ready   *int
		Objects []struct {
			Kind, Name, Reason string
			Ready              bool
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != 0 {
		t.Fatalf("exit status %d, %v: %s%s", status, err, stdout, stderr)
	}
	if len(report.Changes) != 4 || report.Changes[0].Action != "created" || len(report.Objects) != 4 || report.Ready == nil || *report.Ready != 0 || report.Objects[0].Reason == "" {
		t.Errorf("the output is %s", stdout)
	}
	status, stdout, stderr = d.runCroft(t, "", "apply --wait-timeout 1s -o yaml -f "+writeConfig(t, estateOfTwo))
	if status != 1 || !strings.HasPrefix(stdout, "changes:\n") || !strings.Contains(stdout, "action: unchanged") || !strings.Contains(stderr, "no operator has run yet") {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
}

func testDiffAsData(t *testing.T, d *declaringCluster) {
	status, stdout, stderr := d.runCroft(t, "", "diff -o json -f "+writeConfig(t, strings.Replace(estateOfTwo, `"10"`, `"12"`, 1)))
	var report struct {
		Changes []struct{ Kind, Namespace, Name, Action, Diff string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != 1 {
		t.Fatalf("exit status %d, %v: %s%s", status, err, stdout, stderr)
	}
	seen := map[string]bool{}
	for _, c := range report.Changes {
		seen[c.Kind+" "+c.Namespace+"/"+c.Name+" "+c.Action] = strings.HasPrefix(c.Diff, "--- "+c.Kind)
	}
	for _, want := range []string{"Tenant /shop update", "Namespace /shop create"} {
		if !seen[want] {
			t.Errorf("want %s, got %v", want, seen)
		}
	}
}

func testStatusUse(t *testing.T, d *declaringCluster) {
	walls := map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.TenantLabel: "shop"}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "croft", Labels: walls},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}},
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: walls}}, quota,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept", Labels: map[string]string{v1alpha1.TenantLabel: "gone"}}},
	} {
		if err := d.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	awaitCondition(t, "the quota to be counted", func(ctx context.Context) error {
		if err := d.admin.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil || len(quota.Status.Used) == 2 {
			return err
		}
		return fmt.Errorf("its status is %+v", quota.Status)
	})
	_, stdout, _ := d.runCroft(t, "", "status")
	for _, want := range []string{"apps", "spare", "NAMESPACES   CPU   MEMORY   PODS", "0/4", "0/10", "RETAINED", "kept"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("status does not print %s:\n%s", want, stdout)
		}
	}
	_, stdout, _ = d.runCroft(t, "", "status tenant/shop")
	if strings.Contains(stdout, "spare") || strings.Contains(stdout, "kept") || !strings.Contains(stdout, "RESOURCE") || strings.Contains(stdout, "PLATFORM") {
		t.Errorf("status of one tenant prints:\n%s", stdout)
	}
	for line, message := range map[string]string{
		"status tenant/shup": "there is no tenant shup", "status --tenant shup": "there is no tenant shup", "status pool/x": "there is no pool x",
		"status shop": "write tenant/NAME or pool/NAME", "status node/x": "does not support the kind node",
	} {
		if status, _, stderr := d.runCroft(t, "", line); status != 2 || !strings.Contains(stderr, message) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("croft %s: exit status %d: %s", line, status, stderr)
		}
	}
	_, stdout, stderr := d.runCroft(t, "", "status pool/apps -o json")
	var report struct {
		Pools    []v1alpha1.Pool
		Tenants  []v1alpha1.Tenant
		Retained []struct{ Namespace, Tenant, State string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Pools) != 1 || len(report.Tenants) != 0 || len(report.Retained) != 1 || report.Retained[0].Tenant != "gone" {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
}

func testCompletion(t *testing.T, d *declaringCluster) {
	for line, want := range map[string][]string{
		"delete tenant ": {"shop"}, "adopt tenant --undo ": {"shop"}, "delete pool ": {"apps", "spare"}, "status ": {"pool/apps", "pool/spare", "tenant/shop"},
		"status tenant/s": {"tenant/shop"}, "verify --tenant ": {"shop"}, "reach --from ": {"default", "kept", "shop"}, "why -n ": {"default", "kept", "shop"},
		"delete tenant shop ": {}, "status --tenant ": {"shop"},
	} {
		words := strings.Split(line, " ")
		args := append([]string{"__complete", "--kubeconfig", d.Kubeconfig}, words...)
		status, stdout, _ := runCroft(t, "", args...)
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		for _, w := range want {
			if !slices.Contains(lines, w) {
				t.Errorf("croft %s<TAB>: exit status %d: no %s in %v", line, status, w, lines)
			}
		}
		if len(want) == 0 && len(lines) != 1 {
			t.Errorf("croft %s<TAB>: %v", line, lines)
		}
	}
}

func testPoolDeletion(t *testing.T, d *declaringCluster) {
	status, _, stderr := d.runCroft(t, "", "delete pool apps --yes")
	if status != 1 || !strings.Contains(stderr, "used by tenant shop") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("a pool in use: exit status %d: %s", status, stderr)
	}
	if status, _, stderr := d.runCroft(t, "", "delete pool spore"); status != 2 || !strings.Contains(stderr, "there is no pool spore") {
		t.Errorf("no such pool: exit status %d: %s", status, stderr)
	}
	if status, _, stderr := d.runCroft(t, "apps\n", "delete pool spare"); status != 1 || !strings.Contains(stderr, "Type the pool's name") || !strings.Contains(stderr, "nothing was deleted") {
		t.Errorf("another name: exit status %d: %s", status, stderr)
	}
	if status, _, stderr := d.runCroft(t, "spare\n", "delete pool spare"); status != 0 || !strings.Contains(stderr, "pool spare deleted") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	if err := d.admin.Get(t.Context(), client.ObjectKey{Name: "spare"}, &v1alpha1.Pool{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pool is still there: %v", err)
	}
}

// testVerifyMissingRights expects verify to name the missing rights.
func testVerifyMissingRights(t *testing.T, d *declaringCluster) {
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"reader":    {{APIGroups: []string{"croft.dev"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}},
		"all-rbac":  {{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		"no-rights": nil,
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		}
		for _, o := range []client.Object{role, binding} {
			if err := d.admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for line, message := range map[string]string{
		"verify --as no-rights":               "you may not read the declared objects",
		"verify --as reader":                  "you may not impersonate users, impersonate groups, create namespaces",
		"verify --tenant shop --as reader":    "you may not impersonate users croft-verify",
		"verify --as all-rbac":                "all-rbac is not a member",
		"verify --tenant shop --as no-rights": "you may not read the declared objects",
	} {
		t.Run(line, func(t *testing.T) {
			awaitCondition(t, "the rights to count", func(context.Context) error {
				status, stdout, stderr := d.runCroft(t, "", line)
				if status != 1 || stdout != "" || !strings.Contains(stderr, message) || !strings.Contains(stderr, "admin") || strings.Count(stderr, "\n") != 1 {
					return fmt.Errorf("exit status %d: %s%s", status, stdout, stderr)
				}
				return nil
			})
		})
	}
}

// testVerifySweep expects a run to remove the objects of a killed run, and to keep the objects
// of a running one.
func testVerifySweep(t *testing.T, d *declaringCluster) {
	var platform v1alpha1.Platform
	if err := d.admin.Get(t.Context(), client.ObjectKey{Name: v1alpha1.PlatformName}, &platform); err != nil {
		t.Fatal(err)
	}
	// This run ends without clean-up, as a killed run does.
	killed := func(end time.Duration) []string {
		ctx, cancel := context.WithTimeout(t.Context(), end)
		defer cancel()
		s, err := verify.NewScratch(platform)
		if err != nil {
			t.Fatal(err)
		}
		runner, err := s.NewRunner(d.Config, scheme.New())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Build(ctx, runner); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range s.Objects() {
			if n, ok := o.(*corev1.Namespace); ok {
				names = append(names, n.Name)
			}
		}
		return names
	}
	old, current := killed(3*time.Minute), killed(3*time.Minute)
	past := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+v1alpha1.ScratchUntilAnnotation+`":"2020-01-01T00:00:00Z"}}}`))
	for _, name := range old {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := d.admin.Patch(t.Context(), n, past); err != nil {
			t.Fatal(err)
		}
		if n.Labels[v1alpha1.ScratchLabel] == "" {
			t.Errorf("namespace %s has no mark of a scratch tenant", name)
		}
		// A tenant has classes with the name of its first namespace.
		for _, class := range []client.Object{
			&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}},
		} {
			if err := client.IgnoreNotFound(d.admin.Patch(t.Context(), class, past)); err != nil {
				t.Fatal(err)
			}
		}
	}
	switch _, stdout, _ := d.runCroft(t, "", "doctor scratch"); {
	case !strings.Contains(stdout, "Namespace/"+old[0]+": a run of `croft verify`") || strings.Contains(stdout, current[0]):
		t.Errorf("doctor prints\n%s", stdout)
	case strings.Contains(stdout, "kubernetes"):
		t.Errorf("doctor scratch runs other checks\n%s", stdout)
	}
	if _, stdout, _ := d.runCroft(t, "", "status"); !strings.Contains(stdout, "SCRATCH") {
		t.Errorf("status prints\n%s", stdout)
	}
	status, stdout, stderr := d.runCroft(t, "", "verify --attack choose-node")
	if status != 0 || !strings.Contains(stdout, "1 of 1 held") {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
	if !strings.Contains(stderr, "removing scratch objects of an earlier run that was killed: Namespace "+old[0]) {
		t.Errorf("it does not name what it removes: %s", stderr)
	}
	for _, name := range old {
		awaitCondition(t, "the namespace to go", func(ctx context.Context) error {
			err := d.admin.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
			if err == nil {
				return fmt.Errorf("namespace %s is still there", name)
			}
			return client.IgnoreNotFound(err)
		})
	}
	var still corev1.Namespace
	if err := d.admin.Get(t.Context(), client.ObjectKey{Name: current[0]}, &still); err != nil || still.DeletionTimestamp != nil {
		t.Errorf("what a run needs that goes on is removed: %v", err)
	}
}
