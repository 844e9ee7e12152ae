package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// testProxyNamespaces fails if a list of namespaces differs from those in which users have a
// role, in any encoding and with any options.
func testProxyNamespaces(t *testing.T, p *proxiedCluster) {
	list, err := p.jane.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if names := listNames(list.Items); !slices.Equal(names, ownNamespaces) {
		t.Errorf("jane lists %v, want %v", names, ownNamespaces)
	}

	// Clients request different encodings.
	binary := rest.CopyConfig(p.jane.config)
	binary.ContentType = runtime.ContentTypeProtobuf
	if list, err = kubernetes.NewForConfigOrDie(binary).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if names := listNames(list.Items); !slices.Equal(names, ownNamespaces) {
		t.Errorf("in protobuf, jane lists %v, want %v", names, ownNamespaces)
	}
	partial, err := metadata.NewForConfigOrDie(p.jane.config).Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).
		List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(partial.Items) != 2 || partial.Items[0].Name != ownNamespaces[0] || partial.Items[1].Name != ownNamespaces[1] {
		t.Errorf("as PartialObjectMetadata, jane lists %v, want %v", partial.Items, ownNamespaces)
	}
	for _, flag := range []string{"--chunk-size=500", "--chunk-size=1"} {
		table := p.runKubectlAs(t, p.jane, "", "get", "namespaces", flag).expectExit(t, 0).stdout
		if names := cutColumns(table, 2); !slices.Equal(names, []string{"NAME STATUS", ownNamespaces[0] + " Active", ownNamespaces[1] + " Active"}) {
			t.Errorf("kubectl get namespaces %s shows jane\n%s", flag, table)
		}
	}
	all := p.runKubectlAs(t, p.jane, "", "get", "namespaces", "-o", "name", "--selector", "kubernetes.io/metadata.name="+ownNamespace)
	if got := all.expectExit(t, 0).stdout; got != "namespace/"+ownNamespace+"\n" {
		t.Errorf("kubectl get namespaces with a selector shows jane\n%s", got)
	}

	if _, requested := p.jane.startNamespaceInformer(t, ownNamespaces...); !slices.Equal(requested(), []string{"WatchList"}) {
		t.Errorf("jane's informer sent %v, want one request, as with the API server", requested())
	}
	p.joe.startNamespaceInformer(t)
	if got := p.runKubectlAs(t, p.joe, "", "get", "namespaces").expectExit(t, 0); got.stdout != "" || !strings.Contains(got.stderr, "No resources found") {
		t.Errorf("joe has access to no namespace, but sees %s", got)
	}
}

// testProxyAccessChanges fails if an open watch misses that a user was given access to a
// namespace, or lost it.
func testProxyAccessChanges(t *testing.T, p *proxiedCluster) {
	const later = "handbook"
	p.runKubectl(t, "", "create", "namespace", later).expectExit(t, 0)
	namespaces := p.jane.client.CoreV1().Namespaces()
	list, err := namespaces.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := namespaces.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	lister, _ := p.jane.startNamespaceInformer(t, ownNamespaces...)
	printed := p.startKubectlWatch(t, p.jane)

	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: later, Name: "readers"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: ownGroup}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	createObjects(t, p.admin, binding)
	expectEvent(t, events, watch.Added, later)
	expectNamespaces(t, lister, append([]string{later}, ownNamespaces...)...)
	expectRow(t, printed, "ADDED "+later+" Active")
	if _, err := namespaces.Get(t.Context(), later, metav1.GetOptions{}); err != nil {
		t.Errorf("jane lists a namespace that she may not get: %v", err)
	}

	p.deleteObjects(t, binding)
	expectEvent(t, events, watch.Deleted, later)
	expectNamespaces(t, lister, ownNamespaces...)
	expectRow(t, printed, "DELETED "+later+" Active")
	_, err = namespaces.Get(t.Context(), later, metav1.GetOptions{})
	expectForbidden(t, "getting a namespace after access was revoked", err)
}

// testProxyTwoProxies fails if a client that switches proxies has to wait for a resource version
// that the other proxy has not observed, and may not observe for hours if nothing changes.
func testProxyTwoProxies(t *testing.T, p *proxiedCluster) {
	later := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: otherNamespace, Name: "later"}}
	createObjects(t, p.admin, later)
	t.Cleanup(func() { p.deleteObjects(t, later) })
	newer := p.startProxy(t, p.Kubeconfig) // authenticates with a client certificate, not a token
	jane := newer.newUser(t, p.jane.token)
	newer.awaitReady(t, jane)
	testProxyServiceAccount(t, newer)
	list, err := jane.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	events, err := p.jane.client.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err == nil {
		events.Stop()
	}
	if ctx.Err() != nil {
		t.Errorf("the older proxy should reject the unknown version or watch from it: %v", err)
	}
}

// expectEvent waits for an event of a namespace. It ignores updates of jane's own
// namespaces.
func expectEvent(t testing.TB, events watch.Interface, kind watch.EventType, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), moments)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			t.Fatalf("the watch received no event: %s %s", name, kind)
		case event, open := <-events.ResultChan():
			if !open {
				t.Fatalf("the watch ended without the event: %s %s", name, kind)
			}
			namespace, ok := event.Object.(*corev1.Namespace)
			switch {
			case ok && namespace.Name == name && event.Type == kind:
				return
			case ok && event.Type == watch.Modified && slices.Contains(ownNamespaces, namespace.Name):
			default:
				t.Fatalf("the watch received %s %v, want %s %s", event.Type, event.Object, kind, name)
			}
		}
	}
}

// startNamespaceInformer starts an informer for namespaces, waits until it has exactly
// these, and returns its lister and its requests.
func (u testUser) startNamespaceInformer(t testing.TB, names ...string) (lister corelisters.NamespaceLister, requested func() []string) {
	t.Helper()
	requests := &listRequests{}
	config := rest.CopyConfig(u.config)
	config.Wrap(requests.wrapTransport)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	lister = factory.Core().V1().Namespaces().Lister()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	factory.Start(ctx.Done())
	expectNamespaces(t, lister, names...)
	return lister, requests.listRecorded
}

// expectNamespaces waits until an informer has exactly these namespaces.
func expectNamespaces(t testing.TB, lister corelisters.NamespaceLister, names ...string) {
	t.Helper()
	slices.Sort(names)
	awaitCondition(t, moments, "the informer to have the namespaces", func(context.Context) error {
		all, err := lister.List(labels.Everything())
		if err != nil {
			return err
		}
		var known []string
		for _, namespace := range all {
			known = append(known, namespace.Name)
		}
		if slices.Sort(known); !slices.Equal(known, names) {
			return fmt.Errorf("it has %v, want %v", known, names)
		}
		return nil
	})
}

// listRequests records the list and watch requests of a client.
type listRequests struct {
	mutex sync.Mutex
	all   []string
}

func (l *listRequests) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		kind := "list"
		switch q := r.URL.Query(); {
		case q.Get("sendInitialEvents") == "true":
			kind = "WatchList"
		case q.Has("watch"):
			kind = "watch"
		}
		l.mutex.Lock()
		l.all = append(l.all, kind)
		l.mutex.Unlock()
		return next.RoundTrip(r)
	})
}

func (l *listRequests) listRecorded() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Clone(l.all)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// startKubectlWatch runs kubectl get namespaces --watch, and returns the path of its output
// once it has printed the existing namespaces.
func (p *proxiedCluster) startKubectlWatch(t testing.TB, u testUser) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "watch")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := p.newSandboxCommand(t, "kubectl", "--kubeconfig", u.kubeconfig, "get", "namespaces", "--watch", "--output-watch-events")
	cmd.Stdout, cmd.Stderr = file, file
	startProcess(t, cmd)
	for _, name := range ownNamespaces {
		expectRow(t, path, "ADDED "+name+" Active")
	}
	return path
}

// expectRow waits until the table in a file has a row that begins with these words.
func expectRow(t testing.TB, path, row string) {
	t.Helper()
	awaitCondition(t, moments, "kubectl to print "+row, func(context.Context) error {
		content, err := os.ReadFile(path)
		if err == nil && !slices.Contains(cutColumns(string(content), 3), row) {
			err = fmt.Errorf("it printed\n%s", content)
		}
		return err
	})
}

// cutColumns returns the first n columns of each row of a table.
func cutColumns(table string, n int) []string {
	var rows []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		rows = append(rows, strings.Join(fields[:min(n, len(fields))], " "))
	}
	return rows
}

func listNames(namespaces []corev1.Namespace) []string {
	var names []string
	for i := range namespaces {
		names = append(names, namespaces[i].Name)
	}
	return names
}
