package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/prove/flood"
)

// Floods measures the effect of the load of one scratch tenant on the work of another. Both have the default limits.
type Floods struct {
	*Scratch
	image string
}

// NewFloods creates two tenants on a pool of the cluster. image is croft's image.
func NewFloods(platform v1alpha1.Platform, pool, image string) (*Floods, error) {
	tenant := func(t *v1alpha1.TenantSpec, _ string) {
		allowPods(t, pool)
		t.Quota = nil // the default
	}
	s, err := newScratch(platform, tenant, tenant)
	return &Floods{s, image}, err
}

// mostWritten limits the bytes that a flood writes in changes of large objects, in addition to the tenant's quota. It is
// a small part of etcd's default size of 2 GiB.
const mostWritten = 128 << 20

// Measure builds the tenants, measures the victim during each flood, and deletes the tenants again, even if the
// context ends early. It stops if a request of the victim fails, or if the API server's p99 is above stopAbove.
func (f *Floods) Measure(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, floods []flood.Flood,
	phase, stopAbove time.Duration, report func(format string, args ...any)) (results []flood.Result, err error) {
	runner, err := f.NewRunner(config, scheme)
	if err != nil {
		return nil, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		err = errors.Join(err, f.Remove(ending, runner.admin))
	}()
	if _, err := apply.New(runner.admin).Apply(ctx, f.markObjects(ctx)...); err != nil {
		return nil, fmt.Errorf("creating the scratch tenants: %w", err)
	}
	if err := f.awaitAdmission(ctx, runner); err != nil {
		return nil, fmt.Errorf("the scratch tenants' pods are not admitted: %w", err)
	}
	report("starting pods of the victim")
	n, err := flood.New(ctx, config, flood.Options{
		Victim: f.newTeam(f.target), Neighbour: f.newTeam(f.attacker), Phase: phase, StopAbove: stopAbove,
		MostBytes: int(*f.attacker.Allowances.MaxObjectBytes) - flood.Metadata, MostWritten: mostWritten, Report: report,
	})
	if err != nil {
		return nil, err
	}
	return n.Measure(ctx, floods)
}

func (f *Floods) newTeam(t *estate.Tenant) flood.Team {
	return flood.Team{Namespace: t.Namespaces[0], Group: t.Access[0].Group, Place: func(pod *corev1.PodSpec) {
		pod.Containers = []corev1.Container{buildContainer(f.image, "serve", "packets", "serve")}
	}}
}

// Needs returns the rights needed to cause floods, in addition to the rights of a platform admin.
func (f *Floods) Needs() []Right {
	return append(f.Scratch.Needs(), Right{Verb: "impersonate", Resource: "serviceaccounts"}, Right{Verb: "deletecollection", Resource: "configmaps"})
}
