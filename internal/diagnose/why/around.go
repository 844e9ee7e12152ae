package why

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Around contains the objects around a Target that is neither a pod, a workload nor a node.
// Missing objects are nil, or have no entry.
type Around struct {
	// LastJob is the newest Job of a CronJob; Snapshot.Pods are its pods.
	LastJob *batchv1.Job
	// StorageClass is a claim's class, and Users the pods that use the claim.
	StorageClass *storagev1.StorageClass
	Users        []string
	// IngressClass is an Ingress' class. Services are its backends, and Ready the numbers
	// of their ready endpoints, by name.
	IngressClass *networkingv1.IngressClass
	Services     map[string]*corev1.Service
	Ready        map[string]int
	// Tenant is the tenant in a namespace's label.
	Tenant *v1alpha1.Tenant
	// Remainders are the contents of namespaces that are being deleted: the Target itself,
	// or the namespaces of a Tenant.
	Remainders []Remainder
	// Attachments are volumes attached to nodes, if a node or volume is being deleted.
	Attachments []storagev1.VolumeAttachment
	// Source is the GitRepository, OCIRepository or Bucket of a Kustomization.
	Source *unstructured.Unstructured
	// Issuance contains the objects of a Certificate's issuance.
	Issuance Issuance
}

// listGatherers maps kinds with their own chains to the functions that read their objects.
func (g *gatherer) listGatherers() map[string]func(context.Context, client.Object) {
	return map[string]func(context.Context, client.Object){
		"cronjob":               g.gatherCronJob,
		"persistentvolumeclaim": g.gatherVolumeClaim,
		"ingress":               g.gatherIngress,
		"namespace":             g.gatherNamespace,
		"kustomization":         g.gatherKustomization,
		"certificate":           g.gatherCertificate,
		"gitrepository":         gatherNothing,
		"ocirepository":         gatherNothing,
		"tenant":                gatherNothing,
		"persistentvolume":      gatherNothing,
	}
}

func gatherNothing(context.Context, client.Object) {}

func (g *gatherer) gatherCronJob(ctx context.Context, o client.Object) {
	g.gatherEvents(ctx, g.Target.Namespace)
	var jobs batchv1.JobList
	g.listObjects(ctx, "job", &jobs, client.InNamespace(g.Target.Namespace))
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if metav1.IsControlledBy(job, o) && (g.Around.LastJob == nil || job.CreationTimestamp.After(g.Around.LastJob.CreationTimestamp.Time)) {
			g.Around.LastJob = job
		}
	}
	if g.Around.LastJob != nil {
		g.gatherNamespaced(ctx, g.Around.LastJob)
	}
}

func (g *gatherer) gatherVolumeClaim(ctx context.Context, o client.Object) {
	claim, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok {
		return
	}
	g.gatherEvents(ctx, claim.Namespace)
	if name := claim.Spec.StorageClassName; name != nil && *name != "" {
		var class storagev1.StorageClass
		if g.getObject(ctx, "storageclass", "", *name, &class) {
			g.Around.StorageClass = &class
		}
	}
	var pods corev1.PodList
	g.listObjects(ctx, "pod", &pods, client.InNamespace(claim.Namespace))
	for i := range pods.Items {
		for _, v := range pods.Items[i].Spec.Volumes {
			if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name {
				g.Around.Users = append(g.Around.Users, pods.Items[i].Name)
			}
		}
	}
}

func (g *gatherer) gatherIngress(ctx context.Context, o client.Object) {
	ingress, ok := o.(*networkingv1.Ingress)
	if !ok {
		return
	}
	if name := ingress.Spec.IngressClassName; name != nil {
		var class networkingv1.IngressClass
		if g.getObject(ctx, "ingressclass", "", *name, &class) {
			g.Around.IngressClass = &class
		}
	}
	g.Around.Services, g.Around.Ready = map[string]*corev1.Service{}, map[string]int{}
	for _, b := range listBackends(ingress) {
		g.gatherService(ctx, ingress.Namespace, b.Name)
	}
}

func (g *gatherer) gatherService(ctx context.Context, namespace, name string) {
	var service corev1.Service
	if !g.getObject(ctx, "service", namespace, name, &service) {
		return
	}
	g.Around.Services[name] = &service
	var slices discoveryv1.EndpointSliceList
	g.listObjects(ctx, "endpointslice", &slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name})
	ready := 0
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready++
			}
		}
	}
	g.Around.Ready[name] = ready
}

func (g *gatherer) gatherNamespace(ctx context.Context, o client.Object) {
	name := o.GetLabels()[v1alpha1.TenantLabel]
	if name == "" {
		return
	}
	var tenant v1alpha1.Tenant
	if g.getObject(ctx, "tenant", "", name, &tenant) {
		g.Around.Tenant = &tenant
	}
}
