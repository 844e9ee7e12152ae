package sandbox

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const tenantA = "tenant-a"

func TestGatekeeper(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	Thorough(t)
	started := time.Now()
	c := Start(t, Options{Components: WithControllers, With: []string{Gatekeeper}})
	component, err := c.Component(Gatekeeper)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up after %s, of which Gatekeeper took %s", time.Since(started), component.Took)
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	runKubectl(t, c, "create", "namespace", tenantA)
	runKubectl(t, c, "wait", "--for=create", "serviceaccount/default", "-n", tenantA, "--timeout=30s")

	t.Run("it has its usual service account", func(t *testing.T) { expectServiceAccount(t, c) })
	t.Run("Assigns place a pod", func(t *testing.T) {
		runKubectl(t, c, "apply", "-f", "testdata/gatekeeper-placement.yaml")
		awaitCondition(t, func() bool { placed, err := tryPod(t, clients); return placed && err == nil })
	})
	t.Run("templates in Rego and in CEL deny", func(t *testing.T) {
		runKubectl(t, c, "apply", "-f", "testdata/gatekeeper-templates.yaml")
		for _, kind := range []string{"sandboxnoreggae", "sandboxnoswing"} {
			runKubectl(t, c, "wait", "--for=create", "crd/"+kind+".constraints.gatekeeper.sh", "--timeout=30s")
			runKubectl(t, c, "wait", "--for=condition=Established", "crd/"+kind+".constraints.gatekeeper.sh", "--timeout=30s")
		}
		runKubectl(t, c, "apply", "-f", "testdata/gatekeeper-constraints.yaml")
		for music, message := range map[string]string{"reggae": "rego says no", "swing": "cel says no"} {
			awaitCondition(t, func() bool {
				err := tryConfigMap(t, clients, music)
				return err != nil && strings.Contains(err.Error(), message)
			})
		}
		if err := tryConfigMap(t, clients, "jazz"); err != nil {
			t.Errorf("no constraint forbids jazz: %v", err)
		}
	})
	t.Run("pods are refused while it is stopped", func(t *testing.T) {
		if err := c.Stop(Gatekeeper); err != nil {
			t.Fatal(err)
		}
		if _, err := tryPod(t, clients); !isUnanswered(err) {
			t.Errorf("got %v, want a refusal since the webhook does not answer", err)
		}
		if err := c.Start(Gatekeeper); err != nil {
			t.Fatal(err)
		}
		if placed, err := tryPod(t, clients); !placed || err != nil {
			t.Errorf("started again: placed is %v, %v", placed, err)
		}
	})
	t.Run("it restarts after a kill, and no pod is admitted meanwhile", func(t *testing.T) {
		if err := c.Kill(Gatekeeper); err != nil {
			t.Fatal(err)
		}
		awaitCondition(t, func() bool {
			placed, err := tryPod(t, clients)
			if err == nil && !placed || err != nil && !isUnanswered(err) {
				t.Fatalf("placed is %v, %v; want a refusal, or a placed pod", placed, err)
			}
			return placed
		})
	})
	t.Run("a resumed sandbox has it, with its objects", func(t *testing.T) {
		if err := c.Down(); err != nil {
			t.Fatal(err)
		}
		awaitEnd(t, c.Dir)
		again := Start(t, Options{Dir: c.Dir})
		if clients, err = kubernetes.NewForConfig(again.Config); err != nil {
			t.Fatal(err)
		}
		if placed, err := tryPod(t, clients); !placed || err != nil {
			t.Errorf("placed is %v, %v", placed, err)
		}
	})
}

func TestUpWithoutGatekeeperBinary(t *testing.T) {
	binary, err := FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "--dir", t.TempDir(), "up", "--gatekeeper", "/nowhere/gatekeeper").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "make gatekeeper") {
		t.Errorf("got %v, %s; want an error that names how to build it", err, out)
	}
}

func TestStartWithoutMutatingAdmissionPolicy(t *testing.T) {
	EndToEnd(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c := Start(t, Options{Components: APIOnly, Without: []string{"MutatingAdmissionPolicy"}})
	served := runKubectl(t, c, "api-resources", "--api-group=admissionregistration.k8s.io", "-o", "name")
	if strings.Contains(served, "mutatingadmissionpolic") {
		t.Errorf("still served:\n%s", served)
	}
	if !strings.Contains(served, "validatingadmissionpolicies") {
		t.Errorf("the validating ones are missing too:\n%s", served)
	}
	runKubectl(t, c, "create", "configmap", "objects-are-admitted")
}

// expectServiceAccount checks that Gatekeeper has the rights of its own manifest: many of its
// exemptions depend on its identity.
func expectServiceAccount(t *testing.T, c *Cluster) {
	config, err := clientcmd.BuildConfigFromFlags("", strings.Replace(c.Kubeconfig, "admin.", Gatekeeper+".", 1))
	if err != nil {
		t.Fatal(err)
	}
	its, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := its.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := review.Status.UserInfo.Username; got != "system:serviceaccount:gatekeeper-system:gatekeeper-admin" {
		t.Errorf("it is %s", got)
	}
	_, err = its.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "its-own"}}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("it makes namespaces: got %v, want a refusal", err)
	}
}

// tryPod reports whether an ordinary pod would be placed on pool-a.
func tryPod(t *testing.T, clients kubernetes.Interface) (placed bool, err error) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "nginx-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx"}}},
	}
	pod, err = clients.CoreV1().Pods(tenantA).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, err
	}
	tolerates := false
	for _, toleration := range pod.Spec.Tolerations {
		tolerates = tolerates || toleration.Key == "node-pool" && toleration.Value == "pool-a"
	}
	return tolerates && pod.Spec.NodeSelector["node-pool"] == "pool-a", nil
}

func tryConfigMap(t *testing.T, clients kubernetes.Interface, music string) error {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "song-", Labels: map[string]string{"music": music}}}
	_, err := clients.CoreV1().ConfigMaps(tenantA).Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// isUnanswered reports whether the API server refused because Gatekeeper is not running.
func isUnanswered(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed calling webhook")
}

func awaitCondition(t *testing.T, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal(err)
	}
}
