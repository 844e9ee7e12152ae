package verify_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/sandbox"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/verify"
	"croft.dev/croft/internal/wall"
)

// platformWith is a platform whose services, if it has any, are in the given
// namespaces.
func platformWith(egress v1alpha1.Egress, services ...string) v1alpha1.Platform {
	return v1alpha1.Platform{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName},
		Spec: v1alpha1.PlatformSpec{
			ClusterName:    "test",
			NodeClass:      v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
			Network:        v1alpha1.PlatformNetwork{PlatformNamespaces: services},
			TenantDefaults: v1alpha1.TenantDefaults{Egress: egress},
		},
	}
}

// proving is a cluster with the platform's objects and two scratch tenants.
type proving struct {
	config  *rest.Config
	admin   client.Client
	scratch *verify.Scratch
	// objects are all that stand, the platform's first.
	objects []client.Object
}

// build puts a platform and its scratch tenants into a cluster. No operator
// runs: nothing but the API server holds the walls.
func build(t *testing.T, config *rest.Config, platform v1alpha1.Platform) *proving {
	t.Helper()
	admin, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	ingress := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ingress"}}
	if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), ingress)); err != nil {
		t.Fatal(err)
	}
	e, problems := estate.Build(&estate.Declaration{Platforms: []v1alpha1.Platform{platform}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	scratch, err := verify.NewScratch(platform)
	if err != nil {
		t.Fatal(err)
	}
	p := &proving{config: config, admin: admin, scratch: scratch}
	p.objects = append(wall.PlatformObjects(&e.Platform), scratch.Objects()...)
	if _, err := apply.New(admin).Apply(t.Context(), p.objects...); err != nil {
		t.Fatal(err)
	}
	if err := scratch.Build(t.Context(), p.runner(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scratch.Remove(context.WithoutCancel(t.Context()), admin) })
	return p
}

// runner is new for each look, since it reads the network policies only once.
func (p *proving) runner(t *testing.T) *verify.Runner {
	t.Helper()
	r, err := p.scratch.NewRunner(p.config, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (p *proving) attack(t *testing.T, name string) attack.Attack {
	t.Helper()
	attacks := p.scratch.Attacks()
	i := slices.IndexFunc(attacks, func(a attack.Attack) bool { return a.Name == name })
	if i < 0 {
		t.Fatalf("there is no attack %s", name)
	}
	return attacks[i]
}

// await tries an attack until it comes to a result: policies take about a second
// after they are written.
func (p *proving) await(t *testing.T, name string, want verify.Outcome) {
	t.Helper()
	a := p.attack(t, name)
	var last verify.Result
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		r := p.runner(t).Try(ctx, a)
		if ctx.Err() == nil { // else the time ran out in the middle, and the result before says more
			last = r
		}
		return last.Result == want, nil
	})
	if err != nil {
		t.Fatalf("%s: want %s, but it is %s: %s", name, want, last.Result, last.Message)
	}
}

func (p *proving) object(t *testing.T, kind, name string) client.Object {
	t.Helper()
	for _, o := range p.objects {
		if o.GetObjectKind().GroupVersionKind().Kind == kind && (o.GetName() == name || name == "") {
			return o
		}
	}
	t.Fatalf("no wall wants a %s %s", kind, name)
	return nil
}

// TestWallsHold tries every attack on a cluster on which all walls stand.
func TestWallsHold(t *testing.T) {
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.WithControllers})
	for _, egress := range []v1alpha1.Egress{v1alpha1.EgressOpen, v1alpha1.EgressRestricted} {
		t.Run(string(egress), func(t *testing.T) {
			p := build(t, cluster.Config, platformWith(egress, "ingress"))
			perWall := map[string]int{}
			for _, a := range p.scratch.Attacks() {
				if a.Kind == attack.Breach {
					perWall[a.Wall]++
				}
				t.Run(a.Wall+" "+a.Name, func(t *testing.T) { p.await(t, a.Name, verify.Held) })
			}
			for _, w := range wall.All() {
				if perWall[w.Name()] < 3 {
					t.Errorf("wall %s has %d attacks; a wall with fewer than three proves little", w.Name(), perWall[w.Name()])
				}
			}
		})
	}
}

// TestEveryObjectCounts takes each object out of its wall and wants an attack to
// notice: what nobody notices is either not needed or not proven.
func TestEveryObjectCounts(t *testing.T) {
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.WithControllers})
	open := build(t, cluster.Config, platformWith(v1alpha1.EgressOpen, "ingress"))
	restricted := build(t, cluster.Config, platformWith(v1alpha1.EgressRestricted, "ingress"))
	// Without platform services no other policy selects pods for ingress.
	alone := build(t, cluster.Config, platformWith(v1alpha1.EgressOpen))
	const (
		validating = "ValidatingAdmissionPolicyBinding"
		mutating   = "MutatingAdmissionPolicyBinding"
	)
	for _, c := range []struct {
		kind, name string
		// breaches is the attack that must notice.
		breaches string
		// in is where it is tried; open if nil.
		in *proving
	}{
		{kind: "NetworkPolicy", name: "croft-isolation", breaches: "be-called-by-other-tenant", in: alone},
		{kind: "NetworkPolicy", name: "croft-isolation", breaches: "call-own-pods", in: restricted},
		{kind: "NetworkPolicy", name: "croft-dns", breaches: "resolve-names", in: restricted},
		{kind: "NetworkPolicy", name: "croft-platform", breaches: "be-called-by-ingress"},
		{kind: "NetworkPolicy", name: "croft-egress", breaches: "call-the-internet"},
		{kind: validating, name: "croft-network-floor", breaches: "let-everybody-in"},
		{kind: mutating, name: "croft-placement", breaches: "run-a-pod"},
		{kind: mutating, name: "croft-placement-daemonsets", breaches: "run-a-daemonset"},
		{kind: validating, name: "croft-placement", breaches: "tolerate-every-taint"},
		{kind: validating, name: "croft-binding", breaches: "bind-pod-when-permitted"},
		{kind: "ClusterRole", name: "croft-viewer", breaches: "viewer-lists-pods"},
		{kind: "ClusterRole", name: "croft-operator", breaches: "write-secret"},
		{kind: "RoleBinding", name: "croft-viewer", breaches: "viewer-lists-pods"},
		{kind: "RoleBinding", name: "croft-operator", breaches: "write-secret"},
		{kind: "TenantRules", name: "croft", breaches: "run-a-pod"},
		{kind: "ResourceQuota", name: "croft", breaches: "exceed-quota"},
		{kind: "LimitRange", name: "croft", breaches: "leave-memory-open"},
		{kind: validating, name: "croft-protection", breaches: "delete-network-policy"},
	} {
		p := c.in
		if p == nil {
			p = open
		}
		t.Run(fmt.Sprintf("%s %s", c.kind, c.name), func(t *testing.T) {
			object := p.object(t, c.kind, c.name)
			p.await(t, c.breaches, verify.Held)
			if err := p.admin.Delete(t.Context(), object.DeepCopyObject().(client.Object)); err != nil {
				t.Fatal(err)
			}
			p.await(t, c.breaches, verify.Breached)
			if _, err := apply.New(p.admin).Apply(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			p.await(t, c.breaches, verify.Held)
		})
	}
	t.Run("Namespace without its Pod Security level", func(t *testing.T) {
		p := open
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.object(t, "Namespace", "").GetName()}}
		patch := []byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": null}}}`)
		if err := p.admin.Patch(t.Context(), namespace, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
		p.await(t, "run-privileged", verify.Breached)
	})
}
