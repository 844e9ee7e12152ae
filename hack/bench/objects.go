package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/test/sandbox"
)

const (
	// objectsPrefix is the prefix of the tenants' names.
	objectsPrefix = "tenant"
	// bundleName is the name of the ConfigMap that changes, with as many bytes as a company's few certificates.
	bundleName, bundleBytes = "company-ca", 8 << 10
	// mostSpreadSeconds is the target for the time until a change is in all namespaces.
	mostSpreadSeconds = 10
	// spreadTimeout is the time limit for objects to be in all namespaces.
	spreadTimeout = 10 * time.Minute
)

// objectResources are the resources of the declared objects. In a sandbox, only croft and the benchmark
// write them, apart from the ConfigMap with the cluster's CA in each new namespace.
var objectResources = []string{"configmaps", "limitranges", "networkpolicies", "rolebindings"}

// measureObjects compares croft with a bare client that writes the same objects into all tenants' namespaces, and
// changes of them with their targets.
func measureObjects(ctx context.Context, b *bench) (found []comparison, err error) {
	err = withSandbox(ctx, sandbox.Options{Croft: b.croft}, func(c *sandbox.Cluster) (err error) {
		printProgress("objects: a cluster with %d tenants", b.tenants)
		o := &objectsBench{bench: b, cluster: &settledCluster{Cluster: c}, stop: func() error { return nil }}
		defer func() { err = errors.Join(err, o.stop()) }()
		if o.client, err = client.NewWithWatch(removeRateLimit(c.Config), client.Options{Scheme: scheme.New()}); err != nil {
			return err
		}
		if o.namespaces, err = buildNamespaceObjects(b.tenants, renderObjects("first")); err != nil {
			return err
		}
		if err := b.fillSettled(ctx, o.cluster); err != nil {
			return err
		}
		found, err = measureInTurn(ctx, o.measureCreation, o.measureChange, o.measureSecrets, o.measureSteady)
		return err
	})
	return found, err
}

// objectsBench is a cluster with many tenants, which get objects.
type objectsBench struct {
	*bench
	cluster *settledCluster
	client  client.WithWatch
	// namespaces are the objects of each tenant's namespace, as a bare client would write them.
	namespaces [][]*unstructured.Unstructured
	// stop stops croft copy-secrets, if it runs.
	stop func() error
}

// renderObjects returns five manifests for every namespace. The version is in the bundle.
func renderObjects(version string) []runtime.RawExtension {
	bundle, _ := json.Marshal(renderBundle(version)) // a string has no errors
	var all []runtime.RawExtension
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + bundleName + `"},"data":{"ca.crt":` + string(bundle) + `}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"platform"},"data":{"proxy":"http://proxy.example.org:3128","host":"$(domain)","namespace":"$(namespace)"}}`,
		`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"pods"},"spec":{"limits":[{"type":"Pod","max":{"cpu":"8"}}]}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"own"},"spec":{"podSelector":{},"ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"croft.dev/tenant":"$(tenant)"}}}]}]}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"bot"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"croft-viewer"},"subjects":[{"kind":"ServiceAccount","name":"bot","namespace":"$(namespace)"}]}`,
	} {
		all = append(all, runtime.RawExtension{Raw: []byte(text)})
	}
	return all
}

// renderBundle returns a text of bundleBytes that contains the version.
func renderBundle(version string) string {
	return strings.Repeat(version+"\n", bundleBytes/(len(version)+1))
}

// buildNamespaceObjects returns the objects of each tenant's namespace, as croft builds them of manifests.
func buildNamespaceObjects(count int, manifests []runtime.RawExtension) ([][]*unstructured.Unstructured, error) {
	declaration, problems := manifest.Parse("generated", []byte(tenants.Platform+tenants.RenderText(objectsPrefix, count)))
	if len(problems) > 0 {
		return nil, problems
	}
	declaration.Platforms[0].Spec.TenantDefaults.Objects = manifests
	built, problems := estate.Build(declaration)
	if len(problems) > 0 {
		return nil, problems
	}
	all := make([][]*unstructured.Unstructured, len(built.Tenants))
	for i, tenant := range built.Tenants {
		for _, namespace := range tenant.Namespaces {
			objects, err := tenants.ToUnstructured(tenant.BuildObjects(namespace))
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], objects...)
		}
	}
	return all, nil
}

// work is the work of croft from a change until all namespaces have it.
type work struct {
	// Took are the times until each namespace had all objects, in seconds.
	Took []float64 `json:"tookSeconds"`
	// Writes are the requests to write objects of the measured resources, and Requests all of the
	// operator's requests.
	Writes   float64  `json:"writes"`
	Requests requests `json:"operatorRequests"`
}

// last returns the time until all namespaces had all objects.
func (w work) last() float64 { return slices.Max(w.Took) }

// describe describes the work for each of some objects.
func (w work) describe(objects float64) string {
	return fmt.Sprintf("the operator sent %.1f requests for each, including %.1f reads, and dry runs", w.Requests.countAll()/objects, w.Requests["GET"]/objects)
}

// compareWrites compares the number of writes for each object with the target. More than one is an error.
func (w work) compareWrites(objects float64) (comparison, error) {
	c := comparison{
		Name: "  writes for an object", Unit: inRequests, Croft: w.Writes / objects, Alternative: 1,
		Note: "compared with the target; " + w.describe(objects),
	}
	if w.Writes > objects {
		return c, fmt.Errorf("croft should write each object at most once, but sent %g requests to write %g objects", w.Writes, objects)
	}
	return c, nil
}

// awaited are the objects with one name that all namespaces must have.
type awaited struct {
	list      client.ObjectList
	name      string
	isCurrent func(client.Object) bool
}

func isPresent(client.Object) bool { return true }

// follow makes a change and waits until all namespaces have the objects.
func (o *objectsBench) follow(ctx context.Context, resources []string, change func() error, expected ...awaited) (w work, err error) {
	operator, writes, err := o.countRequests(ctx, resources)
	if err != nil {
		return w, err
	}
	took := make([][]float64, len(expected))
	limited, cancel := context.WithTimeout(ctx, spreadTimeout)
	defer cancel()
	group, limited := errgroup.WithContext(limited)
	changed := make(chan time.Time)
	for i, a := range expected {
		// Watches start before the change, and first report the existing objects.
		events, err := o.client.Watch(limited, a.list, client.MatchingFields{"metadata.name": a.name}, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
		if err != nil {
			return w, err
		}
		defer events.Stop()
		group.Go(func() (err error) {
			select {
			case start := <-changed:
				took[i], err = a.wait(limited, events, start, o.tenants)
				return err
			case <-limited.Done():
				return limited.Err()
			}
		})
	}
	start := time.Now()
	if err := change(); err != nil {
		return w, err
	}
	for range expected {
		select {
		case changed <- start:
		case <-limited.Done():
		}
	}
	if err := group.Wait(); err != nil {
		return w, err
	}
	w.Took = slices.Concat(took...)
	moreRequests, moreWrites, err := o.countRequests(ctx, resources)
	w.Requests, w.Writes = moreRequests.subtract(operator), moreWrites-writes
	return w, err
}

// countRequests waits until the operator is at rest. It returns the requests of the operator, and all clients' requests
// to write some resources.
func (o *objectsBench) countRequests(ctx context.Context, resources []string) (operator requests, writes float64, err error) {
	if err := o.cluster.checkOperator(ctx); err != nil {
		return nil, 0, err
	}
	if operator, err = o.cluster.operator.waitIdle(ctx); err != nil {
		return nil, 0, err
	}
	writes, err = countWritesTo(ctx, o.cluster.Config, resources...)
	return operator, writes, err
}

// wait waits until a number of namespaces have a current object. It returns the time since the start for each.
func (a awaited) wait(ctx context.Context, events watch.Interface, start time.Time, namespaces int) ([]float64, error) {
	current := map[string]bool{}
	var took []float64
	for len(current) < namespaces {
		var event watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d namespaces have %s: %w", len(current), namespaces, a.name, ctx.Err())
		case event, open = <-events.ResultChan():
		}
		if !open {
			return nil, fmt.Errorf("the watch of %s ended", a.name)
		}
		if event.Type == watch.Error {
			return nil, apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(client.Object)
		if !ok || event.Type == watch.Deleted || current[object.GetNamespace()] || !a.isCurrent(object) {
			continue
		}
		current[object.GetNamespace()] = true
		took = append(took, time.Since(start).Seconds())
	}
	return took, nil
}

// changeDefaults changes the Platform's defaults for tenants.
func (o *objectsBench) changeDefaults(ctx context.Context, change func(*v1alpha1.TenantDefaults)) error {
	platform := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName}}
	if err := o.client.Get(ctx, client.ObjectKeyFromObject(platform), platform); err != nil {
		return err
	}
	before := platform.DeepCopy()
	change(&platform.Spec.TenantDefaults)
	return o.client.Patch(ctx, platform, client.MergeFrom(before))
}

// measureCreation declares the objects for all tenants. The bare client writes the same objects under other
// names and without croft's labels, so that croft ignores them, once before and once afterwards.
func (o *objectsBench) measureCreation(ctx context.Context) ([]comparison, error) {
	declared := float64(o.tenants * len(o.namespaces[0]))
	memory, _, err := o.cluster.operator.readResident()
	if err != nil {
		return nil, err
	}
	before, err := o.writeBare(ctx, "before")
	if err != nil {
		return nil, err
	}
	printProgress("objects: %g objects by croft", declared)
	croft, err := o.follow(ctx, objectResources,
		func() error {
			return o.changeDefaults(ctx, func(d *v1alpha1.TenantDefaults) { d.Objects = renderObjects("first") })
		},
		awaited{&corev1.ConfigMapList{}, bundleName, isPresent}, awaited{&corev1.ConfigMapList{}, "platform", isPresent}, awaited{&corev1.LimitRangeList{}, "pods", isPresent},
		awaited{&networkingv1.NetworkPolicyList{}, "own", isPresent}, awaited{&rbacv1.RoleBindingList{}, "bot", isPresent})
	if err != nil {
		return nil, err
	}
	after, err := o.writeBare(ctx, "after")
	if err != nil {
		return nil, err
	}
	now, most, err := o.cluster.operator.readResident()
	if err != nil {
		return nil, err
	}
	writes, err := croft.compareWrites(declared)
	return []comparison{{
		Name: fmt.Sprintf("%g objects of %d tenants", declared, o.tenants), Unit: inSeconds, Raw: map[string]any{"croft": croft, "before": before, "after": after},
		Croft: croft.last(), Alternative: samples.Mean([]float64{slices.Max(before), slices.Max(after)}),
		Note: fmt.Sprintf("compared with %d workers that write the same objects: %.1f s before, %.1f s afterwards", bareWorkers, slices.Max(before), slices.Max(after)),
	}, writes, {
		Name: "operator's memory, with the objects", Unit: inBytes, Croft: now, Alternative: memory,
		Note: fmt.Sprintf("compared with the same tenants without objects; %s per object; %s at most", machine.FormatBytes((now-memory)/declared), machine.FormatBytes(most)),
	}}, err
}

// writeBare writes the objects under other names.
func (o *objectsBench) writeBare(ctx context.Context, suffix string) ([]float64, error) {
	printProgress("objects: the same by a bare client, %s", suffix)
	all := make([][]*unstructured.Unstructured, len(o.namespaces))
	for i, objects := range o.namespaces {
		for _, object := range objects {
			renamed := object.DeepCopy()
			renamed.SetName(object.GetName() + "-" + suffix)
			all[i] = append(all[i], renamed)
		}
	}
	return writeBare(ctx, o.client, all)
}

// awaitBundle is for the ConfigMaps with a version of the bundle.
func awaitBundle(version string) awaited {
	bundle := renderBundle(version)
	return awaited{&corev1.ConfigMapList{}, bundleName, func(object client.Object) bool {
		config, ok := object.(*corev1.ConfigMap)
		return ok && config.Data["ca.crt"] == bundle
	}}
}

// measureChange changes one declared object.
func (o *objectsBench) measureChange(ctx context.Context) ([]comparison, error) {
	printProgress("objects: a changed ConfigMap in all namespaces")
	w, err := o.follow(ctx, objectResources,
		func() error {
			return o.changeDefaults(ctx, func(d *v1alpha1.TenantDefaults) { d.Objects = renderObjects("second") })
		},
		awaitBundle("second"))
	if err != nil {
		return nil, err
	}
	writes, err := w.compareWrites(float64(o.tenants))
	return []comparison{w.compareSpread(fmt.Sprintf("a changed object in %d namespaces", o.tenants)), writes}, err
}

// compareSpread compares the time until a change was in all namespaces with the target.
func (w work) compareSpread(name string) comparison {
	return comparison{
		Name: name, Unit: inSeconds, Croft: w.last(), Alternative: mostSpreadSeconds, Raw: w,
		Note: fmt.Sprintf("compared with the target; in half of the namespaces after %.2f s", samples.Median(w.Took)),
	}
}

// measureSteady counts writes while the operator and croft copy-secrets run and nothing changes.
func (o *objectsBench) measureSteady(ctx context.Context) ([]comparison, error) {
	before, err := countWritesTo(ctx, o.cluster.Config, "secrets")
	if err != nil {
		return nil, err
	}
	found, err := o.observeSteady(ctx, o.cluster)
	if err != nil {
		return found, err
	}
	after, err := countWritesTo(ctx, o.cluster.Config, "secrets")
	if err != nil {
		return found, err
	}
	found = append(found, comparison{
		Name: "  of copies of Secrets", Unit: inWrites, Croft: after - before,
		Note: "by croft copy-secrets in the same time; it applies each copy again every half an hour, which changes nothing",
	})
	if after > before {
		return found, fmt.Errorf("in steady state no Secret should be written, but %g were", after-before)
	}
	return found, nil
}
