package installtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is a request for a resource in an audit log.
type Request struct {
	Namespace, Verb, Group, Resource, Name string
	// Code is the HTTP status. Message is the message of an error.
	Code    int
	Message string
	// Refused reports whether the user lacked a right. Admission refuses with the same
	// status.
	Refused bool
}

func (r Request) right() Right { return Right{r.Namespace, r.Verb, r.Group, r.Resource} }

// listUsed returns the rights that the API server required, if it granted the request. Creating
// an object by server-side apply requires the right to create in addition to patch.
func (r Request) listUsed() []Right {
	if r.Code >= http.StatusBadRequest && r.Code != http.StatusNotFound {
		return nil
	}
	right := r.right()
	if r.Verb != "patch" || r.Code != http.StatusCreated {
		return []Right{right}
	}
	created := right
	created.Verb = "create"
	return []Right{right, created}
}

// Read reads a user's requests for resources from an audit log, including impersonated
// ones.
func Read(log io.Reader, user string) ([]Request, error) {
	events, err := Events(log)
	var all []Request
	for i := range events {
		e := &events[i]
		who := e.User.Username
		if e.ImpersonatedUser != nil {
			who = e.ImpersonatedUser.Username
		}
		if who == user {
			all = append(all, parseRequest(e))
		}
	}
	return all, err
}

// Events reads the completed requests for resources from an audit log. It ignores an
// incomplete last line, which is still being written.
func Events(log io.Reader) ([]auditv1.Event, error) {
	var all []auditv1.Event
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if e.ObjectRef != nil && e.ResponseStatus != nil {
			all = append(all, e)
		}
	}
}

func parseRequest(e *auditv1.Event) Request {
	o := e.ObjectRef
	return Request{
		Namespace: o.Namespace, Verb: e.Verb, Group: o.APIGroup,
		Resource: strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/"), Name: o.Name,
		Code: int(e.ResponseStatus.Code), Message: e.ResponseStatus.Message, Refused: isRefused(e),
	}
}

// isRefused reports whether a right was missing: for the request, for the creation of an
// applied object, or to grant a role's rights.
func isRefused(e *auditv1.Event) bool {
	if e.Annotations["authorization.k8s.io/decision"] == "forbid" {
		return true
	}
	message := e.ResponseStatus.Message
	return e.ResponseStatus.Code == http.StatusForbidden &&
		(strings.Contains(message, `" cannot `) || strings.Contains(message, "attempting to grant"))
}
