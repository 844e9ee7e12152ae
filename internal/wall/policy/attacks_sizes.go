package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

const (
	// etcdTakes is the maximum size of an object in etcd, without its envelope.
	etcdTakes = 1 << 20
	// annotationsTake is less than the 256 KiB that Kubernetes allows for an object's
	// annotations.
	annotationsTake = 200 << 10
	helm            = corev1.SecretType("helm.sh/release.v1")
)

// sizes are objects that are so large that a quota on their number would not limit a tenant's
// space.
func (s scene) sizes() []attack.Attack {
	data, releases, others := *s.by.Allowances.MaxObjectBytes, *s.by.Allowances.MaxHelmReleaseBytes, *s.by.Allowances.MaxOtherObjectBytes
	long := func(bytes int64) string { return strings.Repeat("x", int(bytes)) }
	config := func(name string, bytes int64) *corev1.ConfigMap {
		return &corev1.ConfigMap{TypeMeta: core("ConfigMap"), ObjectMeta: s.meta(name), Data: map[string]string{"file": long(bytes)}}
	}
	secret := func(name string, kind corev1.SecretType, bytes int64) *corev1.Secret {
		return &corev1.Secret{TypeMeta: core("Secret"), ObjectMeta: s.meta(name), Type: kind, Data: map[string][]byte{"release": []byte(long(bytes))}}
	}
	annotated := func(o client.Object, bytes int64) client.Object {
		o.SetAnnotations(map[string]string{"note": long(bytes)})
		return o
	}
	account := func(name string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{TypeMeta: core("ServiceAccount"), ObjectMeta: s.meta(name)}
	}
	lease := &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"}, ObjectMeta: s.meta("fill-a-lease"),
	}
	lease.Spec.HolderIdentity = ptr.To(long(estate.MaxNoteBytes))
	event := func(name string, bytes int64) *corev1.Event {
		return &corev1.Event{
			TypeMeta: core("Event"), ObjectMeta: s.meta(name), Reason: "Tried", Type: corev1.EventTypeNormal, Message: long(bytes),
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.own, Name: "any"},
		}
	}
	newEvent := &eventsv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"}, ObjectMeta: s.meta("fill-a-new-event"),
		EventTime: metav1.NowMicro(), ReportingController: "example.com/any", ReportingInstance: "any", Action: "Tried", Reason: "Tried", Type: corev1.EventTypeNormal,
		Regarding: event("", 0).InvolvedObject,
	}
	revision := &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"}, ObjectMeta: s.meta("fill-a-revision"),
		Revision: 1, Data: runtime.RawExtension{Raw: []byte(`{"file":"` + long(others) + `"}`)},
	}
	env := func(spec *corev1.PodSpec) {
		spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "LONG", Value: long(others)})
	}
	by, byPods := attack.ByPolicy(SizesPolicy, SizeRule), attack.ByPolicy(admissionpolicy.PodsPolicy, SizeRule)
	all := []attack.Attack{
		attack.Creating("fill-a-configmap", "write a ConfigMap of more than maxObjectBytes", by, config("fill-a-configmap", data)),
		attack.Changing("fill-a-configmap-later", "let a ConfigMap that is there grow beyond maxObjectBytes", by, config("fill-a-configmap-later", 1),
			func(c *corev1.ConfigMap) { c.Data["file"] = long(data) }),
		attack.Creating("fill-a-configmap-by-key", "write a ConfigMap of more than maxObjectBytes in many keys", by, &corev1.ConfigMap{
			TypeMeta: core("ConfigMap"), ObjectMeta: s.meta("fill-a-configmap-by-key"),
			Data: map[string]string{"a": long(data / 3), "b": long(data / 3), "c": long(data/3 + 8)},
		}),
		attack.Creating("fill-a-configmap-by-annotation", "write a ConfigMap of more than maxObjectBytes, half of it in an annotation", by,
			annotated(config("fill-a-configmap-by-annotation", data/2), min(data/2, 200<<10))),
		attack.Creating("fill-a-binary-configmap", "write a ConfigMap of more than maxObjectBytes of binaryData", by, &corev1.ConfigMap{
			TypeMeta: core("ConfigMap"), ObjectMeta: s.meta("fill-a-binary-configmap"), BinaryData: map[string][]byte{"file": []byte(long(data))},
		}),
		attack.Creating("fill-a-configmap-by-character", "write a ConfigMap of more than maxObjectBytes in characters of three bytes each", by, &corev1.ConfigMap{
			TypeMeta: core("ConfigMap"), ObjectMeta: s.meta("fill-a-configmap-by-character"), Data: map[string]string{"file": strings.Repeat("語", int(data/2))},
		}),
		attack.Creating("fill-a-secret", "write a Secret of more than maxObjectBytes", by, secret("fill-a-secret", corev1.SecretTypeOpaque, data)),
		attack.Creating("fill-an-account", "write a ServiceAccount with annotations of more than maxOtherObjectBytes", by, annotated(account("fill-an-account"), others)),
		attack.Changing("fill-an-account-later", "let the annotations of a ServiceAccount that is there grow beyond maxOtherObjectBytes", by, account("fill-an-account-later"),
			func(a *corev1.ServiceAccount) { annotated(a, others) }),
		attack.Creating("fill-a-revision", "write a ControllerRevision of more than maxOtherObjectBytes", by, revision),
		attack.Creating("fill-a-deployment", "write a Deployment of more than maxOtherObjectBytes, of which its ReplicaSets and pods are copies", by,
			s.deployment("fill-a-deployment", func(t *corev1.PodTemplateSpec) { env(&t.Spec) })),
		attack.Creating("fill-a-lease", "write a Lease of more than 8 KiB", by, lease),
		attack.Creating("fill-an-event", "write an Event of more than 8 KiB", by, event("fill-an-event", estate.MaxNoteBytes)),
		attack.Creating("fill-a-new-event", "write an Event of events.k8s.io of more than 8 KiB", by, annotated(newEvent, estate.MaxNoteBytes)),
		attack.Creating("fill-a-pod", "run a pod of more than maxOtherObjectBytes", byPods, s.pod("fill-a-pod", func(p *corev1.Pod) { env(&p.Spec) })),
		attack.Creating("fill-a-pod-by-character", "run a pod of more than maxOtherObjectBytes in characters of three bytes each", byPods,
			s.pod("fill-a-pod-by-character", func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "LONG", Value: strings.Repeat("語", int(others/2))})
			})),
		attack.Changing("fill-a-pod-later", "let the annotations of a pod that is there grow beyond maxOtherObjectBytes", byPods, s.pod("fill-a-pod-later"),
			func(p *corev1.Pod) { annotated(p, others) }),
		attack.Creating("fill-half-a-configmap", "write a ConfigMap of almost maxObjectBytes", attack.Nobody, config("fill-half-a-configmap", data-4<<10)),
		attack.Creating("fill-half-a-secret", "write a Secret of almost maxObjectBytes, which its base64 is more than", attack.Nobody, secret("fill-half-a-secret", corev1.SecretTypeOpaque, data-4<<10)),
		attack.Creating("fill-half-a-deployment", "write a Deployment of half of maxOtherObjectBytes", attack.Nobody,
			s.deployment("fill-half-a-deployment", func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LONG", Value: long(others / 2)}}
			})),
		attack.Creating("write-a-long-event", "write an Event with a long message", attack.Nobody, event("write-a-long-event", 2<<10)),
		attack.Creating("keep-a-release", "keep a release of Helm in a Secret of almost maxHelmReleaseBytes", attack.Nobody, secret("keep-a-release", helm, min(releases, etcdTakes)-4<<10)),
	}
	all = append(all, s.largeRequests(annotated)...)
	if releases < etcdTakes {
		all = append(all, attack.Creating("fill-a-release", "write a Secret of more than maxHelmReleaseBytes that says that it is a release of Helm", by, secret("fill-a-release", helm, releases)))
	}
	if others < annotationsTake {
		all = append(all, attack.Creating("fill-a-pod-by-fields", "run a pod of so many fields that what managedFields say of them is more than maxOtherObjectBytes", byPods,
			s.pod("fill-a-pod-by-fields", func(p *corev1.Pod) {
				for i := range others / 40 {
					p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("E%d", i), Value: "x"})
				}
			})))
		all = append(all, s.largeOfPlatform(func(o client.Object) client.Object { return annotated(o, others) })...)
	}
	return attack.Because("etcd stores a few gigabytes for the whole cluster, and refuses all writes when it is full",
		[]string{"https://etcd.io/docs/latest/op-guide/maintenance/#space-quota"}, all...)
}

// largeRequests are objects of croft's own kinds that members, including viewers, may write.
func (s scene) largeRequests(large func(client.Object, int64) client.Object) []attack.Attack {
	by := attack.ByPolicy(SizesPolicy, SizeRule)
	var all []attack.Attack
	if s.platform.Elevation != nil {
		a := attack.Creating("fill-an-elevation", "request an elevation of more than 8 KiB, as a viewer", by, large(&v1alpha1.Elevation{
			TypeMeta: croftKind("Elevation"), ObjectMeta: s.meta("fill-an-elevation"),
			Spec: v1alpha1.ElevationSpec{
				RequestedBy: attack.Member(s.by.Access, v1alpha1.RoleViewer), Role: v1alpha1.ElevationOperator,
				Duration: metav1.Duration{Duration: 15 * time.Minute}, Reason: "croft verify", PublicKey: strings.Repeat("A", 43) + "=",
			},
		}, estate.MaxNoteBytes))
		a.As = v1alpha1.RoleViewer
		all = append(all, a)
	}
	if others := *s.by.Allowances.MaxOtherObjectBytes; s.by.MayRequest > 0 && others < annotationsTake {
		all = append(all, attack.Creating("fill-a-request", "ask for a namespace by a TenantNamespace of more than maxOtherObjectBytes", by, large(&v1alpha1.TenantNamespace{
			TypeMeta: croftKind("TenantNamespace"), ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: s.by.Name + "-full"},
		}, others)))
	}
	return all
}

func croftKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// largeOfPlatform are objects that the platform writes in a tenant's namespace. They may be
// as large as necessary.
func (s scene) largeOfPlatform(large func(client.Object) client.Object) []attack.Attack {
	rules := &v1alpha1.TenantRules{
		TypeMeta: croftKind("TenantRules"), ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: v1alpha1.TenantRulesName},
	}
	endpoints := &corev1.Endpoints{TypeMeta: core("Endpoints"), ObjectMeta: s.meta("fill-endpoints-as-platform")} //nolint:staticcheck // the older API is served, too
	slice := &discoveryv1.EndpointSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: s.meta("fill-a-slice-as-platform"), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
	}
	return []attack.Attack{
		attack.ByPlatform(present(attack.Changing("fill-rules-as-platform", "write TenantRules of more than maxOtherObjectBytes", attack.Nobody, rules,
			func(r *v1alpha1.TenantRules) { large(r) }))),
		attack.ByPlatform(attack.Creating("fill-endpoints-as-platform", "write Endpoints of more than maxOtherObjectBytes", attack.Nobody, large(endpoints))),
		attack.ByPlatform(attack.Creating("fill-a-slice-as-platform", "write an EndpointSlice of more than maxOtherObjectBytes", attack.Nobody, large(slice))),
	}
}

// controllers are objects that occupy the controllers of the whole cluster.
func (s scene) controllers() []attack.Attack {
	owned := func(o client.Object, owners int) {
		for i := range owners {
			name := "gone-" + strconv.Itoa(i)
			o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID(name)}))
		}
	}
	config := func(name string, owners int) *corev1.ConfigMap {
		c := &corev1.ConfigMap{TypeMeta: core("ConfigMap"), ObjectMeta: s.meta(name)}
		owned(c, owners)
		return c
	}
	scaler := s.scaler
	more := scaler("scale-by-too-many-later", maxMetrics+1)
	// autoscaling/v1 stores all metrics except CPU utilization in an annotation.
	var old []string
	for i := range maxMetrics + 1 {
		old = append(old, `{"type":"Pods","pods":{"metricName":"requests-`+strconv.Itoa(i)+`","targetAverageValue":"1"}}`)
	}
	older := &autoscalingv1.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv1.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"}, ObjectMeta: s.meta("scale-by-too-many-in-v1"),
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 2,
		},
	}
	older.Annotations = map[string]string{"autoscaling.alpha.kubernetes.io/metrics": "[" + strings.Join(old, ",") + "]"}
	byOwners, byMetrics := attack.ByPolicy(SizesPolicy, OwnerCountRule), attack.ByPolicy(AutoscalersPolicy, MetricsRule)
	return attack.Because("the garbage collector and the autoscaler work for all tenants in turn, and for each at a bounded rate", nil,
		attack.Creating("name-many-owners", "have the garbage collector look up many owners that are not there", byOwners, config("name-many-owners", maxOwners+1)),
		attack.Changing("name-many-owners-later", "have the garbage collector look up many owners of an object that is there", byOwners, config("name-many-owners-later", 0),
			func(c *corev1.ConfigMap) { owned(c, maxOwners+1) }),
		attack.Creating("name-many-owners-of-a-pod", "have the garbage collector look up many owners of a pod", attack.ByPolicy(admissionpolicy.PodsPolicy, OwnerCountRule),
			s.pod("name-many-owners-of-a-pod", func(p *corev1.Pod) { owned(p, maxOwners+1) })),
		attack.Creating("name-some-owners", "write an object with several owners", attack.Nobody, config("name-some-owners", 3)),
		attack.Creating("scale-by-too-many", "scale by more metrics than the controller can ask for", byMetrics, scaler("scale-by-too-many", maxMetrics+1)),
		attack.Creating("scale-by-too-many-in-v1", "scale by more metrics than the controller can ask for, in the API's older version", byMetrics, older),
		attack.Changing("scale-by-too-many-later", "scale by more metrics than the controller can ask for, with an autoscaler that is there", byMetrics, scaler("scale-by-too-many-later", 1),
			func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.Metrics = more.Spec.Metrics }),
		attack.Creating("scale-by-some", "scale by three metrics", attack.Nobody, scaler("scale-by-some", 3)),
	)
}

// scaler returns an autoscaler with the given number of metrics.
func (s scene) scaler(name string, metrics int) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"}, ObjectMeta: s.meta(name),
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
