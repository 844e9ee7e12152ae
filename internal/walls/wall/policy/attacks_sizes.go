package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

const (
	// etcdTakes is the maximum size of an object in etcd, without its envelope.
	etcdTakes = 1 << 20
	// annotationsTake is less than the 256 KiB that Kubernetes allows for an object's
	// annotations.
	annotationsTake = 200 << 10
	helm            = corev1.SecretType("helm.sh/release.v1")
)

// buildSizeAttacks are objects that are so large that a quota on their number would not limit a tenant's
// space.
func (s scene) buildSizeAttacks() []attack.Attack {
	data, releases, others := *s.attacker.Allowances.MaxObjectBytes, *s.attacker.Allowances.MaxHelmReleaseBytes, *s.attacker.Allowances.MaxOtherObjectBytes
	long := func(bytes int64) string { return strings.Repeat("x", int(bytes)) }
	config := func(name string, bytes int64) *corev1.ConfigMap {
		return &corev1.ConfigMap{TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: s.makeMeta(name), Data: map[string]string{"file": long(bytes)}}
	}
	secret := func(name string, kind corev1.SecretType, bytes int64) *corev1.Secret {
		return &corev1.Secret{TypeMeta: makeCoreMeta("Secret"), ObjectMeta: s.makeMeta(name), Type: kind, Data: map[string][]byte{"release": []byte(long(bytes))}}
	}
	annotated := func(o client.Object, bytes int64) client.Object {
		o.SetAnnotations(map[string]string{"note": long(bytes)})
		return o
	}
	account := func(name string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{TypeMeta: makeCoreMeta("ServiceAccount"), ObjectMeta: s.makeMeta(name)}
	}
	lease := &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"}, ObjectMeta: s.makeMeta("fill-a-lease"),
	}
	lease.Spec.HolderIdentity = ptr.To(long(estate.MaxNoteBytes))
	event := func(name string, bytes int64) *corev1.Event {
		return &corev1.Event{
			TypeMeta: makeCoreMeta("Event"), ObjectMeta: s.makeMeta(name), Reason: "Tried", Type: corev1.EventTypeNormal, Message: long(bytes),
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.own, Name: "any"},
		}
	}
	newEvent := &eventsv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"}, ObjectMeta: s.makeMeta("fill-a-new-event"),
		EventTime: metav1.NowMicro(), ReportingController: "example.com/any", ReportingInstance: "any", Action: "Tried", Reason: "Tried", Type: corev1.EventTypeNormal,
		Regarding: event("", 0).InvolvedObject,
	}
	revision := &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"}, ObjectMeta: s.makeMeta("fill-a-revision"),
		Revision: 1, Data: runtime.RawExtension{Raw: []byte(`{"file":"` + long(others) + `"}`)},
	}
	env := func(spec *corev1.PodSpec) {
		spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "LONG", Value: long(others)})
	}
	by, byPods := attack.ByPolicy(SizesPolicy, SizeRule), attack.ByPolicy(admissionpolicy.PodsPolicy, SizeRule)
	all := []attack.Attack{
		attack.NewCreate("fill-a-configmap", "write a ConfigMap of more than maxObjectBytes", by, config("fill-a-configmap", data)),
		attack.NewUpdate("fill-a-configmap-later", "let an existing ConfigMap grow beyond maxObjectBytes", by, config("fill-a-configmap-later", 1),
			func(c *corev1.ConfigMap) { c.Data["file"] = long(data) }),
		attack.NewCreate("fill-a-configmap-by-key", "write a ConfigMap of more than maxObjectBytes in many keys", by, &corev1.ConfigMap{
			TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: s.makeMeta("fill-a-configmap-by-key"),
			Data: map[string]string{"a": long(data / 3), "b": long(data / 3), "c": long(data/3 + 8)},
		}),
		attack.NewCreate("fill-a-configmap-by-annotation", "write a ConfigMap of more than maxObjectBytes, half of it in an annotation", by,
			annotated(config("fill-a-configmap-by-annotation", data/2), min(data/2, 200<<10))),
		attack.NewCreate("fill-a-binary-configmap", "write a ConfigMap of more than maxObjectBytes of binaryData", by, &corev1.ConfigMap{
			TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: s.makeMeta("fill-a-binary-configmap"), BinaryData: map[string][]byte{"file": []byte(long(data))},
		}),
		attack.NewCreate("fill-a-configmap-by-character", "write a ConfigMap of more than maxObjectBytes in characters of three bytes each", by, &corev1.ConfigMap{
			TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: s.makeMeta("fill-a-configmap-by-character"), Data: map[string]string{"file": strings.Repeat("語", int(data/2))},
		}),
		attack.NewCreate("fill-a-secret", "write a Secret of more than maxObjectBytes", by, secret("fill-a-secret", corev1.SecretTypeOpaque, data)),
		attack.NewCreate("fill-an-account", "write a ServiceAccount with annotations of more than maxOtherObjectBytes", by, annotated(account("fill-an-account"), others)),
		attack.NewUpdate("fill-an-account-later", "let the annotations of an existing ServiceAccount grow beyond maxOtherObjectBytes", by, account("fill-an-account-later"),
			func(a *corev1.ServiceAccount) { annotated(a, others) }),
		attack.NewCreate("fill-a-revision", "write a ControllerRevision of more than maxOtherObjectBytes", by, revision),
		attack.NewCreate("fill-a-deployment", "write a Deployment of more than maxOtherObjectBytes, of which its ReplicaSets and pods are copies", by,
			s.makeDeployment("fill-a-deployment", func(t *corev1.PodTemplateSpec) { env(&t.Spec) })),
		attack.NewCreate("fill-a-lease", "write a Lease of more than 8 KiB", by, lease),
		attack.NewCreate("fill-an-event", "write an Event of more than 8 KiB", by, event("fill-an-event", estate.MaxNoteBytes)),
		attack.NewCreate("fill-a-new-event", "write an Event of events.k8s.io of more than 8 KiB", by, annotated(newEvent, estate.MaxNoteBytes)),
		attack.NewCreate("fill-a-pod", "run a pod of more than maxOtherObjectBytes", byPods, s.makePod("fill-a-pod", func(p *corev1.Pod) { env(&p.Spec) })),
		attack.NewCreate("fill-a-pod-by-character", "run a pod of more than maxOtherObjectBytes in characters of three bytes each", byPods,
			s.makePod("fill-a-pod-by-character", func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "LONG", Value: strings.Repeat("語", int(others/2))})
			})),
		attack.NewUpdate("fill-a-pod-later", "let the annotations of an existing pod grow beyond maxOtherObjectBytes", byPods, s.makePod("fill-a-pod-later"),
			func(p *corev1.Pod) { annotated(p, others) }),
		attack.NewCreate("fill-half-a-configmap", "write a ConfigMap of almost maxObjectBytes", attack.Nobody, config("fill-half-a-configmap", data-4<<10)),
		attack.NewCreate("fill-half-a-secret", "write a Secret of almost maxObjectBytes, which its base64 is more than", attack.Nobody, secret("fill-half-a-secret", corev1.SecretTypeOpaque, data-4<<10)),
		attack.NewCreate("fill-half-a-deployment", "write a Deployment of half of maxOtherObjectBytes", attack.Nobody,
			s.makeDeployment("fill-half-a-deployment", func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LONG", Value: long(others / 2)}}
			})),
		attack.NewCreate("write-a-long-event", "write an Event with a long message", attack.Nobody, event("write-a-long-event", 2<<10)),
		attack.NewCreate("keep-a-release", "keep a release of Helm in a Secret of almost maxHelmReleaseBytes", attack.Nobody, secret("keep-a-release", helm, min(releases, etcdTakes)-4<<10)),
	}
	all = append(all, s.buildLargeRequestAttacks(annotated)...)
	if releases < etcdTakes {
		all = append(all, attack.NewCreate("fill-a-release", "write a Secret of more than maxHelmReleaseBytes that claims to be a release of Helm", by, secret("fill-a-release", helm, releases)))
	}
	if others < annotationsTake {
		all = append(all, attack.NewCreate("fill-a-pod-by-fields", "run a pod of so many fields that its managedFields are larger than maxOtherObjectBytes", byPods,
			s.makePod("fill-a-pod-by-fields", func(p *corev1.Pod) {
				for i := range others / 40 {
					p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("E%d", i), Value: "x"})
				}
			})))
		all = append(all, s.buildLargePlatformMirrors(func(o client.Object) client.Object { return annotated(o, others) })...)
	}
	return attack.WithReason("etcd stores a few gigabytes for the whole cluster, and refuses all writes when it is full",
		[]string{"https://etcd.io/docs/latest/op-guide/maintenance/#space-quota"}, all...)
}

// buildLargeRequestAttacks are objects of croft's own kinds that members, including viewers, may write.
func (s scene) buildLargeRequestAttacks(large func(client.Object, int64) client.Object) []attack.Attack {
	by := attack.ByPolicy(SizesPolicy, SizeRule)
	var all []attack.Attack
	if s.platform.Elevation != nil {
		a := attack.NewCreate("fill-an-elevation", "request an elevation of more than 8 KiB, as a viewer", by, large(&v1alpha1.Elevation{
			TypeMeta: makeCroftMeta("Elevation"), ObjectMeta: s.makeMeta("fill-an-elevation"),
			Spec: v1alpha1.ElevationSpec{
				RequestedBy: attack.FindMember(s.attacker.Access, v1alpha1.RoleViewer), Role: v1alpha1.ElevationOperator,
				Duration: metav1.Duration{Duration: 15 * time.Minute}, Reason: "croft verify", PublicKey: strings.Repeat("A", 43) + "=",
			},
		}, estate.MaxNoteBytes))
		a.Role = v1alpha1.RoleViewer
		all = append(all, a)
	}
	all = append(all, attack.NewCreate("fill-a-caller", "accept a caller by a TenantCaller of more than 8 KiB", by, large(&v1alpha1.TenantCaller{
		TypeMeta: makeCroftMeta("TenantCaller"), ObjectMeta: s.makeMeta("fill-a-caller"),
		Spec: v1alpha1.TenantCallerSpec{Tenant: s.target.Name, Ports: v1alpha1.ConsentPorts{intstr.FromInt32(443)}},
	}, estate.MaxNoteBytes)))
	if others := *s.attacker.Allowances.MaxOtherObjectBytes; s.attacker.MayRequest > 0 && others < annotationsTake {
		all = append(all, attack.NewCreate("fill-a-request", "ask for a namespace by a TenantNamespace of more than maxOtherObjectBytes", by, large(&v1alpha1.TenantNamespace{
			TypeMeta: makeCroftMeta("TenantNamespace"), ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: s.attacker.Name + "-full"},
		}, others)))
	}
	return all
}

func makeCroftMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// buildLargePlatformMirrors are objects that the platform writes in a tenant's namespace. They may be
// as large as necessary.
func (s scene) buildLargePlatformMirrors(large func(client.Object) client.Object) []attack.Attack {
	rules := &v1alpha1.TenantRules{
		TypeMeta: makeCroftMeta("TenantRules"), ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: v1alpha1.TenantRulesName},
	}
	endpoints := &corev1.Endpoints{TypeMeta: makeCoreMeta("Endpoints"), ObjectMeta: s.makeMeta("fill-endpoints-as-platform")} //nolint:staticcheck // the older API is served, too
	slice := &discoveryv1.EndpointSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: s.makeMeta("fill-a-slice-as-platform"), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
	}
	return []attack.Attack{
		attack.SendAsAdmin(withoutSetup(attack.NewUpdate("fill-rules-as-platform", "write TenantRules of more than maxOtherObjectBytes", attack.Nobody, rules,
			func(r *v1alpha1.TenantRules) { large(r) }))),
		attack.SendAsAdmin(attack.NewCreate("fill-endpoints-as-platform", "write Endpoints of more than maxOtherObjectBytes", attack.Nobody, large(endpoints))),
		attack.SendAsAdmin(attack.NewCreate("fill-a-slice-as-platform", "write an EndpointSlice of more than maxOtherObjectBytes", attack.Nobody, large(slice))),
	}
}

// makeAutoscaler returns an autoscaler with the given number of metrics.
func (s scene) makeAutoscaler(name string, metrics int) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"}, ObjectMeta: s.makeMeta(name),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 2,
		},
	}
	for i := range metrics {
		h.Spec.Metrics = append(h.Spec.Metrics, autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "requests-" + strconv.Itoa(i)},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(1, resource.DecimalSI)},
		}})
	}
	return h
}
