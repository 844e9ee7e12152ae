package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/machine"
)

const (
	// logRate is the number of lines a second that the container writes, and logSeconds the time for which it
	// writes.
	logRate, logSeconds = 10_000, 60
	logLines            = logRate * logSeconds
	// mostPageMemory is the target for the memory of the page with the log.
	mostPageMemory = 200 << 20
	// lastLine ends the log.
	lastLine = "the container has written everything"
)

// measureLog opens the page of a pod that writes a fast log, and downloads the log. Nodes of the sandbox have no
// containers, so a server of the benchmark answers the API server's requests to the kubelet.
func (d *dashboardBench) measureLog(ctx context.Context) ([]comparison, error) {
	printProgress("dashboard: a log of %d lines a second", logRate)
	kubelet := httptest.NewTLSServer(http.HandlerFunc(serveLog))
	defer func() {
		kubelet.CloseClientConnections() // of a log that is followed
		kubelet.Close()
	}()
	pod, err := d.createLoggingPod(ctx, kubelet.URL)
	if err != nil {
		return nil, err
	}
	path := "/namespaces/" + pod.Namespace + "/workloads/pod/" + pod.Name
	if _, err := d.browser.observe(d.admin.openInBrowser(path, "line 1")); err != nil {
		return nil, err
	}
	memory, err := d.browser.awaitText(ctx, lastLine, 2*logSeconds*time.Second)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	log, err := d.admin.get(ctx, path+"/log?container=main")
	if err != nil {
		return nil, err
	}
	lines := strings.Count(log, "\n")
	if lines != logLines+1 || !strings.HasSuffix(log, lastLine+"\n") {
		return nil, fmt.Errorf("the download has %d lines of %d", lines, logLines+1)
	}
	return []comparison{{
		Name: "memory of a page with a fast log", Unit: inBytes, Croft: memory, Alternative: mostPageMemory,
		Note: fmt.Sprintf("compared with the target; %d lines a second for %d s; the download of all %d lines took %.1f s, %s",
			logRate, logSeconds, lines, time.Since(start).Seconds(), machine.FormatBytes(float64(len(log)))),
	}}, nil
}

// serveLog answers a request for a log as a kubelet does: a log that is followed is written at its rate and
// remains open, the last lines are a few, and any other log is written at once.
func serveLog(w http.ResponseWriter, r *http.Request) {
	follow, _ := strconv.ParseBool(r.URL.Query().Get("follow"))
	withTime, _ := strconv.ParseBool(r.URL.Query().Get("timestamps"))
	write := func(line string) error {
		if withTime {
			line = time.Now().Format(time.RFC3339Nano) + " " + line
		}
		_, err := fmt.Fprintln(w, line)
		return err
	}
	most := logLines
	if tail, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil && !follow {
		most = tail
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	flush := http.NewResponseController(w).Flush
	for i := range most {
		if follow && i%(logRate/10) == 0 {
			if flush() != nil {
				return // the client has closed the connection
			}
			<-ticker.C
		}
		if write(fmt.Sprintf("line %d of a container that writes very much", i+1)) != nil {
			return
		}
	}
	if most == logLines && write(lastLine) != nil {
		return
	}
	if follow && flush() == nil {
		<-r.Context().Done()
	}
}

// createLoggingPod creates a node whose kubelet is a server of the benchmark, and a pod on it that runs.
func (d *dashboardBench) createLoggingPod(ctx context.Context, kubelet string) (*corev1.Pod, error) {
	address, err := url.Parse(kubelet)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bench-logs"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "logs"},
		Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "main", Image: "logs:1"}}},
	}
	if err := errors.Join(d.client.Create(ctx, node), d.client.Create(ctx, pod)); err != nil {
		return nil, err
	}
	// Controllers change both objects meanwhile.
	createdNode, createdPod := client.MergeFrom(node.DeepCopy()), client.MergeFrom(pod.DeepCopy())
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.Hostname()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}}
	return pod, errors.Join(d.client.Status().Patch(ctx, node, createdNode), d.client.Status().Patch(ctx, pod, createdPod))
}
