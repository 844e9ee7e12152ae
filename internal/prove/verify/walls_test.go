package verify_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// newPlatform returns a platform with services in the given namespaces, if any.
func newPlatform(services ...string) v1alpha1.Platform {
	return v1alpha1.Platform{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName},
		Spec: v1alpha1.PlatformSpec{
			Elevation:    &v1alpha1.PlatformElevation{Approvers: []string{"platform-approvers"}},
			ClusterName:  "test",
			TenantDomain: "tenants.example.org",
			Admins:       []string{"platform-admins"},
			Auditors:     []string{"platform-auditors"},
			NodeClass:    v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
			Network:      v1alpha1.PlatformNetwork{PlatformNamespaces: services},
		},
	}
}

// startCluster starts a cluster that serves every kind in the walls' attacks: attacks with missing
// kinds are not tried.
func startCluster(t *testing.T) *sandbox.Cluster {
	t.Helper()
	cluster := startBare(t)
	installKinds(t, cluster)
	return cluster
}

// startBare starts a cluster that serves Kubernetes' own kinds and croft's.
func startBare(t *testing.T) *sandbox.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	return sandbox.Start(t, sandbox.Options{Components: sandbox.WithControllers})
}

func installKinds(t *testing.T, cluster *sandbox.Cluster, others ...string) {
	t.Helper()
	if err := cluster.InstallCRDs(t.Context(), append(others, sandbox.GatewayAPI, sandbox.CertManager, sandbox.Flux, sandbox.ArgoCD)...); err != nil {
		t.Fatal(err)
	}
}

// proving is a cluster with the platform's objects and two scratch tenants.
type proving struct {
	name     string
	config   *rest.Config
	admin    client.Client
	scratch  *verify.Scratch
	platform *estate.Platform
	by, on   *estate.Tenant
	// lacks are suffixes of the names of kinds and API groups that the cluster does not serve:
	// attacks with them are not tried.
	lacks []string
	// byName are the attacks. They are many, so they are built on first use.
	byName map[string]attack.Attack
	// texts are the policies' specifications by name, built on first use.
	texts map[string]string
}

// isLackingKind reports whether an attack was not tried because a kind is missing.
func (p *proving) isLackingKind(r verify.Result) bool {
	return r.Result == verify.NotTried && slices.ContainsFunc(p.lacks, func(group string) bool { return strings.HasSuffix(r.Message, group) })
}

// unserved are kinds in attacks that none of the test clusters serves.
var unserved = []string{"NetworkAttachmentDefinition.k8s.cni.cncf.io", "ProvisioningRequest.autoscaling.x-k8s.io", "Workload.scheduling.k8s.io", "PodGroup.scheduling.k8s.io"}

// buildProving installs a platform and its scratch tenants in a cluster. No operator runs: only the
// API server enforces the walls.
func buildProving(t *testing.T, config *rest.Config, name string, platform v1alpha1.Platform) *proving {
	t.Helper()
	klog.SetLogger(logr.Discard()) // it logs requests that are interrupted on purpose
	admin, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ingress", "openshift-dns"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), namespace)); err != nil {
			t.Fatal(err)
		}
	}
	scratch, err := verify.NewScratch(platform)
	if err != nil {
		t.Fatal(err)
	}
	p := &proving{name: name, config: config, admin: admin, scratch: scratch, lacks: unserved}
	p.platform, p.by, p.on = scratch.GetParts()
	// Gatekeeper creates the kinds of constraints from templates, some time after these are
	// written.
	p.awaitAllowed(t, func(ctx context.Context) error {
		_, err := apply.New(admin).Apply(ctx, p.listObjects()...)
		return err
	})
	if err := scratch.Build(t.Context(), p.newRunner(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := scratch.Remove(context.WithoutCancel(t.Context()), admin); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *proving) listPlatformObjects() []client.Object { return wall.PlatformObjects(p.platform) }

func (p *proving) listTenantObjects(t *estate.Tenant) []client.Object {
	return wall.TenantObjects(p.platform, t)
}

// listObjects returns all objects of the walls, the platform's first.
func (p *proving) listObjects() []client.Object {
	return append(p.listPlatformObjects(), p.scratch.Objects()...)
}

func (p *proving) findTenantRules(t *estate.Tenant) *v1alpha1.TenantRules {
	for _, o := range p.listTenantObjects(t) {
		if rules, ok := o.(*v1alpha1.TenantRules); ok {
			return rules
		}
	}
	return nil
}

// findNamespace returns the namespace of an object.
func (p *proving) findNamespace(o client.Object) *corev1.Namespace {
	for _, desired := range p.listObjects() {
		if namespace, ok := desired.(*corev1.Namespace); ok && namespace.Name == o.GetNamespace() {
			return namespace
		}
	}
	return nil
}

// newRunner returns a new Runner, since a Runner reads the network policies only once.
func (p *proving) newRunner(t *testing.T) *verify.Runner {
	t.Helper()
	r, err := p.scratch.NewRunner(p.config, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (p *proving) findAttack(t *testing.T, name string) attack.Attack {
	t.Helper()
	if p.byName == nil {
		p.byName = map[string]attack.Attack{}
		for _, a := range p.scratch.Attacks() {
			p.byName[a.Name] = a
		}
	}
	a, ok := p.byName[name]
	if !ok {
		t.Fatalf("there is no attack %s", name)
	}
	return a
}

// runUntilStopped tries attacks, and repeats attacks that are not stopped yet: policies take effect
// a second or two after they are written, and half a minute on a busy machine. It returns the last
// result of each attack.
func (p *proving) runUntilStopped(t *testing.T, runner *verify.Runner, attacks []attack.Attack) []verify.Result {
	t.Helper()
	all := map[string]verify.Result{}
	left := slices.Clone(attacks)
	_ = wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, 4*patience, true, func(context.Context) (bool, error) {
		runner.Refresh()
		results, err := runner.Run(t.Context(), left, nil)
		for _, r := range results {
			all[r.Name] = r
		}
		left = slices.DeleteFunc(left, func(a attack.Attack) bool {
			return all[a.Name].Result == verify.Held || p.isLackingKind(all[a.Name])
		})
		return len(left) == 0, err
	})
	results := make([]verify.Result, len(attacks))
	for i, a := range attacks {
		results[i] = all[a.Name]
	}
	return results
}

func (p *proving) findObject(t *testing.T, kind, name string) client.Object {
	t.Helper()
	for _, o := range p.listObjects() {
		if o.GetObjectKind().GroupVersionKind().Kind == kind && (o.GetName() == name || name == "") {
			return o
		}
	}
	t.Fatalf("no wall wants a %s %s", kind, name)
	return nil
}

// TestWallsHold tries every attack on a cluster with all walls in place.
func TestWallsHold(t *testing.T) {
	cluster := startBare(t)
	p := buildProving(t, cluster.Config, "whole", newPlatform("ingress"))
	if r := p.newRunner(t).Try(t.Context(), p.findAttack(t, "route-every-host-by-http")); r.Result != verify.NotTried {
		t.Errorf("there are no HTTPRoutes yet, and an attack by one is %s: %s", r.Result, r.Message)
	}
	installKinds(t, cluster)
	perWall := map[string]int{}
	runner := p.newRunner(t)
	answered := &answers{}
	runner.Tell(answered.recordAnswer)
	results := p.runUntilStopped(t, runner, p.scratch.Attacks())
	answered.expectAgreement(t, p, runner)
	if err := runner.ReportLeftovers(); err != nil {
		t.Errorf("not everything that was prepared is deleted again: %v", err)
	}
	for _, r := range results {
		if r.Kind == attack.Breach {
			perWall[r.Wall]++
		}
		if r.Result != verify.Held && !p.isLackingKind(r) {
			t.Errorf("%s/%s is %s: %s", r.Wall, r.Name, r.Result, r.Message)
		}
	}
	for _, w := range wall.All() {
		if perWall[w.Name()] < 3 {
			t.Errorf("wall %s has %d attacks; a wall with fewer than three proves little", w.Name(), perWall[w.Name()])
		}
	}
	t.Run("SystemRequests", func(t *testing.T) { p.testSystemRequests(t, runner) })
	t.Run("MayStay", p.testExceptionsRevoked)
	t.Run("Restart", func(t *testing.T) { p.testRestart(t, cluster) })
}
