package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// maxFrame is the maximum size of an event. etcd stores objects of at most 3 MiB, and their
// JSON is a few times as large.
const maxFrame = 64 << 20

// refusalRetry is the time until a namespace that the API server refused is watched again.
// The proxy often learns of a new RoleBinding before the API server's authorizer does, whose
// cache is a few milliseconds old, or seconds on a busy server. A user who may get a
// namespace but never read the resource costs one request per step.
var refusalRetry = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 4, Steps: 6}

// serveWatch merges the watches of the namespaces that the user may read into one.
//
// Events are ordered within a namespace, but not across namespaces: a client that has
// received version 110 in one namespace may have missed version 105 in another. A watch can
// therefore start only from a version at which the proxy knows which namespaces the client
// has read: the version of a list or of a bookmark. For any other version the response is
// 410 Expired, as from an API server that has compacted the version, and the client lists
// again.
func (a *allNamespaces) serveWatch(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) bool {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	m := &mergedWatch{
		allNamespaces: a, r: r, info: info, ctx: ctx, cancel: cancel, frames: make(chan frame), streams: map[string]*stream{},
		refused: make(chan string), retries: map[string]*wait.Backoff{},
		initial: r.URL.Query().Get("sendInitialEvents") == "true",
	}
	visible, err := m.start()
	switch {
	case err != nil:
		responder{}.Error(w, r, err)
	case m.failed != nil:
		m.failed.writeTo(w)
	case len(m.streams) == 0:
		return false
	default:
		m.serve(w, visible.ResultChan())
	}
	return true
}

// mergedWatch is an open watch across several namespaces.
type mergedWatch struct {
	*allNamespaces
	r       *http.Request
	info    *request.RequestInfo
	ctx     context.Context
	cancel  func()
	frames  chan frame
	streams map[string]*stream
	// refused receives a namespace when its watch is due to be requested again; retries has
	// the steps that are left.
	refused chan string
	retries map[string]*wait.Backoff
	// initial is true until the client has received the bookmark that ends the initial
	// events.
	initial     bool
	contentType string
	// lastBookmark is the version of the last bookmark sent.
	lastBookmark uint64
	failed       *bufferedResponse
}

// stream is the watch of one namespace.
type stream struct {
	// version is the version of the stream's last bookmark: the stream has sent all events
	// up to it. bookmark is that bookmark's encoded event; during the initial events it is
	// set only once the stream's own initial events have ended.
	version  uint64
	bookmark []byte
}

// frame is an encoded event of a namespace. Its content is nil if the stream has ended.
type frame struct {
	namespace string
	content   []byte
}

// start opens the watches of all namespaces that the user may get, and a watch of that set
// of namespaces.
func (m *mergedWatch) start() (watch.Interface, error) {
	options := m.r.URL.Query()
	version := options.Get("resourceVersion")
	cached, ok := m.knownVersions.Get(versionKey(m.r, m.info, version))
	resumes := !m.initial && version != "" && version != "0"
	if resumes && !ok {
		return nil, apierrors.NewResourceExpired("resourceVersion: a watch across namespaces cannot start from " + version + ": list again")
	}
	known, _ := cached.(knownVersion)
	visible, err := m.Watch(m.ctx, &metainternalversion.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true})
	if err != nil {
		return nil, err
	}
	complete := false
	for e := range visible.ResultChan() {
		if complete = e.Type == watch.Bookmark; complete {
			break // all existing namespaces have been received
		}
		o, ok := e.Object.(metav1.Object)
		if !ok || e.Type != watch.Added {
			break
		}
		streamOptions := options
		if resumes && !known.common.Has(o.GetName()) {
			streamOptions = m.buildFreshOptions()
		}
		if err := m.open(o.GetName(), streamOptions); err != nil || m.failed != nil {
			return nil, err
		}
	}
	if !complete || resumes && !m.watchedNamespaces().IsSuperset(known.union) {
		return nil, m.errNamespacesChanged()
	}
	return visible, nil
}

// watchedNamespaces returns the namespaces with an open stream.
func (m *mergedWatch) watchedNamespaces() sets.Set[string] { return sets.KeySet(m.streams) }

// buildFreshOptions returns the options to watch a namespace that the client has not read yet.
func (m *mergedWatch) buildFreshOptions() url.Values {
	options := m.r.URL.Query()
	options.Del("resourceVersion")
	if !m.initial {
		options.Del("resourceVersionMatch")
		options.Del("sendInitialEvents")
	}
	return options
}

// errNamespacesChanged makes a client list again, because it may have objects of a
// namespace that the user can no longer read.
func (m *mergedWatch) errNamespacesChanged() *apierrors.StatusError {
	return apierrors.NewResourceExpired("the namespaces that you may read have changed: list again")
}

// open starts the watch of one namespace. If the user may not watch it, serve tries again
// later.
func (m *mergedWatch) open(namespace string, options url.Values) error {
	response, err := m.requestNamespace(m.ctx, m.r, m.info, namespace, options)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		switch answer := (&bufferedResponse{response.StatusCode, response.Header, body}); {
		case !answer.isHidden():
			m.failed = answer
		case answer.status == http.StatusForbidden:
			m.scheduleRetry(namespace)
		}
		return nil
	}
	contentType := response.Header.Get("Content-Type")
	framer := runtime.Framer(jsonserializer.Framer)
	if parseMediaType(contentType) == protobufType {
		framer = protobuf.LengthDelimitedFramer
	}
	m.contentType = contentType
	m.streams[namespace] = &stream{}
	go m.readEvents(namespace, framer.NewFrameReader(response.Body))
	return nil
}

// scheduleRetry sends a refused namespace to serve after a while, unless its steps are used up.
func (m *mergedWatch) scheduleRetry(namespace string) {
	if m.retries[namespace] == nil {
		m.retries[namespace] = new(refusalRetry)
	}
	if m.retries[namespace].Steps == 0 {
		return
	}
	time.AfterFunc(m.retries[namespace].Step(), func() {
		select {
		case m.refused <- namespace:
		case <-m.ctx.Done():
		}
	})
}

// readEvents sends the events of a namespace to serve until the stream ends.
func (m *mergedWatch) readEvents(namespace string, events io.ReadCloser) {
	defer events.Close()
	for {
		content, err := readFrame(events)
		if err != nil {
			content = nil
		}
		select {
		case m.frames <- frame{namespace, content}:
		case <-m.ctx.Done():
			return
		}
		if content == nil {
			return
		}
	}
}

// readFrame reads one event. The framer's reader returns io.ErrShortBuffer while the event
// is larger than the buffer.
func readFrame(events io.Reader) ([]byte, error) {
	var content []byte
	buffer := make([]byte, 16<<10)
	for {
		n, err := events.Read(buffer)
		content = append(content, buffer[:n]...)
		switch {
		case len(content) > maxFrame:
			return nil, errors.New("an event is too large")
		case errors.Is(err, io.ErrShortBuffer):
		case err != nil:
			return nil, err
		default:
			return content, nil
		}
	}
}

// serve sends the events of all namespaces until one of the streams ends or the user loses
// access to a namespace.
func (m *mergedWatch) serve(w http.ResponseWriter, visible <-chan watch.Event) {
	w.Header().Set("Content-Type", m.contentType)
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush()
	for {
		select {
		case <-m.ctx.Done():
			return
		case f := <-m.frames:
			if f.content == nil || m.forward(w, f) != nil {
				return
			}
		case namespace := <-m.refused:
			if m.openAdded(namespace) != nil {
				return
			}
			continue
		case e, ok := <-visible:
			// The client drops its objects of a lost namespace by listing again.
			if !ok || m.updateNamespaces(e) != nil {
				_ = m.writeFrame(w, m.encodeExpired())
				return
			}
			continue
		}
		if out.Flush() != nil {
			return
		}
	}
}

// updateNamespaces opens a stream for a namespace that became readable. It returns an error
// if the user lost access to a namespace.
func (m *mergedWatch) updateNamespaces(e watch.Event) error {
	o, ok := e.Object.(metav1.Object)
	switch {
	case e.Type == watch.Bookmark:
		return nil
	case !ok || e.Type == watch.Deleted:
		return m.errNamespacesChanged()
	}
	return m.openAdded(o.GetName())
}

// openAdded opens a stream for a namespace that the client has not read yet, unless there is
// one.
func (m *mergedWatch) openAdded(namespace string) error {
	if m.streams[namespace] != nil {
		return nil
	}
	if err := m.open(namespace, m.buildFreshOptions()); err != nil {
		return err
	}
	if m.failed != nil {
		return errors.New("a namespace cannot be watched")
	}
	return nil
}

// forward sends an event to the client. A bookmark is sent once every stream has reached
// its version.
func (m *mergedWatch) forward(w io.Writer, f frame) error {
	e, err := m.parseBookmark(f.content)
	if err != nil {
		return err
	}
	if e == nil {
		return m.writeFrame(w, f.content)
	}
	s := m.streams[f.namespace]
	if s.version, err = strconv.ParseUint(e.ResourceVersion, 10, 64); err != nil {
		return err
	}
	s.bookmark = f.content
	if m.initial && e.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		s.bookmark = nil
	}
	oldest := s
	for _, other := range m.streams {
		if other.bookmark == nil {
			return nil
		}
		if other.version < oldest.version {
			oldest = other
		}
	}
	if oldest.version <= m.lastBookmark {
		return nil
	}
	m.initial, m.lastBookmark = false, oldest.version
	m.rememberVersion(m.r, m.info, strconv.FormatUint(oldest.version, 10), m.watchedNamespaces())
	return m.writeFrame(w, oldest.bookmark)
}

// parseBookmark returns the metadata of a bookmark, or nil for any other event.
func (m *mergedWatch) parseBookmark(content []byte) (*metav1.ObjectMeta, error) {
	if !bytes.Contains(content, []byte(watch.Bookmark)) {
		return nil, nil
	}
	var e metav1.WatchEvent
	if parseMediaType(m.contentType) != protobufType {
		if err := json.Unmarshal(content, &e); err != nil || e.Type != string(watch.Bookmark) {
			return nil, err
		}
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(e.Object.Raw, &o); err != nil {
			return nil, err
		}
		if o.Kind == "Table" {
			return parseTableBookmark(e.Object.Raw)
		}
		return &o.ObjectMeta, nil
	}
	if err := e.Unmarshal(content); err != nil || e.Type != string(watch.Bookmark) {
		return nil, err
	}
	unknown, err := decodeEnvelope(e.Object.Raw)
	if err != nil {
		return nil, err
	}
	var o metav1.PartialObjectMetadata
	return &o.ObjectMeta, o.Unmarshal(unknown.Raw)
}

// parseTableBookmark returns the metadata of a bookmark encoded as a Table, which is in the
// Table's only row.
func parseTableBookmark(content []byte) (*metav1.ObjectMeta, error) {
	var t metav1.Table
	if err := json.Unmarshal(content, &t); err != nil {
		return nil, err
	}
	meta := &metav1.ObjectMeta{ResourceVersion: t.ResourceVersion}
	if len(t.Rows) == 1 {
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(t.Rows[0].Object.Raw, &o); err != nil {
			return nil, err
		}
		meta = &o.ObjectMeta
	}
	return meta, nil
}

func (m *mergedWatch) writeFrame(w io.Writer, content []byte) error {
	framer := runtime.Framer(jsonserializer.Framer)
	if parseMediaType(m.contentType) == protobufType {
		framer = protobuf.LengthDelimitedFramer
	}
	_, err := framer.NewFrameWriter(w).Write(content)
	return err
}

// encodeExpired returns the error event that makes the client list again.
func (m *mergedWatch) encodeExpired() []byte {
	status := m.errNamespacesChanged().Status()
	status.Kind, status.APIVersion = "Status", "v1"
	e := metav1.WatchEvent{Type: string(watch.Error)}
	if parseMediaType(m.contentType) == protobufType {
		codec := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
		e.Object.Raw, _ = runtime.Encode(codec, &status) // a Status is always encoded
		content, _ := e.Marshal()
		return content
	}
	e.Object.Raw, _ = json.Marshal(status)
	content, _ := json.Marshal(e)
	return append(content, '\n')
}
