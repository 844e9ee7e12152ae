package doctor

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Requests are the requests in progress in the API server, except for requests that its priority and fairness exempts,
// such as administrators'.
type Requests struct {
	// Waiting and Executed are the flows of the queued and of the executed requests: for most FlowSchemas the user, and for
	// others the namespace in the request's path.
	Waiting, Executed []string
	// ByNamespace is the name of a FlowSchema that distinguishes flows by namespace. The API server queues a
	// request before it decides whether its user has the right to it. So each user can send
	// requests with the namespace of another tenant, or with a namespace that contains whole lines of the list.
	// Without such a FlowSchema, the list contains only names that were authenticated.
	ByNamespace string
	// Omitted is the reason why the requests were not read.
	Omitted string
}

const (
	// requestsPath has a list of the requests that wait or are being executed:
	// https://kubernetes.io/docs/reference/debug-cluster/flow-control/
	requestsPath = "/debug/api_priority_and_fairness/dump_requests"
	// requestsTimeout limits the reads, since the API server is busy when they matter.
	requestsTimeout = 10 * time.Second
)

// GatherRequests reads the requests in progress in the API server that answers, for the check load; other API servers
// have queues of their own. It records an error in the Snapshot: the other checks do without the requests.
func GatherRequests(ctx context.Context, config *rest.Config, c client.Client, s *Snapshot) {
	if !s.includes("load") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestsTimeout)
	defer cancel()
	var err error
	s.Requests, err = readRequests(ctx, config, c)
	switch {
	case apierrors.IsForbidden(err):
		s.Requests.Omitted = "this needs the rights to get " + requestsPath + " and to list FlowSchemas"
	case apierrors.IsNotFound(err):
		s.Requests.Omitted = "the API server has no priority and fairness"
	case err != nil:
		s.Requests.Omitted = err.Error()
	}
}

func readRequests(ctx context.Context, config *rest.Config, c client.Client) (Requests, error) {
	var schemas flowcontrolv1.FlowSchemaList
	if err := c.List(ctx, &schemas); err != nil {
		return Requests{}, err
	}
	raw, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Requests{}, err
	}
	list, err := raw.RESTClient().Get().AbsPath(requestsPath).DoRaw(ctx)
	if err != nil {
		return Requests{}, err
	}
	requests, err := parseRequests(string(list))
	requests.ByNamespace = findNamespaceSchema(schemas.Items)
	return requests, err
}

func findNamespaceSchema(schemas []flowcontrolv1.FlowSchema) string {
	i := slices.IndexFunc(schemas, func(s flowcontrolv1.FlowSchema) bool {
		return s.Spec.DistinguisherMethod != nil && s.Spec.DistinguisherMethod.Type == flowcontrolv1.FlowDistinguisherMethodByNamespaceType
	})
	if i < 0 {
		return ""
	}
	return schemas[i].Name
}

var errFlowFormat = errors.New("the API server's list of requests has an unknown format")

// parseRequests returns the flows in the API server's list. Its values are separated by commas and aligned by spaces,
// and its first line has the names of the columns. The flow is the only value that may contain commas, as the
// name of a user with a client certificate. Exempt requests have no queue.
func parseRequests(list string) (Requests, error) {
	header, rows, _ := strings.Cut(list, "\n")
	names := splitRow(header)
	queue, index := slices.Index(names, "QueueIndex"), slices.Index(names, "RequestIndexInQueue")
	flow := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "FlowDisting") }) // FlowDistingsher
	if queue < 0 || index < queue || flow < index {
		return Requests{}, errFlowFormat
	}
	var requests Requests
	for row := range strings.Lines(rows) {
		values := splitRow(row)
		if len(values) < len(names) {
			continue
		}
		inQueue, err := strconv.Atoi(values[index])
		if err != nil || values[queue] == "-1" {
			continue
		}
		name := strings.Join(values[flow:len(values)-(len(names)-flow-1)], ",")
		if inQueue < 0 {
			requests.Executed = append(requests.Executed, name)
		} else {
			requests.Waiting = append(requests.Waiting, name)
		}
	}
	return requests, nil
}

func splitRow(row string) []string {
	values := strings.Split(row, ",")
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	return values
}

// findNamespace returns the namespace of a flow: of the service account, or the one that distinguishes the
// flow. It returns "" for the flow of another user.
func (r *Requests) findNamespace(flow string) string {
	if namespace, _, err := serviceaccount.SplitUsername(flow); err == nil {
		return namespace
	}
	if r.ByNamespace == "" {
		return ""
	}
	return flow
}
