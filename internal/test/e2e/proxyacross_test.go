package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// testProxyAllNamespaces fails if a list of all namespaces differs from the lists that users may
// read namespace by namespace, in any encoding and with any page size.
func testProxyAllNamespaces(t *testing.T, p *proxiedCluster) {
	notes := map[string]bool{}
	for _, namespace := range append([]string{otherNamespace}, ownNamespaces...) {
		for i := range 3 {
			createObjects(t, p.admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("note-%d", i), Labels: map[string]string{"note": "yes"}}})
		}
	}
	for _, namespace := range ownNamespaces {
		for i := range 3 {
			notes[fmt.Sprintf("%s/note-%d", namespace, i)] = true
		}
	}
	want := slices.Sorted(maps.Keys(notes))
	selected := metav1.ListOptions{LabelSelector: "note=yes"}
	binary := rest.CopyConfig(p.jane.config)
	binary.ContentType = runtime.ContentTypeProtobuf
	for about, config := range map[string]*rest.Config{"JSON": p.jane.config, "protobuf": binary} {
		list, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("").List(t.Context(), selected)
		if err != nil || !slices.Equal(formatQualifiedNames(list.Items), want) {
			t.Errorf("in %s, jane lists %v, want %v: %v", about, formatQualifiedNames(list.Items), want, err)
		}
	}
	partial, err := metadata.NewForConfigOrDie(p.jane.config).Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).List(t.Context(), selected)
	if err != nil || len(partial.Items) != len(want) {
		t.Errorf("as PartialObjectMetadata, jane lists %v: %v", partial, err)
	}
	for _, size := range []int64{1, 2, 4, 5} {
		var paged []string
		options := selected
		for options.Limit = size; ; {
			page, err := p.jane.client.CoreV1().ConfigMaps("").List(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			if paged = append(paged, formatQualifiedNames(page.Items)...); int64(len(page.Items)) > size {
				t.Errorf("a page with limit %d has %d items", size, len(page.Items))
			}
			if options.Continue = page.Continue; page.Continue == "" {
				break
			}
		}
		if !slices.Equal(paged, want) {
			t.Errorf("with limit %d, jane lists %v, want %v", size, paged, want)
		}
	}
	for _, flag := range []string{"--chunk-size=500", "--chunk-size=2"} {
		table := p.runKubectlAs(t, p.jane, "", "get", "configmaps", "-A", "-l", "note=yes", flag).expectExit(t, 0).stdout
		var rows []string
		for _, row := range cutColumns(table, 2)[1:] {
			rows = append(rows, strings.Replace(row, " ", "/", 1))
		}
		if !slices.Equal(rows, want) || !strings.HasPrefix(table, "NAMESPACE ") {
			t.Errorf("kubectl get -A %s shows jane\n%s", flag, table)
		}
	}

	// Resources that she may not read in any namespace stay forbidden, with the API
	// server's message.
	for _, kind := range []string{"persistentvolumes", "platforms.croft.dev"} {
		o := p.runKubectlAs(t, p.jane, "", "get", kind, "-A").expectExit(t, 1)
		if !strings.Contains(o.stderr, `User "oidc:jane" cannot list resource`) {
			t.Errorf("unexpected output of kubectl get %s -A: %s", kind, o)
		}
	}
	_, err = p.joe.client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	expectForbidden(t, "joe listing all ConfigMaps", err)
	_, err = p.joe.client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	expectForbidden(t, "joe watching all ConfigMaps", err)
}

// testProxyAllNamespacesWatched fails if a watch of all namespaces misses events, sends objects
// that the user may not read, or continues for a namespace after access to it was revoked.
func testProxyAllNamespacesWatched(t *testing.T, p *proxiedCluster) {
	const later = "shared-notes"
	p.runKubectl(t, "", "create", "namespace", later).expectExit(t, 0)
	write := func(namespace, name string) {
		createObjects(t, p.admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"watched": "yes"}}})
	}
	write(later, "old")
	write(ownNamespaces[0], "old")
	selected := metav1.ListOptions{LabelSelector: "watched=yes"}
	lister, requested := p.jane.startConfigMapInformer(t, selected)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("jane's informer sent %v", requested())
		}
	})
	expectConfigMaps(t, lister, ownNamespaces[0]+"/old")
	if !slices.Equal(requested(), []string{"WatchList"}) {
		t.Errorf("jane's informer sent %v, want one request, as with the API server", requested())
	}

	// The client has its own user agent. The informer's client receives bookmarks, from whose
	// versions a watch may start, and which may equal an event's version.
	config := rest.CopyConfig(p.jane.config)
	config.UserAgent = "another"
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("")
	list, err := maps.List(t.Context(), selected)
	if err != nil {
		t.Fatal(err)
	}
	options := selected
	options.ResourceVersion = list.ResourceVersion
	events, err := maps.Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	write(otherNamespace, "other")
	write(ownNamespaces[1], "new")
	version := ""
	select {
	case e := <-events.ResultChan():
		o, ok := e.Object.(*corev1.ConfigMap)
		if !ok || e.Type != watch.Added || o.Namespace != ownNamespaces[1] || o.Name != "new" {
			t.Fatalf("the watch received %s %v", e.Type, e.Object)
		}
		version = o.ResourceVersion
	case <-time.After(moments):
		t.Fatal("the watch received no event")
	}
	expectConfigMaps(t, lister, ownNamespaces[0]+"/old", ownNamespaces[1]+"/new")

	// An earlier event of another namespace may be missing at this version.
	options.ResourceVersion = version
	if again, err := maps.Watch(t.Context(), options); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch starts from the version of an event: %v, %v", again, err)
	}

	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: later, Name: "readers"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: ownGroup}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	createObjects(t, p.admin, binding)
	expectConfigMaps(t, lister, ownNamespaces[0]+"/old", ownNamespaces[1]+"/new", later+"/old")
	p.deleteObjects(t, binding)
	expectConfigMaps(t, lister, ownNamespaces[0]+"/old", ownNamespaces[1]+"/new")
	write(later, "after")
	write(ownNamespaces[0], "after")
	expectConfigMaps(t, lister, ownNamespaces[0]+"/after", ownNamespaces[0]+"/old", ownNamespaces[1]+"/new")
}

// startConfigMapInformer starts an informer for the ConfigMaps of all namespaces, and
// returns its lister and its requests.
func (u testUser) startConfigMapInformer(t testing.TB, selected metav1.ListOptions) (lister corelisters.ConfigMapLister, requested func() []string) {
	t.Helper()
	requests := &listRequests{}
	config := rest.CopyConfig(u.config)
	config.Wrap(requests.wrapTransport)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selected.LabelSelector }))
	lister = factory.Core().V1().ConfigMaps().Lister()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	factory.Start(ctx.Done())
	soon, stop := context.WithTimeout(ctx, moments)
	defer stop()
	for kind, synced := range factory.WaitForCacheSync(soon.Done()) {
		if !synced {
			t.Fatal(errors.New("the informer does not sync: " + kind.String()))
		}
	}
	return lister, requests.listRecorded
}

// expectConfigMaps waits until an informer has exactly these ConfigMaps.
func expectConfigMaps(t testing.TB, lister corelisters.ConfigMapLister, want ...string) {
	t.Helper()
	awaitCondition(t, moments, "the informer to have the ConfigMaps", func(context.Context) error {
		all, err := lister.List(labels.Everything())
		if err != nil {
			return err
		}
		var names []string
		for _, o := range all {
			names = append(names, o.Namespace+"/"+o.Name)
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			return fmt.Errorf("it has %v, want %v", names, want)
		}
		return nil
	})
}

func formatQualifiedNames(items []corev1.ConfigMap) []string {
	var names []string
	for i := range items {
		names = append(names, items[i].Namespace+"/"+items[i].Name)
	}
	return names
}
