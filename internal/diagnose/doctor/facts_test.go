package doctor_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/doctor"
)

// expectFindings compares a check's findings with texts that they must contain, in order.
func expectFindings(t *testing.T, found []string, want ...string) {
	t.Helper()
	if len(found) != len(want) {
		t.Fatalf("it finds %q, want %q", found, want)
	}
	for i := range want {
		if !strings.Contains(found[i], want[i]) {
			t.Errorf("it finds %q, want %q", found[i], want[i])
		}
	}
}

// TestClasses fails if doctor does not compare the policy lists with the cluster's classes.
func TestClasses(t *testing.T) {
	priority := func(name string, global bool) client.Object {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, GlobalDefault: global}
	}
	storage := func(name, byDefault string) client.Object {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": byDefault}}}
	}
	ingress := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx", Annotations: map[string]string{"ingressclass.kubernetes.io/is-default-class": "true"}}}
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "secrets-store.csi.k8s.io"}}
	for _, test := range []struct {
		name, policy string
		objects      []client.Object
		want         []string
	}{
		{"nothing is named", "{}", []client.Object{priority("gold", false)}, nil},
		{"what exists", "{priorityClasses: [gold], csiDrivers: [secrets-store.csi.k8s.io]}", []client.Object{priority("gold", false), driver}, nil},
		{"no such priority", "{priorityClasses: [gold, silver]}", []client.Object{priority("gold", false)}, []string{"Warning PriorityClass/silver: it does not exist, and policy.priorityClasses of shop names it"}},
		{"no such class of any other kind", "{runtimeClasses: [gvisor], storageClasses: ['', gp3], ingressClasses: [alb], gatewayClasses: [envoy], csiDrivers: [s3], deviceClasses: [gpu], volumeAttributesClasses: [fast]}", nil,
			[]string{"RuntimeClass/gvisor", "StorageClass/gp3", "IngressClass/alb", "GatewayClass/envoy", "CSIDriver/s3", "DeviceClass/gpu", "VolumeAttributesClass/fast"}},
		{"no such class that croft sets, where any is allowed", "{priorityClasses: ['*'], priorityClass: {default: silver}, runtimeClasses: ['*'], runtimeClass: {default: gvisor}}",
			[]client.Object{priority("gold", false)}, []string{"Warning PriorityClass/silver: it does not exist", "Warning RuntimeClass/gvisor: it does not exist"}},
		{"no such default among the allowed ones", "{priorityClasses: [gold], priorityClass: {default: gold}}", nil,
			[]string{"Warning PriorityClass/gold: it does not exist, and policy.priorityClasses of shop names it"}},
		{"no such forced class", "{runtimeClass: {force: kata}}", nil, []string{"Warning RuntimeClass/kata: it does not exist"}},
		{"any class", "{storageClasses: ['*'], ingressClasses: ['*'], priorityClasses: ['*']}", []client.Object{priority("gold", true), storage("gp3", "true"), ingress}, nil},
		{"a default priority that is not granted", "{}", []client.Object{priority("gold", true)}, []string{"Problem PriorityClass/gold: it is the cluster's default, and policy.priorityClasses of shop does not contain it: all pods"}},
		{"a default priority that is granted", "{priorityClasses: [gold]}", []client.Object{priority("gold", true)}, nil},
		{"default classes that are not granted", "{storageClasses: [io2], ingressClasses: [alb]}",
			[]client.Object{storage("gp3", "true"), storage("io2", "false"), ingress, &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "alb"}}},
			[]string{"Warning StorageClass/gp3: it is the cluster's default", "Warning IngressClass/nginx: it is the cluster's default"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := strings.Replace(declared, "shop: {pool: apps}", "shop: {pool: apps, policy: "+test.policy+"}", 1)
			expectFindings(t, listFindingsIn(t, file, "classes", test.objects...), test.want...)
		})
	}
}

// TestQuotas fails if doctor does not report the effects of LimitRanges and ResourceQuotas
// that are not croft's on a tenant's pods.
func TestQuotas(t *testing.T) {
	list := func(values ...string) corev1.ResourceList {
		all := corev1.ResourceList{}
		for i := 0; i < len(values); i += 2 {
			all[corev1.ResourceName(values[i])] = resource.MustParse(values[i+1])
		}
		return all
	}
	limits := func(name string, item corev1.LimitRangeItem) client.Object {
		if item.Type == "" {
			item.Type = corev1.LimitTypeContainer
		}
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
	}
	quota := func(name string, hard corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) client.Object {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes}}
		if name == "croft" {
			q.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
		}
		return q
	}
	for _, test := range []struct {
		name    string
		objects []client.Object
		want    []string
	}{
		{"none", nil, nil},
		{"that agree", []client.Object{limits("a", corev1.LimitRangeItem{Min: list("cpu", "1m"), Default: list("cpu", "1")}), limits("b", corev1.LimitRangeItem{Max: list("cpu", "1")})}, nil},
		{"a minimum above a maximum", []client.Object{limits("a", corev1.LimitRangeItem{Min: list("memory", "2Gi")}), limits("b", corev1.LimitRangeItem{Max: list("memory", "1Gi")})},
			[]string{"Problem Tenant/shop: namespace shop: no container is admitted: the minimum of memory is 2Gi of LimitRange a, and the maximum 1Gi of LimitRange b"}},
		{"a default above a maximum", []client.Object{limits("a", corev1.LimitRangeItem{Default: list("cpu", "2")}), limits("b", corev1.LimitRangeItem{Max: list("cpu", "1")})},
			[]string{"containers without a limit are refused"}},
		{"a default above the pods' maximum", []client.Object{limits("a", corev1.LimitRangeItem{Default: list("cpu", "2")}), limits("b", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "1")})},
			[]string{"containers without a limit are refused"}},
		{"a default request below a minimum", []client.Object{limits("a", corev1.LimitRangeItem{DefaultRequest: list("cpu", "10m")}), limits("b", corev1.LimitRangeItem{Min: list("cpu", "100m")})},
			[]string{"containers without a request are refused"}},
		{"a narrower quota", []client.Object{quota("croft", list("pods", "20", "services", "5")), quota("platform", list("pods", "10", "services", "5", "secrets", "1"))},
			[]string{"Warning Tenant/shop: namespace shop: ResourceQuota platform allows less than croft's: pods 10 instead of 20"}},
		{"a narrower quota of a scope", []client.Object{quota("croft", list("pods", "20")), quota("platform", list("pods", "10"), corev1.ResourceQuotaScopeBestEffort)}, nil},
		{"counted limits without a default", []client.Object{quota("croft", list("limits.cpu", "8", "requests.memory", "8Gi", "cpu", "1"))},
			[]string{"ResourceQuota croft counts cpu, limits.cpu, requests.memory, and no LimitRange has a default"}},
		{"counted limits with a default", []client.Object{quota("croft", list("limits.cpu", "8", "requests.cpu", "8", "requests.memory", "8Gi", "requests.storage", "1Ti")), limits("croft", corev1.LimitRangeItem{Default: list("cpu", "1"), DefaultRequest: list("memory", "1Gi")})}, nil},
	} {
		t.Run(test.name, func(t *testing.T) { expectFindings(t, listFindings(t, "quotas", test.objects...), test.want...) })
	}
}

// TestDNS fails if doctor does not compare the nodes' resolvers with the cluster's Services.
func TestDNS(t *testing.T) {
	service := func(namespace, label, ip string, port int32) client.Object {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dns", Labels: map[string]string{"k8s-app": label}},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: port}}},
		}
	}
	second := service("kube-system", "kube-dns", "fd00::a", 53).(*corev1.Service)
	second.Spec.ClusterIPs = []string{"fd00::a", "10.0.0.10"}
	for _, test := range []struct {
		name, addresses string
		services        []client.Object
		want            []string
	}{
		{"none is set", "", []client.Object{service("kube-system", "kube-dns", "10.1.0.10", 53)}, nil},
		{"the cluster's", "10.0.0.10", []client.Object{service("kube-system", "kube-dns", "10.0.0.10", 53)}, nil},
		{"its second address", "10.0.0.10", []client.Object{second}, nil},
		{"one of another name", "10.0.0.10", []client.Object{service("openshift-dns", "", "10.0.0.10", 53)}, nil},
		{"a cache on the node", "169.254.20.10", []client.Object{service("kube-system", "kube-dns", "10.1.0.10", 53)}, nil},
		{"another cluster's", "10.0.0.10", []client.Object{service("kube-system", "kube-dns", "10.1.0.10", 53)}, []string{"Problem Platform/default: nodes of apps point pods to 10.0.0.10 for DNS, and no Service with port 53 has that address; the cluster's own is at 10.1.0.10"}},
		{"no Service's", "10.0.0.10", nil, []string{"Warning Platform/default"}},
		{"a Service without DNS", "10.0.0.10", []client.Object{service("web", "", "10.0.0.10", 80)}, []string{"Warning Platform/default"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := strings.Replace(declared, "nodeClass: {kwok: {}}", "clusterDNS: ["+test.addresses+"], nodeClass: {aws: {role: nodes}}", 1)
			expectFindings(t, listFindingsIn(t, file, "dns", test.services...), test.want...)
		})
	}
}

// TestAPIServices fails if doctor does not report servers of API groups that do not answer,
// or reports one that may be restarting.
func TestAPIServices(t *testing.T) {
	service := func(status string, ago time.Duration) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
			"spec": map[string]any{"service": map[string]any{"namespace": "kube-system", "name": "metrics-server"}},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "Available", "status": status, "reason": "MissingEndpoints", "message": "no endpoints", "lastTransitionTime": time.Now().Add(-ago).UTC().Format(time.RFC3339),
			}}},
		}}
	}
	expectFindings(t, listFindings(t, "api-services", service("True", time.Hour)))
	expectFindings(t, listFindings(t, "api-services", service("False", time.Second)))
	expectFindings(t, listFindings(t, "api-services", service("False", time.Hour)), "Problem APIService/v1beta1.metrics.k8s.io: it is not available: MissingEndpoints: no endpoints")
	expectFindings(t, listFindings(t, "api-services", service("Unknown", time.Hour)), "Problem APIService")
}

// TestBudgets fails if doctor does not report budgets that permanently allow no eviction,
// with the node and the tenants that share its pool.
func TestBudgets(t *testing.T) {
	shared := strings.Replace(declared, "shop: {pool: apps}", "shop: {pool: apps}, bank: {pool: apps}", 1)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "apps", v1alpha1.DefaultNodePoolKey: "apps"}}}
	pod := func(namespace string) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "n1"}}
		p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return p
	}
	budget := func(namespace, name string, allowed int32) client.Object {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: 1, DesiredHealthy: 1 - allowed, CurrentHealthy: 1, DisruptionsAllowed: allowed},
		}
	}
	for _, test := range []struct {
		name, file string
		budgets    []client.Object
		want       []string
	}{
		{"one that lets it go", shared, []client.Object{budget("shop", "web", 1)}, nil},
		{"all of one", shared, []client.Object{budget("shop", "web", 0)}, []string{"Warning Tenant/shop: PodDisruptionBudget web requires 1 ready pods of 1, and so it never allows an eviction; of namespace shop, pods web on n1, of a pool that it shares with bank"}},
		{"two", shared, []client.Object{budget("shop", "web", 1), budget("shop", "all", 1)}, []string{"Warning Tenant/shop: PodDisruptionBudgets all and web select the same pod"}},
		{"on a pool of its own", declared, []client.Object{budget("shop", "web", 0)}, []string{"Warning Tenant/shop: PodDisruptionBudget web requires"}},
		{"of no tenant", shared, []client.Object{budget("kube-system", "web", 0)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := listFindingsIn(t, test.file, "budgets", append(test.budgets, node.DeepCopy(), pod("shop"), pod("kube-system"))...)
			expectFindings(t, found, test.want...)
			if test.file == declared && hasFinding(found, "shares") {
				t.Errorf("no other tenant shares the pool, but it finds %q", found)
			}
		})
	}
}

// TestNamespaceAnnotations fails if doctor does not report annotations of tenants'
// namespaces that make plugins of the API server change pods.
func TestNamespaceAnnotations(t *testing.T) {
	for _, key := range []string{"node-selector", "defaultTolerations", "tolerationsWhitelist"} {
		namespace := newNamespace("shop", "shop")
		namespace.Annotations = map[string]string{"scheduler.alpha.kubernetes.io/" + key: "x"}
		expectFindings(t, listFindings(t, "others", namespace), "Warning Namespace/shop: it has the annotation scheduler.alpha.kubernetes.io/"+key)
		delete(namespace.Labels, v1alpha1.TenantLabel)
		expectFindings(t, listFindings(t, "others", namespace))
	}
}

// TestUnserved fails if doctor's fix is that the operator creates objects of a kind that
// the API server does not serve.
func TestUnserved(t *testing.T) {
	file := strings.Replace(declared, "shop: {pool: apps}", "shop: {pool: apps, sources: {app: {git: 'https://git.example.org/app'}}}", 1)
	r := findResult(t, doctor.Check(newFakeCluster(t, file).gatherWithout(t, "")), "walls")
	for _, f := range r.Findings {
		if strings.Contains(f.Message, "does not serve its kind") {
			if !strings.Contains(f.Fix, "install the component that serves") {
				t.Errorf("it advises %q", f.Fix)
			}
			return
		}
	}
	t.Errorf("it finds %q", formatFindings(r))
}
