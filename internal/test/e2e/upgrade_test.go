package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/identity"
)

// formerRepository is the repository of the releases' images, which are never pulled.
const formerRepository = "registry.example.org/croft"

// upgradeCluster is a cluster with a release of croft and running tenants.
type upgradeCluster struct {
	*cluster
	old    *release
	estate *estate.Estate
	pods   *podRunner
}

// TestUpgrade installs each kept release, starts two tenants' workloads, upgrades to this
// croft, and rolls back, by Helm and by croft install. It fails if at any moment a tenant's
// network is open, a pod is admitted without placement or refused, a running pod is restarted
// or deleted, or a member of a tenant has fewer or more rights than before; or if the walls are
// not this version's after the upgrade, and the release's after the rollback. It is of the
// third tier (make test-all): TestChart upgrades a release to itself.
func TestUpgrade(t *testing.T) {
	sandbox.Thorough(t)
	kept, err := os.ReadDir(releases)
	if err != nil || len(kept) == 0 {
		t.Fatalf("no releases are kept: %v", err)
	}
	for _, way := range []struct {
		name string
		way  installer
	}{{"helm", helmInstaller{}}, {"croft install", commandInstaller{}}} {
		for _, entry := range kept {
			t.Run(entry.Name()+" by "+way.name, func(t *testing.T) {
				upgradeAndRollBack(t, readRelease(t, entry.Name()), way.way)
			})
		}
		t.Run(neverReleased+" by "+way.name, func(t *testing.T) {
			u := upgradeAndRollBack(t, deriveFormerRelease(t, readRelease(t, kept[0].Name())), way.way)
			if way.name == "helm" {
				t.Run("the observer notices", func(t *testing.T) { testObserver(t, u) })
			}
		})
	}
}

// installer is a way to install croft.
type installer interface {
	// installRelease installs the release and its declared objects.
	installRelease(t *testing.T, u *upgradeCluster)
	// upgradeRelease upgrades to this croft.
	upgradeRelease(t *testing.T, u *upgradeCluster)
	// rollBackRelease rolls back to the release.
	rollBackRelease(t *testing.T, u *upgradeCluster)
}

func upgradeAndRollBack(t *testing.T, old *release, by installer) *upgradeCluster {
	u := &upgradeCluster{
		cluster: startSandbox(t, sandbox.Options{}), old: old,
		estate: buildEstate(t, "croft.yaml", old.values),
	}
	u.env = append(u.env, "KUBECONFIG="+u.Kubeconfig)
	// The sandbox comes with this version's CRDs.
	u.runKubectl(t, "", append([]string{"delete", "crd"}, listChartKinds(t)...)...).expectExit(t, 0)
	u.pods = u.runPods(t, formerRepository+":"+old.version)
	by.installRelease(t, u)
	old.applyWalls(t, u.cluster)
	for _, team := range teams {
		u.awaitPlacement(t, team.tenant, u.estate.Platform.NodePoolKey, team.pool)
		deployment, _ := newNginxDeployment(team.tenant, 2)
		u.createSoon(t, team.group, deployment)
	}
	for _, team := range teams {
		u.awaitRunningPods(t, team.tenant, 2)
		u.awaitWalls(t, team)
	}
	today := listRefs(wall.Objects(u.estate))
	if old.version == neverReleased && (len(subtractRefs(old.listRefs(), today)) == 0 || len(subtractRefs(today, old.listRefs())) == 0) {
		t.Fatalf("an upgrade from %s adds or deletes nothing", old.version)
	}

	seen := u.startObserver(t, u.estate)
	by.upgradeRelease(t, u)
	for _, team := range teams {
		u.awaitTenantReady(t, team.tenant)
	}
	awaitCondition(t, patience, "the walls to be this version's alone", func(ctx context.Context) error {
		if out := u.runCroft(t, "status"); out.status != 0 {
			return errors.New(out.String())
		}
		return u.checkObjects(ctx, today, old.listRefs())
	})
	if u.isFieldMissing(t) {
		t.Error("croft's kinds are as they were")
	}
	u.expectWallsHold(t)
	t.Logf("upgraded from %s", old.version)
	seen.traffic.awaitPlaced(t, 50)

	by.rollBackRelease(t, u)
	u.awaitOperatorStopped(t)
	old.applyWalls(t, u.cluster)
	awaitCondition(t, patience, "the walls to be the release's alone", func(ctx context.Context) error {
		return u.checkObjects(ctx, old.listRefs(), today)
	})
	if u.isFieldMissing(t) {
		t.Error("croft's kinds are older than what is stored")
	}
	seen.traffic.awaitPlaced(t, 50)
	seen.expectNoViolations(t)
	return u
}

// createSoon creates an object as a member of a group, as soon as croft has given the group
// access.
func (u *upgradeCluster) createSoon(t testing.TB, group string, o client.Object) {
	t.Helper()
	member := u.newMemberClient(t, group)
	awaitCondition(t, patience, group+" to be let in", func(ctx context.Context) error {
		return member.Create(ctx, o.DeepCopyObject().(client.Object))
	})
}

// awaitWalls waits until the release's walls are in force. The test acts in place of the release's operator, and gives
// access without this wait, while the API server compiles policies for seconds.
func (u *upgradeCluster) awaitWalls(t testing.TB, of team) {
	t.Helper()
	member := u.newMemberClient(t, of.group)
	awaitCondition(t, patience, "the walls of "+of.tenant+" to be in force", func(ctx context.Context) error {
		return checkRefusal(member.Create(ctx, newNginxPod(of.tenant, "stowaway", tolerateEverything), client.DryRunAll), byPlacement)
	})
}

// checkObjects returns an error if one of the desired objects does not exist, or one of the others
// does.
func (u *upgradeCluster) checkObjects(ctx context.Context, want, others map[apply.Ref]bool) error {
	var errs []error
	for ref := range want {
		if there, err := u.hasObject(ctx, ref); err != nil || !there {
			errs = append(errs, fmt.Errorf("%s is missing: %w", ref, err))
		}
	}
	for _, ref := range subtractRefs(others, want) {
		if there, err := u.hasObject(ctx, ref); err != nil || there {
			errs = append(errs, fmt.Errorf("%s is left: %w", ref, err))
		}
	}
	return errors.Join(errs...)
}

func (u *upgradeCluster) hasObject(ctx context.Context, ref apply.Ref) (bool, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(ref.GroupVersionKind)
	err := u.admin.Get(ctx, ref.NamespacedName, o)
	return err == nil, client.IgnoreNotFound(err)
}

// awaitOperatorStopped waits until no pod of this croft runs.
func (u *upgradeCluster) awaitOperatorStopped(t testing.TB) {
	t.Helper()
	awaitCondition(t, patience, "this version's operator to go", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := u.admin.List(ctx, &pods, client.InNamespace(v1alpha1.SystemNamespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Spec.Containers[0].Image == chartImage && p.Status.Phase == corev1.PodRunning {
				return fmt.Errorf("pod %s runs", p.Name)
			}
		}
		return u.pods.checkIdle()
	})
}

// checkIdle returns an error if processes of this croft run.
func (r *podRunner) checkIdle() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, p := range r.running {
		if !p.idle {
			return fmt.Errorf("the process of pod %s runs", name)
		}
	}
	return nil
}

func listRefs(objects []client.Object) map[apply.Ref]bool {
	all := map[apply.Ref]bool{}
	for _, o := range objects {
		all[apply.RefOf(o)] = true
	}
	return all
}

// subtractRefs returns the references in some that others does not have.
func subtractRefs(some, others map[apply.Ref]bool) []apply.Ref {
	var all []apply.Ref
	for ref := range some {
		if !others[ref] {
			all = append(all, ref)
		}
	}
	return all
}

// helmInstaller installs the chart with the real Helm.
type helmInstaller struct{}

func (helmInstaller) runHelm(t *testing.T, u *upgradeCluster, args ...string) {
	t.Helper()
	runHelm(t, u.env, append(args, "--wait", "--timeout", patience.String())...).expectExit(t, 0)
}

func (w helmInstaller) installRelease(t *testing.T, u *upgradeCluster) {
	w.runHelm(t, u, "install", "croft", u.old.chart, "-f", writeTempFile(t, u.old.values), "--set", "image.repository="+formerRepository)
}

func (w helmInstaller) upgradeRelease(t *testing.T, u *upgradeCluster) {
	w.runHelm(t, u, append([]string{"upgrade", "croft", chart, "-f", writeTempFile(t, u.old.values)}, chartImageValues...)...)
}

func (w helmInstaller) rollBackRelease(t *testing.T, u *upgradeCluster) {
	w.runHelm(t, u, "rollback", "croft", "1")
}

// commandInstaller installs with croft install and croft apply. The objects of an older croft
// install are the objects of its chart: see TestChartIsInstall.
type commandInstaller struct{}

func (w commandInstaller) installRelease(t *testing.T, u *upgradeCluster) {
	w.applyChart(t, u, func(client.Object) bool { return true })
}

func (commandInstaller) upgradeRelease(t *testing.T, u *upgradeCluster) {
	image := []string{"install", "--image", chartImage}
	expectOutput(t, u.runCroft(t, append(image, "--dry-run")...).expectExit(t, 0), "-        image: "+formerRepository+":"+u.old.version, "+        image: "+chartImage)
	u.runCroft(t, image...).expectExit(t, 0)
	u.runCroft(t, "apply", "-f", writeTempFile(t, u.old.values), "--wait-timeout", patience.String()).expectExit(t, 0)
	expectOutput(t, u.runCroft(t, append(image, "--dry-run")...).expectExit(t, 0), "0 objects would be created, 0 changed")
}

// rollBackRelease leaves the CRDs unchanged, as an older croft with --allow-downgrade does.
func (w commandInstaller) rollBackRelease(t *testing.T, u *upgradeCluster) {
	w.applyChart(t, u, func(o client.Object) bool {
		return o.GetObjectKind().GroupVersionKind().Kind != "CustomResourceDefinition"
	})
}

func (commandInstaller) applyChart(t *testing.T, u *upgradeCluster, which func(client.Object) bool) {
	t.Helper()
	objects := parseObjects(t, runHelm(t, nil, "template", "croft", u.old.chart, "--include-crds", "--no-hooks",
		"--set", "image.repository="+formerRepository, "-f", writeTempFile(t, u.old.values)).expectExit(t, 0).stdout)
	objects = slices.DeleteFunc(objects, func(o client.Object) bool { return !which(o) })
	awaitCondition(t, patience, "the objects of "+u.old.version, func(ctx context.Context) error {
		_, err := apply.New(u.admin).Apply(ctx, objects...)
		return err
	})
}

// getRunningPod returns a running pod of the tenant that is not part of the traffic.
func (u *upgradeCluster) getRunningPod(t testing.TB, namespace string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := u.admin.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"app": "nginx"}); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) == 0 {
		t.Fatalf("no pods are at work in %s", namespace)
	}
	return &pods.Items[0]
}

// testObserver breaks the walls and workloads of running tenants, and fails if the observer
// does not record it. No operator runs, so nothing is restored.
func testObserver(t *testing.T, u *upgradeCluster) {
	a, b := teams[0], teams[1]
	seen := u.startObserver(t, u.estate)
	wants := map[string]string{}
	plant := func(what, text string, objects ...client.Object) {
		t.Helper()
		wants[what] = text
		for _, o := range objects {
			if err := u.admin.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		awaitCondition(t, moments, "the observer to notice "+what, func(context.Context) error {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			if !slices.ContainsFunc(seen.wrong, func(line string) bool { return strings.Contains(line, text) }) {
				return fmt.Errorf("it has %q", seen.wrong)
			}
			return nil
		})
	}
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	plant("a network policy that is missing", "open from "+b.tenant+" to "+a.tenant, &networkingv1.NetworkPolicy{ObjectMeta: in(a.tenant, formerIsolation)})
	plant("access that is lost", "a member of "+b.tenant+" cannot list the pods of "+b.tenant,
		&rbacv1.RoleBinding{ObjectMeta: in(b.tenant, identity.ClusterRoleName(v1alpha1.RoleOperator))})
	pod := u.getRunningPod(t, a.tenant)
	plant("a pod that was deleted", "pod "+a.tenant+"/"+pod.Name+" was deleted", pod)
	plant("the pod in its place", "is new: another one was replaced")
	plant("pods that are let in unplaced", "was let in unplaced",
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: in("", formerPlacement)},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: in("", admissionpolicy.PodsPolicy)})
	u.old.applyWalls(t, u.cluster)
	if wrong := seen.stopObserver(t); len(wrong) < len(wants) {
		t.Errorf("the observer has only noticed %q", wrong)
	}
}
