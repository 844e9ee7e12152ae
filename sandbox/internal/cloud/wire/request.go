// Package wire speaks the protocols in which clients call AWS: EC2's query
// protocol, the query protocol of IAM and STS, JSON with a target, and REST with
// JSON. It knows nothing of what the calls mean.
//
// Signatures are not checked: only the credential's scope is read, which names
// the service, as every client sends it.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// maxBody is more than any call that is answered here sends.
const maxBody = 1 << 20

// Protocol is how a service is spoken to.
type Protocol string

// The protocols.
const (
	EC2Query Protocol = "ec2"
	Query    Protocol = "query"
	JSON     Protocol = "json"
	RESTJSON Protocol = "rest-json"
	unspoken Protocol = ""
)

// protocols are those of the services that are known, by the names under which
// clients sign.
var protocols = map[string]Protocol{
	"ec2":     EC2Query,
	"iam":     Query,
	"sts":     Query,
	"ssm":     JSON,
	"sqs":     JSON,
	"pricing": JSON,
	"eks":     RESTJSON,
}

// Request is one call.
type Request struct {
	ID       string
	Service  string
	Action   string
	Region   string
	KeyID    string // of the access key that it is signed with
	Protocol Protocol
	// Params are those of the query protocols.
	Params Params
	// Body is the JSON of the others.
	Body json.RawMessage
	// Path is what follows the host, of REST calls.
	Path string
	// Host is where the client sent it.
	Host string
	// Gone is closed when the client does not wait any more.
	Gone <-chan struct{}
}

var credential = regexp.MustCompile(`Credential=([^/]+)/\d{8}/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request`)

// Read takes a call apart.
func Read(r *http.Request, id string) (*Request, error) {
	match := credential.FindStringSubmatch(r.Header.Get("Authorization"))
	if match == nil {
		return nil, &Error{Code: "MissingAuthenticationToken", Status: http.StatusForbidden,
			Message: "Request is missing Authentication Token"}
	}
	req := &Request{ID: id, KeyID: match[1], Region: match[2], Service: match[3], Path: r.URL.Path, Host: r.Host, Gone: r.Context().Done()}
	req.Protocol = protocols[req.Service]
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	switch req.Protocol {
	case EC2Query, Query:
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, &Error{Code: "MalformedQueryString", Message: err.Error()}
		}
		req.Action = values.Get("Action")
		values.Del("Action")
		values.Del("Version")
		req.Params = Params{values: values}
	case JSON:
		// AmazonSSM.GetParameter
		_, req.Action, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		req.Body = compact(body)
	case RESTJSON:
		req.Action = restAction(r)
		req.Body = compact(body)
	case unspoken:
		return nil, &Error{Code: "UnknownService", Message: fmt.Sprintf("nobody here speaks for the service %q", req.Service)}
	}
	return req, nil
}

// restAction names the calls of REST services that are known.
func restAction(r *http.Request) string {
	if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/clusters/") {
		return "DescribeCluster"
	}
	return r.Method + " " + r.URL.Path
}

func compact(body []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, body) != nil || b.Len() == 0 {
		return json.RawMessage("{}")
	}
	return b.Bytes()
}

// Decode reads the JSON of a call.
func (r *Request) Decode(into any) error {
	if err := json.Unmarshal(r.Body, into); err != nil {
		return &Error{Code: "SerializationException", Message: err.Error()}
	}
	return nil
}
