// Package cloud is a simulated AWS account behind an HTTP endpoint. It serves the calls of
// Karpenter's published AWS provider and of croft, injects faults on demand, and records every
// call.
package cloud

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/service"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

// remembered is the maximum number of recorded calls: the newest ones.
const remembered = 20_000

// fastest is the minimum time of an answer, less than that of any network. AWS's client gives
// up a connection if the answer begins before the client has closed the request, which can
// happen on one machine.
const fastest = 3 * time.Millisecond

// Call is a recorded call.
type Call struct {
	At      time.Time         `json:"at"`
	Service string            `json:"service"`
	Action  string            `json:"action"`
	KeyID   string            `json:"keyID"`
	Params  map[string]string `json:"params,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	// Authorizations are the authorizations by IAM that the call needs.
	Authorizations []service.Authorization `json:"authorizations"`
	// Error is the code of the error, if the answer is an error.
	Error string `json:"error,omitempty"`
}

// Server is the endpoint.
type Server struct {
	account  *account.Account
	services *service.Services
	count    atomic.Int64

	mu    sync.Mutex
	calls []Call
}

// NewServer returns the endpoint of an account.
func NewServer(a *account.Account, c service.Cluster) *Server {
	return &Server{account: a, services: service.New(a, c)}
}

// ServeHTTP answers calls to AWS, and below /sandbox/ the requests of the sandbox's commands.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isOwn(r) {
		s.serveOwn(w, r)
		return
	}
	earliest := time.After(fastest)
	id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", s.count.Add(1))
	req, err := wire.ReadRequest(r, id)
	if err != nil {
		wire.WriteResponse(w, req, id, nil, err)
		return
	}
	if f := s.account.CountFault(account.Slow, account.Case{Action: req.Service + ":" + req.Action}); f != nil {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return
		}
	}
	needs := s.services.ListAuthorizations(req)
	answer, err := s.services.Answer(req, needs)
	s.recordCall(req, needs, err)
	<-earliest
	wire.WriteResponse(w, req, id, answer, err)
}

func (s *Server) recordCall(r *wire.Request, needs []service.Authorization, err error) {
	call := Call{At: time.Now().UTC(), Service: r.Service, Action: r.Action, KeyID: r.KeyID, Body: r.Body, Authorizations: needs}
	if r.Body == nil {
		call.Params = r.Params.ListAll()
	}
	if err != nil {
		call.Error = wire.ErrorCode(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) == remembered {
		s.calls = s.calls[remembered/10:]
	}
	s.calls = append(s.calls, call)
}

// ListCalls returns the recorded calls, the oldest first.
func (s *Server) ListCalls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call{}, s.calls...)
}
