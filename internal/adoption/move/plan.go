package move

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
)

// Way is the way in which pods are moved.
type Way string

const (
	// Restart restarts a workload's rollout, as `kubectl rollout restart` does.
	Restart Way = "restart"
	// Evict evicts one pod after the other by the eviction API, which respects
	// PodDisruptionBudgets.
	Evict Way = "evict"
	// Wait leaves pods alone that end by themselves.
	Wait Way = "wait"
	// Leave is for pods that no controller re-creates, or that croft cannot restart.
	Leave Way = "leave"
)

// Workload is the pods on a wrong pool of one controller.
type Workload struct {
	Namespace string         `json:"namespace"`
	Kind      string         `json:"kind"`
	Name      string         `json:"name"`
	Pods      []MisplacedPod `json:"pods"`
	Way       Way            `json:"way"`
	// Reason is the reason for this way, if it is not obvious.
	Reason string `json:"why,omitempty"`
}

// String returns the workload's kind, namespace and name.
func (w *Workload) String() string { return fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name) }

// Mover moves the pods of one tenant to its pools.
type Mover struct {
	client client.Client
	key    string
	tenant *estate.Tenant
	// namespaces are the namespaces to check.
	namespaces []string
	// evict allows evicting pods that no controller re-creates.
	evict bool
}

// New returns the Mover of a tenant, for one of its namespaces, or for all if namespace is
// empty.
func New(c client.Client, e *estate.Estate, tenant *estate.Tenant, namespace string, evict bool) (*Mover, error) {
	m := &Mover{client: c, key: e.Platform.NodePoolKey, tenant: tenant, namespaces: tenant.Namespaces, evict: evict}
	if namespace != "" {
		if !slices.Contains(tenant.Namespaces, namespace) {
			return nil, fmt.Errorf("-n %s: the namespace does not belong to tenant %s", namespace, tenant.Name)
		}
		m.namespaces = []string{namespace}
	}
	return m, nil
}

// ListMisplaced returns the tenant's pods that run on wrong pools.
func (m *Mover) ListMisplaced(ctx context.Context) ([]MisplacedPod, error) {
	nodes, err := ReadNodes(ctx, m.client, m.key)
	if err != nil {
		return nil, err
	}
	var all []MisplacedPod
	for _, namespace := range m.namespaces {
		var pods corev1.PodList
		if err := m.client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		all = append(all, FindMisplaced(m.key, m.tenant.Pools, pods.Items, nodes)...)
	}
	return all, nil
}

// Plan returns the workloads to move, with the way for each.
func (m *Mover) Plan(ctx context.Context) ([]Workload, error) {
	misplaced, err := m.ListMisplaced(ctx)
	if err != nil {
		return nil, err
	}
	var all []Workload
	for _, s := range misplaced {
		kind, name, err := m.findController(ctx, &s)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(w Workload) bool { return w.Namespace == s.Namespace && w.Kind == kind && w.Name == name })
		if i < 0 {
			all = append(all, Workload{Namespace: s.Namespace, Kind: kind, Name: name})
			i = len(all) - 1
		}
		all[i].Pods = append(all[i].Pods, s)
	}
	for i := range all {
		if err := m.chooseWay(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// findController returns the workload of a pod: its controller, or the Deployment of its ReplicaSet. A
// pod without a controller is its own workload.
func (m *Mover) findController(ctx context.Context, s *MisplacedPod) (kind, name string, err error) {
	if s.owner == nil {
		return "Pod", s.Pod, nil
	}
	if getKind(s.owner) == "ReplicaSet" {
		var set appsv1.ReplicaSet
		err := m.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.owner.Name}, &set)
		if client.IgnoreNotFound(err) != nil {
			return "", "", err
		}
		if owner := metav1.GetControllerOf(&set); owner != nil {
			return getKind(owner), owner.Name, nil
		}
	}
	return getKind(s.owner), s.owner.Name, nil
}

// getKind returns an owner's kind, with its API group if that is not built in, since other
// groups have kinds of the same names.
func getKind(o *metav1.OwnerReference) string {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err == nil && slices.Contains([]string{"", "apps", "batch"}, gv.Group) {
		return o.Kind
	}
	return o.Kind + "." + gv.Group
}

// chooseWay sets the way in which a workload is moved.
func (m *Mover) chooseWay(ctx context.Context, w *Workload) error {
	switch w.Kind {
	case "Deployment", "StatefulSet", "DaemonSet":
		return m.chooseRollout(ctx, w)
	case "Job":
		w.Way, w.Reason = Wait, "its pods complete, and are not interrupted"
	case "Pod", "ReplicaSet":
		w.Way, w.Reason = Leave, "it has no rollout to restart: --evict evicts its pods"
		if m.evict {
			w.Way, w.Reason = Evict, ""
			if w.Kind == "Pod" {
				w.Reason = "no controller re-creates it"
			}
		}
	default:
		w.Way, w.Reason = Leave, "croft cannot restart a "+w.Kind
	}
	return nil
}

// chooseRollout restarts a workload if its rollout stops no more pods at once than its budgets
// allow, and otherwise evicts them: a rollout ignores budgets.
func (m *Mover) chooseRollout(ctx context.Context, w *Workload) error {
	o, err := m.readWorkload(ctx, w)
	if apierrors.IsNotFound(err) {
		w.Way, w.Reason = Leave, "it no longer exists, but its pods do"
		return nil
	}
	if err != nil {
		return err
	}
	away, pod := countUnavailable(o)
	if away < 0 {
		w.Way, w.Reason = Evict, "its update strategy is OnDelete"
		return nil
	}
	w.Way = Restart
	var budgets policyv1.PodDisruptionBudgetList
	if err := m.client.List(ctx, &budgets, client.InNamespace(w.Namespace)); err != nil {
		return err
	}
	for _, b := range budgets.Items {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod)) && away > int(b.Status.DisruptionsAllowed) {
			w.Way = Evict
			w.Reason = fmt.Sprintf("a restart would stop %d at once, and PodDisruptionBudget %s allows %d", away, b.Name, b.Status.DisruptionsAllowed)
		}
	}
	return nil
}
