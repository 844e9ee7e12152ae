package apply_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// TestServedKind expects the kinds of the API server's own placement engine in the version
// that a cluster serves, and every other kind unchanged.
func TestServedKind(t *testing.T) {
	policy, beta := apply.NativePlatformKinds[1], apply.NativeBetaKinds[1]
	other := apply.PlatformKinds[0]
	for name, c := range map[string]struct {
		served     []schema.GroupVersionKind
		kind, want schema.GroupVersionKind
		native     bool
	}{
		"v1":               {apply.NativePlatformKinds, policy, policy, true},
		"v1beta1":          {apply.NativeBetaKinds, policy, beta, true},
		"both":             {slices.Concat(apply.NativePlatformKinds, apply.NativeBetaKinds), policy, policy, true},
		"neither":          {nil, policy, policy, false},
		"only the binding": {apply.NativeBetaKinds[:1], policy, policy, false},
		"another kind":     {nil, other, other, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := meta.NewDefaultRESTMapper(nil)
			for _, kind := range c.served {
				m.Add(kind, meta.RESTScopeRoot)
			}
			if got, err := apply.ServedKind(m, c.kind); got != c.want || err != nil {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
			if got, err := apply.ServesNative(m); got != c.native || err != nil {
				t.Errorf("native: %v, %v; want %v", got, err, c.native)
			}
		})
	}
}

// TestBetaPolicies applies the platform's objects to an API server that serves mutating
// policies as v1beta1, as Kubernetes 1.34 and 1.35 do. The objects must exist, and no
// desired object may be deleted.
func TestBetaPolicies(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly, Without: []string{"MutatingAdmissionPolicy/v1"}})
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	declared, problems := manifest.Parse("croft.yaml", []byte("platform: {clusterName: demo, nodeClass: {kwok: {}}}\n"))
	e, more := estate.Build(declared)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	objects := wall.PlatformObjects(&e.Platform)
	others := slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool {
		return slices.Contains(apply.NativePlatformKinds, o.GetObjectKind().GroupVersionKind())
	})
	engine := len(objects) - len(others)
	kinds := slices.Concat(apply.PlatformKinds, apply.NativePlatformKinds)
	applier := apply.New(c)
	if _, err := applier.Apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
	surveyed, err := applier.Survey(t.Context(), apply.SurveyOptions{}, objects...)
	if err != nil {
		t.Fatal(err)
	}
	beta := 0
	for _, s := range surveyed {
		if s.State != apply.Matches {
			t.Errorf("%s %s", s.Ref, s.State)
		}
		if slices.Contains(apply.NativeBetaKinds, s.GroupVersionKind) {
			beta++
		}
	}
	if beta != engine || beta < 4 {
		t.Errorf("%d objects of the placement engine, want %d", beta, engine)
	}
	again, err := applier.Apply(t.Context(), objects...)
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(again, func(c apply.Change) bool { return c.Action != apply.Unchanged }); i >= 0 {
		t.Errorf("the second time, %s is %s", again[i].Ref, again[i].Action)
	}
	if differences, err := applier.Diff(t.Context(), objects...); err != nil || len(differences) > 0 {
		t.Errorf("differences: %v, %v", differences, err)
	}
	for want, keep := range map[int][]client.Object{0: objects, engine: others} {
		deleted, err := applier.Prune(t.Context(), apply.OfPlatform(), "", keep, kinds...)
		if err != nil || len(deleted) != want {
			t.Errorf("pruning deletes %v, %v; want %d objects", deleted, err, want)
		}
	}
}
