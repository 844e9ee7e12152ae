package adopt

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// convertToMap converts an object to a map, for comparison.
func convertToMap(t *testing.T, o any) map[string]any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestResetPod fails if a pod is tried with fields that its first admission set: a rule could
// refuse it because of them, or its node could select the pool.
func TestResetPod(t *testing.T) {
	const lives = `
metadata:
  {name: web-1, namespace: shop, uid: abc, labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: def, controller: true}]}
spec:
  nodeName: node-1
  priority: 1000
  preemptionPolicy: Never
  serviceAccountName: web
  serviceAccount: web
  nodeSelector: {node-pool: apps}
  ephemeralContainers: [{name: debug, image: busybox}]
  initContainers: [{name: init, image: web, volumeMounts: [{name: kube-api-access-x, mountPath: /token}]}]
  containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}, {name: kube-api-access-x, mountPath: /token}]}]
  volumes: [{name: data, emptyDir: {}}, {name: kube-api-access-x, emptyDir: {}}]
status: {phase: Running}
`
	const asked = `
apiVersion: v1
kind: Pod
metadata: {generateName: croft-adopt-, labels: {app: web}}
spec:
  nodeSelector: {node-pool: apps}
  initContainers: [{name: init, image: web}]
  containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, emptyDir: {}}]
`
	var pod, want corev1.Pod
	for text, to := range map[string]*corev1.Pod{lives: &pod, asked: &want} {
		if err := yaml.UnmarshalStrict([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	before := pod.DeepCopy()
	if diff := cmp.Diff(convertToMap(t, &want), convertToMap(t, resetPod(&pod))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, &pod); diff != "" {
		t.Errorf("the pod itself was changed:\n%s", diff)
	}
}

// TestSanitizeObject fails if an object is tried or recorded with fields that the server set,
// or that another server would refuse.
func TestSanitizeObject(t *testing.T) {
	const served = "uid: abc, resourceVersion: \"7\", creationTimestamp: 2026-01-01T00:00:00Z, managedFields: [], generation: 3"
	for name, test := range map[string]struct{ live, want string }{
		"a service": {
			"{apiVersion: v1, kind: Service, metadata: {name: door, namespace: shop, " + served + "}, spec: {type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ports: [{port: 80, nodePort: 30080}]}, status: {loadBalancer: {}}}",
			"{apiVersion: v1, kind: Service, metadata: {name: door, namespace: scratch}, spec: {type: NodePort, ports: [{port: 80}]}}",
		},
		"a headless service": {
			"{apiVersion: v1, kind: Service, metadata: {name: db, namespace: shop}, spec: {clusterIP: None, clusterIPs: [None]}}",
			"{apiVersion: v1, kind: Service, metadata: {name: db, namespace: scratch}, spec: {clusterIP: None}}",
		},
		"a claim that was bound": {
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, annotations: {a: b, pv.kubernetes.io/bind-completed: \"yes\", volume.kubernetes.io/selected-node: node-1}}, spec: {volumeName: pvc-1, storageClassName: fast}}",
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: scratch, annotations: {a: b}}, spec: {storageClassName: fast}}",
		},
		"a claim that names its volume": {
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, spec: {volumeName: mine}}",
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: scratch}, spec: {volumeName: mine}}",
		},
		"what kubectl applied": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {a: b}, finalizers: [x/y], annotations: {kubectl.kubernetes.io/last-applied-configuration: old}}, data: {k: v}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: scratch, labels: {a: b}, finalizers: [x/y]}, data: {k: v}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := parseObject(t, test.live)
			before := live.DeepCopy()
			if diff := cmp.Diff(parseObject(t, test.want).Object, sanitizeObject(live, "scratch").Object); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, live); diff != "" {
				t.Errorf("the object itself was changed:\n%s", diff)
			}
		})
	}
}

// TestRecordAddObject fails unless the first state of an object is kept.
func TestRecordAddObject(t *testing.T) {
	state := func(value string) *unstructured.Unstructured {
		return parseObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {k: "+value+"}}")
	}
	r := &Record{}
	r.addObject(state("first"))
	r.addObject(state("croft's"))
	if len(r.Objects) != 1 || getString(r.Objects[0], "data", "k") != "first" {
		t.Errorf("kept %v", r.Objects)
	}
}

// TestParseCounted fails if a name in a quota is taken for another resource's objects.
func TestParseCounted(t *testing.T) {
	for name, want := range map[corev1.ResourceName]string{
		"count/pods": "pods", "count/deployments.apps": "deployments.apps", "count/certificates.cert-manager.io": "certificates.cert-manager.io",
		"services": "services", "secrets": "secrets", "persistentvolumeclaims": "persistentvolumeclaims",
		"pods": "", "requests.cpu": "", "services.nodeports": "", "requests.storage": "", "fast.storageclass.storage.k8s.io/requests.storage": "",
	} {
		got, ok := parseCounted(name)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %s, want %q", name, got, want)
		}
	}
	used := corev1.ResourceList{}
	for _, spec := range []string{
		"{type: ClusterIP, ports: [{port: 80}]}", "{type: NodePort, ports: [{port: 80, nodePort: 30080}, {port: 443, nodePort: 30443}]}",
		"{type: LoadBalancer, ports: [{port: 80, nodePort: 30081}]}", "{type: LoadBalancer, ports: [{port: 80}]}",
	} {
		var service corev1.Service
		if err := yaml.UnmarshalStrict([]byte(spec), &service.Spec); err != nil {
			t.Fatal(err)
		}
		countService(used, &service)
	}
	for name, want := range map[corev1.ResourceName]int64{"services.loadbalancers": 2, "services.nodeports": 3} {
		if got := used[name]; got.Value() != want {
			t.Errorf("%s: %s, want %d", name, got.String(), want)
		}
	}
}

// TestCountPod fails if a pod counts differently in a quota than in Kubernetes.
func TestCountPod(t *testing.T) {
	const text = `
spec:
  overhead: {cpu: 250m}
  initContainers:
    - {name: migrate, resources: {requests: {cpu: "2"}, limits: {cpu: "2"}}}
    - {name: proxy, restartPolicy: Always, resources: {requests: {cpu: 100m, memory: 64Mi}}}
  containers:
    - {name: web, resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 2Gi}}}
    - {name: log, resources: {requests: {cpu: 100m}}}
`
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	used := corev1.ResourceList{}
	countPod(used, &pod)
	done := pod.DeepCopy()
	done.Status.Phase = corev1.PodSucceeded
	countPod(used, done)
	for name, want := range map[corev1.ResourceName]string{
		"pods": "1", "requests.cpu": "2250m", "cpu": "2250m", "requests.memory": "1088Mi", "limits.memory": "2Gi",
	} {
		if got := used[name]; got.String() != want {
			t.Errorf("%s: %s, want %s", name, got.String(), want)
		}
	}
}
