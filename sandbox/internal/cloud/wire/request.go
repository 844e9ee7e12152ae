// Package wire implements the protocols by which clients call AWS: EC2's query protocol, the
// query protocol of IAM and STS, JSON with a target, and REST with JSON. It does not interpret
// the calls.
//
// It does not check signatures. It reads only the credential's scope, in which every client
// names the service.
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

// maxBody is larger than any call that the account supports.
const maxBody = 1 << 20

// Protocol is the protocol of a service.
type Protocol string

// The protocols.
const (
	EC2Query Protocol = "ec2"
	Query    Protocol = "query"
	JSON     Protocol = "json"
	RESTJSON Protocol = "rest-json"
	unspoken Protocol = ""
)

// protocols are the protocols of the supported services, by the names in clients' signatures.
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
	// Params are the parameters of the query protocols.
	Params Params
	// Body is the JSON of the other protocols.
	Body json.RawMessage
	// Path is the path of the URL.
	Path string
	// Host is the host to which the client sent the call.
	Host string
	// Gone is closed when the client no longer waits.
	Gone <-chan struct{}
}

var credential = regexp.MustCompile(`Credential=([^/]+)/\d{8}/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request`)

// ReadRequest parses a call.
func ReadRequest(r *http.Request, id string) (*Request, error) {
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
		req.Body = compactJSON(body)
	case RESTJSON:
		req.Action = findRESTAction(r)
		req.Body = compactJSON(body)
	case unspoken:
		return nil, &Error{Code: "UnknownService", Message: fmt.Sprintf("the simulated account does not support the service %q", req.Service)}
	}
	return req, nil
}

// findRESTAction returns the name of a supported call of a REST service, otherwise its method and
// path.
func findRESTAction(r *http.Request) string {
	if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/clusters/") {
		return "DescribeCluster"
	}
	return r.Method + " " + r.URL.Path
}

func compactJSON(body []byte) json.RawMessage {
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
