// Package enforcement checks with the API servers whether the walls are enforced for a
// tenant's pods. Policies take effect about a second after they are written, and each API
// server reads a tenant's rules from its own cache.
package enforcement

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/nodes"
)

// Probe creates pods in dry runs. The pods name the expected engine, because both engines
// are active during a change.
type Probe struct {
	client  client.Client
	servers *Servers
}

// New returns a Probe.
func New(c client.Client, servers *Servers) *Probe { return &Probe{c, servers} }

// Check returns the reason and the message if not every API server is known to place pods,
// and to refuse misplaced pods, in every namespace of the tenant; "" if all do.
func (p *Probe) Check(ctx context.Context, platform *estate.Platform, tenant *estate.Tenant) (reason, why string) {
	for _, namespace := range tenant.Namespaces {
		why := p.explainUnplaced(ctx, platform, tenant, namespace)
		if why == "" {
			why = explainUnrefused(ctx, p.client, platform, tenant, namespace)
		}
		if why != "" {
			return v1alpha1.ReasonNotEnforcedYet, "namespace " + namespace + ": " + why
		}
	}
	if why := p.servers.confirm(ctx, platform, tenant); why != "" {
		return v1alpha1.ReasonAPIServerBehind, why
	}
	return "", ""
}

// explainUnrefused returns why the check of the placement does not refuse a misplaced pod.
func explainUnrefused(ctx context.Context, c client.Client, platform *estate.Platform, tenant *estate.Tenant, namespace string) string {
	stray := buildPod(platform, tenant, namespace)
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	stray.Spec.Tolerations = []corev1.Toleration{everything}
	err := c.Create(ctx, stray, client.DryRunAll)
	if err == nil && !slices.Contains(stray.Spec.Tolerations, everything) {
		return explainUnchecked(ctx, c, platform, tenant, namespace)
	}
	switch {
	case err == nil:
		return "a dry-run pod that tolerates every taint was admitted: the check of the placement has not taken effect"
	case !attack.ByPolicy(admissionpolicy.PodsPolicy, nodes.TolerationsRule).IsRefusal(err):
		return explainOtherError(err, "its placement")
	default:
		return ""
	}
}

// explainUnchecked tests another rule of the same policy if another owner's mutator removes the
// value that the first rule would refuse. Mutators that placed the namespace's pods before
// its adoption do so.
func explainUnchecked(ctx context.Context, c client.Client, platform *estate.Platform, tenant *estate.Tenant, namespace string) string {
	stray := buildPod(platform, tenant, namespace)
	stray.Spec.SchedulerName = "croft-probe"
	err := c.Create(ctx, stray, client.DryRunAll)
	switch {
	case err == nil:
		return "a dry-run pod that requests another scheduler was admitted: the check of the placement has not taken effect"
	case !attack.ByPolicy(admissionpolicy.PodsPolicy, nodes.SchedulerRule).IsRefusal(err):
		return explainOtherError(err, "its scheduler")
	default:
		return ""
	}
}

// explainOtherError explains an error of a dry-run pod other than the refusal for the expected reason. An API server
// may freeze after it has reported its version of the namespace.
func explainOtherError(err error, expected string) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Sprintf("the API server does not answer the request for a dry-run pod: %v", err)
	}
	return fmt.Sprintf("a dry-run pod was refused for another reason than %s: %v", expected, err)
}

// explainUnplaced returns why an ordinary pod is not placed on the tenant's pool, or "".
func (p *Probe) explainUnplaced(ctx context.Context, platform *estate.Platform, tenant *estate.Tenant, namespace string) string {
	pod := buildPod(platform, tenant, namespace)
	err := p.client.Create(ctx, pod, client.DryRunAll)
	switch {
	// Quota is checked last: a pod that it refuses has passed every policy.
	case err != nil && attack.ByQuota.IsRefusal(err):
		return ""
	case err != nil:
		return fmt.Sprintf("a dry-run pod was refused: %v", err)
	}
	pool := pod.Spec.NodeSelector[platform.NodePoolKey]
	switch {
	case pool == "":
		return "a dry-run pod was not placed: " + string(platform.Placement) + " placement has not taken effect"
	case !slices.Contains(tenant.Pools, pool):
		return fmt.Sprintf("a dry-run pod was placed on pool %s, which is not the tenant's", pool)
	default:
		return ""
	}
}

// buildPod returns the smallest and most restricted pod possible, so that neither limits nor the
// strictest Pod Security level refuse it.
func buildPod(platform *estate.Platform, tenant *estate.Tenant, namespace string) *corev1.Pod {
	resources := minimizeResources(tenant)
	spec := attack.NewPodSpec()
	spec.Containers[0].Image = attack.ChooseImage(&tenant.Allowances)
	spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources, Limits: resources}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "croft-probe-",
			Labels: map[string]string{v1alpha1.ProbeLabel: string(platform.Placement)},
		},
		Spec: spec,
	}
}

// minimizeResources returns minimal resources, or the minimum that the tenant's limits permit.
func minimizeResources(tenant *estate.Tenant) corev1.ResourceList {
	least := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1m"),
		corev1.ResourceMemory: resource.MustParse("1Mi"),
	}
	if tenant.Limits == nil {
		return least
	}
	for name, quantity := range tenant.Limits.Min {
		if have, ok := least[name]; !ok || quantity.Cmp(have) > 0 {
			least[name] = quantity
		}
	}
	return least
}
