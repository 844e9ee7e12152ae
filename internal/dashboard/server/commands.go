package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/diagnose/why"
)

// mostUserCommands is the maximum number of concurrent commands of one user, and mostCommands of all users. They
// count per replica.
const mostUserCommands, mostCommands = 2, 20

// commands are the commands that run, by their users.
type commands struct {
	// timeout limits the duration of a command.
	timeout time.Duration

	mu      sync.Mutex
	running map[string]int
	all     int
}

func newCommands() *commands {
	return &commands{timeout: page.CommandSeconds * time.Second, running: map[string]int{}}
}

// add reports whether the limits allow one more command.
func (c *commands) add(user string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[user] >= mostUserCommands || c.all >= mostCommands {
		return false
	}
	c.running[user]++
	c.all++
	return true
}

func (c *commands) remove(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.running[user]--; c.running[user] == 0 {
		delete(c.running, user)
	}
}

// offerCommands returns the form for commands in a pod; nil if the user may not run any, or if no container runs.
// It only decides about the form: the API server decides about each command.
func offerCommands(ctx context.Context, c client.Client, pod *corev1.Pod) (*page.CommandForm, error) {
	running := workloads.ListRunning(pod)
	if len(running) == 0 {
		return nil, nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: pod.Namespace, Verb: "create", Resource: "pods", Subresource: "exec", Name: pod.Name,
	}}}
	switch err := c.Create(ctx, review); {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !review.Status.Allowed:
		return nil, nil
	}
	return &page.CommandForm{Containers: running, Container: running[0]}, nil
}

// runCommand runs the command of a form with the user's token. The pod is read first, so that a hidden pod
// and a missing one are the same.
func (d *dashboard) runCommand(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, string, error) {
	target, err := readTarget(r, "pod")
	if err != nil {
		return page.Page{}, "", err
	}
	pod := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: target.Namespace, Name: target.Name}, pod); err != nil {
		return page.Page{}, "", err
	}
	form := page.CommandForm{Containers: workloads.ListRunning(pod), Container: r.PostForm.Get("container"), Command: r.PostForm.Get("command")}
	if !slices.Contains(workloads.ListContainers(pod), form.Container) {
		return page.Page{}, "", errMissing
	}
	refuse := func(problem page.Text) page.Page {
		return page.NewCommand(target, form, page.CommandResult{State: problem, Verdict: why.Bad})
	}
	user := findUser(r)
	if problem := page.CheckCommand(form.Command); problem != nil {
		return refuse(problem), "", nil
	}
	if !slices.Contains(form.Containers, form.Container) {
		return refuse(page.T("the container %s does not run", form.Container)), "", nil
	}
	if !d.commands.add(user) {
		return refuse(page.T("too many commands run at once: send this one again when another one has ended")), "", nil
	}
	// A command has the same time after a slow read of its pod.
	ctx, end := context.WithTimeout(r.Context(), d.commands.timeout)
	defer end()
	out := &output{end: end, left: page.LongestOutput}
	code, err := d.waitForCommand(ctx, c, user, pod, form, out)
	d.Log.InfoContext(ctx, "ran a command in a pod", "path", r.URL.Path, "user", user) // never the command, which may contain a password
	if apierrors.IsUnauthorized(err) {
		return page.Page{}, "", err
	}
	result := out.read()
	var ran bool
	result.State, result.Verdict, ran = describeEnd(ctx, code, err, result.Cut)
	result.Ran = ran || result.Stdout != "" || result.Stderr != ""
	return page.NewCommand(target, form, result), "", nil
}

// describeEnd describes how a command ended. ran means that it may have run.
func describeEnd(ctx context.Context, code int, err error, isCut bool) (state page.Text, verdict why.Verdict, ran bool) {
	var status apierrors.APIStatus
	switch {
	case err == nil && code == 0:
		return page.T("The command ended with exit code %d.", code), why.Good, true
	case err == nil:
		return page.T("The command ended with exit code %d.", code), why.Bad, true
	case isCut:
		return page.T("The dashboard has closed the connection at this size. The process may continue in the container."), why.Waiting, true
	case ctx.Err() != nil:
		return page.T("The command did not end within %d seconds: the dashboard has closed its connection. Its process may continue in the container.", page.CommandSeconds), why.Bad, true
	case errors.As(err, &status):
		return page.T("The cluster refuses this: %s", status.Status().Message), why.Bad, false
	case errors.Is(err, cluster.ErrNoStreams):
		return page.T("The cluster, or a gateway before it, opens no streams for commands."), why.Bad, false
	case errors.Is(err, cluster.ErrLost):
		return page.T("The connection ended before the command, which may continue in the container."), why.Bad, true
	default:
		return page.T("The cluster could not run the command: %s", err.Error()), why.Bad, false
	}
}

// waitForCommand runs a command, and returns when ctx ends at the latest. A server that does not answer an upgrade
// blocks client-go for longer: then the command counts until the connection ends.
func (d *dashboard) waitForCommand(ctx context.Context, c *cluster.Client, user string, pod *corev1.Pod, form page.CommandForm, out *output) (int, error) {
	type result struct {
		code  int
		err   error
		panic any
	}
	ended := make(chan result, 1)
	go func() {
		var got result
		defer func() {
			got.panic = recover()
			d.commands.remove(user)
			ended <- got
		}()
		got.code, got.err = c.RunCommand(ctx, client.ObjectKeyFromObject(pod), form.Container, form.Command, out.of(&out.stdout), out.of(&out.stderr))
	}()
	select {
	case got := <-ended:
		if got.panic != nil {
			panic(got.panic) // withRecovery responds
		}
		return got.code, got.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// output keeps the first part of a command's output, and then ends the command's connection: the rest could be
// endless.
type output struct {
	end context.CancelFunc

	mu             sync.Mutex
	stdout, stderr []byte
	// left is the number of bytes that may follow.
	left  int
	isCut bool
}

// stream is one of the two streams of an output.
type stream struct {
	*output
	text *[]byte
}

func (o *output) of(text *[]byte) stream { return stream{o, text} }

// Write implements io.Writer.
func (s stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := p[:min(len(p), s.left)]
	*s.text = append(*s.text, kept...)
	s.left -= len(kept)
	if len(kept) < len(p) && !s.isCut {
		s.isCut = true
		s.end()
	}
	return len(p), nil
}

// read returns the output until now.
func (o *output) read() page.CommandResult {
	o.mu.Lock()
	defer o.mu.Unlock()
	return page.CommandResult{Stdout: string(o.stdout), Stderr: string(o.stderr), Cut: o.isCut}
}
