package main

import (
	"context"
	"fmt"
	"syscall"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/walls/wall/network"
	"croft.dev/croft/internal/walls/wall/policy"
)

// measureRestart kills the operator and deletes a policy while none runs, until the next operator restores the
// policy. The sandbox restarts the operator after a quarter of a second.
func (s *scaleBench) measureRestart(ctx context.Context) ([]comparison, error) {
	var took []float64
	for range scaleRuns {
		seconds, err := s.restartOperator(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, seconds)
		if _, err := s.waitIdle(ctx); err != nil {
			return nil, err
		}
	}
	return []comparison{s.compareRuns(operatorRestart, took, "from the kill")}, nil
}

func (s *scaleBench) restartOperator(ctx context.Context) (float64, error) {
	key := client.ObjectKey{Namespace: tenants.Name(scalePrefix, s.tenants/2), Name: network.DNSPolicy}
	lost := &networkingv1.NetworkPolicy{}
	if err := s.admin.Get(ctx, key, lost); err != nil {
		return 0, err
	}
	restored, err := watchObjects(ctx, s.cluster.Config, &networkingv1.NetworkPolicyList{}, []string{key.String()},
		func(_ watch.EventType, o client.Object) string {
			if o.GetUID() == lost.UID {
				return "it was not restored"
			}
			return ""
		}, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
	if err != nil {
		return 0, err
	}
	defer restored.stop()
	last, err := readUsage(s.cluster.Cluster, operatorComponent)
	if err != nil {
		return 0, err
	}
	killed := s.cluster.operator.pid
	took, err := restored.observe(ctx, func(ctx context.Context) error {
		if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the operator: %w", err)
		}
		return s.admin.Delete(ctx, lost)
	})
	if err != nil {
		return 0, err
	}
	s.ended = s.ended.addEnded(last)
	// Start waits until the restarted operator is ready.
	if err := s.cluster.Start(operatorComponent); err != nil {
		return 0, err
	}
	if s.cluster.operator, err = findOperator(ctx, s.cluster.Cluster); err != nil {
		return 0, err
	}
	if s.cluster.operator.pid == killed {
		return 0, fmt.Errorf("process %d of the operator was not restarted", killed)
	}
	return took[0], nil
}

// morePods is another default than in tenants.Platform.
const morePods = "101"

// measurePlatformChange changes a default that each tenant has, until each tenant's quota has it.
func (s *scaleBench) measurePlatformChange(ctx context.Context) ([]comparison, error) {
	desired := resource.MustParse(morePods)
	keys := make([]string, s.tenants)
	for i := range keys {
		keys[i] = tenants.Name(scalePrefix, i) + "/" + policy.Name
	}
	changed, err := watchObjects(ctx, s.cluster.Config, &corev1.ResourceQuotaList{}, keys, func(_ watch.EventType, o client.Object) string {
		if pods := o.(*corev1.ResourceQuota).Spec.Hard[corev1.ResourcePods]; !pods.Equal(desired) {
			return "pods: " + pods.String()
		}
		return ""
	}, client.MatchingFields{"metadata.name": policy.Name})
	if err != nil {
		return nil, err
	}
	defer changed.stop()
	took, err := changed.observe(ctx, func(ctx context.Context) error {
		platform := &v1alpha1.Platform{}
		if err := s.admin.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformName}, platform); err != nil {
			return err
		}
		before := platform.DeepCopy()
		platform.Spec.TenantDefaults.Quota[corev1.ResourcePods] = desired
		return s.admin.Patch(ctx, platform, client.MergeFrom(before))
	})
	if err != nil {
		return nil, err
	}
	return s.compareTenants("change of the Platform until all tenants have it", took, "the default quota; from the write"), nil
}

// compareTenants returns the lines of a step that concerns many tenants: all of them, and their median and p99.
func (s *scaleBench) compareTenants(name string, took []float64, note string) []comparison {
	row := compareWithTarget(name, inSeconds, samples.Percentile(100, took), s.tenants, note,
		fmt.Sprintf("median %s, p99 %s", formatPercentile(50, took), formatPercentile(99, took)))
	row.Raw = map[string][]float64{"seconds": took}
	return []comparison{row}
}

// measureLife creates tenants one after the other among the others, and deletes each once it is Ready.
func (s *scaleBench) measureLife(ctx context.Context) ([]comparison, error) {
	var created, deleted []float64
	for i := range scaleRuns {
		tenant := &v1alpha1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("life-%d", i)},
			Spec: v1alpha1.TenantSpec{
				Pool:     tenants.PoolName(0),
				Access:   []v1alpha1.Access{{Group: "life-team", Role: v1alpha1.RoleOperator}},
				Deletion: v1alpha1.DeletionDelete,
			},
		}
		took, err := s.observeTenants(ctx, []string{tenant.Name}, explainNotReady, func(ctx context.Context) error { return s.admin.Create(ctx, tenant) })
		if err != nil {
			return nil, err
		}
		created = append(created, took...)
		took, err = s.observeTenants(ctx, []string{tenant.Name}, explainExisting, func(ctx context.Context) error { return s.admin.Delete(ctx, tenant) })
		if err != nil {
			return nil, err
		}
		deleted = append(deleted, took...)
	}
	return []comparison{
		s.compareRuns("a new tenant among the others until Ready", created),
		s.compareRuns("its deletion until it no longer exists", deleted, "with its namespace"),
	}, nil
}

// measureDeletion deletes tenants with their namespaces, as many at a time as the bare client writes.
func (s *scaleBench) measureDeletion(ctx context.Context) ([]comparison, error) {
	names := make([]string, min(s.tenants, mostDeleted))
	for i := range names {
		names[i] = tenants.Name(scalePrefix, i)
	}
	took, err := s.observeTenants(ctx, names, explainExisting, func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(bareWorkers)
		for _, name := range names {
			group.Go(func() error {
				return s.admin.Delete(ctx, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}})
			})
		}
		return group.Wait()
	})
	if err != nil {
		return nil, err
	}
	return s.compareTenants(fmt.Sprintf("deletion of %d tenants until they no longer exist", len(names)), took,
		"with their namespaces, which kube-controller-manager deletes"), nil
}

// observeTenants calls a function, and returns for each tenant the time from the call until it had reached a state.
func (s *scaleBench) observeTenants(ctx context.Context, names []string, explain func(watch.EventType, client.Object) string,
	do func(context.Context) error) ([]float64, error) {
	l, err := watchObjects(ctx, s.cluster.Config, &v1alpha1.TenantList{}, names, explain)
	if err != nil {
		return nil, err
	}
	defer l.stop()
	return l.observe(ctx, do)
}

// explainNotReady is explainUnready for a watch.
func explainNotReady(_ watch.EventType, o client.Object) string {
	return explainUnready(o.(*v1alpha1.Tenant))
}

// explainExisting returns why a tenant exists, or "" if it was deleted.
func explainExisting(event watch.EventType, o client.Object) string {
	if event == watch.Deleted {
		return ""
	}
	return "it exists: " + explainUnready(o.(*v1alpha1.Tenant))
}
