package operator_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/operator"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
)

// deadline limits every wait of a test.
const deadline = 3 * time.Minute

// field is a cluster with croft installed, and an administrator's client.
type field struct {
	testing.TB
	client  client.Client
	config  *rest.Config
	cluster *sandbox.Cluster
	writes  *writes
	lines   *lines
}

// lines collects the operator's log.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// writes collects the operator's write requests, as "METHOD path".
type writes struct {
	mu  sync.Mutex
	all []string
	// judged is read-locked from the start of a write until after returns. A test that
	// takes the write lock to set after therefore waits for running calls.
	judged sync.RWMutex
	// after is called with each completed write. It may be nil.
	after func(write string)
}

func (w *writes) since(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all[n:])
}

type recorder struct {
	next http.RoundTripper
	*writes
}

func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return r.next.RoundTrip(req)
	}
	write := req.Method + " " + req.URL.RequestURI()
	r.mu.Lock()
	r.all = append(r.all, write)
	r.mu.Unlock()
	r.judged.RLock()
	defer r.judged.RUnlock()
	response, err := r.next.RoundTrip(req)
	if r.after != nil {
		r.after(write)
	}
	return response, err
}

func newField(t testing.TB, components []string, with ...string) *field {
	t.Helper()
	return fieldOn(t, sandbox.Options{Components: components, With: with}, install.Options{})
}

// fieldOn starts a sandbox with options, and installs croft.
func fieldOn(t testing.TB, on sandbox.Options, installed install.Options) *field {
	t.Helper()
	cluster := sandbox.Start(t, on)
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Install(t.Context(), c, installed); err != nil {
		t.Fatal(err)
	}
	return &field{TB: t, client: c, config: cluster.Config, cluster: cluster, writes: &writes{}, lines: &lines{}}
}

// leaseLost is controller-runtime's error when it loses the lease and another replica may
// lead.
const leaseLost = "leader election lost"

// operate runs an operator with the rights that Install grants, and returns a function that
// stops it. An operator that loses its lease, because the API server did not answer for ten
// seconds, is restarted, as its Deployment would do.
func (f *field) operate() (stop func()) {
	f.Helper()
	return f.operateAt("0")
}

// operateAt is operate with an address for health probes.
func (f *field) operateAt(health string) (stop func()) {
	f.Helper()
	cfg := rest.CopyConfig(f.config)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: admissionpolicy.OperatorUser,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + v1alpha1.SystemNamespace, "system:authenticated"},
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next, f.writes} })
	plugins, err := secondary.ParsePlugins(secondary.PluginsNamespace, secondary.PluginsLabels)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for {
			err := operator.Run(ctx, cfg, operator.Options{HealthAddr: health, MetricsAddr: "0", LeaderElect: true, Plugins: plugins, Log: f.log()})
			if err == nil || ctx.Err() != nil || err.Error() != leaseLost {
				done <- err
				return
			}
			f.Logf("the operator begins again: %v", err)
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				f.Errorf("the operator stopped: %v", err)
			}
		case <-time.After(deadline):
			f.Error("the operator does not stop")
		}
	})
}

func (f *field) log() logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(io.MultiWriter(f.Output(), f.lines), nil))
}

func (f *field) create(objects ...client.Object) {
	f.Helper()
	for _, o := range objects {
		if err := f.client.Create(f.Context(), o); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *field) delete(o client.Object) {
	f.Helper()
	if err := f.client.Delete(f.Context(), o); err != nil {
		f.Fatal(err)
	}
}

func (f *field) patch(o client.Object, patch string) {
	f.Helper()
	if err := f.client.Patch(f.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody")); err != nil {
		f.Fatal(err)
	}
}

// eventually waits until why returns "".
func (f *field) eventually(what string, why func() string) {
	f.Helper()
	last := ""
	if err := wait.PollUntilContextTimeout(f.Context(), 50*time.Millisecond, deadline, true, func(context.Context) (bool, error) {
		last = why()
		return last == "", nil
	}); err != nil {
		f.Fatalf("%s: %s", what, last)
	}
}

// condition waits until an object has a condition with this status and reason.
func (f *field) condition(o client.Object, name string, status metav1.ConditionStatus, reason string) metav1.Condition {
	f.Helper()
	var found metav1.Condition
	f.eventually(fmt.Sprintf("%T %s", o, o.GetName()), func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(conditions(o), name)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != o.GetGeneration() {
			return fmt.Sprintf("want %s=%s %s, have %+v", name, status, reason, conditions(o))
		}
		found = *c
		return ""
	})
	return found
}

func conditions(o client.Object) []metav1.Condition {
	switch o := o.(type) {
	case *v1alpha1.Platform:
		return o.Status.Conditions
	case *v1alpha1.Pool:
		return o.Status.Conditions
	case *v1alpha1.Tenant:
		return o.Status.Conditions
	case *v1alpha1.SecondaryNetwork:
		return o.Status.Conditions
	case *v1alpha1.TenantNamespace:
		return o.Status.Conditions
	default:
		return nil
	}
}

func (f *field) ready(objects ...client.Object) {
	f.Helper()
	for _, o := range objects {
		f.condition(o, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	}
}

func (f *field) gone(o client.Object) {
	f.Helper()
	f.eventually(fmt.Sprintf("%T %s to go", o, o.GetName()), func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("still there (%v)", err)
		}
		return ""
	})
}

// event waits for an object's event.
func (f *field) event(o client.Object, reason, note string) {
	f.Helper()
	f.eventually("event "+reason+" "+note, func() string {
		var list eventsv1.EventList
		if err := f.client.List(f.Context(), &list); err != nil {
			return err.Error()
		}
		var notes []string
		for _, e := range list.Items {
			if e.Regarding.UID != o.GetUID() {
				continue
			}
			if e.Reason == reason && strings.Contains(e.Note, note) {
				return ""
			}
			notes = append(notes, e.Reason+": "+e.Note)
		}
		return strings.Join(notes, "; ")
	})
}

func (f *field) bindings(namespace string) int {
	f.Helper()
	var list rbacv1.RoleBindingList
	if err := f.client.List(f.Context(), &list, client.InNamespace(namespace)); err != nil {
		f.Fatal(err)
	}
	return len(list.Items)
}

func (f *field) policies(namespace string) []networkingv1.NetworkPolicy {
	f.Helper()
	var list networkingv1.NetworkPolicyList
	if err := f.client.List(f.Context(), &list, client.InNamespace(namespace)); err != nil {
		f.Fatal(err)
	}
	return list.Items
}

func platform() *v1alpha1.Platform {
	return &v1alpha1.Platform{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName},
		Spec: v1alpha1.PlatformSpec{
			ClusterName: "demo", TenantDomain: "tenants.example.org", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
		},
	}
}

func pool(name string) *v1alpha1.Pool {
	return &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func tenant(name, pool string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.TenantSpec{Pool: pool, Access: []v1alpha1.Access{{Group: name + "-devs", Role: v1alpha1.RoleOperator}}},
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
