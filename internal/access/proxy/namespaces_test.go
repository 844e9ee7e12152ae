package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// fakeCluster is a proxy whose namespaces and bindings a test sets. Its API server responds
// to every request with 418.
type fakeCluster struct {
	*namespaces
	url     string
	version uint64
}

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	authenticator := newRequestAuthenticator(tokenfile.New(map[string]*user.DefaultInfo{
		"janes": jane, "joes": {Name: "joe", Groups: []string{"ops"}}, "admins": {Name: "ann", Groups: []string{"admins"}},
	}), nil, nil)
	w := &fakeCluster{namespaces: newNamespaces(), version: 100}
	upstream := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) })
	server := httptest.NewServer(chain{authenticator: authenticator, metrics: newMetrics(), next: withVisibleNamespaces(w.namespaces, upstream)}.buildHandler())
	t.Cleanup(server.Close)
	w.url = server.URL
	w.applyAccessChange(0, w.access.setRole(roleKey{name: "operator"}, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces", "pods"}, Verbs: []string{"get"}}}))
	w.applyAccessChange(0, w.access.setRole(roleKey{name: "lister"}, []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}))
	return w
}

// incrementVersion returns a new resource version.
func (w *fakeCluster) incrementVersion() uint64 {
	w.version++
	return w.version
}

func (w *fakeCluster) putNamespace(name string, labels map[string]string) {
	w.put(&corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, ResourceVersion: strconv.FormatUint(w.incrementVersion(), 10)},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	})
}

// bindGroups binds groups to a role in a namespace. Without groups it removes the binding.
func (w *fakeCluster) bindGroups(namespace string, groups ...string) {
	var subjects []rbacv1.Subject
	for _, g := range groups {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: g})
	}
	w.applyAccessChange(w.incrementVersion(), w.access.setBinding(namespace, "croft", rbacv1.RoleRef{Kind: "ClusterRole", Name: "operator"}, subjects))
}

func (w *fakeCluster) newConfig(token string) *rest.Config {
	return &rest.Config{Host: w.url, BearerToken: token}
}

func (w *fakeCluster) newClient(t *testing.T, token string) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(w.newConfig(token))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func joinNames(list *corev1.NamespaceList) string {
	all := make([]string, len(list.Items))
	for i := range list.Items {
		all[i] = list.Items[i].Name
	}
	return strings.Join(all, " ")
}

// TestVisibleNamespaces lists namespaces with the options and encodings that clients use.
func TestVisibleNamespaces(t *testing.T) {
	w := newFakeCluster(t)
	for _, n := range []string{"bank", "shop", "shop-dev", "kube-system"} {
		w.putNamespace(n, map[string]string{"stage": n[len(n)-3:]})
	}
	w.bindGroups("shop", "devs")
	w.bindGroups("shop-dev", "devs", "ops")
	w.bindGroups("gone", "devs")
	w.applyAccessChange(w.incrementVersion(), w.access.setBinding("", "admins", rbacv1.RoleRef{Kind: "ClusterRole", Name: "lister"}, []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "admins"}}))
	janes := w.newClient(t, "janes").CoreV1().Namespaces()
	for about, c := range map[string]struct {
		options metav1.ListOptions
		want    string
	}{
		"all":               {metav1.ListOptions{}, "shop shop-dev"},
		"any version":       {metav1.ListOptions{ResourceVersion: "0"}, "shop shop-dev"},
		"by a label":        {metav1.ListOptions{LabelSelector: "stage=dev"}, "shop-dev"},
		"by a name":         {metav1.ListOptions{FieldSelector: "metadata.name=shop"}, "shop"},
		"by another's name": {metav1.ListOptions{FieldSelector: "metadata.name=bank"}, ""},
		"by a phase":        {metav1.ListOptions{FieldSelector: "status.phase=Terminating"}, ""},
		"a page":            {metav1.ListOptions{Limit: 1}, "shop"},
		"exact version":     {metav1.ListOptions{ResourceVersion: strconv.FormatUint(w.version, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact}, "shop shop-dev"},
		"not older than":    {metav1.ListOptions{ResourceVersion: "101", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, "shop shop-dev"},
	} {
		list, err := janes.List(t.Context(), c.options)
		if err != nil || joinNames(list) != c.want {
			t.Errorf("%s: %q, %v; want %q", about, joinNames(list), err, c.want)
		}
	}
	page, err := janes.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if next, err := janes.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: page.Continue}); err != nil || joinNames(next) != "shop-dev" || next.Continue != "" {
		t.Errorf("the second page: %v, %v", next, err)
	}
	if _, err := janes.List(t.Context(), metav1.ListOptions{ResourceVersion: "101", ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a compacted version: %v", err)
	}
	if _, err := janes.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.x=y"}); !apierrors.IsBadRequest(err) {
		t.Errorf("an unsupported field selector: %v", err)
	}
	if list, err := w.newClient(t, "joes").CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil || joinNames(list) != "shop-dev" {
		t.Errorf("joe lists %q, %v", joinNames(list), err)
	}
	// The API server serves all other requests, and lists of users who may list all
	// namespaces.
	for _, request := range []func() error{
		func() error {
			_, err := w.newClient(t, "admins").CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			return err
		},
		func() error {
			_, err := janes.Get(t.Context(), "bank", metav1.GetOptions{})
			return err
		},
	} {
		if err := request(); err == nil || !strings.Contains(err.Error(), strconv.Itoa(http.StatusTeapot)) && !strings.Contains(err.Error(), "I'm a teapot") && !apierrors.IsUnexpectedServerError(err) {
			t.Errorf("the API server did not serve the request: %v", err)
		}
	}
	if meta, err := metadata.NewForConfigOrDie(w.newConfig("janes")).Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(t.Context(), metav1.ListOptions{}); err != nil || len(meta.Items) != 2 {
		t.Errorf("PartialObjectMetadata: %v, %v", meta, err)
	}
	if table := w.getPath(t, "janes", "/api/v1/namespaces", "application/json;as=Table;v=v1;g=meta.k8s.io"); !strings.Contains(table, `"kind":"Table"`) || !strings.Contains(table, `"shop-dev","Active"`) || strings.Contains(table, "bank") {
		t.Errorf("a table: %s", table)
	}
	if proto := w.getPath(t, "janes", "/api/v1/namespaces", "application/vnd.kubernetes.protobuf"); !strings.HasPrefix(proto, "k8s\x00") {
		t.Errorf("protobuf: %q", proto)
	}
}

func (w *fakeCluster) getPath(t *testing.T, token, path, accept string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// expectEvents fails if the next events of a watch differ from the expected ones.
func expectEvents(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	for _, one := range want {
		e := awaitEvent(t, w)
		got := string(e.Type)
		if o, ok := e.Object.(*corev1.Namespace); ok {
			got += " " + o.Name
			if o.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
				got += "end"
			}
		}
		if got != one {
			t.Fatalf("got event %q, want %q", got, one)
		}
	}
}

// awaitEvent returns the next event of a watch.
func awaitEvent(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event arrived")
		return watch.Event{}
	}
}

// TestVisibleNamespacesWatched grants and revokes access during a watch.
func TestVisibleNamespacesWatched(t *testing.T) {
	w := newFakeCluster(t)
	w.putNamespace("bank", nil)
	w.putNamespace("shop", nil)
	w.bindGroups("shop", "devs")
	janes := w.newClient(t, "janes").CoreV1().Namespaces()
	initial := true
	open, err := janes.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Stop()
	expectEvents(t, open, "ADDED shop", "BOOKMARK end")
	w.putNamespace("bank", map[string]string{"a": "b"})
	w.putNamespace("shop", map[string]string{"a": "b"})
	expectEvents(t, open, "MODIFIED shop")
	w.bindGroups("bank", "devs")
	expectEvents(t, open, "ADDED bank")
	w.bindGroups("bank", "ops")
	expectEvents(t, open, "DELETED bank")
	w.putNamespace("bank", map[string]string{"a": "c"})
	w.remove(w.objects["shop"])
	expectEvents(t, open, "DELETED shop")
	w.applyAccessChange(w.incrementVersion(), w.access.setRole(roleKey{name: "operator"}, nil))
	w.putNamespace("shop", nil)
	w.applyAccessChange(w.incrementVersion(), w.access.setRole(roleKey{name: "operator"}, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}))
	expectEvents(t, open, "ADDED shop")

	chosen, err := janes.Watch(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil {
		t.Fatal(err)
	}
	defer chosen.Stop()
	w.putNamespace("shop", map[string]string{"a": "b"})
	expectEvents(t, chosen, "ADDED shop")
	w.putNamespace("shop", map[string]string{"a": "c"})
	expectEvents(t, chosen, "DELETED shop")
}

// TestVisibleNamespacesResumed resumes watches from a resource version.
func TestVisibleNamespacesResumed(t *testing.T) {
	w := newFakeCluster(t)
	w.putNamespace("bank", nil)
	w.putNamespace("shop", nil)
	w.putNamespace("shop-dev", nil)
	w.bindGroups("shop", "devs")
	janes := w.newClient(t, "janes").CoreV1().Namespaces()
	w.resetHistory(w.incrementVersion())
	since := strconv.FormatUint(w.version, 10)
	w.putNamespace("shop", map[string]string{"a": "b"})
	w.putNamespace("bank", map[string]string{"a": "b"})
	w.bindGroups("shop-dev", "devs")
	again, err := janes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: since})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Stop()
	expectEvents(t, again, "MODIFIED shop", "ADDED shop-dev")

	// bank, which jane could never see, is deleted, and her access to shop is revoked.
	w.remove(w.objects["bank"])
	w.bindGroups("shop")
	w.putNamespace("shop", map[string]string{"a": "secret"})
	resumed, err := janes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: since})
	if err != nil {
		t.Fatal(err)
	}
	defer resumed.Stop()
	deleted := awaitEvent(t, resumed)
	if o, ok := deleted.Object.(*corev1.Namespace); !ok || deleted.Type != watch.Deleted || o.Name != "shop" || o.Labels["a"] != "b" {
		t.Errorf("got %s %v for a namespace whose access was revoked, want its last visible state", deleted.Type, deleted.Object)
	}
	expectEvents(t, resumed, "ADDED shop-dev")

	// A watch can start from the version of a list, even if that version revoked access.
	w.bindGroups("shop-dev")
	list, err := janes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	on, err := janes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer on.Stop()
	if _, err := janes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from a compacted version: %v", err)
	}
	// client-go retries this error indefinitely.
	if future := w.getPath(t, "janes", "/api/v1/namespaces?resourceVersion=99999", "application/json"); !strings.Contains(future, "Too large resource version") {
		t.Errorf("a version in the future: %s", future)
	}
}

// TestInformer runs client-go's informer, which uses WatchList and does not sync without
// its bookmark.
func TestInformer(t *testing.T) {
	w := newFakeCluster(t)
	for i := range 300 {
		w.putNamespace(fmt.Sprintf("n-%03d", i), nil)
		if i%100 == 0 {
			w.bindGroups(fmt.Sprintf("n-%03d", i), "devs")
		}
	}
	factory := informers.NewSharedInformerFactory(w.newClient(t, "janes"), 0)
	lister := factory.Core().V1().Namespaces()
	informer := lister.Informer()
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	awaitKeys(t, informer, "n-000 n-100 n-200")
	w.bindGroups("n-007", "devs")
	w.bindGroups("n-100")
	awaitKeys(t, informer, "n-000 n-007 n-200")
}

func awaitKeys(t *testing.T, informer cache.SharedIndexInformer, want string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		keys := informer.GetStore().ListKeys()
		slices.Sort(keys)
		if strings.Join(keys, " ") == want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the informer has %v, want %s", keys, want)
		}
	}
}
