package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// jumpingClock is the system's clock, moved by an offset. Its timers are not moved, as a computer's
// are not.
type jumpingClock struct {
	clock.RealClock
	offset atomic.Int64
}

// Now implements clock.Clock.
func (c *jumpingClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.offset.Load())) }

// Since implements clock.Clock.
func (c *jumpingClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// faults are the faults of the connection between the operators and the API server.
type faults struct {
	mu     sync.Mutex
	random *rand.Rand
	// conflicts of each hundred writes are refused as conflicts. The answers to lost of each hundred
	// writes are lost.
	conflicts, lost int
	// bug is a planted bug, or nil.
	bug *bug
}

func (f *faults) setRates(conflicts, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conflicts, f.lost = conflicts, lost
}

// drawFault returns the fault of the next write.
func (f *faults) drawFault() (isConflict, isLost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	drawn := f.random.IntN(100)
	return drawn < f.conflicts, drawn >= 100-f.lost
}

var errLost = errors.New("the answer is lost")

// wire is one operator's connection.
type wire struct {
	next http.RoundTripper
	*faults
	gate *gate
}

// gate is the connection of one process. It ends all communication when the process is killed.
type gate struct {
	mu  sync.Mutex
	cut bool
	// frozen is closed when a suspended process resumes. It is nil if the process is not suspended.
	frozen chan struct{}
	// left is the number of writes until the process notices that it lost its lease, or -1.
	left int
}

func newGate() *gate { return &gate{left: -1} }

// awaitResume waits until the process is not suspended. It returns false if the process is killed.
func (g *gate) awaitResume(req *http.Request) bool {
	g.mu.Lock()
	frozen := g.frozen
	g.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
			return true // it was in flight
		case <-req.Context().Done():
			return false
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if req.Method != http.MethodGet && g.left >= 0 {
		g.left--
		g.cut = g.cut || g.left < 0
	}
	return !g.cut
}

// freezeProcess suspends the process, as a busy node does.
func (g *gate) freezeProcess() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.frozen = make(chan struct{})
}

// thawProcess resumes the process. Another operator leads by now, which it notices after some
// writes.
func (g *gate) thawProcess(writes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.frozen)
	g.frozen, g.left = nil, writes
}

// killProcess ends all communication.
func (g *gate) killProcess() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = true
}

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if !w.gate.awaitResume(req) {
		return nil, errLost
	}
	if req.Method == http.MethodGet {
		response, err := w.next.RoundTrip(req)
		if err == nil && w.bug != nil && w.bug.read != nil && strings.Contains(req.URL.Path, w.bug.reads) {
			response.Body = rewriteObjects(response.Body, w.bug.read)
			response.ContentLength = -1
			response.Header.Del("Content-Length")
		}
		return response, err
	}
	isConflict, isLost := w.drawFault()
	if isConflict {
		return refuseWrite(req), nil
	}
	if w.bug != nil && w.bug.write != nil {
		answered, err := w.bug.changeRequest(req)
		if answered != nil || err != nil {
			return answered, err
		}
	}
	response, err := w.next.RoundTrip(req)
	if err == nil && isLost {
		response.Body.Close()
		return nil, errLost
	}
	return response, err
}

// refuseWrite answers a write with a conflict, without sending it.
func refuseWrite(req *http.Request) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonConflict, Code: http.StatusConflict, Message: "a conflict storm",
	}
	return newResponse(req, http.StatusConflict, status)
}

func newResponse(req *http.Request, code int, body any) *http.Response {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // it contains plain values only
	}
	if req.Body != nil {
		req.Body.Close()
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)),
	}
}

// bug is a planted bug: croft with it violates one family of invariants.
type bug struct {
	family string
	// course is a fixed course in which the bug shows. Without the bug, it violates nothing.
	course []step
	// write changes an object that the operator writes, or returns true to drop the write and
	// answer as if it had been stored.
	write func(method, path string, object map[string]any) (drop bool)
	// read changes each object that the operator reads from paths that contain reads.
	reads string
	read  func(object map[string]any)
	// run runs as long as the operator.
	run func(context.Context, client.Client)
}

// changeRequest changes a request, or answers it.
func (b *bug) changeRequest(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		return nil, nil
	}
	raw, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	// A JSON patch is a list.
	if json.Unmarshal(raw, &object) == nil {
		if b.write(req.Method, req.URL.Path, object) {
			req.Body = nil
			return newResponse(req, http.StatusOK, object), nil
		}
		if raw, err = json.Marshal(object); err != nil {
			return nil, err
		}
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	req.GetBody = nil
	return nil, nil
}

// rewriteObjects changes each object in a response: an object, a list, or the events of a watch.
func rewriteObjects(body io.ReadCloser, change func(map[string]any)) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		defer body.Close()
		from, to := json.NewDecoder(body), json.NewEncoder(writer)
		from.UseNumber()
		for {
			read := map[string]any{}
			if err := from.Decode(&read); err != nil {
				writer.CloseWithError(err)
				return
			}
			objects := []any{read, read["object"]}
			if items, ok := read["items"].([]any); ok {
				objects = append(objects, items...)
			}
			for _, o := range objects {
				if o, ok := o.(map[string]any); ok {
					change(o)
				}
			}
			if err := to.Encode(read); err != nil {
				return
			}
		}
	}()
	return struct {
		io.Reader
		io.Closer
	}{reader, closers{reader, body}}
}

// closers closes a response's body, so that a watch ends.
type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for _, each := range c {
		errs = append(errs, each.Close())
	}
	return errors.Join(errs...)
}

// getField returns a map in an object, or an empty map.
func getField(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	if object == nil {
		return map[string]any{}
	}
	return object
}

// listBugs returns a bug for each family.
func listBugs() []*bug {
	rule := func(name string) string { return v1alpha1.RulesAnnotationPrefix + name }
	// setRule changes a rule of namespaces.
	setRule := func(name string, value func(string) string) func(string, string, map[string]any) bool {
		return func(_, path string, object map[string]any) bool {
			annotations := getField(object, "metadata", "annotations")
			if now, ok := annotations[rule(name)].(string); ok && strings.HasPrefix(path, "/api/v1/namespaces/") {
				annotations[rule(name)] = value(now)
			}
			return false
		}
	}
	inForce := func(onlyNew bool) func(map[string]any) {
		return func(object map[string]any) {
			hard, counted := getField(object, "spec", "hard"), getField(object, "status", "hard")
			if len(hard) == 0 || onlyNew != (len(counted) == 0) {
				return
			}
			status, ok := object["status"].(map[string]any)
			if !ok {
				status = map[string]any{}
				object["status"] = status
			}
			status["hard"] = hard
		}
	}
	drop := func(name string) func(string, string, map[string]any) bool {
		return func(method, path string, _ map[string]any) bool {
			return method == http.MethodPatch && strings.HasSuffix(path, "/networkpolicies/"+name)
		}
	}
	declared := newCourse(declareOne(tenantNames[0], nil))
	return []*bug{
		{family: familyPlacement, course: declared, write: setRule("pools", func(string) string { return strings.Join(poolNames, ",") })},
		{family: familyOwner, course: declared, write: func(method, path string, object map[string]any) bool {
			if method == http.MethodPost && path == "/api/v1/namespaces" {
				delete(getField(object, "metadata", "labels"), v1alpha1.TenantLabel)
			}
			return false
		}},
		{family: familyCounted, course: declareUncounted(), reads: "/resourcequotas", read: inForce(true)},
		{family: familyWalls, course: declared, write: drop("croft-isolation")},
		{family: familyShares, course: moveUncounted(), reads: "/resourcequotas", read: inForce(false)},
		{family: familyDomains, course: newCourse(
			declareOne(tenantNames[0], func(s *v1alpha1.TenantSpec) { s.Domains = domainNames[:1] }),
			declareOne(tenantNames[1], func(s *v1alpha1.TenantSpec) { s.Domains = []string{"c.example.com"} }),
		), write: setRule("domains", func(now string) string { return now + "," + domainNames[0] })},
		{family: familyRender, course: declared, write: drop("croft-egress")},
		{family: familySteady, course: declared, run: writeForever},
	}
}

// idleSeconds is the time without writes after which an operator in a fixed course has no work left.
// It is longer than the pause after which the operator evaluates the use of a quota.
const idleSeconds = 3

// declareUncounted declares a tenant while kube-controller-manager counts nothing. Otherwise its quota is
// mostly counted before the operator gives access, with the bug, too.
func declareUncounted() []step {
	return newCourse(
		step{action: freezeController},
		declareOne(tenantNames[0], nil),
		step{action: awaitIdle, number: idleSeconds},
	)
}

// moveUncounted fills one of two namespaces, so that a part of the other's share moves to it, while
// kube-controller-manager puts no lower share into force.
func moveUncounted() []step {
	const quota = 12
	steps := []step{
		declareOne(tenantNames[0], func(s *v1alpha1.TenantSpec) {
			s.Namespaces = []string{tenantNames[0], namespaceNames[0]}
			s.Quota["configmaps"] = *resource.NewQuantity(quota, resource.DecimalSI)
		}),
		{action: awaitApplied},
		{action: freezeController},
	}
	for range quota / 2 {
		// All in the first namespace.
		steps = append(steps, step{action: createObject, tenant: tenantNames[0]})
	}
	return newCourse(append(steps, step{action: awaitIdle, number: idleSeconds})...)
}

// writeForever changes a namespace again and again.
func writeForever(ctx context.Context, c client.Client) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// An error is no matter: the next write follows.
			_ = sendPatch(ctx, c, newNamespace("default"), fmt.Sprintf(`{"metadata":{"annotations":{"model.example.org/bug":"%d"}}}`, n))
		}
	}
}
