package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/events"
)

// explainVolumeClaim explains a waiting PersistentVolumeClaim.
func explainVolumeClaim(s *Snapshot) Story {
	story := Story{Target: s.Target}
	claim, ok := s.Object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return conclude(story)
	}
	object := s.Target.String()
	switch claim.Status.Phase {
	case corev1.ClaimBound:
		story.Summary = "is bound to volume " + claim.Spec.VolumeName + ", and nothing is wrong"
	case corev1.ClaimLost:
		story.Summary = "has lost its volume"
		story.Steps = []Step{newBadStep(LinkStorage, object, "volume "+claim.Spec.VolumeName+" no longer exists, and neither does its data")}
	case corev1.ClaimPending, "":
		story.Summary = "is not bound"
		story.Steps = explainUnbound(s, claim)
	}
	return conclude(story)
}

// explainVolume explains a PersistentVolume that no claim can use.
func explainVolume(s *Snapshot) Story {
	story := Story{Target: s.Target}
	volume, ok := s.Object.(*corev1.PersistentVolume)
	if !ok {
		return conclude(story)
	}
	object := s.Target.String()
	switch volume.Status.Phase {
	case corev1.VolumeBound:
		story.Summary = "is bound to claim " + volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name + ", and nothing is wrong"
	case corev1.VolumeReleased:
		story.Summary = "is released"
		story.Steps = []Step{newWaitingStep(LinkStorage, object, "its claim was deleted, and persistentVolumeReclaimPolicy is "+string(volume.Spec.PersistentVolumeReclaimPolicy)+": with Retain it keeps its data, and no claim can use it until spec.claimRef is removed")}
	case corev1.VolumeFailed:
		story.Summary = "could not be reclaimed"
		story.Steps = []Step{newBadStep(LinkStorage, object, strings.TrimSpace(volume.Status.Reason+" "+volume.Status.Message))}
	case corev1.VolumeAvailable, corev1.VolumePending:
		story.Summary = "is not bound to a claim"
		story.Steps = []Step{newWaitingStep(LinkStorage, object, "no claim requests its class, size and access modes")}
	}
	return conclude(story)
}

func explainUnbound(s *Snapshot, claim *corev1.PersistentVolumeClaim) []Step {
	object, name := s.Target.String(), ptr.Deref(claim.Spec.StorageClassName, "")
	class := s.Around.StorageClass
	switch {
	case claim.Spec.StorageClassName == nil:
		return []Step{newBadStep(LinkStorage, object, "it names no StorageClass, and the cluster had no default one when it was created: name one")}
	case name == "":
		return []Step{newWaitingStep(LinkStorage, object, `its storageClassName is "": no volume is made for it, and it waits for one that somebody makes`)}
	case class == nil && s.isHidden("storageclass"):
		return append(findProvisioningFailure(s, claim), newHiddenStep(LinkStorage, "storageclass/"+name, "croft why "+object+formatNamespaceFlag(s.Target)))
	case class == nil:
		return []Step{newBadStep(LinkStorage, "storageclass/"+name, "there is no StorageClass "+name)}
	}
	if failed := findProvisioningFailure(s, claim); len(failed) > 0 {
		return failed
	}
	if ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) != storagev1.VolumeBindingWaitForFirstConsumer {
		return []Step{newWaitingStep(LinkStorage, object, "the provisioner "+class.Provisioner+" has not created its volume yet, and reports nothing")}
	}
	if len(s.Around.Users) == 0 {
		return []Step{newWaitingStep(LinkStorage, object, "its StorageClass creates a volume when a pod uses the claim (WaitForFirstConsumer), and no pod uses it")}
	}
	return []Step{newWaitingStep(LinkStorage, object, fmt.Sprintf("its volume is created when a pod that uses it has a node: `croft why pod/%s%s`", s.Around.Users[0], formatNamespaceFlag(s.Target)))}
}

// findProvisioningFailure returns the last refusal of the claim's provisioner. An external provisioner
// writes events as NAME_HOST_UID, which does not prove the author: the text therefore names
// it.
func findProvisioningFailure(s *Snapshot, claim *corev1.PersistentVolumeClaim) []Step {
	for _, e := range s.findUnprovenEvents("PersistentVolumeClaim", claim.Name) {
		if e.Reason != "ProvisioningFailed" {
			continue
		}
		text := e.Message
		if !events.IsWrittenBy(&e, "persistentvolume-controller") {
			text += " (reported by " + cmp.Or(e.ReportingController, e.Source.Component) + ")"
		}
		return []Step{newBadStep(LinkStorage, s.Target.String(), text)}
	}
	return nil
}

// listBackends returns the Services that an Ingress names, without duplicates.
func listBackends(ingress *networkingv1.Ingress) []networkingv1.IngressServiceBackend {
	var all []networkingv1.IngressServiceBackend
	add := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil && !slices.Contains(all, *b.Service) {
			all = append(all, *b.Service)
		}
	}
	add(ingress.Spec.DefaultBackend)
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			add(&rule.HTTP.Paths[i].Backend)
		}
	}
	return all
}

// explainIngress explains an Ingress, from the class to the endpoints.
func explainIngress(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "has problems"}
	ingress, ok := s.Object.(*networkingv1.Ingress)
	if !ok {
		return conclude(story)
	}
	object := s.Target.String()
	class := ptr.Deref(ingress.Spec.IngressClassName, "")
	switch {
	case class != "" && s.Around.IngressClass == nil && s.isHidden("ingressclass"):
		story.Steps = append(story.Steps, newHiddenStep(LinkIngress, "ingressclass/"+class, "croft why "+object+formatNamespaceFlag(s.Target)))
	case class != "" && s.Around.IngressClass == nil:
		story.Steps = append(story.Steps, newBadStep(LinkIngress, "ingressclass/"+class, "there is no IngressClass "+class+": no controller serves this Ingress"))
	case class == "" && ingress.Annotations["kubernetes.io/ingress.class"] == "":
		story.Steps = append(story.Steps, newWaitingStep(LinkIngress, object, "it names no ingressClassName: only a controller that accepts Ingresses without one serves it"))
	}
	for _, b := range listBackends(ingress) {
		story.Steps = append(story.Steps, evaluateBackend(s, b)...)
	}
	if len(ingress.Status.LoadBalancer.Ingress) == 0 {
		story.Steps = append(story.Steps, newWaitingStep(LinkIngress, object, "no controller has written an address into its status"))
	}
	return concludeHealthy(story, "its class and its Services exist, and the Services have ready endpoints")
}

func evaluateBackend(s *Snapshot, b networkingv1.IngressServiceBackend) []Step {
	object := "service/" + b.Name
	service := s.Around.Services[b.Name]
	switch {
	case service == nil && s.isHidden("service"):
		return []Step{newHiddenStep(LinkService, object, "croft why "+s.Target.String()+formatNamespaceFlag(s.Target))}
	case service == nil:
		return []Step{newBadStep(LinkService, object, "there is no Service "+b.Name+" in namespace "+s.Target.Namespace)}
	}
	hasPort := slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return b.Port.Name != "" && p.Name == b.Port.Name || b.Port.Name == "" && p.Port == b.Port.Number
	})
	switch {
	case !hasPort:
		return []Step{newBadStep(LinkService, object, "it has no port "+formatPort(b.Port))}
	case service.Spec.Type == corev1.ServiceTypeExternalName || s.isHidden("endpointslice"):
		return nil
	case s.Around.Ready[b.Name] == 0:
		return []Step{newBadStep(LinkService, object, "it has no ready endpoint: no pod with the labels {"+metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: service.Spec.Selector})+"} is ready")}
	default:
		return []Step{newGoodStep(LinkService, object, fmt.Sprintf("it has %d ready endpoints", s.Around.Ready[b.Name]))}
	}
}

func formatPort(p networkingv1.ServiceBackendPort) string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprint(p.Number)
}

// explainNamespace names the owner of a namespace, and the obstacles to its deletion.
func explainNamespace(s *Snapshot) Story {
	story := Story{Target: s.Target}
	namespace, ok := s.Object.(*corev1.Namespace)
	if !ok {
		return conclude(story)
	}
	name := namespace.Labels[v1alpha1.TenantLabel]
	tenant := s.Around.Tenant
	switch {
	case name == "" && namespace.Annotations[v1alpha1.AdoptAnnotation] != "":
		story.Summary = "belongs to no tenant, and tenant " + namespace.Annotations[v1alpha1.AdoptAnnotation] + " may adopt it"
	case name == "":
		story.Summary = "belongs to no tenant"
	case tenant == nil && s.isHidden("tenant"):
		story.Summary = "belongs to tenant " + name
	case tenant == nil:
		story.Summary = "was retained from tenant " + name + ", which was deleted: its people have no access"
	case !slices.Contains(tenant.Spec.Namespaces, namespace.Name) && (len(tenant.Spec.Namespaces) > 0 || tenant.Name != namespace.Name):
		story.Summary = "was retained from tenant " + name + ", which no longer declares it"
	default:
		story.Summary = "belongs to tenant " + name
		story.Steps = dropGood(evaluateTenant(tenant))
	}
	return conclude(story)
}

// explainTenant reports the operator's conditions of a tenant.
func explainTenant(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "is not Ready"}
	tenant, ok := s.Object.(*v1alpha1.Tenant)
	if !ok {
		return conclude(story)
	}
	story.Steps = evaluateTenant(tenant)
	return concludeHealthy(story, "is Ready, as the operator last observed it")
}

func evaluateTenant(tenant *v1alpha1.Tenant) []Step {
	return evaluateStatus(LinkTenant, "tenant/"+tenant.Name, tenant.Generation, &tenant.Status.Status)
}

// evaluateStatus returns the conditions that croft's operator writes, except for
// conditions that are True.
func evaluateStatus(link Link, object string, generation int64, status *v1alpha1.Status) []Step {
	if status.ObservedGeneration != generation {
		return []Step{newWaitingStep(link, object, "the operator has not observed its latest declaration: does it run? (`croft doctor`)")}
	}
	var steps []Step
	for _, c := range status.Conditions {
		// Ready summarizes the other conditions.
		if c.Status == metav1.ConditionTrue || c.Type == v1alpha1.ConditionReady {
			continue
		}
		text := c.Reason + ": " + c.Message
		if c.Reason == v1alpha1.ReasonNotEnforcedYet || c.Reason == v1alpha1.ReasonAPIServerBehind {
			steps = append(steps, newWaitingStep(link, object, text))
			continue
		}
		steps = append(steps, newBadStep(link, object, c.Type+"="+string(c.Status)+" "+text))
	}
	if len(steps) == 0 {
		steps = []Step{newGoodStep(link, object, "it is Ready")}
	}
	return steps
}

// healthy are conditions that are True for a healthy object of any kind.
var healthy = []string{"Ready", "Available", "Accepted", "Programmed", "Established", "Healthy", "Synced", "AbleToScale", "ScalingActive"}

// explainOther explains an object of a kind that croft does not know, by its conditions.
func explainOther(s *Snapshot) Story {
	story := Story{Target: s.Target, Summary: "has problems"}
	o, ok := s.Object.(*unstructured.Unstructured)
	if !ok {
		return conclude(story)
	}
	for _, c := range listConditions(o) {
		if slices.Contains(healthy, c.kind) && c.status != string(metav1.ConditionTrue) || c.kind == "Stalled" && c.status == string(metav1.ConditionTrue) {
			story.Steps = append(story.Steps, newBadStep(LinkObject, s.Target.String(), c.String()))
		}
	}
	return concludeHealthy(story, "its kind is unknown to croft; its conditions report nothing wrong. `croft why pod/NAME` explains its pods, if it has any")
}
