package apply_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/gitops"
	"croft.dev/croft/internal/walls/wall"
)

const (
	// walkers run concurrently, each with its own estates.
	walkers = 4
	// pairs is the number of transitions between estates, over all walkers, for make
	// test-all. fewPairs is the number for make test.
	pairs, fewPairs = 1000, 40
	// inspected is the number of steps between two checks of the steady state.
	inspected = 25
)

// TestEstates applies many random estates, one after the other. Afterwards every object
// must be the same as in a cluster that never had another estate. The API server computes
// that reference by creating the object under another name, in a dry run.
func TestEstates(t *testing.T) {
	sandbox.EndToEnd(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	if err := cluster.InstallCRDs(t.Context(), sandbox.KarpenterAWS, sandbox.Gatekeeper, sandbox.Calico, sandbox.CalicoStorage, sandbox.NetworkPolicyAPI, sandbox.AmazonVPC, sandbox.Flux); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	ground := &ground{T: t, admin: admin, references: map[string]*unstructured.Unstructured{}}
	ground.serveKinds(apiextensionsv1.ClusterScoped, apply.GatekeeperConstraintKinds...) // Gatekeeper creates these kinds from templates
	ground.serveKinds(apiextensionsv1.NamespaceScoped, gitops.Receiver)                  // no available module contains its CRD
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}}); err != nil {
		t.Fatal(err)
	}

	var all sync.WaitGroup
	for n := range walkers {
		w := &walker{ground: ground, n: n, writes: &atomic.Int64{}, random: rand.New(rand.NewPCG(12, uint64(n))),
			variants: map[string][]any{}, existing: map[apply.Owner][]client.Object{}}
		config := rest.CopyConfig(cluster.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, w.writes} })
		c, err := client.New(config, client.Options{Scheme: scheme.New()})
		if err != nil {
			t.Fatal(err)
		}
		w.applier = apply.New(c)
		all.Go(w.applyEstates)
	}
	all.Wait()
	t.Logf("compared %d objects of %d kinds with %d references; %d changes were refused for fields that cannot change",
		ground.compared, len(ground.kinds), len(ground.references), ground.immutable)
	for _, kind := range slices.Concat(
		apply.PlatformKinds, apply.NativePlatformKinds, apply.GatekeeperPlatformKinds, apply.GatekeeperMutatorKinds,
		apply.PoolKinds, apply.TenantKinds, apply.SourceKinds, apply.DialectKinds, apply.ClusterDialectKinds,
	) {
		if !ground.kinds[kind] {
			t.Errorf("no estate had a %s", kind)
		}
	}
}

// elsewhere is the namespace in which references are created.
const elsewhere = "elsewhere"

// ground is the state that walkers share.
type ground struct {
	*testing.T
	admin client.Client

	mu         sync.Mutex
	references map[string]*unstructured.Unstructured
	kinds      map[schema.GroupVersionKind]bool
	compared   int
	immutable  int
}

// walker applies one estate after the other. Its random numbers are the same in each run.
type walker struct {
	*ground
	n       int
	random  *rand.Rand
	applier *apply.Applier
	writes  *atomic.Int64
	// variants are the parts that it chooses from. last is the last estate.
	variants map[string][]any
	last     map[string]any
	// platforms is the number of platforms that it has had.
	platforms int
	// existing are the objects of the last estate, by owner.
	existing map[apply.Owner][]client.Object
}

func (w *walker) applyEstates() {
	steps := fewPairs / walkers
	if sandbox.All() {
		steps = pairs / walkers
	}
	for step := range steps {
		parts, err := w.generateEstate(step)
		if err != nil {
			w.Error(err)
			return
		}
		for _, part := range parts {
			w.applyPart(part)
		}
		if step%inspected == 0 {
			w.inspectParts(parts)
		}
	}
}

// part is a group of objects that are written together.
type part struct {
	owner apply.Owner
	// prunes is false for declared objects.
	prunes  bool
	objects []client.Object
}

// listParts returns the parts of an estate. Only the first walker gets the objects that exist
// once for all walkers.
func listParts(d *manifest.Declaration, e *estate.Estate, platform, first bool) []part {
	var parts []part
	if platform {
		parts = append(parts, part{apply.OfPlatform(), true, wall.PlatformObjects(&e.Platform)})
	}
	declared := part{}
	for _, o := range d.Objects() {
		if kind := o.GetObjectKind().GroupVersionKind().Kind; first || kind == "Pool" || kind == "Tenant" {
			declared.objects = append(declared.objects, o)
		}
	}
	parts = append(parts, declared)
	for _, p := range e.Pools {
		parts = append(parts, part{apply.OfPool(p.Name), true, wall.PoolObjects(&e.Platform, p)})
	}
	for _, t := range e.Tenants {
		parts = append(parts, part{apply.OfTenant(t.Name), true, wall.TenantObjects(&e.Platform, t)})
	}
	return parts
}

// applyPart applies a part as controllers do, and compares the result.
func (w *walker) applyPart(p part) {
	changes, err := w.applier.Apply(w.Context(), p.objects...)
	if err != nil && !apierrors.IsInvalid(err) {
		w.Error(err)
		return
	}
	if p.prunes {
		w.prunePart(p)
	}
	for i, change := range changes {
		switch change.Action {
		case apply.Failed, apply.Skipped:
			w.mu.Lock()
			w.immutable++
			w.mu.Unlock()
		default:
			w.compareObject(p.objects[i], change)
		}
	}
}

// prunePart deletes the owner's objects that are no longer desired. It skips kinds without
// objects, to save requests.
func (w *walker) prunePart(p part) {
	desired := map[apply.Ref]bool{}
	for _, o := range p.objects {
		desired[apply.RefOf(o)] = true
	}
	var kinds []schema.GroupVersionKind
	for _, o := range w.existing[p.owner] {
		if kind := o.GetObjectKind().GroupVersionKind(); !desired[apply.RefOf(o)] && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if _, err := w.applier.Prune(w.Context(), p.owner, "", p.objects, kinds...); err != nil {
		w.Error(err)
	}
	for _, o := range w.existing[p.owner] {
		if ref := apply.RefOf(o); !desired[ref] && ref.Kind != "Namespace" {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(ref.GroupVersionKind)
			if err := w.admin.Get(w.Context(), ref.NamespacedName, live); !apierrors.IsNotFound(err) {
				w.Errorf("%s is no longer desired, but exists: %v", ref, err)
			}
		}
	}
	w.existing[p.owner] = p.objects
}

func (w *walker) compareObject(o client.Object, change apply.Change) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(change.GroupVersionKind)
	if err := w.admin.Get(w.Context(), change.NamespacedName, live); err != nil {
		w.Error(err)
		return
	}
	reference, err := w.readReference(o)
	if err != nil {
		w.Error(err)
		return
	}
	if diff := cmp.Diff(readContent(reference), readContent(live)); diff != "" {
		w.Errorf("%s, and differs from a new cluster (-new +live):\n%s", change, diff)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.compared++
}

// inspectParts fails the test if Apply would write anything, or if Diff shows a difference.
func (w *walker) inspectParts(parts []part) {
	for _, p := range parts {
		before := w.writes.Load()
		changes, err := w.applier.Apply(w.Context(), p.objects...)
		if err != nil {
			continue // immutable objects are retried
		}
		if n := w.writes.Load() - before; n != 0 {
			w.Errorf("%d writes in a steady state: %v", n, changes)
		}
		if text, err := w.applier.Diff(w.Context(), p.objects...); err != nil || len(text) > 0 {
			w.Errorf("a diff of what was just applied: %v\n%s", err, text)
		}
	}
}

// readReference returns the API server's result of creating an object.
func (g *ground) readReference(o client.Object) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	known := g.references[string(raw)]
	g.mu.Unlock()
	if known != nil {
		return known, nil
	}
	fresh := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &fresh.Object); err != nil {
		return nil, err
	}
	kind := o.GetObjectKind().GroupVersionKind()
	fresh.SetGroupVersionKind(kind)
	if o.GetNamespace() == "" {
		fresh.SetName(o.GetName() + "-" + elsewhere)
	} else {
		fresh.SetNamespace(elsewhere)
	}
	if err := g.createDryRun(fresh); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.references[string(raw)] = fresh
	if g.kinds == nil {
		g.kinds = map[schema.GroupVersionKind]bool{}
	}
	g.kinds[kind] = true
	return fresh, nil
}

// createDryRun creates an object in a dry run. There is one Platform, with a fixed name, so an
// existing one is replaced as a whole.
func (g *ground) createDryRun(o *unstructured.Unstructured) error {
	if o.GetKind() != "Platform" {
		return g.admin.Create(g.Context(), o, client.DryRunAll)
	}
	o.SetName(v1alpha1.PlatformName)
	err := g.admin.Create(g.Context(), o, client.DryRunAll)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live := o.DeepCopy()
	if err := g.admin.Get(g.Context(), client.ObjectKeyFromObject(o), live); err != nil {
		return err
	}
	o.SetResourceVersion(live.GetResourceVersion())
	return g.admin.Update(g.Context(), o, client.DryRunAll)
}

// readContent returns an object without the fields that differ between any two objects.
func readContent(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	delete(labels, corev1.LabelMetadataName)
	for _, note := range []string{v1alpha1.AppliedAnnotation, v1alpha1.OwnerAnnotation, v1alpha1.CreatedAnnotation} {
		delete(annotations, note)
	}
	o.Object["labels"], o.Object["annotations"] = labels, annotations
	if len(labels) == 0 {
		delete(o.Object, "labels")
	}
	if len(annotations) == 0 {
		delete(o.Object, "annotations")
	}
	delete(o.Object, "metadata")
	delete(o.Object, "status")
	if o.GetKind() == "Namespace" {
		delete(o.Object, "spec")
	}
	return o.Object
}

// serveKinds makes the API server serve kinds that accept any field.
func (g *ground) serveKinds(scope apiextensionsv1.ResourceScope, kinds ...schema.GroupVersionKind) {
	for _, kind := range kinds {
		plural := strings.ToLower(kind.Kind)
		definition := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + "." + kind.Group},
			"spec": map[string]any{
				"group": kind.Group, "scope": string(scope),
				"names": map[string]any{"kind": kind.Kind, "plural": plural, "singular": plural},
				"versions": []any{map[string]any{
					"name": kind.Version, "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		}}
		if err := g.admin.Create(g.Context(), definition); err != nil {
			g.Fatal(err)
		}
	}
	for _, kind := range kinds {
		awaitSuccess(g.T, func() error {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			return g.admin.List(g.Context(), list)
		})
	}
}
