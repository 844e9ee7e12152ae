package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// maxParallelRequests is the number of namespaces that one list request reads in
	// parallel.
	maxParallelRequests = 8
	// maxKnownVersions bounds the cache of resource versions that a watch may start from,
	// and knownVersionTTL is the lifetime of an entry. Clients start a watch within moments
	// of a list, and receive a bookmark every minute.
	maxKnownVersions = 1 << 16
	knownVersionTTL  = 10 * time.Minute
)

// allNamespaces serves lists and watches across all namespaces (kubectl get -A) to users
// who may not read the whole cluster. It requests each namespace as the user and merges the
// responses, so the API server authorizes every read; the proxy's own service account needs
// no read access.
type allNamespaces struct {
	*namespaces
	next *forwarder
	// knownVersions contains the versions that a watch may start from, by versionKey (see
	// watch). listProgress contains the namespaces read by the earlier pages of a paginated
	// list, by continueToken.List.
	knownVersions, listProgress *cache.LRUExpireCache
}

// knownVersion records which namespaces clients have read at a resource version.
type knownVersion struct {
	// common is the set of namespaces that every list or watch at this version has read,
	// and union the set that any of them has read.
	common, union sets.Set[string]
}

// withAllNamespaces serves lists and watches across all namespaces to users who may not
// read the whole cluster.
func withAllNamespaces(n *namespaces, next *forwarder) http.Handler {
	return &allNamespaces{n, next, cache.NewLRUExpireCache(maxKnownVersions), cache.NewLRUExpireCache(maxKnownVersions)}
}

// ServeHTTP implements http.Handler.
func (a *allNamespaces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest || r.URL.Path != resourcePath(info, "") || r.Header.Get("Upgrade") != "" ||
		info.Verb != "list" && info.Verb != "watch" {
		a.next.ServeHTTP(w, r)
		return
	}
	// Users who may read the whole cluster get the API server's own response.
	if !strings.HasPrefix(r.URL.Query().Get("continue"), continuePrefix) {
		direct := &forbiddenBuffer{ResponseWriter: w, header: http.Header{}}
		if a.next.ServeHTTP(direct, r); !direct.isBuffered() {
			return
		}
		if a.serveReadable(w, r, info) {
			return
		}
		direct.release()
		return
	}
	if !a.serveReadable(w, r, info) {
		respondError(w, r, apierrors.NewResourceExpired("none of the listed namespaces can be read any longer: list again"))
	}
}

// resourcePath returns the URL path of a resource in a namespace, or in all namespaces if
// namespace is empty.
func resourcePath(info *request.RequestInfo, namespace string) string {
	p := path.Join("/", info.APIPrefix, info.APIGroup, info.APIVersion)
	if namespace != "" {
		p = path.Join(p, "namespaces", namespace)
	}
	return path.Join(p, info.Resource)
}

// serveReadable responds with the objects that the user may read. If the user may read none of the
// namespaces, it sends nothing and returns false.
func (a *allNamespaces) serveReadable(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) bool {
	if info.Verb == "watch" {
		return a.serveWatch(w, r, info)
	}
	return a.serveList(w, r, info)
}

// requestNamespace sends the request to the API server for a single namespace, with the
// given options. The caller must close the response body.
func (a *allNamespaces) requestNamespace(ctx context.Context, r *http.Request, info *request.RequestInfo, namespace string, options url.Values) (*http.Response, error) {
	out := r.Clone(ctx)
	target := a.next.location
	out.RequestURI, out.Body, out.Host = "", http.NoBody, target.Host
	out.URL = &url.URL{Scheme: target.Scheme, Host: target.Host, Path: path.Join(target.Path, resourcePath(info, namespace)), RawQuery: options.Encode()}
	out.Header.Set("Accept", selectMergeableTypes(r.Header.Values("Accept")))
	for _, name := range []string{"Accept-Encoding", "Connection"} { // specific to the client's connection
		out.Header.Del(name)
	}
	return a.next.transport.RoundTrip(out)
}

// continuePrefix marks the continue tokens that the proxy issues. No continue token of the
// API server starts with it.
const continuePrefix = "croft."

// continueToken is the position at which the next page of a list starts.
type continueToken struct {
	Namespace string `json:"n"`
	// Continue is the API server's continue token for the namespace.
	Continue string `json:"c,omitempty"`
	// Version is the resource version of the whole list.
	Version string `json:"v,omitempty"`
	// List identifies the list, as the key of allNamespaces.listProgress.
	List types.UID `json:"l,omitempty"`
}

func (t continueToken) encode() (string, error) {
	content, err := json.Marshal(t)
	return continuePrefix + base64.RawURLEncoding.EncodeToString(content), err
}

func decodeContinue(from string) (t continueToken, err error) {
	encoded, issuedHere := strings.CutPrefix(from, continuePrefix)
	if !issuedHere {
		return continueToken{}, nil
	}
	content, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(content, &t)
	}
	if err != nil {
		return t, apierrors.NewBadRequest("continue: invalid token: list again")
	}
	return t, nil
}

// bufferedResponse is the API server's response for one namespace.
type bufferedResponse struct {
	status int
	header http.Header
	body   []byte
}

func (b *bufferedResponse) writeTo(w http.ResponseWriter) {
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := b.header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(b.status)
	_, _ = w.Write(b.body)
}

// isHidden reports whether the namespace is left out of the result: the user may not read it,
// it no longer exists, or the resource is cluster-scoped.
func (b *bufferedResponse) isHidden() bool {
	return b.status == http.StatusForbidden || b.status == http.StatusNotFound
}

func (a *allNamespaces) getNamespace(ctx context.Context, r *http.Request, info *request.RequestInfo, namespace string, options url.Values) (*bufferedResponse, error) {
	response, err := a.requestNamespace(ctx, r, info, namespace, options)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return &bufferedResponse{response.StatusCode, response.Header, body}, err
}

// serveList serves a list. All namespaces are read at the resource version of the first one.
func (a *allNamespaces) serveList(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) bool {
	u, _ := request.UserFrom(r.Context())
	options := r.URL.Query()
	from, err := decodeContinue(options.Get("continue"))
	if err != nil {
		respondError(w, r, err)
		return true
	}
	limit, _ := strconv.Atoi(options.Get("limit")) // the API server rejects an invalid limit
	l := &mergedList{allNamespaces: a, r: r, info: info, options: options, limit: limit, version: from.Version, complete: true, readable: sets.New[string]()}
	if from.List != "" {
		var before any
		before, l.complete = a.listProgress.Get(from.List)
		if names, ok := before.(sets.Set[string]); ok {
			l.readable = names.Clone()
		}
	}
	body, err := l.run(a.listVisibleNamesFrom(u, from.Namespace), from)
	switch {
	case err != nil:
		responder{}.Error(w, r, err)
	case l.failed != nil:
		l.failed.writeTo(w)
	case body == nil:
		return false
	default:
		if l.complete {
			a.rememberVersion(r, info, l.version, l.readable)
		}
		w.Header().Set("Content-Type", l.contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}
	return true
}

// listVisibleNamesFrom returns the sorted names of the namespaces that a user may get, starting
// at from.
func (n *namespaces) listVisibleNamesFrom(u user.Info, from string) []string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return slices.DeleteFunc(n.listVisibleNames(u), func(name string) bool { return name < from })
}

// mergedList is a list in progress.
type mergedList struct {
	*allNamespaces
	r       *http.Request
	info    *request.RequestInfo
	options url.Values
	// limit is the number of items that the client asked for (0 for all), and count the
	// number of items so far.
	limit, count         int
	version, contentType string
	// readable is the set of namespaces read for this page and the pages before it.
	// complete is false if the namespaces of earlier pages are no longer known.
	readable sets.Set[string]
	complete bool
	merger   merger
	// failed is an error response of the API server. It ends the list, because a partial
	// list would look like a complete one.
	failed *bufferedResponse
}

// run lists the namespaces. It returns nil if the user may read none of them.
func (l *mergedList) run(names []string, from continueToken) ([]byte, error) {
	for len(names) > 0 && l.failed == nil {
		// Requests run one at a time until the first response sets the resource version.
		// With a limit they stay sequential, because each response decides how many items
		// remain.
		parallel := 1
		if l.version != "" && l.limit == 0 {
			parallel = min(maxParallelRequests, len(names))
		}
		answers, err := l.fetch(names[:parallel], from)
		if err != nil {
			return nil, err
		}
		next, err := l.merge(names, answers)
		switch {
		case err != nil:
			return nil, err
		case next != "":
			from = continueToken{Namespace: names[0], Continue: next}
		default:
			names, from = names[parallel:], continueToken{}
		}
		if l.limit > 0 && l.count >= l.limit && len(names) > 0 {
			return l.encodePage(continueToken{Namespace: names[0], Continue: from.Continue, Version: l.version, List: uuid.NewUUID()})
		}
	}
	if l.merger == nil || l.failed != nil {
		return nil, nil
	}
	return l.merger.list(metav1.ListMeta{ResourceVersion: l.version})
}

// encodePage returns a list that has a continue token.
func (l *mergedList) encodePage(next continueToken) ([]byte, error) {
	encoded, err := next.encode()
	if err != nil {
		return nil, err
	}
	if l.complete {
		l.listProgress.Add(next.List, l.readable, knownVersionTTL)
		l.complete = false
	}
	return l.merger.list(metav1.ListMeta{ResourceVersion: l.version, Continue: encoded})
}

// fetch requests several namespaces in parallel.
func (l *mergedList) fetch(names []string, from continueToken) ([]*bufferedResponse, error) {
	answers := make([]*bufferedResponse, len(names))
	group, ctx := errgroup.WithContext(l.r.Context())
	for i, name := range names {
		group.Go(func() (err error) {
			answers[i], err = l.getNamespace(ctx, l.r, l.info, name, l.buildOptions(name, from))
			return err
		})
	}
	return answers, group.Wait()
}

// buildOptions returns the list options for one namespace.
func (l *mergedList) buildOptions(name string, from continueToken) url.Values {
	options := url.Values{}
	for key, values := range l.options {
		options[key] = values
	}
	options.Del("continue")
	switch {
	case from.Namespace == name && from.Continue != "":
		options.Set("continue", from.Continue)
		options.Del("resourceVersion")
		options.Del("resourceVersionMatch")
	case l.version != "":
		options.Set("resourceVersion", l.version)
		options.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	}
	if l.limit > 0 {
		options.Set("limit", strconv.Itoa(l.limit-l.count))
	}
	return options
}

// merge adds the responses to the list. It returns the API server's continue token if the
// last response is incomplete.
func (l *mergedList) merge(names []string, answers []*bufferedResponse) (next string, err error) {
	for i, response := range answers {
		if response.isHidden() {
			continue
		}
		if response.status != http.StatusOK {
			l.failed = response
			return "", nil
		}
		if l.merger == nil {
			l.contentType = response.header.Get("Content-Type")
			if l.merger, err = newMerger(l.contentType); err != nil {
				return "", err
			}
		}
		meta, count, err := l.merger.add(response.body)
		if err != nil {
			return "", err
		}
		l.count += count
		l.readable.Insert(names[i])
		if l.version == "" {
			l.version = meta.ResourceVersion
		}
		next = meta.Continue
	}
	return next, nil
}

// rememberVersion records the namespaces that a client has read at a resource version, so
// that a watch may start from it.
func (a *allNamespaces) rememberVersion(r *http.Request, info *request.RequestInfo, version string, read sets.Set[string]) {
	key := versionKey(r, info, version)
	current := knownVersion{read, read}
	if before, ok := a.knownVersions.Get(key); ok {
		previous, _ := before.(knownVersion)
		current = knownVersion{previous.common.Intersection(read), previous.union.Union(read)}
	}
	a.knownVersions.Add(key, current, knownVersionTTL)
}

// versionKey identifies clients with the same view: the same user, resource and selectors.
// It includes the user agent, because another program of the user may have received an
// event whose version equals the one that this program got from a list.
func versionKey(r *http.Request, info *request.RequestInfo, version string) string {
	u, _ := request.UserFrom(r.Context())
	options := r.URL.Query()
	var b bytes.Buffer
	for _, part := range []string{u.GetName(), r.UserAgent(), resourcePath(info, ""), options.Get("labelSelector"), options.Get("fieldSelector"), version} {
		b.WriteString(strconv.Quote(part))
	}
	return b.String()
}
