package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// buildNodePool returns the Karpenter NodePool of a pool. It sets every field whose default in
// Karpenter differs from croft's.
func buildNodePool(platform *estate.Platform, pool *estate.Pool) *karpenterv1.NodePool {
	return &karpenterv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpenterapis.Group + "/v1", Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: pool.Name},
		Spec: karpenterv1.NodePoolSpec{
			Template: karpenterv1.NodeClaimTemplate{
				ObjectMeta: karpenterv1.ObjectMeta{
					Labels:      buildNodeLabels(platform, pool),
					Annotations: buildNodeAnnotations(pool),
				},
				Spec: karpenterv1.NodeClaimTemplateSpec{
					// NoSchedule keeps other tenants' pods from being scheduled here.
					// NoExecute evicts pods that bypassed the scheduler.
					Taints: []corev1.Taint{
						{Key: platform.NodePoolKey, Value: pool.Name, Effect: corev1.TaintEffectNoSchedule},
						{Key: platform.NodePoolKey, Value: pool.Name, Effect: corev1.TaintEffectNoExecute},
					},
					StartupTaints:          buildStartupTaints(pool),
					Requirements:           buildRequirements(pool),
					NodeClassRef:           buildNodeClassRef(pool),
					TerminationGracePeriod: parseFiniteDuration(pool.TerminationGracePeriod),
					ExpireAfter:            toNillableDuration(pool.TTL),
				},
			},
			Disruption: karpenterv1.Disruption{
				ConsolidationPolicy: karpenterv1.ConsolidationPolicy(pool.Consolidation),
				ConsolidateAfter:    toNillableDuration(pool.EmptyTTL),
				Budgets:             buildBudgets(pool),
			},
			Limits: karpenterv1.Limits(pool.Limits),
			Weight: pool.Weight,
		},
	}
}

func buildNodeLabels(platform *estate.Platform, pool *estate.Pool) map[string]string {
	labels := map[string]string{platform.NodePoolKey: pool.Name}
	if pool.CostCode != "" {
		labels[v1alpha1.CostCodeLabel] = pool.CostCode
	}
	if pool.WaitForNetworks {
		labels[v1alpha1.NodeNetworksLabel] = "true"
	}
	return labels
}

// networksTaint keeps every pod off a new node until croft's operator removes the taint.
// Tenants' pods cannot tolerate it.
var networksTaint = corev1.Taint{
	Key: v1alpha1.NetworksTaint, Value: v1alpha1.NetworksTaintValue, Effect: corev1.TaintEffectNoSchedule,
}

func buildStartupTaints(pool *estate.Pool) []corev1.Taint {
	var all []corev1.Taint
	if pool.WaitForNetworks {
		all = append(all, networksTaint)
	}
	for _, t := range pool.StartupTaints {
		all = append(all, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return all
}

// buildNodeAnnotations returns the tags as annotations, for node classes without a cloud that
// could store them.
func buildNodeAnnotations(pool *estate.Pool) map[string]string {
	if pool.Class.AWS != nil || len(pool.Tags) == 0 {
		return nil
	}
	annotations := make(map[string]string, len(pool.Tags))
	for k, v := range pool.Tags {
		annotations[v1alpha1.TagAnnotationPrefix+k] = v
	}
	return annotations
}

func buildRequirements(pool *estate.Pool) []karpenterv1.NodeSelectorRequirementWithMinValues {
	in := func(key string, values []string) karpenterv1.NodeSelectorRequirementWithMinValues {
		return karpenterv1.NodeSelectorRequirementWithMinValues{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: values,
		}
	}
	all := []karpenterv1.NodeSelectorRequirementWithMinValues{in(corev1.LabelOSStable, []string{"linux"})}
	if capacity := toStrings(pool.Instances.CapacityTypes); len(capacity) > 0 {
		all = append(all, in(karpenterv1.CapacityTypeLabelKey, capacity))
	}
	if types := pool.Instances.InstanceTypes; len(types) > 0 {
		all = append(all, in(corev1.LabelInstanceTypeStable, types))
	}
	if arch := toStrings(pool.Instances.Architectures); len(arch) > 0 {
		all = append(all, in(corev1.LabelArchStable, arch))
	} else if len(pool.Instances.InstanceTypes) == 0 {
		all = append(all, in(corev1.LabelArchStable, []string{karpenterv1.ArchitectureAmd64}))
	}
	for _, r := range pool.Instances.Requirements {
		all = append(all, karpenterv1.NodeSelectorRequirementWithMinValues{
			Key: r.Key, Operator: r.Operator, Values: r.Values, MinValues: r.MinValues,
		})
	}
	return all
}

func toStrings[S ~string](values []S) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// buildBudgets sets Karpenter's default explicitly, so that a change of the default has no effect.
func buildBudgets(pool *estate.Pool) []karpenterv1.Budget {
	if len(pool.Budgets) == 0 {
		return []karpenterv1.Budget{{Nodes: "10%"}}
	}
	all := make([]karpenterv1.Budget, len(pool.Budgets))
	for i, b := range pool.Budgets {
		all[i].Nodes = b.Nodes
		for _, r := range b.Reasons {
			all[i].Reasons = append(all[i].Reasons, karpenterv1.DisruptionReason(r))
		}
		if b.Schedule != "" {
			all[i].Schedule = ptr.To(b.Schedule)
			all[i].Duration = parseFiniteDuration(v1alpha1.Duration(b.Duration))
		}
	}
	return all
}

// toNillableDuration returns Never for an empty duration, too: Karpenter would interpret an empty
// expireAfter as 720h.
func toNillableDuration(d v1alpha1.Duration) karpenterv1.NillableDuration {
	if span := parseFiniteDuration(d); span != nil {
		return karpenterv1.NillableDuration{Duration: &span.Duration}
	}
	return karpenterv1.NillableDuration{}
}

// parseFiniteDuration returns nil for Never. All other durations of an estate can be parsed.
func parseFiniteDuration(d v1alpha1.Duration) *metav1.Duration {
	span, err := time.ParseDuration(string(d))
	if err != nil {
		return nil
	}
	return &metav1.Duration{Duration: span}
}

func buildNodeClassRef(pool *estate.Pool) *karpenterv1.NodeClassReference {
	switch {
	case pool.Class.Ref != nil:
		ref := pool.Class.Ref
		return &karpenterv1.NodeClassReference{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
	case pool.Class.AWS != nil:
		return &karpenterv1.NodeClassReference{Group: awsGroup, Kind: kindEC2NodeClass, Name: pool.Name}
	default:
		return &karpenterv1.NodeClassReference{Group: kwokapis.Group, Kind: "KWOKNodeClass", Name: pool.Name}
	}
}

// buildNodeClass returns the pool's node class of the provider, or nothing if the platform team
// maintains the class.
func buildNodeClass(pool *estate.Pool) []client.Object {
	switch {
	case pool.Class.Ref != nil:
		return nil
	case pool.Class.AWS != nil:
		return []client.Object{buildEC2NodeClass(pool)}
	default:
		return []client.Object{&kwokv1alpha1.KWOKNodeClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: kwokapis.Group + "/v1alpha1", Kind: "KWOKNodeClass"},
			ObjectMeta: metav1.ObjectMeta{Name: pool.Name},
		}}
	}
}
