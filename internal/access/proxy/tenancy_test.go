package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"croft.dev/croft/api/v1alpha1"
)

// The tests of this file need no cluster, so they run in make test. TestProxy/Tenancy tests
// the same on a real cluster.

// fakeEstate is a proxy whose tenants, pools, nodes and bindings a test sets. Its API
// server forbids all requests, except from the group admins, which gets 418.
type fakeEstate struct {
	*tenancy
	fakeCluster
}

func newFakeEstate(t *testing.T) *fakeEstate {
	t.Helper()
	access := newVisibility()
	tenancy, err := newTenancy(access)
	if err != nil {
		t.Fatal(err)
	}
	tenancy.ready.Store(true)
	e := &fakeEstate{tenancy, fakeCluster{version: 100}}
	authenticator := newRequestAuthenticator(tokenfile.New(map[string]*user.DefaultInfo{
		"janes": jane, "joes": {Name: "joe", Groups: []string{"ops"}}, "admins": {Name: "ann", Groups: []string{"admins"}}, "eves": {Name: "eve"},
	}), nil, nil)
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, _ := request.UserFrom(r.Context()); slices.Contains(u.GetGroups(), "admins") {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		respondError(w, r, apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", fmt.Errorf("from the API server")))
	})
	server := httptest.NewServer(chain{authenticator: authenticator, metrics: newMetrics(), next: withTenancy(tenancy, upstream, upstream)}.buildHandler())
	t.Cleanup(server.Close)
	e.url = server.URL
	e.changeAccess(0, func() accessChange {
		return access.setRole(roleKey{name: "operator"}, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}})
	})
	return e
}

func (e *fakeEstate) bindGroups(namespace string, groups ...string) {
	var subjects []rbacv1.Subject
	for _, g := range groups {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: g})
	}
	e.changeAccess(e.incrementVersion(), func() accessChange {
		return e.access.setBinding(namespace, "croft", rbacv1.RoleRef{Kind: "ClusterRole", Name: "operator"}, subjects)
	})
}

// makeMetadata returns the metadata of an object, with values that no team may see.
func (e *fakeEstate) makeMetadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, ResourceVersion: strconv.FormatUint(e.incrementVersion(), 10), Generation: 1,
		Annotations: map[string]string{"note": secret}, Finalizers: []string{secret},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: secret}},
		OwnerReferences: []metav1.OwnerReference{{Name: secret}},
	}
}

// secret is a value that no team may see.
const secret = "another-tenants"

func (e *fakeEstate) putTenant(t *testing.T, name string, accepted metav1.ConditionStatus, namespaces []string, pools ...string) {
	t.Helper()
	tenant := &v1alpha1.Tenant{ObjectMeta: e.makeMetadata(name), Spec: v1alpha1.TenantSpec{Pools: pools, CostCode: "org1"}}
	tenant.Labels = map[string]string{"note": secret}
	tenant.Status = v1alpha1.TenantStatus{Pool: pools[0], Pools: pools, Namespaces: namespaces, Status: v1alpha1.Status{ObservedGeneration: 1, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionAccepted, Status: accepted, Reason: "DomainTaken", Message: secret},
	}}}
	if err := e.applyTenantEvent(convertToUnstructured(t, tenant), true); err != nil {
		t.Fatal(err)
	}
}

func (e *fakeEstate) putPool(t *testing.T, name string) {
	t.Helper()
	pool := &v1alpha1.Pool{ObjectMeta: e.makeMetadata(name), Spec: v1alpha1.PoolSpec{
		EmptyTTL: "1h", Tags: map[string]string{"note": secret}, NodeClass: &v1alpha1.NodeClass{AWS: &v1alpha1.AWSNodeClass{}},
	}, Status: v1alpha1.PoolStatus{Nodes: 3, Tenants: 4711}}
	pool.Labels = map[string]string{"note": secret}
	if err := e.applyPoolEvent(convertToUnstructured(t, pool), true); err != nil {
		t.Fatal(err)
	}
}

func (e *fakeEstate) putNode(t *testing.T, name, pool string, change ...func(*corev1.Node)) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: e.makeMetadata(name), Spec: corev1.NodeSpec{ProviderID: secret, PodCIDR: secret}, Status: corev1.NodeStatus{
		Images:          []corev1.ContainerImage{{Names: []string{secret}}},
		VolumesInUse:    []corev1.UniqueVolumeName{secret},
		VolumesAttached: []corev1.AttachedVolume{{Name: secret}},
		Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: secret}},
		NodeInfo:        corev1.NodeSystemInfo{MachineID: secret, SystemUUID: secret, BootID: secret, KubeletVersion: "v1.36.3"},
		Config:          &corev1.NodeConfigStatus{Error: secret},
	}}
	node.Labels = map[string]string{
		v1alpha1.DefaultNodePoolKey: pool, corev1.LabelArchStable: "arm64", "topology.kubernetes.io/zone": "a", "example.org/note": secret,
	}
	for _, c := range change {
		c(node)
	}
	if err := e.setNode(node, true); err != nil {
		t.Fatal(err)
	}
}

func (e *fakeEstate) removeNode(t *testing.T, name string) {
	t.Helper()
	node := e.unfiltered[name].DeepCopy()
	node.ResourceVersion = strconv.FormatUint(e.incrementVersion(), 10)
	if err := e.setNode(node, false); err != nil {
		t.Fatal(err)
	}
}

func convertToUnstructured(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// newTwoTenants creates jane's tenant shop on the pools small and large, and joe's tenant bank
// on the pool vault.
func newTwoTenants(t *testing.T) *fakeEstate {
	t.Helper()
	e := newFakeEstate(t)
	e.putTenant(t, "shop", metav1.ConditionTrue, []string{"shop", "shop-dev"}, "small", "large")
	e.putTenant(t, "bank", metav1.ConditionTrue, []string{"bank"}, "vault")
	for _, pool := range []string{"small", "large", "vault", "empty"} {
		e.putPool(t, pool)
	}
	for node, pool := range map[string]string{"s1": "small", "s2": "small", "l1": "large", "v1": "vault", "platform": ""} {
		e.putNode(t, node, pool)
	}
	e.bindGroups("shop-dev", "devs")
	e.bindGroups("bank", "ops")
	return e
}

var (
	nodesResource   = corev1.SchemeGroupVersion.WithResource("nodes")
	tenantsResource = v1alpha1.GroupVersion.WithResource("tenants")
	poolsResource   = v1alpha1.GroupVersion.WithResource("pools")
)

func (e *fakeEstate) newDynamicClient(token string, resource schema.GroupVersionResource) dynamic.ResourceInterface {
	config := rest.CopyConfig(e.newConfig(token))
	config.QPS = -1
	return dynamic.NewForConfigOrDie(config).Resource(resource)
}

func listNames(t *testing.T, c dynamic.ResourceInterface, options metav1.ListOptions) string {
	t.Helper()
	list, err := c.List(t.Context(), options)
	if err != nil {
		return string(apierrors.ReasonForError(err))
	}
	all := make([]string, len(list.Items))
	for i := range list.Items {
		all[i] = list.Items[i].GetName()
	}
	return strings.Join(all, " ")
}

// TestTenancy fails if users see more or less than their own tenants, pools and nodes, by a
// list or by name, with any selector.
func TestTenancy(t *testing.T) {
	e := newTwoTenants(t)
	for _, c := range []struct {
		about, token string
		resource     schema.GroupVersionResource
		options      metav1.ListOptions
		want         string
	}{
		{"jane's tenants", "janes", tenantsResource, metav1.ListOptions{}, "shop"},
		{"jane's pools", "janes", poolsResource, metav1.ListOptions{}, "large small"},
		{"jane's nodes", "janes", nodesResource, metav1.ListOptions{}, "l1 s1 s2"},
		{"joe's nodes", "joes", nodesResource, metav1.ListOptions{}, "v1"},
		{"who has no tenant", "eves", nodesResource, metav1.ListOptions{}, "Forbidden"},
		{"who has no tenant, tenants", "eves", tenantsResource, metav1.ListOptions{}, "Forbidden"},
		{"a label that is shown", "janes", nodesResource, metav1.ListOptions{LabelSelector: v1alpha1.DefaultNodePoolKey + "=small"}, "s1 s2"},
		{"another's pool by its label", "janes", nodesResource, metav1.ListOptions{LabelSelector: v1alpha1.DefaultNodePoolKey + "=vault"}, ""},
		{"a label that is not shown", "janes", nodesResource, metav1.ListOptions{LabelSelector: "example.org/note"}, ""},
		{"a name", "janes", nodesResource, metav1.ListOptions{FieldSelector: "metadata.name=s1"}, "s1"},
		{"another's name", "janes", nodesResource, metav1.ListOptions{FieldSelector: "metadata.name=v1"}, ""},
		{"a field", "janes", nodesResource, metav1.ListOptions{FieldSelector: "spec.unschedulable=true"}, ""},
		{"an unknown field", "janes", nodesResource, metav1.ListOptions{FieldSelector: "spec.providerID=" + secret}, "BadRequest"},
	} {
		if got := listNames(t, e.newDynamicClient(c.token, c.resource), c.options); got != c.want {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
	get := func(token string, resource schema.GroupVersionResource, name string) error {
		_, err := e.newDynamicClient(token, resource).Get(t.Context(), name, metav1.GetOptions{})
		return err
	}
	for resource, names := range map[schema.GroupVersionResource][2][]string{
		nodesResource:   {{"s1", "l1"}, {"v1", "platform", "none"}},
		poolsResource:   {{"small", "large"}, {"vault", "empty", "none"}},
		tenantsResource: {{"shop"}, {"bank", "none"}},
	} {
		for _, name := range names[0] {
			if err := get("janes", resource, name); err != nil {
				t.Errorf("getting %s %s: %v", resource.Resource, name, err)
			}
		}
		for _, name := range names[1] {
			// The same 403 as for a missing object: the answer does not reveal taken
			// names.
			if err := get("janes", resource, name); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "from the API server") {
				t.Errorf("getting %s %s: %v", resource.Resource, name, err)
			}
		}
		if err := get("admins", resource, names[0][0]); err == nil || apierrors.IsForbidden(err) {
			t.Errorf("an admin's request for %s does not reach the API server: %v", resource.Resource, err)
		}
	}
	// The API server answers subresources and writes.
	if _, err := e.newDynamicClient("janes", nodesResource).Get(t.Context(), "s1", metav1.GetOptions{}, "status"); !apierrors.IsForbidden(err) {
		t.Errorf("nodes/status: %v", err)
	}
	if err := e.newDynamicClient("janes", nodesResource).Delete(t.Context(), "s1", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a node: %v", err)
	}
	// It also answers watches by WebSocket, whose connection a filtered response cannot
	// take over.
	upgrade, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/api/v1/nodes?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	upgrade.Header = http.Header{"Authorization": {"Bearer janes"}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	if response, err := http.DefaultClient.Do(upgrade); err != nil {
		t.Error(err)
	} else if _ = response.Body.Close(); response.StatusCode != http.StatusForbidden {
		t.Errorf("a watch of nodes by WebSocket: %s", response.Status)
	}
	e.ready.Store(false)
	if err := get("janes", nodesResource, "s1"); !apierrors.IsForbidden(err) {
		t.Errorf("before the caches have synced: %v", err)
	}
}

// TestTenancyBounds fails if anything but a RoleBinding in one of a tenant's accepted
// namespaces makes the tenant visible.
func TestTenancyBounds(t *testing.T) {
	e := newTwoTenants(t)
	see := func() string { return listNames(t, e.newDynamicClient("janes", nodesResource), metav1.ListOptions{}) }
	const own = "l1 s1 s2"
	// A user who may get every namespace, such as a controller, is a member of no tenant.
	e.changeAccess(e.incrementVersion(), func() accessChange {
		return e.access.setBinding("", "all", rbacv1.RoleRef{Kind: "ClusterRole", Name: "operator"}, []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "devs"}})
	})
	if got := see(); got != own {
		t.Errorf("with a ClusterRoleBinding jane sees %s", got)
	}
	// A refused Tenant gets none of the objects that it names.
	e.putTenant(t, "claim", metav1.ConditionFalse, nil, "vault")
	e.putTenant(t, "shop", metav1.ConditionFalse, []string{"shop", "shop-dev"}, "small", "large", "vault")
	if got := see(); got != own {
		t.Errorf("by a pool that was refused jane sees %s", got)
	}
	// Neither a role that does not allow get on the namespace nor a binding to a missing
	// role makes the tenant visible.
	e.changeAccess(e.incrementVersion(), func() accessChange {
		return e.access.setRole(roleKey{"bank", "pods"}, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}}})
	})
	for _, role := range []string{"pods", "none"} {
		e.changeAccess(e.incrementVersion(), func() accessChange {
			return e.access.setBinding("bank", role, rbacv1.RoleRef{Kind: "Role", Name: role}, []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "devs"}})
		})
	}
	if got := see(); got != own {
		t.Errorf("by a role without the namespace jane sees %s", got)
	}
	// Only the Platform's key counts, regardless of other labels.
	if err := e.setKey("example.org/pool"); err != nil {
		t.Fatal(err)
	}
	if got := see(); got != "" {
		t.Errorf("with another nodePoolKey jane sees %s", got)
	}
	e.putNode(t, "x1", "vault", func(n *corev1.Node) { n.Labels["example.org/pool"] = "large" })
	if got := see(); got != "x1" {
		t.Errorf("by the other nodePoolKey jane sees %s", got)
	}
}

// TestTenancyFields fails if a response has more than the fields that teams may see, in any
// encoding, or if kubectl's columns are missing.
func TestTenancyFields(t *testing.T) {
	e := newTwoTenants(t)
	const jsonTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, path := range []string{"/api/v1/nodes", "/api/v1/nodes/s1", "/apis/croft.dev/v1alpha1/tenants", "/apis/croft.dev/v1alpha1/tenants/shop", "/apis/croft.dev/v1alpha1/pools", "/apis/croft.dev/v1alpha1/pools/small"} {
		for _, accept := range []string{
			"application/json", "application/yaml", jsonTable, "application/vnd.kubernetes.protobuf,application/json",
			"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		} {
			body := e.getPath(t, "janes", path, accept)
			if strings.Contains(body, secret) || strings.Contains(body, "4711") || strings.Contains(body, "v1\"") && strings.Contains(body, "vault") {
				t.Errorf("%s as %s: %s", path, accept, body)
			}
			if strings.Contains(body, `"Failure"`) && !strings.Contains(accept, "as=PartialObjectMetadata") {
				t.Errorf("%s as %s: %s", path, accept, body)
			}
		}
	}
	if proto := e.getPath(t, "janes", "/api/v1/nodes", "application/vnd.kubernetes.protobuf"); !strings.HasPrefix(proto, "k8s\x00") || !strings.Contains(proto, "KubeletReady") {
		t.Errorf("nodes in protobuf: %q", proto)
	}
	for path, cells := range map[string]string{
		"/api/v1/nodes":                        `"s1","Ready","\u003cnone\u003e",`,
		"/apis/croft.dev/v1alpha1/tenants":     `"shop","[\"small\",\"large\"]","[\"shop\",\"shop-dev\"]"`,
		"/apis/croft.dev/v1alpha1/pools/small": `"small",null,3`,
	} {
		if table := e.getPath(t, "janes", path, jsonTable); !strings.Contains(table, cells) {
			t.Errorf("%s as a table: %s", path, table)
		}
	}
	partial, err := metadata.NewForConfigOrDie(e.newConfig("janes")).Resource(nodesResource).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(partial.Items) != 3 || partial.Items[0].Labels[corev1.LabelArchStable] != "arm64" {
		t.Errorf("PartialObjectMetadata: %v, %v", partial, err)
	}
}

// TestEveryFieldDecided fails if a field of Nodes, Tenants or Pools is neither shown nor
// hidden, such as a new field of Kubernetes or croft, or if docs/how-to/proxy.md lacks a field.
func TestEveryFieldDecided(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/how-to/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, c := range map[reflect.Type]fieldPolicy{
		reflect.TypeFor[corev1.Node](): nodeFields, reflect.TypeFor[v1alpha1.Tenant](): tenantFields, reflect.TypeFor[v1alpha1.Pool](): poolFields,
	} {
		decided := sets.New[string]()
		for _, f := range slices.Concat(c.shown, c.hidden) {
			if decided.Has(f.path) || f.why == "" {
				t.Errorf("%s: %s is decided twice or without a reason", kind.Name(), f.path)
			}
			decided.Insert(f.path)
		}
		found := sets.New[string]()
		for i := range kind.NumField() {
			f := kind.Field(i)
			if name := getJSONName(f); name != "" {
				reportUndecided(t, kind.Name(), name, f.Type, decided, found)
			}
		}
		if unknown := decided.Difference(found); len(unknown) > 0 {
			t.Errorf("%s has no fields %v", kind.Name(), sets.List(unknown))
		}
		for _, f := range c.shown {
			if row := "| `" + f.path + "` | " + f.why + " |"; !strings.HasPrefix(f.path, "metadata.") && !strings.Contains(string(docs), row) {
				t.Errorf("docs/how-to/proxy.md lacks the row of %s: %s", kind.Name(), row)
			}
		}
	}
	for _, l := range nodeLabels {
		if !strings.Contains(string(docs), "`"+l.path+"`") && !strings.Contains(string(docs), "`"+l.path+"…`") {
			t.Errorf("docs/how-to/proxy.md does not name the label %s", l.path)
		}
	}
}

func getJSONName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// reportUndecided reports the fields at and below path that are in neither list of the policy.
func reportUndecided(t *testing.T, kind, path string, of reflect.Type, decided, found sets.Set[string]) {
	t.Helper()
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		if of.Kind() == reflect.Slice && !decided.Has(path) {
			path += "[]"
		}
		of = of.Elem()
	}
	below := false
	for d := range decided {
		below = below || strings.HasPrefix(d, path+".")
	}
	switch {
	case decided.Has(path):
		found.Insert(path)
	case !below || of.Kind() != reflect.Struct:
		t.Errorf("%s: %s is neither shown nor hidden", kind, path)
	default:
		reportUndecidedBelow(t, kind, path, of, decided, found)
	}
}

func reportUndecidedBelow(t *testing.T, kind, path string, of reflect.Type, decided, found sets.Set[string]) {
	t.Helper()
	for i := range of.NumField() {
		f := of.Field(i)
		switch name := getJSONName(f); {
		case name == "" && f.Anonymous:
			reportUndecidedBelow(t, kind, path, f.Type, decided, found)
		case name != "" && name != "-":
			reportUndecided(t, kind, path+"."+name, f.Type, decided, found)
		}
	}
}

// expectObjects fails if the next events of a watch differ from the expected ones.
func expectObjects(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	for _, one := range want {
		e := awaitEvent(t, w)
		o, ok := e.Object.(metav1.Object)
		if !ok {
			t.Fatalf("got event %v, want %q", e, one)
		}
		got := string(e.Type) + " " + o.GetName()
		if o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			got += "end"
		}
		if got != one {
			t.Fatalf("got event %q, want %q", got, one)
		}
		if content, err := json.Marshal(o); err != nil || strings.Contains(string(content), secret) {
			t.Errorf("%s: %s, %v", got, content, err)
		}
	}
}

// TestTenancyWatched fails if an open watch misses that an object becomes visible or
// invisible to the user, or reveals changes that the user may not see.
func TestTenancyWatched(t *testing.T) {
	e := newTwoTenants(t)
	open := func(resource schema.GroupVersionResource) watch.Interface {
		t.Helper()
		w, err := e.newDynamicClient("janes", resource).Watch(t.Context(), metav1.ListOptions{
			SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		return w
	}
	nodes, pools, tenants := open(nodesResource), open(poolsResource), open(tenantsResource)
	expectObjects(t, nodes, "ADDED l1", "ADDED s1", "ADDED s2", "BOOKMARK end")
	expectObjects(t, pools, "ADDED large", "ADDED small", "BOOKMARK end")
	expectObjects(t, tenants, "ADDED shop", "BOOKMARK end")

	// Hidden changes emit no event: other tenants' nodes, and others' images.
	e.putNode(t, "v1", "vault", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	e.putNode(t, "s1", "small", func(n *corev1.Node) { n.Status.Images = nil })
	e.putNode(t, "s2", "small", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	expectObjects(t, nodes, "MODIFIED s2")

	// A node moves to another tenant's pool, and back.
	e.putNode(t, "s2", "vault")
	expectObjects(t, nodes, "DELETED s2")
	e.putNode(t, "s2", "small")
	expectObjects(t, nodes, "ADDED s2")

	// The tenant loses a pool and gains one.
	e.putTenant(t, "shop", metav1.ConditionTrue, []string{"shop", "shop-dev"}, "large", "vault")
	expectObjects(t, tenants, "MODIFIED shop")
	expectObjects(t, pools, "DELETED small", "ADDED vault")
	expectObjects(t, nodes, "DELETED s1", "DELETED s2", "ADDED v1")

	// jane's group gets access to another tenant, and loses access to its own.
	e.bindGroups("bank", "devs", "ops")
	expectObjects(t, tenants, "ADDED bank")
	e.bindGroups("shop-dev")
	expectObjects(t, tenants, "DELETED shop")
	expectObjects(t, pools, "DELETED large")
	expectObjects(t, nodes, "DELETED l1")

	// The tenant is deleted.
	e.removeNode(t, "v1")
	expectObjects(t, nodes, "DELETED v1")
	bank := &v1alpha1.Tenant{ObjectMeta: e.makeMetadata("bank")}
	e.setTenant(bank, bank, false)
	expectObjects(t, tenants, "DELETED bank")
	expectObjects(t, pools, "DELETED vault")
}

// TestRevocationsOfOthers fails if a resumed watch reveals an object that the user could
// never see, because its set of users changed.
func TestRevocationsOfOthers(t *testing.T) {
	w := newFakeCluster(t)
	w.putNamespace("bank", nil)
	w.putNamespace("shop", nil)
	w.bindGroups("shop", "devs")
	w.bindGroups("bank", "ops")
	list, err := w.newClient(t, "janes").CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}
	// All bindings to the role lose their access for a moment. jane never had access to
	// bank.
	w.applyAccessChange(w.incrementVersion(), w.access.setRole(roleKey{name: "operator"}, nil))
	w.applyAccessChange(w.incrementVersion(), w.access.setRole(roleKey{name: "operator"}, rules))
	// This binding of jane's group in bank, which is deleted again, never let her get the
	// namespace.
	devs := []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "devs"}}
	for _, subjects := range [][]rbacv1.Subject{devs, nil} {
		w.applyAccessChange(w.incrementVersion(), w.access.setBinding("bank", "pods", rbacv1.RoleRef{Kind: "Role", Name: "pods"}, subjects))
	}
	resumed, err := w.newClient(t, "janes").CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer resumed.Stop()
	w.putNamespace("shop", map[string]string{"last": "event"})
	for {
		e := awaitEvent(t, resumed)
		o, ok := e.Object.(*corev1.Namespace)
		if !ok || o.Name != "shop" {
			t.Fatalf("jane gets an event of another's namespace: %s %v", e.Type, e.Object)
		}
		if o.Labels["last"] == "event" {
			return
		}
	}
}

// TestTenancyRandomly runs clients that list, watch, disconnect and resume against random
// changes of bindings, tenants and nodes. It fails if a client's copy differs from a list,
// or if a client receives a node in a pool that the user could never see.
func TestTenancyRandomly(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runRandomTenancy(t, seed) })
		})
	}
}

func runRandomTenancy(t *testing.T, seed uint64) {
	access := newVisibility()
	tenancy, err := newTenancy(access)
	if err != nil {
		t.Fatal(err)
	}
	e := &fakeEstate{tenancy, fakeCluster{version: 100}}
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a reproducible test
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}
	e.changeAccess(0, func() accessChange { return access.setRole(roleKey{name: "operator"}, rules) })
	ctx, cancel := context.WithCancel(request.WithUser(t.Context(), jane))
	defer cancel()
	// everSeen contains the nodes that jane could see so far, each with its pool.
	everSeen := sets.New[string]()
	clients := map[*informerClient]*collection{}
	for _, c := range []*collection{e.nodes, e.nodes, e.pools, e.tenants} {
		clients[&informerClient{selector: labels.Everything(), seen: func(o object) {
			node, ok := o.(*corev1.Node)
			if ok && !everSeen.Has(node.Name+"@"+node.Labels[v1alpha1.DefaultNodePoolKey]) {
				t.Errorf("jane gets node %s in pool %s", node.Name, node.Labels[v1alpha1.DefaultNodePoolKey])
			}
		}}] = c
	}
	for range 150 {
		e.applyRandomChange(t, r)
		list, err := e.nodes.List(ctx, &metainternalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if nodes, ok := list.(*corev1.NodeList); ok {
			for i := range nodes.Items {
				everSeen.Insert(nodes.Items[i].Name + "@" + nodes.Items[i].Labels[v1alpha1.DefaultNodePoolKey])
			}
		}
		for f, c := range clients {
			switch r.IntN(6) {
			case 0:
				f.stopWatch()
			case 1, 2:
				f.syncEvents(ctx, t, c)
			}
		}
	}
	for f, c := range clients {
		f.syncEvents(ctx, t, c)
		synctest.Wait()
		f.applyEvents(t)
		if want, _ := f.listAll(ctx, t, c); fmt.Sprint(f.copied) != fmt.Sprint(want) {
			t.Errorf("the client of %s has %v, want %v", c.resource.Resource, f.copied, want)
		}
	}
}

// applyRandomChange applies one random change.
func (e *fakeEstate) applyRandomChange(t *testing.T, r *rand.Rand) {
	name := func(of string) string { return fmt.Sprint(of, r.IntN(3)) }
	e.version += r.Uint64N(2)
	switch r.IntN(8) {
	case 0, 1:
		e.putNode(t, name("n"), name("p"), func(n *corev1.Node) { n.Spec.Unschedulable = r.IntN(2) == 0 })
	case 2:
		if n := name("n"); e.unfiltered[n] != nil {
			e.removeNode(t, n)
		}
	case 3:
		e.putPool(t, name("p"))
	case 4:
		o := &v1alpha1.Tenant{ObjectMeta: e.makeMetadata(name("t"))}
		e.setTenant(o, o, false)
	case 5:
		e.bindGroups(name("ns"))
	case 6:
		e.bindGroups(name("ns"), "devs")
	default:
		e.putTenant(t, name("t"), metav1.ConditionTrue, []string{name("ns")}, name("p"))
	}
}
