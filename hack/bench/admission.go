package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

const (
	// admissionPairs is the number of pods created on each side at each size.
	admissionPairs = 500
	// plainNamespace belongs to no tenant, so no policy matches it.
	plainNamespace = "plain"
	// countedNamespace is a namespace outside of tenants that has a ResourceQuota like a
	// tenant's: storing an object costs one more write wherever there is a quota.
	countedNamespace = "counted"
	// manyContainers is the number of containers of a very expensive pod.
	manyContainers = 30
)

// admissionSizes are the numbers of tenants.
var admissionSizes = []int{1, 100, 1000}

// admissionSamples are the durations of the creation of each pod, in seconds.
type admissionSamples struct {
	Tenants     int       `json:"tenants"`
	Pod         string    `json:"what"`
	Croft       []float64 `json:"croftSeconds"`
	Alternative []float64 `json:"besideSeconds"`
}

// measureAdmission creates pods alternately in tenants' namespaces and in a namespace that no
// policy matches, while the number of tenants grows. No process of croft runs: only the API
// server enforces the walls.
func measureAdmission(ctx context.Context, _ *bench) ([]comparison, error) {
	var found []comparison
	err := withSandbox(ctx, sandbox.Options{Components: sandbox.WithControllers}, func(c *sandbox.Cluster) error {
		a, err := newAdmission(ctx, c)
		if err != nil {
			return err
		}
		for _, tenants := range admissionSizes {
			printProgress("admission: %d tenants", tenants)
			if err := a.addTenants(ctx, tenants); err != nil {
				return err
			}
			for _, k := range listPodKinds(tenants == admissionSizes[len(admissionSizes)-1]) {
				samples, err := a.measurePods(ctx, k)
				if err != nil {
					return fmt.Errorf("%s, %d tenants: %w", k.description, tenants, err)
				}
				samples.Tenants, samples.Pod = tenants, k.description
				found = append(found, samples.makeComparison(k.alternative))
			}
		}
		return nil
	})
	return found, err
}

// podKind describes how pods are created, and with which namespace they are compared. The
// policies measure the size, in bytes, of pods that users create. They do not measure a
// controller's pods, which come from templates whose size was measured.
type podKind struct {
	description string
	pod         corev1.PodSpec
	kept        bool
	byHand      bool
	pairs       int
	alternative string
}

func listPodKinds(all bool) []podKind {
	kinds := []podKind{{"create a pod, dry run", attack.NewPodSpec(), false, false, admissionPairs, plainNamespace}}
	if all {
		many := fmt.Sprintf("create a pod of %d containers, dry run", manyContainers)
		kinds = append(kinds,
			podKind{"  by hand", attack.NewPodSpec(), false, true, admissionPairs, plainNamespace},
			podKind{"create a pod, stored", attack.NewPodSpec(), true, false, admissionPairs, countedNamespace},
			podKind{"  the same", attack.NewPodSpec(), true, false, admissionPairs, plainNamespace},
			podKind{many, buildLargePod(), false, false, admissionPairs / 2, plainNamespace},
			podKind{"  by hand", buildLargePod(), false, true, admissionPairs / 2, plainNamespace})
	}
	return kinds
}

func (s *admissionSamples) makeComparison(reference string) comparison {
	what := "compared with a namespace without rules"
	if reference == countedNamespace {
		what = "compared with a namespace with the same ResourceQuota only"
	}
	croft, plain := samples.Median(s.Croft), samples.Median(s.Alternative)
	return comparison{
		Name: fmt.Sprintf("%s, %d tenants", s.Pod, s.Tenants), Unit: inSeconds, Croft: croft, Alternative: plain, Raw: s,
		Note: fmt.Sprintf("all rules on, %s; medians of %d pairs in turns: %+.2f ms; p99 %.1f ms instead of %.1f ms",
			what, len(s.Croft), (croft-plain)*1000, samples.Percentile(99, s.Croft)*1000, samples.Percentile(99, s.Alternative)*1000),
	}
}

// buildLargePod returns a pod of many containers, each with the fields of a realistic one.
func buildLargePod() corev1.PodSpec {
	spec := attack.NewPodSpec()
	first := spec.Containers[0]
	spec.Containers = nil
	for i := range manyContainers {
		c := *first.DeepCopy()
		c.Name = fmt.Sprintf("c%d", i)
		for v := range 20 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", v), Value: "value"})
		}
		spec.Containers = append(spec.Containers, c)
	}
	for i := range manyContainers {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: fmt.Sprintf("node.kubernetes.io/t%d", i), Operator: corev1.TolerationOpExists})
	}
	return spec
}

// admission is a cluster with a growing number of tenants.
type admission struct {
	client client.Client
	// controller creates pods as the controller that creates most pods.
	controller client.Client
	namespaces []string
}

func newAdmission(ctx context.Context, c *sandbox.Cluster) (*admission, error) {
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	admin, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, err
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:replicaset-controller"}
	controller, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, err
	}
	e, err := tenants.Build(tenants.Platform)
	if err != nil {
		return nil, err
	}
	if _, err := apply.New(admin).Apply(ctx, wall.PlatformObjects(&e.Platform)...); err != nil {
		return nil, err
	}
	for _, name := range []string{plainNamespace, countedNamespace} {
		if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, err
		}
	}
	return &admission{client: admin, controller: controller}, admin.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: countedNamespace, Name: "counted"},
		Spec:       corev1.ResourceQuotaSpec{Hard: e.Platform.TenantDefaults.Quota},
	})
}

// addTenants adds tenants up to the given number, and waits until pods are admitted to the last of
// them and placed, so that the policies must have read its rules.
func (a *admission) addTenants(ctx context.Context, count int) error {
	e, err := tenants.Build(tenants.Platform + tenants.RenderText("t", count))
	if err != nil {
		return err
	}
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(bareWorkers)
	for _, tenant := range e.Tenants[len(a.namespaces):] {
		a.namespaces = append(a.namespaces, tenant.Namespaces[0])
		group.Go(func() error {
			_, err := apply.New(a.client).Apply(writing, wall.TenantObjects(&e.Platform, tenant)...)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, namespace := range append(a.namespaces, plainNamespace, countedNamespace) {
		var last error
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			pod := a.buildPod(namespace, attack.NewPodSpec())
			last = a.client.Create(ctx, pod, client.DryRunAll)
			return last == nil && (namespace == plainNamespace || namespace == countedNamespace || len(pod.Spec.NodeSelector) > 0), nil
		})
		if err != nil {
			return fmt.Errorf("pods in namespace %s: %w: %w", namespace, err, last)
		}
	}
	return nil
}

func (a *admission) buildPod(namespace string, spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-"}, Spec: *spec.DeepCopy()}
}

// measurePods creates pods alternately on both sides, so that both run under the same load.
func (a *admission) measurePods(ctx context.Context, k podKind) (*admissionSamples, error) {
	var samples admissionSamples
	create := func(namespace string) (float64, error) {
		pod := a.buildPod(namespace, k.pod)
		var options []client.CreateOption
		if !k.kept {
			options = append(options, client.DryRunAll)
		}
		by := a.controller
		if k.byHand {
			by = a.client
		}
		took, err := timeSeconds(func() error { return by.Create(ctx, pod, options...) })
		if err == nil && k.kept {
			err = a.client.Delete(ctx, pod, client.GracePeriodSeconds(0))
		}
		return took, err
	}
	for i := range k.pairs {
		for _, side := range []struct {
			namespace string
			samples   *[]float64
		}{{a.namespaces[i*7919%len(a.namespaces)], &samples.Croft}, {k.alternative, &samples.Alternative}} {
			took, err := create(side.namespace)
			if err != nil {
				return nil, err
			}
			*side.samples = append(*side.samples, took)
		}
	}
	return &samples, nil
}
