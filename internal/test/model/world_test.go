package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/operator"
	"croft.dev/croft/internal/operate/operator/operatortest"
)

const (
	// deadline limits the time until the operator has applied everything. Deletion of a namespace
	// takes kube-controller-manager seconds.
	deadline  = 90 * time.Second
	apiserver = "kube-apiserver"
	// controllers is the component that counts quotas.
	controllers = "kube-controller-manager"
)

// world is a cluster, its operators, and the clients of admins and of tenants' people.
type world struct {
	*operatortest.Fixture
	clock     *jumpingClock
	faults    *faults
	operators []*process
	history   *history
	people    map[string]client.Client
	// isFrozen reports whether the controllers are suspended.
	isFrozen bool
	// done counts the successful steps by action, and executed is the index of the last step.
	done     map[string]int
	executed int
}

// newWorld declares a platform with pools, and starts an operator.
func newWorld(f *operatortest.Fixture) *world {
	w := &world{
		Fixture: f, clock: &jumpingClock{}, people: map[string]client.Client{}, done: map[string]int{},
		faults: &faults{random: rand.New(rand.NewPCG(1, 1))}, //nolint:gosec // a reproducible test
	}
	f.Create(newPlatform())
	for _, name := range poolNames {
		f.Create(newPool(name))
	}
	for _, tenant := range tenantNames {
		w.people[tenant] = f.Impersonate("person of "+tenant, tenant+"-0", tenant+"-1")
	}
	f.Cleanup(w.stopOperators)
	return w
}

// process is an operator that can be killed like a process.
type process struct {
	*gate
	cancel context.CancelFunc
	done   chan struct{}
}

// startOperator starts an operator. If it ends too early, as when the API server is away, it is
// restarted, as its Deployment would do. There is no leader election: a step decides how many
// operators run.
func (w *world) startOperator() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	p := &process{gate: newGate(), cancel: cancel, done: make(chan struct{})}
	w.operators = append(w.operators, p)
	cfg := w.NewOperatorConfig()
	if bug := w.faults.bug; bug != nil {
		cfg.ContentType = runtime.ContentTypeJSON
		if bug.run != nil {
			planted := w.NewClient(w.NewOperatorConfig())
			go bug.run(ctx, planted)
		}
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return wire{next, w.faults, p.gate} })
	plugins, err := secondary.ParsePlugins(secondary.PluginsNamespace, secondary.PluginsLabels)
	if err != nil {
		w.Fatal(err)
	}
	log := logr.Discard()
	if isSet("CROFT_MODEL_LOG") {
		log = w.NewLogger()
	}
	go func() {
		defer close(p.done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := operator.Run(ctx, cfg, operator.Options{HealthAddr: "0", MetricsAddr: "0", Plugins: plugins, Clock: w.clock, Log: log}); err != nil && ctx.Err() == nil {
				log.Error(err, "the operator begins again")
			}
		}, 200*time.Millisecond)
	}()
}

// killOperator ends an operator as SIGKILL does: nothing that it would send later arrives.
func (w *world) killOperator(p *process) {
	p.killProcess()
	p.cancel()
	w.operators = slices.DeleteFunc(w.operators, func(other *process) bool { return other == p })
}

// stopOperators kills all operators, and waits until their goroutines have ended.
func (w *world) stopOperators() {
	for _, p := range slices.Clone(w.operators) {
		w.killOperator(p)
		select {
		case <-p.done:
		case <-time.After(deadline):
			w.Error("the operator does not stop")
		}
	}
}

// endFaults ends all faults, so that one operator can do its work.
func (w *world) endFaults() error {
	w.faults.setRates(0, 0)
	w.clock.offset.Store(0)
	if err := w.thawController(); err != nil {
		return err
	}
	for len(w.operators) > 1 {
		w.killOperator(w.operators[0])
	}
	if len(w.operators) == 0 {
		w.startOperator()
	}
	return nil
}

func (w *world) thawController() error {
	if !w.isFrozen {
		return nil
	}
	w.isFrozen = false
	return w.Cluster.Thaw(controllers)
}

// resetWorld deletes all tenants and their namespaces, and starts a new operator and a new history.
func (w *world) resetWorld(b *bug) {
	w.Helper()
	w.stopOperators()
	if err := w.thawController(); err != nil {
		w.Fatal(err)
	}
	if w.history != nil {
		w.history.stop()
	}
	w.faults.setRates(0, 0)
	w.clock.offset.Store(0)
	w.Await("the end of all tenants and namespaces", func() string {
		var tenants v1alpha1.TenantList
		var namespaces corev1.NamespaceList
		for _, list := range []client.ObjectList{&tenants, &namespaces} {
			if err := w.Client.List(w.Context(), list); err != nil {
				return err.Error()
			}
		}
		left := len(tenants.Items)
		for i := range tenants.Items {
			t := &tenants.Items[i]
			err := errors.Join(sendPatch(w.Context(), w.Client, t, `{"metadata":{"finalizers":null}}`), w.Client.Delete(w.Context(), t))
			if client.IgnoreNotFound(err) != nil && !apierrors.IsNotFound(err) {
				w.Log(err)
			}
		}
		for i := range namespaces.Items {
			n := &namespaces.Items[i]
			if !slices.Contains(namespaceNames, n.Name) && !slices.Contains(tenantNames, n.Name) {
				continue
			}
			left++
			if n.DeletionTimestamp == nil {
				if err := client.IgnoreNotFound(w.Client.Delete(w.Context(), n)); err != nil {
					w.Log(err)
				}
			}
		}
		if left > 0 {
			return fmt.Sprintf("%d remain", left)
		}
		return ""
	})
	h, err := recordHistory(context.WithoutCancel(w.Context()), w.Config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(h.stop)
	w.history = h
	w.faults.bug = b
	w.startOperator()
}

func newNamespace(name string) *corev1.Namespace { return operatortest.NewNamespace(name) }

// sendPatch sends a merge patch as an admin's tool.
func sendPatch(ctx context.Context, c client.Client, o client.Object, patch string) error {
	return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody"))
}

// doStep executes a step. Steps that are not applicable do nothing.
func (w *world) doStep(ctx context.Context, s step) error {
	err := w.executeStep(ctx, s)
	w.executed = s.index
	var unreachable *url.Error
	switch {
	case err == nil:
		w.done[s.action]++
	case errors.Is(err, errInapplicable), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsForbidden(err):
		// The operator may do the same at the same moment, and policies refuse some requests.
	case errors.As(err, &unreachable) && w.done[restartServer] > 0:
		// A connection from before the restart.
	default:
		return fmt.Errorf("%s: %w", s, err)
	}
	return nil
}

var errInapplicable = errors.New("not applicable")

func (w *world) executeStep(ctx context.Context, s step) error {
	switch s.action {
	case declareTenant:
		err := w.patchSpec(ctx, s.tenant, func(spec *v1alpha1.TenantSpec) { *spec = s.spec })
		if apierrors.IsNotFound(err) {
			return w.Client.Create(ctx, newTenant(s.tenant, s.spec))
		}
		return err
	case redeclarePools:
		return w.patchSpec(ctx, s.tenant, func(spec *v1alpha1.TenantSpec) { spec.Pool, spec.Pools = s.spec.Pool, s.spec.Pools })
	case deleteTenant:
		return w.Client.Delete(ctx, newTenant(s.tenant, v1alpha1.TenantSpec{}))
	case renameTenant:
		return w.renameTenant(ctx, s.tenant, s.other)
	case adoptNamespace:
		return w.adoptNamespace(ctx, s.tenant, s.namespace)
	case giveNamespace:
		return w.giveNamespace(ctx, s.tenant, s.other, s.namespace)
	case releaseNamespace:
		return w.declareNamespace(ctx, s.tenant, s.namespace, false)
	case deleteNamespace:
		return w.Client.Delete(ctx, newNamespace(s.namespace))
	case editObject:
		n, err := w.chooseNamespace(ctx, s.tenant, s.number)
		if err != nil {
			return err
		}
		return edits[s.number%len(edits)].edit(ctx, w, n.Name)
	case createPod, createObject, deletePods:
		return w.executeAsPeople(ctx, s)
	default:
		return w.executeFault(ctx, s)
	}
}

// executeFault executes a fault.
func (w *world) executeFault(ctx context.Context, s step) error {
	switch s.action {
	case awaitWrites:
		until := w.Writes.Count() + s.number
		// Without work, there are no writes.
		_ = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 300*time.Millisecond, true, func(context.Context) (bool, error) {
			return w.Writes.Count() >= until, nil
		})
	case killOperator:
		for _, p := range slices.Clone(w.operators) {
			w.killOperator(p)
		}
		w.startOperator()
	case secondOperator:
		if len(w.operators) != 1 {
			return errInapplicable
		}
		first := w.operators[0]
		first.freezeProcess()
		w.startOperator()
		until := w.Writes.Count() + s.number
		_ = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
			return w.Writes.Count() >= until, nil
		})
		first.thawProcess(s.number % 4)
	case conflictStorm:
		w.faults.setRates(s.number, 0)
	case loseAnswers:
		w.faults.setRates(0, s.number/2)
	case jumpClock:
		w.clock.offset.Store(int64(time.Duration(s.number) * time.Minute))
	case restartServer:
		if err := w.Cluster.Kill(apiserver); err != nil {
			return err
		}
		return w.Cluster.Start(apiserver)
	case freezeController:
		w.isFrozen = true
		return w.Cluster.Freeze(controllers)
	case awaitIdle:
		return w.awaitIdle(ctx, time.Duration(s.number)*time.Second)
	case awaitApplied:
		// run compares after this step.
	default:
		return fmt.Errorf("unknown action %q", s.action)
	}
	return nil
}

// patchSpec changes a tenant's spec, if it is not being deleted.
func (w *world) patchSpec(ctx context.Context, tenant string, change func(*v1alpha1.TenantSpec)) error {
	live := newTenant(tenant, v1alpha1.TenantSpec{})
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return err
	}
	if live.DeletionTimestamp != nil {
		return errInapplicable
	}
	spec := live.Spec.DeepCopy()
	change(spec)
	raw, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": spec}})
	if err != nil {
		return err
	}
	return w.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, raw), client.FieldOwner("somebody"))
}

// declareNamespace adds a namespace to a tenant's spec, or removes it.
func (w *world) declareNamespace(ctx context.Context, tenant, namespace string, declared bool) error {
	return w.patchSpec(ctx, tenant, func(spec *v1alpha1.TenantSpec) {
		if len(spec.Namespaces) == 0 {
			spec.Namespaces = []string{tenant}
		}
		others := slices.DeleteFunc(slices.Clone(spec.Namespaces), func(name string) bool { return name == namespace })
		if declared {
			others = append(others, namespace)
		}
		if len(others) > 0 {
			spec.Namespaces = others
		}
	})
}

// offerNamespace permits a tenant to take over a namespace.
func (w *world) offerNamespace(ctx context.Context, namespace, tenant string) error {
	return w.patchNamespace(ctx, namespace, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AdoptAnnotation, tenant))
}

func (w *world) patchNamespace(ctx context.Context, name, change string) error {
	return w.patchMarked(ctx, newNamespace(name), newNamespace(name), change)
}

// patchMarked changes an object of croft, and marks the version as an admin's. before and live name
// the object.
func (w *world) patchMarked(ctx context.Context, before, live client.Object, change string) error {
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(before), before); err != nil {
		return err
	}
	if err := sendPatch(ctx, w.Client, live, change); err != nil {
		return err
	}
	// Without a difference, the revision is an earlier writer's.
	if live.GetResourceVersion() != before.GetResourceVersion() {
		w.history.markWritten(live)
	}
	return nil
}

func (w *world) adoptNamespace(ctx context.Context, tenant, namespace string) error {
	n := newNamespace(namespace)
	n.Annotations = map[string]string{v1alpha1.AdoptAnnotation: tenant}
	err := w.Client.Create(ctx, n)
	if err == nil {
		w.history.markWritten(n)
	} else if apierrors.IsAlreadyExists(err) {
		if err = w.Client.Get(ctx, client.ObjectKeyFromObject(n), n); err == nil && n.Labels[v1alpha1.TenantLabel] != "" {
			return errInapplicable
		}
		if err == nil {
			err = w.offerNamespace(ctx, namespace, tenant)
		}
	}
	if err != nil {
		return err
	}
	return w.declareNamespace(ctx, tenant, namespace, true)
}

// giveNamespace moves a namespace from one tenant to another.
func (w *world) giveNamespace(ctx context.Context, from, to, namespace string) error {
	n := newNamespace(namespace)
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(n), n); err != nil {
		return err
	}
	if from == to || n.Labels[v1alpha1.TenantLabel] != from {
		return errInapplicable
	}
	if err := w.offerNamespace(ctx, namespace, to); err != nil {
		return err
	}
	if err := w.declareNamespace(ctx, from, namespace, false); client.IgnoreNotFound(err) != nil && !errors.Is(err, errInapplicable) {
		return err
	}
	return w.declareNamespace(ctx, to, namespace, true)
}

// renameTenant deletes a tenant, and declares one of another name that takes over its namespaces.
func (w *world) renameTenant(ctx context.Context, from, to string) error {
	old := newTenant(from, v1alpha1.TenantSpec{})
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(old), old); err != nil {
		return err
	}
	err := w.Client.Get(ctx, types.NamespacedName{Name: to}, &v1alpha1.Tenant{})
	if err == nil || from == to || old.DeletionTimestamp != nil {
		return errInapplicable
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	spec := old.Spec.DeepCopy()
	if len(spec.Namespaces) == 0 {
		spec.Namespaces = []string{from}
	}
	if err := w.patchSpec(ctx, from, func(spec *v1alpha1.TenantSpec) { spec.Deletion = v1alpha1.DeletionRetain }); err != nil {
		return err
	}
	for _, name := range spec.Namespaces {
		n := newNamespace(name)
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(n), n); err == nil && n.Labels[v1alpha1.TenantLabel] == from {
			err = w.offerNamespace(ctx, name, to)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	if err := w.Client.Delete(ctx, old); err != nil {
		return err
	}
	return w.Client.Create(ctx, newTenant(to, *spec))
}

// chooseNamespace returns one of a tenant's namespaces.
func (w *world) chooseNamespace(ctx context.Context, tenant string, number int) (*corev1.Namespace, error) {
	var list corev1.NamespaceList
	if err := w.Client.List(ctx, &list, client.MatchingLabels{v1alpha1.TenantLabel: tenant}); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, errInapplicable
	}
	return &list.Items[number%len(list.Items)], nil
}

// madeByModel labels the pods and ConfigMaps of steps.
var madeByModel = client.MatchingLabels{"model.example.org/made": "true"}

// executeAsPeople executes a step of a tenant's people.
func (w *world) executeAsPeople(ctx context.Context, s step) error {
	n, err := w.chooseNamespace(ctx, s.tenant, s.number)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: n.Name, GenerateName: "model-", Labels: madeByModel}
	switch s.action {
	case createObject:
		return w.people[s.tenant].Create(ctx, &corev1.ConfigMap{ObjectMeta: meta})
	case createPod:
		pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1000), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.org/pause:3.10", ImagePullPolicy: corev1.PullAlways,
				Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		}}
		// Some pods try to get onto the nodes of any pool.
		pool := poolNames[s.number%len(poolNames)]
		switch s.number % 5 {
		case 0:
			pod.Spec.NodeSelector = map[string]string{v1alpha1.DefaultNodePoolKey: pool}
		case 1:
			pod.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.DefaultNodePoolKey, Value: pool}}
		}
		return w.people[s.tenant].Create(ctx, pod)
	default:
		return errors.Join(
			w.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(n.Name), madeByModel, client.GracePeriodSeconds(0)),
			w.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(n.Name), madeByModel))
	}
}

// edit is a change of croft's objects in a namespace.
type edit struct {
	name string
	edit func(ctx context.Context, w *world, namespace string) error
}

// edits are set in init, because their functions lead back to them.
var edits []edit

func init() {
	named := func(o client.Object, name string) func(string) client.Object {
		return func(namespace string) client.Object {
			fresh, ok := o.DeepCopyObject().(client.Object)
			if !ok {
				panic("the copy of an object is an object")
			}
			fresh.SetNamespace(namespace)
			fresh.SetName(name)
			return fresh
		}
	}
	remove := func(name string, o func(string) client.Object) edit {
		return edit{"delete " + name, func(ctx context.Context, w *world, namespace string) error {
			live := o(namespace)
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
				return err
			}
			w.history.markDeleted(live)
			return w.Client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.GetUID())})
		}}
	}
	change := func(name string, o func(string) client.Object, to string) edit {
		return edit{name, func(ctx context.Context, w *world, namespace string) error {
			return w.patchMarked(ctx, o(namespace), o(namespace), to)
		}}
	}
	var (
		isolation = named(&networkingv1.NetworkPolicy{}, "croft-isolation")
		dns       = named(&networkingv1.NetworkPolicy{}, "croft-dns")
		quota     = named(&corev1.ResourceQuota{}, "croft")
		limits    = named(&corev1.LimitRange{}, "croft")
		rules     = named(&v1alpha1.TenantRules{}, v1alpha1.TenantRulesName)
		access    = named(&rbacv1.RoleBinding{}, "croft-operator")
	)
	edits = []edit{
		remove("isolation policy", isolation),
		remove("DNS policy", dns),
		change("open the isolation policy", isolation, `{"spec":{"ingress":[{}]}}`),
		remove("LimitRange", limits),
		change("change the LimitRange", limits, `{"spec":{"limits":[]}}`),
		remove("ResourceQuota", quota),
		change("raise the ResourceQuota", quota, `{"spec":{"hard":{"pods":"1000"}}}`),
		remove("access", access),
		change("add a subject to the access", access, `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"others"}]}`),
		remove("TenantRules", rules),
		{"remove the namespace's tenant", func(ctx context.Context, w *world, namespace string) error {
			return w.patchNamespace(ctx, namespace, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, v1alpha1.TenantLabel))
		}},
		{"remove a rule of the namespace", func(ctx context.Context, w *world, namespace string) error {
			return w.patchNamespace(ctx, namespace, fmt.Sprintf(`{"metadata":{"annotations":{"%spools":null}}}`, v1alpha1.RulesAnnotationPrefix))
		}},
	}
}

// isSet reports whether an environment variable is set.
func isSet(name string) bool { return readVariable(name) != "" }
