package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
)

// visitInterval is the interval between two rounds of requests by a tenant's member.
const visitInterval = 250 * time.Millisecond

// observer observes running tenants while croft changes, and records each violation of a
// guarantee: a connection between tenants that the network policies allow; a pod that was
// restarted, deleted or admitted without placement; a node of such pods that was deleted; a
// member of a tenant with fewer or more rights.
type observer struct {
	*cluster
	estate *estate.Estate
	// access reports whether the members of tenants must have access all the time.
	access  bool
	traffic *podTraffic
	stop    context.CancelFunc
	rounds  sync.WaitGroup
	// watches are the functions that stop the watches.
	watches []func()

	mu    sync.Mutex
	wrong []string
	// namespaces and policies are the state of the last evaluation.
	namespaces map[string]corev1.Namespace
	policies   map[types.NamespacedName]networkingv1.NetworkPolicy
	// pods are the running pods, and nodes their nodes.
	pods           map[types.UID]string
	nodes          sets.Set[string]
	judged, visits int
}

// startObserver starts to observe the tenants of an estate, each of which has one namespace with
// running pods.
func (c *cluster) startObserver(t testing.TB, e *estate.Estate) *observer {
	t.Helper()
	return c.startObserverWith(t, e, true)
}

// startObserverWithoutAccess is like startObserver, but members of tenants may lose their access.
// An administrator creates the pods instead of them.
func (c *cluster) startObserverWithoutAccess(t testing.TB, e *estate.Estate) *observer {
	t.Helper()
	return c.startObserverWith(t, e, false)
}

func (c *cluster) startObserverWith(t testing.TB, e *estate.Estate, access bool) *observer {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	o := &observer{
		cluster: c, estate: e, access: access, stop: stop,
		namespaces: map[string]corev1.Namespace{}, policies: map[types.NamespacedName]networkingv1.NetworkPolicy{},
		pods: map[types.UID]string{}, nodes: sets.New[string](),
	}
	t.Cleanup(func() { stop(); o.rounds.Wait() })
	o.watchKind(t, &corev1.NamespaceList{}, o.observeNamespace)
	o.watchKind(t, &networkingv1.NetworkPolicyList{}, o.observePolicy)
	o.evaluateConnections("at the beginning")
	o.watchKind(t, &corev1.PodList{}, o.observePod)
	o.watchKind(t, &corev1.NodeList{}, o.observeNode)
	o.watchKind(t, &karpenterv1.NodeClaimList{}, o.observeClaim)
	if len(o.pods) == 0 || len(o.nodes) == 0 {
		t.Fatalf("%d pods are at work on %d nodes", len(o.pods), len(o.nodes))
	}
	for _, tenant := range e.Tenants {
		member := c.newMemberClient(t, findOperatorGroup(t, tenant))
		o.rounds.Go(func() { o.sendRequests(ctx, tenant, member) })
	}
	o.traffic = c.startTrafficBy(t, e, func(tenant *estate.Tenant) client.Client {
		if !access {
			return c.admin
		}
		return c.newMemberClient(t, findOperatorGroup(t, tenant))
	}, o.recordViolation)
	o.traffic.awaitPlaced(t, 10)
	return o
}

// watchKind watches a kind until the observation ends.
func (o *observer) watchKind(t testing.TB, list client.ObjectList, see func(apiwatch.EventType, client.Object)) {
	t.Helper()
	o.watches = append(o.watches, sandbox.Watch(t, o.Config, list, see))
}

// findOperatorGroup returns a group of the tenant that may create pods.
func findOperatorGroup(t testing.TB, tenant *estate.Tenant) string {
	t.Helper()
	i := slices.IndexFunc(tenant.Access, func(a v1alpha1.Access) bool { return a.Role == v1alpha1.RoleOperator })
	if i < 0 {
		t.Fatalf("tenant %s has no operators: %v", tenant.Name, tenant.Access)
	}
	return tenant.Access[i].Group
}

// recordViolation records a violation, once.
func (o *observer) recordViolation(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if line := fmt.Sprintf(format, args...); !slices.Contains(o.wrong, line) {
		o.wrong = append(o.wrong, line)
	}
}

func (o *observer) observeNamespace(event apiwatch.EventType, object client.Object) {
	namespace := *object.(*corev1.Namespace)
	o.mu.Lock()
	o.namespaces[namespace.Name] = namespace
	if event == apiwatch.Deleted {
		delete(o.namespaces, namespace.Name)
	}
	o.mu.Unlock()
	o.evaluateAfter(event, "Namespace "+namespace.Name)
}

func (o *observer) observePolicy(event apiwatch.EventType, object client.Object) {
	policy := *object.(*networkingv1.NetworkPolicy)
	key := client.ObjectKeyFromObject(&policy)
	o.mu.Lock()
	o.policies[key] = policy
	if event == apiwatch.Deleted {
		delete(o.policies, key)
	}
	o.mu.Unlock()
	o.evaluateAfter(event, "NetworkPolicy "+key.String())
}

// evaluateAfter evaluates the state after a change. The initial state is evaluated as a whole.
func (o *observer) evaluateAfter(event apiwatch.EventType, what string) {
	if event != "" {
		o.evaluateConnections(what + " was " + strings.ToLower(string(event)))
	}
}

// evaluateConnections evaluates the connections of tenants, and records the violations.
func (o *observer) evaluateConnections(moment string) {
	o.mu.Lock()
	o.judged++
	var namespaces []corev1.Namespace
	for _, n := range o.namespaces {
		namespaces = append(namespaces, n)
	}
	var policies []networkingv1.NetworkPolicy
	for _, p := range o.policies {
		policies = append(policies, p)
	}
	o.mu.Unlock()
	m, err := netpol.New(namespaces, policies)
	if err != nil {
		o.recordViolation("%s: %v", moment, err)
		return
	}
	m.EachPair(netpol.MaxPairs, func(from, to string) bool {
		if v, err := m.Connects(from, to, 0, "TCP"); err != nil || v.Allowed {
			o.recordViolation("%s: open from %s to %s (%v)", moment, from, to, err)
		}
		return true
	})
	for _, tenant := range o.estate.Tenants {
		n := tenant.Namespaces[0]
		for _, flow := range []struct {
			what    string
			allowed bool
			attack.Flow
		}{
			{"from no tenant's namespace", false, attack.Flow{FromNamespace: "default", ToNamespace: n}},
			{"from outside", false, attack.Flow{FromIP: "203.0.113.10", ToNamespace: n}},
			{"to the metadata address", false, attack.Flow{FromNamespace: n, ToIP: "169.254.169.254"}},
			{"within", true, attack.Flow{FromNamespace: n, ToNamespace: n}},
			{"to the internet", true, attack.Flow{FromNamespace: n, ToIP: "203.0.113.10"}},
		} {
			flow.Port, flow.Protocol = 8080, "TCP"
			if got, err := m.Evaluate(flow.Flow); err != nil || got.Allowed != flow.allowed {
				o.recordViolation("%s: %s %s: open is %t, want %t (%v)", moment, n, flow.what, got.Allowed, flow.allowed, err)
			}
		}
	}
}

// observePod records pods that were admitted without placement, and running pods that stopped. Pods
// of the traffic are ignored for the latter.
func (o *observer) observePod(event apiwatch.EventType, object client.Object) {
	pod := object.(*corev1.Pod)
	i := slices.IndexFunc(o.estate.Tenants, func(t *estate.Tenant) bool { return t.Namespaces[0] == pod.Namespace })
	if i < 0 {
		return
	}
	name := pod.Namespace + "/" + pod.Name
	if err := checkPlacement(pod, o.estate.Platform.NodePoolKey, o.estate.Tenants[i].Pools[0]); err != nil {
		o.recordViolation("pod %s is unplaced: %v", name, err)
	}
	if strings.HasPrefix(pod.Name, trafficName) {
		return
	}
	o.mu.Lock()
	if event == "" {
		o.pods[pod.UID] = name
		o.nodes.Insert(pod.Spec.NodeName)
	}
	_, atWork := o.pods[pod.UID]
	o.mu.Unlock()
	restarts := 0
	for _, container := range pod.Status.ContainerStatuses {
		restarts += int(container.RestartCount)
	}
	switch {
	case !atWork:
		o.recordViolation("pod %s is new: another one was replaced", name)
	case event == apiwatch.Deleted || pod.DeletionTimestamp != nil:
		o.recordViolation("pod %s was deleted", name)
	case restarts > 0 || pod.Status.Phase != corev1.PodRunning:
		o.recordViolation("pod %s is %s, with %d restarts", name, pod.Status.Phase, restarts)
	}
}

func (o *observer) observeNode(event apiwatch.EventType, object client.Object) {
	if (event == apiwatch.Deleted || object.GetDeletionTimestamp() != nil) && o.nodes.Has(object.GetName()) {
		o.recordViolation("node %s goes, with pods at work on it", object.GetName())
	}
}

// observeClaim records nodes that Karpenter will replace, because they have drifted from their
// pool.
func (o *observer) observeClaim(_ apiwatch.EventType, object client.Object) {
	claim := object.(*karpenterv1.NodeClaim)
	if claim.StatusConditions().Get(karpenterv1.ConditionTypeDrifted).IsTrue() && o.nodes.Has(claim.Status.NodeName) {
		o.recordViolation("node %s has drifted from its pool, and will be replaced", claim.Status.NodeName)
	}
}

// sendRequests sends requests as a member of a tenant until the context is done.
func (o *observer) sendRequests(ctx context.Context, tenant *estate.Tenant, member client.Client) {
	own := tenant.Namespaces[0]
	for ctx.Err() == nil {
		errs := map[string]error{}
		if o.access {
			errs["cannot list the pods of "+own] = member.List(ctx, &corev1.PodList{}, client.InNamespace(own))
		}
		errs["may create a pod that tolerates everything in "+own] = checkForbidden(
			member.Create(ctx, newNginxPod(own, "stowaway", tolerateEverything), client.DryRunAll))
		for _, other := range o.estate.Tenants {
			if other != tenant {
				n := other.Namespaces[0]
				errs["may list the pods of "+n] = checkForbidden(member.List(ctx, &corev1.PodList{}, client.InNamespace(n)))
			}
		}
		if ctx.Err() != nil {
			return
		}
		for what, err := range errs {
			if err != nil {
				o.recordViolation("a member of %s %s: %v", tenant.Name, what, err)
			}
		}
		o.mu.Lock()
		o.visits++
		o.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(visitInterval):
		}
	}
}

func checkForbidden(err error) error {
	switch {
	case err == nil:
		return errors.New("nothing refused it")
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return nil
	default:
		return err
	}
}

// stopObserver stops the observation after it has caught up with the cluster, and returns the
// violations.
func (o *observer) stopObserver(t testing.TB) []string {
	t.Helper()
	o.traffic.awaitPlaced(t, 10)
	o.traffic.stopTraffic(t)
	if n := o.traffic.refused.Load(); n > 0 {
		o.recordViolation("%d of %d pods were refused; the last: %v", n, n+o.traffic.placed.Load(), o.traffic.last.Load())
	}
	awaitCondition(t, moments, "the observer to have seen every policy", func(ctx context.Context) error {
		var now networkingv1.NetworkPolicyList
		if err := o.admin.List(ctx, &now); err != nil {
			return err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		for i := range now.Items {
			if p := &now.Items[i]; o.policies[client.ObjectKeyFromObject(p)].ResourceVersion != p.ResourceVersion {
				return fmt.Errorf("it has not seen %s/%s", p.Namespace, p.Name)
			}
		}
		if len(now.Items) != len(o.policies) {
			return fmt.Errorf("it has %d, and there are %d", len(o.policies), len(now.Items))
		}
		return nil
	})
	var pods corev1.PodList
	if err := o.admin.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	left := sets.New[types.UID]()
	for i := range pods.Items {
		left.Insert(pods.Items[i].UID)
	}
	for uid, name := range o.pods {
		if !left.Has(uid) {
			o.recordViolation("pod %s is missing", name)
		}
	}
	o.stop()
	o.rounds.Wait()
	for _, stop := range o.watches {
		stop()
	}
	t.Logf("observed: %d pods at work, %d others let in; network policies judged %d times; %d visits",
		len(o.pods), o.traffic.placed.Load(), o.judged, o.visits)
	if o.visits < 2*len(o.estate.Tenants) {
		t.Errorf("members came by only %d times", o.visits)
	}
	return o.wrong
}

// expectNoViolations stops the observation, and fails the test if there were violations.
func (o *observer) expectNoViolations(t testing.TB) {
	t.Helper()
	for _, line := range o.stopObserver(t) {
		t.Error(line)
	}
}
