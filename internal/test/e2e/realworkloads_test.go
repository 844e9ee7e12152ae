package e2e

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
)

// workloadsAtOnce limits the pods on the real nodes to about 25.
const workloadsAtOnce = 6

// TestRealWorkloads runs the pods of TestWorkloads in containers, with the image of the sandbox.
// It fails if a kubelet or containerd does not start a pod that croft's policies changed or
// admitted, such as a restricted pod whose user is root.
func TestRealWorkloads(t *testing.T) {
	sandbox.Thorough(t)
	requireRealNodes(t)
	file := path.Join(workloads, "croft.yaml")
	e := buildEstate(t, file, readRepositoryFile(t, file))
	all := readWorkloads(t, e)
	c := startSandbox(t, sandbox.Options{RealNodes: true, Croft: findCroftBinary(t)})
	c.localVolumes = true
	if err := c.InstallCRDs(t.Context(), sandbox.GatewayAPI, sandbox.CertManager, sandbox.Flux); err != nil {
		t.Fatal(err)
	}
	c.createStorageClass(t)
	c.applyFile(t, file)
	for _, tenant := range e.Tenants {
		c.awaitQuotaCounted(t, tenant.Namespaces[0])
	}
	for batch := range slices.Chunk(all, workloadsAtOnce) {
		for _, w := range batch {
			w.objects = replacePrograms(w.objects)
			for account, objects := range w.by {
				w.by[account] = replacePrograms(objects)
			}
			w.applyObjects(t, c)
			w.runCronJobs(t, c) // claims wait for their pods
		}
		c.awaitWorkloads(t, batch)
		for _, w := range batch {
			w.createAtRuntime(t, c)
		}
		c.awaitWorkloads(t, batch)
		c.expectUsers(t, all)
		for _, w := range batch {
			w.deleteObjects(t, c)
			w.deleteCreated(t, c)
		}
		c.deletePods(t, all)
	}
}

// replacePrograms replaces the programs in the pods of objects by programs of the sandbox's
// only image: containers of Jobs, and init containers, end at once; others wait. It omits the parts
// that need the real programs, a larger machine or a third node.
func replacePrograms(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var replaced []*unstructured.Unstructured
	for _, o := range objects {
		// Without metrics, an autoscaler scales to its minimum.
		if o.GetKind() == "HorizontalPodAutoscaler" {
			continue
		}
		o = o.DeepCopy()
		if spec, ok := o.Object["spec"].(map[string]any); ok {
			for field, most := range map[string]int64{"replicas": 1, "completions": 2, "parallelism": 2} {
				if _, ok := spec[field]; ok {
					spec[field] = most
				}
			}
		}
		replaceIn(o.Object)
		replaced = append(replaced, o)
	}
	return replaced
}

// replaceIn replaces the programs of all pods below a value.
func replaceIn(value any) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			replaceIn(v)
		}
	case map[string]any:
		for _, v := range value {
			replaceIn(v)
		}
		if containers, ok := value["containers"].([]any); ok {
			replaceInPod(value, containers)
		}
	}
}

// makeOptional makes the references of a pod to Secrets and ConfigMaps optional: operators create
// these objects, and no operator runs here.
func makeOptional(value any) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			makeOptional(v)
		}
	case map[string]any:
		for field, v := range value {
			switch field {
			case "secret", "configMap", "secretKeyRef", "configMapKeyRef", "secretRef", "configMapRef":
				if reference, ok := v.(map[string]any); ok {
					reference["optional"] = true
				}
			}
			makeOptional(v)
		}
	}
}

func replaceInPod(spec map[string]any, containers []any) {
	// At most three real nodes run, and no controller of a gateway.
	for _, field := range []string{"nodeSelector", "affinity", "topologySpreadConstraints", "readinessGates"} {
		delete(spec, field)
	}
	makeOptional(spec)
	program := []any{"pause"}
	if policy := spec["restartPolicy"]; policy == "Never" || policy == "OnFailure" {
		program = []any{"exit", "0"}
	}
	for _, container := range containers {
		replaceProgram(container, program)
	}
	initContainers, _ := spec["initContainers"].([]any)
	for _, container := range initContainers {
		program := []any{"exit", "0"}
		if c, ok := container.(map[string]any); ok && c["restartPolicy"] == "Always" {
			program = []any{"pause"}
		}
		replaceProgram(container, program)
	}
}

func replaceProgram(container any, program []any) {
	c, ok := container.(map[string]any)
	if !ok {
		return
	}
	for _, field := range []string{"command", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} {
		delete(c, field)
	}
	c["args"] = program
	if image, ok := c["image"].(string); ok {
		c["image"], _, _ = strings.Cut(image, "@") // the sandbox's image has another digest
	}
	resources, ok := c["resources"].(map[string]any)
	if !ok {
		return
	}
	if requests, ok := resources["requests"].(map[string]any); ok {
		for name, least := range map[string]any{"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "10Mi"} {
			if _, ok := requests[name]; ok {
				requests[name] = least
			}
		}
	}
}

// expectUsers fails the test if a container of a restricted pod runs as root, as its kubelet
// reports.
func (c *cluster) expectUsers(t testing.TB, all []*workload) {
	t.Helper()
	for _, namespace := range listNamespaces(all, "restricted") {
		var pods corev1.PodList
		if err := c.admin.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			for _, status := range slices.Concat(pods.Items[i].Status.ContainerStatuses, pods.Items[i].Status.InitContainerStatuses) {
				if status.State.Running == nil {
					continue
				}
				if status.User == nil || status.User.Linux == nil || status.User.Linux.UID == 0 {
					t.Errorf("pod %s/%s: container %s runs as %+v", namespace, pods.Items[i].Name, status.Name, status.User)
				}
			}
		}
	}
}

// deleteCreated deletes the objects that a workload's service accounts created: the Deployments among
// them would replace their pods.
func (w *workload) deleteCreated(t testing.TB, c *cluster) {
	t.Helper()
	for _, objects := range w.by {
		for _, o := range objects {
			err := c.admin.Delete(t.Context(), o.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
}

// deletePods deletes the pods that no controller owns, and waits until no pod of a workload is
// left.
func (c *cluster) deletePods(t testing.TB, all []*workload) {
	t.Helper()
	for _, namespace := range listNamespaces(all, "") {
		if err := c.admin.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		awaitCondition(t, patience, "the workloads' pods to end", func(ctx context.Context) error {
			var pods corev1.PodList
			if err := c.admin.List(ctx, &pods, client.InNamespace(namespace)); err != nil || len(pods.Items) == 0 {
				return err
			}
			return fmt.Errorf("%d pods are left, such as %s", len(pods.Items), pods.Items[0].Name)
		})
	}
}

// listNamespaces returns the namespaces of the workloads with a Pod Security level, or of all.
func listNamespaces(all []*workload, level v1alpha1.PodSecurityLevel) []string {
	var names []string
	for _, w := range all {
		if (level == "" || w.level == string(level)) && !slices.Contains(names, w.team.tenant) {
			names = append(names, w.team.tenant)
		}
	}
	return names
}
