package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
)

// podRunner acts as the kubelet of croft's own namespace. It runs each pod of croft's image as
// a process, with the arguments of its container and a token of its service account, and
// reports the results of its probes.
type podRunner struct {
	*cluster
	// binary is the croft binary of the image, if `make image` has built one.
	binary, dir string
	// others are images of other versions. There is no binary for them: their pods run an idle
	// process and are ready.
	others []string

	mu      sync.Mutex
	running map[string]*podProcess
	// ran lists the pods that were started, each as service account and image.
	ran []string
}

type podProcess struct {
	*exec.Cmd
	health string
	// idle reports whether the process does nothing.
	idle  bool
	ended chan error
}

// runPods runs the pods of croft's namespace until the test ends. The pods of other images are
// idle.
func (c *cluster) runPods(t testing.TB, others ...string) *podRunner {
	t.Helper()
	binary := findCroftBinary(t)
	if _, err := sandbox.FindTool("croft-image.tar"); err == nil {
		binary = extractBinary(t)
	}
	r := &podRunner{cluster: c, binary: binary, dir: t.TempDir(), others: others, running: map[string]*podProcess{}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Pdeathsig kills a child when the thread that started it ends.
		runtime.LockOSThread()
		for ctx.Err() == nil {
			if err := r.syncPods(ctx); err != nil && ctx.Err() == nil {
				t.Logf("the pods of %s: %v", v1alpha1.SystemNamespace, err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
		for _, p := range r.running {
			if err := p.Process.Kill(); err == nil {
				<-p.ended
			}
		}
	})
	return r
}

// syncPods starts new pods, ends deleted ones, and reports the status of the others.
func (r *podRunner) syncPods(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pods corev1.PodList
	if err := r.admin.List(ctx, &pods, client.InNamespace(v1alpha1.SystemNamespace)); err != nil {
		return err
	}
	var there []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		there = append(there, pod.Name)
		p := r.running[pod.Name]
		if p == nil {
			var err error
			if p, err = r.startPod(ctx, pod); err != nil {
				return err
			}
			r.running[pod.Name] = p
		}
		if err := r.reportStatus(ctx, pod, p); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	for name, p := range r.running {
		if !slices.Contains(there, name) {
			if err := p.Process.Signal(os.Interrupt); err == nil {
				<-p.ended
			}
			delete(r.running, name)
		}
	}
	return nil
}

func (r *podRunner) startPod(ctx context.Context, pod *corev1.Pod) (*podProcess, error) {
	container := pod.Spec.Containers[0]
	kubeconfig, err := r.writePodKubeconfig(ctx, pod)
	if err != nil {
		return nil, err
	}
	args, p := slices.Clone(container.Args), &podProcess{ended: make(chan error, 1), idle: slices.Contains(r.others, container.Image)}
	if container.ReadinessProbe != nil && !p.idle {
		// Each pod has its own address, but these processes share the machine's.
		if p.health, err = findProbeAddress(); err != nil {
			return nil, err
		}
		args = append(args, "--health-addr="+p.health, "--metrics-addr=0")
	}
	p.Cmd = exec.Command(r.binary, args...)
	if p.idle {
		p.Cmd = exec.Command("sleep", "infinity")
	}
	p.SysProcAttr = killWithParent()
	p.Env = []string{"KUBECONFIG=" + kubeconfig, "HOSTNAME=" + pod.Name}
	for _, e := range container.Env {
		p.Env = append(p.Env, e.Name+"="+e.Value)
	}
	log, err := os.Create(filepath.Join(r.Dir, "logs", pod.Name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.Stdout, p.Stderr, p.Dir = log, log, r.dir
	r.ran = append(r.ran, pod.Spec.ServiceAccountName+" "+container.Image)
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() { p.ended <- p.Wait(); close(p.ended) }()
	return p, nil
}

// writePodKubeconfig writes a kubeconfig with a token of the pod's service account.
func (r *podRunner) writePodKubeconfig(ctx context.Context, pod *corev1.Pod) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	request := &authenticationv1.TokenRequest{}
	if err := r.admin.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["pod"] = &clientcmdapi.Cluster{
		Server: r.Config.Host, CertificateAuthority: r.Config.CAFile, CertificateAuthorityData: r.Config.CAData,
	}
	config.AuthInfos["pod"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["pod"] = &clientcmdapi.Context{Cluster: "pod", AuthInfo: "pod", Namespace: pod.Namespace}
	config.CurrentContext = "pod"
	path := filepath.Join(r.dir, pod.Name+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// reportStatus writes the pod's status as a kubelet does.
func (r *podRunner) reportStatus(ctx context.Context, pod *corev1.Pod, p *podProcess) error {
	now, before := metav1.Now(), pod.DeepCopy()
	container := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image}
	select {
	case err := <-p.ended:
		delete(r.running, pod.Name)
		pod.Status.Phase = corev1.PodSucceeded
		terminated := &corev1.ContainerStateTerminated{FinishedAt: now, StartedAt: now}
		if err != nil {
			pod.Status.Phase, terminated.ExitCode = corev1.PodFailed, 1
		}
		container.State.Terminated = terminated
	default:
		ready := p.idle || p.health != "" && sendProbe("http://"+p.health+pod.Spec.Containers[0].ReadinessProbe.HTTPGet.Path)
		if pod.Status.Phase == corev1.PodRunning && pod.Status.ContainerStatuses[0].Ready == ready {
			return nil
		}
		condition := corev1.ConditionFalse
		if ready {
			condition = corev1.ConditionTrue
		}
		pod.Status.Phase = corev1.PodRunning
		container.Ready, container.State.Running = ready, &corev1.ContainerStateRunning{StartedAt: now}
		pod.Status.Conditions = nil
		for _, name := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: name, Status: condition, LastTransitionTime: now})
		}
	}
	pod.Status.StartTime, pod.Status.ContainerStatuses = &now, []corev1.ContainerStatus{container}
	return r.admin.Status().Patch(ctx, pod, client.MergeFrom(before))
}

// sendProbe requests a URL as a kubelet's HTTP probe does.
func sendProbe(url string) bool {
	answer, err := (&http.Client{Timeout: time.Second}).Get(url)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode < http.StatusBadRequest
}

// findProbeAddress returns a local address that is not in use.
func findProbeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("a port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// listStarted returns the pods that were started, each as service account and image.
func (r *podRunner) listStarted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ran)
}
