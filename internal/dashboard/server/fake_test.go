package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// apiServer answers as an API server does, for tests of requests, not of rights: users may read the
// namespaces in theirs, and the objects at the paths in objects.
type apiServer struct {
	entry *clientcmdapi.Cluster
	// users are the users' names by their tokens, and theirs the users' namespaces.
	users, theirs map[string]string
	// admins may read everything.
	admins map[string]bool

	mu sync.Mutex
	// objects are the JSON documents that exist, and statuses the responses to other paths, or to
	// methods and paths. An object of a method and a path is the response to this method.
	objects  map[string]string
	statuses map[string]int
	requests []*http.Request
	// findUser returns the user of a token that users does not have.
	findUser func(token string) string
	// rules are the rules of SelfSubjectRulesReviews.
	rules string
	// pause is the time between the halves of a log.
	pause time.Duration
	// watches are the open watches by their path. Each receives the events of its path.
	watches map[string][]chan string
	// noWatches means that users may not watch, and noCommands that they may not run commands.
	noWatches, noCommands bool
	// program is the command in each container, and without names the protocols that a gateway does not forward.
	program program
	without string
}

func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	a := &apiServer{
		users:  map[string]string{"ana-token": "ana", "bob-token": "bob"},
		theirs: map[string]string{"ana": "shop", "bob": "bank"}, statuses: map[string]int{}, admins: map[string]bool{},
		objects: map[string]string{
			"/api/v1/namespaces/shop/pods":       `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"namespace":"shop","name":"web-1"},"status":{"phase":"Pending"}}]}`,
			"/api/v1/namespaces/shop/pods/web-1": `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web-1"},"spec":{"containers":[{"name":"main"},{"name":"side"}]},"status":{"phase":"Pending"}}`,
			"/api/v1/namespaces/shop/pods/web-2": `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web-2"},"spec":{"containers":[{"name":"main"},{"name":"side"},{"name":"done"}]},` +
				`"status":{"phase":"Running","containerStatuses":[{"name":"main","state":{"running":{}}},{"name":"side","state":{"running":{}}},{"name":"done","state":{"terminated":{"exitCode":0}}}]}}`,
			"/api/v1/namespaces/shop/pods/web-2/log":                     "line\n",
			"/api/v1/namespaces/shop/pods/web-1/log":                     "first line\nlast line <b>\n",
			"/apis/apps/v1/namespaces/shop/deployments/web":              `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"namespace":"shop","name":"web","uid":"1"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}}}}`,
			"/apis/apps/v1/namespaces/shop/daemonsets/agents":            `{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"namespace":"shop","name":"agents"}}`,
			"/apis/batch/v1/namespaces/shop/jobs/nightly":                `{"kind":"Job","apiVersion":"batch/v1","metadata":{"namespace":"shop","name":"nightly"}}`,
			"/apis/croft.dev/v1alpha1/namespaces/shop/tenantrules/croft": `{"kind":"TenantRules","apiVersion":"croft.dev/v1alpha1","spec":{"tenant":"shop","pools":["apps"],"namespaces":["shop"],"egress":"Open"}}`,
			"/apis/networking.k8s.io/v1/namespaces/shop/ingresses":       `{"kind":"IngressList","apiVersion":"networking.k8s.io/v1","items":[{"metadata":{"namespace":"shop","name":"web"},"spec":{"rules":[{"host":"www.bank.example.org"}]}}]}`,
			"/apis/croft.dev/v1alpha1/pools":                             `{"kind":"PoolList","apiVersion":"croft.dev/v1alpha1","items":[]}`,
			"/apis/karpenter.sh/v1/nodeclaims":                           `{"kind":"NodeClaimList","apiVersion":"karpenter.sh/v1","items":[]}`,
			"/api/v1/namespaces/default/events":                          `{"kind":"EventList","apiVersion":"v1","items":[]}`,
			"/apis/croft.dev/v1alpha1/platforms/default":                 `{"kind":"Platform","apiVersion":"croft.dev/v1alpha1","metadata":{"name":"default"},"spec":{"clusterName":"one"}}`,
			"/api/v1/nodes":                    `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"node-1","labels":{"karpenter.sh/nodepool":"apps"}}}]}`,
			"/api/v1/pods":                     `{"kind":"PodList","apiVersion":"v1","items":[]}`,
			"/api/v1/events":                   `{"kind":"EventList","apiVersion":"v1","items":[]}`,
			"/api/v1/namespaces":               `{"kind":"NamespaceList","apiVersion":"v1","items":[]}`,
			"/apis/croft.dev/v1alpha1/tenants": `{"kind":"TenantList","apiVersion":"croft.dev/v1alpha1","items":[]}`,
			"/apis/croft.dev/v1alpha1/namespaces/bank/tenantrules/croft": `{"kind":"TenantRules","apiVersion":"croft.dev/v1alpha1","spec":{"tenant":"bank","pools":["apps"],"namespaces":["bank"],"egress":"Open"}}`,
		},
	}
	for kind, path := range map[string]string{
		"DeploymentList": "/apis/apps/v1/namespaces/NS/deployments", "ReplicaSetList": "/apis/apps/v1/namespaces/NS/replicasets", "StatefulSetList": "/apis/apps/v1/namespaces/NS/statefulsets",
		"DaemonSetList": "/apis/apps/v1/namespaces/NS/daemonsets", "JobList": "/apis/batch/v1/namespaces/NS/jobs", "CronJobList": "/apis/batch/v1/namespaces/NS/cronjobs",
		"EventList": "/api/v1/namespaces/NS/events", "ResourceQuotaList": "/api/v1/namespaces/NS/resourcequotas", "RoleBindingList": "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings",
		"NetworkPolicyList": "/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies",
		"ElevationList":     "/apis/croft.dev/v1alpha1/namespaces/NS/elevations",
		"PodList":           "/api/v1/namespaces/NS/pods", "PodDisruptionBudgetList": "/apis/policy/v1/namespaces/NS/poddisruptionbudgets",
	} {
		parts := strings.Split(path, "/namespaces/")
		version := strings.TrimPrefix(strings.TrimPrefix(parts[0], "/apis/"), "/api/")
		for _, namespace := range []string{"shop", "bank"} {
			at := strings.Replace(path, "NS", namespace, 1)
			if a.objects[at] == "" {
				a.objects[at] = `{"kind":"` + kind + `","apiVersion":"` + version + `","items":[]}`
			}
		}
	}
	server := httptest.NewUnstartedServer(a)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	a.entry = newEntry(server.URL, server.Certificate())
	return a
}

// newEntry returns a kubeconfig's entry of a server with its certificates.
func newEntry(address string, certificates ...*x509.Certificate) *clientcmdapi.Cluster {
	var ca []byte
	for _, c := range certificates {
		ca = append(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return &clientcmdapi.Cluster{Server: address, CertificateAuthorityData: ca}
}

// ServeHTTP implements http.Handler.
func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	watches := r.URL.Query().Get("watch") != ""
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	a.requests = append(a.requests, r)
	w.Header().Set("Content-Type", "application/json")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	user := a.users[token]
	if user == "" && a.findUser != nil {
		user = a.findUser(token)
	}
	_, namespace, _ := strings.Cut(r.URL.Path, "/namespaces/")
	namespace, _, _ = strings.Cut(namespace, "/")
	switch {
	case user == "":
		respondStatus(w, http.StatusUnauthorized)
	case a.statuses[r.Method+" "+r.URL.Path] != 0:
		respondStatus(w, a.statuses[r.Method+" "+r.URL.Path])
	case a.statuses[r.URL.Path] != 0:
		respondStatus(w, a.statuses[r.URL.Path])
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"`+user+`"}}}`)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews"):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","status":{"resourceRules":[`+a.rules+`],"nonResourceRules":[],"incomplete":false}}`)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		w.WriteHeader(http.StatusCreated)
		allowed := !a.noCommands && mayRunCommands(body, a.theirs[user])
		_, _ = fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`, allowed)
	case namespace != a.theirs[user] && !a.admins[user]:
		respondStatus(w, http.StatusForbidden)
	case isExec(r):
		a.serveExec(w, r)
	case watches && a.noWatches:
		respondStatus(w, http.StatusForbidden)
	case watches:
		a.serveWatch(w, r)
	case a.objects[r.Method+" "+r.URL.Path] != "":
		_, _ = io.WriteString(w, a.objects[r.Method+" "+r.URL.Path])
	case a.objects[r.URL.Path] == "":
		respondStatus(w, http.StatusNotFound)
	case strings.HasSuffix(r.URL.Path, "/log") && a.pause > 0:
		text := a.objects[r.URL.Path]
		_, _ = io.WriteString(w, text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		time.Sleep(a.pause)
		_, _ = io.WriteString(w, text[len(text)/2:])
	default:
		_, _ = io.WriteString(w, a.objects[r.URL.Path])
	}
}

// mayRunCommands reports whether a review asks for the right to run commands in a pod of a namespace.
func mayRunCommands(body []byte, namespace string) bool {
	review := &authorizationv1.SelfSubjectAccessReview{}
	_, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, review)
	asked := review.Spec.ResourceAttributes
	if err != nil || asked == nil || asked.Name == "" {
		return false
	}
	return reflect.DeepEqual(*asked, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: "pods", Subresource: "exec", Name: asked.Name})
}

// serveWatch sends the events of a path.
func (a *apiServer) serveWatch(w http.ResponseWriter, r *http.Request) {
	events := make(chan string, 100)
	if a.watches == nil {
		a.watches = map[string][]chan string{}
	}
	a.watches[r.URL.Path] = append(a.watches[r.URL.Path], events)
	_ = http.NewResponseController(w).Flush()
	a.mu.Unlock()
	defer a.mu.Lock()
	for {
		select {
		case <-r.Context().Done():
			return
		case event, ok := <-events:
			if !ok {
				return
			}
			_, _ = io.WriteString(w, event)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// changeObject replaces an object or a list, and sends an event to the watches of a path.
func (a *apiServer) changeObject(path, text, watched string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[path] = text
	for _, events := range a.watches[watched] {
		events <- `{"type":"MODIFIED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"changed","resourceVersion":"9"}}}`
	}
}

// endWatches ends the watches of a path.
func (a *apiServer) endWatches(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, events := range a.watches[path] {
		close(events)
	}
	delete(a.watches, path)
}

func respondStatus(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	reason := map[int]string{400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 422: "Invalid", 500: "InternalError"}[code]
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": "because"})
}

// takeRequests returns the requests since the last call.
func (a *apiServer) takeRequests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests := a.requests
	a.requests = nil
	return requests
}

// setStatus sets the response to a path.
func (a *apiServer) setStatus(path string, code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.statuses[path] = code
}
