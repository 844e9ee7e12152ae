package doctor_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/walls/wall"
)

// fakeCluster is a client with objects and without an API server. It tests checks that
// depend on the caller's rights and on time. It records the kinds that are read, and
// forbids reading the kind denied.
type fakeCluster struct {
	client.Client
	minor  string
	denied string
	mu     sync.Mutex // protects read
	read   map[string]bool
	// remaining are the numbers of objects that exist after a list with a limit of one, by kind.
	remaining map[string]int64
}

// withoutTypes are kinds that the cluster serves, and that croft reads without a Go type.
var withoutTypes = []schema.GroupVersionKind{
	{Group: "whereabouts.cni.cncf.io", Version: "v1alpha1", Kind: "IPPool"},
	{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"},
	{Group: "kyverno.io", Version: "v1", Kind: "Policy"},
	{Group: "config.gatekeeper.sh", Version: "v1alpha1", Kind: "Config"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "GatewayClass"},
	{Group: "cert-manager.io", Version: "v1", Kind: "ClusterIssuer"},
}

func newFakeCluster(t *testing.T, file string, objects ...client.Object) *fakeCluster {
	t.Helper()
	declaration, problems := manifest.Parse("croft.yaml", []byte(file))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s := scheme.New()
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range s.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	for _, kind := range withoutTypes {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	unstructuredKinds := slices.Clone(withoutTypes)
	if e, _ := estate.Build(declaration); e != nil {
		for _, o := range wall.Objects(e) { // the cluster does not serve the unknown ones
			unstructuredKinds = append(unstructuredKinds, o.GetObjectKind().GroupVersionKind())
		}
	}
	for _, kind := range unstructuredKinds {
		if !s.Recognizes(kind) {
			s.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
			s.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
		}
	}
	f := &fakeCluster{minor: "36", read: map[string]bool{}}
	field := func(get func(client.Object) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{get(o)} }
	}
	f.Client = fake.NewClientBuilder().WithScheme(s).WithRESTMapper(mapper).
		WithObjects(declaration.Objects()...).WithObjects(objects...).
		WithIndex(&corev1.Event{}, "reason", field(func(o client.Object) string { return o.(*corev1.Event).Reason })).
		WithIndex(&corev1.Pod{}, "spec.nodeName", field(func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName })).
		WithIndex(&corev1.Service{}, "spec.clusterIP", field(func(o client.Object) string { return o.(*corev1.Service).Spec.ClusterIP })).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if err := f.recordRead(s, o); err != nil {
					return err
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
				if err := f.recordRead(s, o); err != nil {
					return err
				}
				if err := c.List(ctx, o, opts...); err != nil {
					return err
				}
				kind := strings.TrimSuffix(o.GetObjectKind().GroupVersionKind().Kind, "List")
				if options := (&client.ListOptions{}).ApplyOptions(opts); options.Limit == 1 && f.remaining[kind] > 0 {
					o.SetRemainingItemCount(ptr.To(f.remaining[kind]))
				}
				return nil
			},
		}).Build()
	return f
}

// recordRead records that a kind is read. It returns Forbidden for the denied one, and
// NoKindMatch for one that is not in the scheme: the fake client would add it there, while
// other goroutines read the scheme.
func (f *fakeCluster) recordRead(s *runtime.Scheme, o runtime.Object) error {
	gvk, err := apiutil.GVKForObject(o, s)
	if err != nil {
		return err
	}
	kind := strings.TrimSuffix(gvk.Kind, "List")
	if !s.Recognizes(gvk) {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: gvk.Group, Kind: kind}, SearchedVersions: []string{gvk.Version}}
	}
	f.mu.Lock()
	f.read[kind] = true
	f.mu.Unlock()
	if kind != f.denied {
		return nil
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk.GroupVersion().WithKind(kind))
	return apierrors.NewForbidden(resource.GroupResource(), "", nil)
}

// ServerVersion implements discovery.ServerVersionInterface.
func (f *fakeCluster) ServerVersion() (*version.Info, error) {
	return &version.Info{Major: "1", Minor: f.minor, GitVersion: "v1." + f.minor}, nil
}

// gatherWithout reads the cluster for some checks, or all, as a caller who may not read one kind.
func (f *fakeCluster) gatherWithout(t *testing.T, denied string, checks ...string) *doctor.Snapshot {
	t.Helper()
	f.denied = denied
	s, err := doctor.Gather(t.Context(), f, f, doctor.Options{Checks: checks})
	if err != nil {
		t.Fatalf("without %s: %v", denied, err)
	}
	return s
}

// formatFindings returns a check's findings as text.
func formatFindings(r doctor.Result) []string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, string(f.Severity)+" "+f.Object+": "+f.Message)
	}
	return all
}

func newNamespace(name, tenant string) *corev1.Namespace {
	n := &corev1.Namespace{}
	n.Name = name
	n.Labels = map[string]string{"croft.dev/tenant": tenant}
	return n
}
