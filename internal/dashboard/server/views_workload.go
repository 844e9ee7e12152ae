package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/diagnose/why"
)

const (
	// tailLines is the number of lines of a log on a page, and tailBytes their maximum size.
	tailLines = 200
	tailBytes = 256 << 10
)

// showWorkload does not decode messages of AWS: that would need credentials of the dashboard.
func showWorkload(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	target, err := readTarget(r, r.PathValue("kind"))
	if err != nil {
		return page.Page{}, err
	}
	snapshot, err := why.Gather(ctx, c, target)
	if err != nil {
		return page.Page{}, err
	}
	story := why.ExplainSnapshot(snapshot)
	details := page.Details{Events: workloads.SelectEvents(snapshot), Pods: snapshot.Pods, Changes: listChanges(snapshot.Object, target.Kind)}
	if pod, ok := snapshot.Object.(*corev1.Pod); ok {
		details.Pods = nil
		if details.Log, err = readLog(ctx, c, pod, r); err != nil {
			return page.Page{}, err
		}
		if details.Command, err = offerCommands(ctx, c, pod); err != nil {
			return page.Page{}, err
		}
	}
	return page.NewWorkload(&story, details), nil
}

// readTarget returns the object of a kind with the name in the path. Names that Kubernetes does not allow are missing.
func readTarget(r *http.Request, kind string) (why.Target, error) {
	namespace, err := readNamespace(r)
	if err != nil {
		return why.Target{}, err
	}
	name := r.PathValue("name")
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return why.Target{}, errMissing
	}
	target, err := why.ParseTarget([]string{kind, name}, namespace)
	if err != nil || target.Namespace == "" {
		return why.Target{}, errMissing
	}
	return target, nil
}

// readLog reads the last lines of the container in the query. A log that cannot be read, such as
// before the container starts, is no error of the page.
func readLog(ctx context.Context, c *cluster.Client, pod *corev1.Pod, r *http.Request) (*page.Log, error) {
	l := &page.Log{Containers: workloads.ListContainers(pod), Container: r.URL.Query().Get("container"), Previous: r.URL.Query().Get("previous") != ""}
	if l.Container == "" {
		l.Container = workloads.ChooseContainer(pod)
	}
	if !slices.Contains(l.Containers, l.Container) {
		if l.Container == "" {
			return l, nil // a pod without containers exists only in tests
		}
		return nil, errMissing
	}
	stream, err := c.OpenLog(ctx, client.ObjectKeyFromObject(pod), &corev1.PodLogOptions{
		Container: l.Container, Previous: l.Previous, TailLines: ptr.To[int64](tailLines), LimitBytes: ptr.To[int64](tailBytes),
	})
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return nil, err
	case errors.As(err, &status):
		l.Problem = status.Status().Message
		return l, nil
	case err != nil:
		return nil, err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, tailBytes))
	l.Text = string(text)
	return l, err
}

// downloadLog streams the whole log of a container, or follows it.
func (d *dashboard) downloadLog(w http.ResponseWriter, r *http.Request) {
	s, c, ok := d.openConnection(w, r)
	if !ok {
		return
	}
	namespace, err := readNamespace(r)
	pod, container := r.PathValue("name"), r.URL.Query().Get("container")
	if err != nil || len(validation.IsDNS1123Subdomain(pod)) > 0 || len(validation.IsDNS1123Label(container)) > 0 {
		d.respondMissing(w, r, s)
		return
	}
	if isStream(r) {
		d.followLog(w, r, s, c, client.ObjectKey{Namespace: namespace, Name: pod}, container)
		return
	}
	stream, err := c.OpenLog(r.Context(), client.ObjectKey{Namespace: namespace, Name: pod}, &corev1.PodLogOptions{
		Container: container, Previous: r.URL.Query().Get("previous") != "",
	})
	if err != nil {
		if apierrors.IsBadRequest(err) {
			err = errMissing // there is no such container, or it has no log
		}
		d.respondError(w, r, s, err)
		return
	}
	defer stream.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+pod+"-"+container+`.log"`)
	// A long log takes longer than a page may.
	if err := http.NewResponseController(w).SetWriteDeadline(noDeadline); err != nil {
		d.Log.WarnContext(r.Context(), "the download keeps the time limit of pages", "error", err)
	}
	if _, err := io.Copy(w, stream); err != nil {
		d.Log.WarnContext(r.Context(), "the download of a log ended early", "path", r.URL.Path, "user", s.User, "error", err)
		panic(http.ErrAbortHandler) // the browser must not take it for the whole log
	}
}
