// Package server answers questions about costs by HTTPS. It authenticates callers by their own tokens
// with TokenReviews, and authorizes them with SubjectAccessReviews: `get` of costs.croft.dev in a
// namespace, or in the whole cluster.
//
// A tenant's people learn nothing about other tenants. They get the rows of their own tenant, and the idle
// cost only of pools that no other tenant may use: in a shared pool, a share of the idle cost reveals how
// much the others request.
package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/cost/collect"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/budget"
)

// Paths of the three resources: sums, the rows of the ledger, and months with a forecast.
const (
	Path        = "/v1/costs"
	ChargesPath = "/v1/charges"
	HistoryPath = "/v1/history"
)

const (
	// requestTimeout limits the time of an answer.
	requestTimeout = 30 * time.Second
	// reviewsPerSecond and reviewBurst limit the requests to the API server that clients can cause.
	reviewsPerSecond, reviewBurst = 50, 200
	// concurrentAnswers limits the memory and the open files: an answer for the whole cluster reads many records.
	concurrentAnswers = 4
)

// Source has the records.
type Source interface {
	// Read returns the state from a time until now.
	Read(from time.Time) (collect.View, error)
}

// Reviewer creates TokenReviews and SubjectAccessReviews.
type Reviewer interface {
	Create(ctx context.Context, review client.Object, options ...client.CreateOption) error
}

// Options configure the service.
type Options struct {
	Source  Source
	Reviews Reviewer
	// Tokens authenticates tokens of further issuers, in addition to the API server. It may be nil.
	Tokens authenticator.Token
	// Metrics serves metrics with sums of costs.
	Metrics http.Handler
	Log     *slog.Logger
	// Now returns the time.
	Now func() time.Time
}

// server handles requests. Its guards are lists, so that tests can show the effect of each one.
type server struct {
	Options
	// checks are for all requests, and bareChecks are for requests of resources without parameters, too.
	checks, bareChecks []check
	// findToken returns the token of a request, or "".
	findToken func(*http.Request) string
	filters   []filter
	limiter   *rate.Limiter
	answers   chan struct{}
}

// New returns the handler of all requests.
func New(o Options) http.Handler { return newServer(o).newRoutes() }

func newServer(o Options) *server {
	return &server{Options: o, checks: checks, bareChecks: bareChecks, findToken: findToken, filters: filters,
		limiter: rate.NewLimiter(reviewsPerSecond, reviewBurst), answers: make(chan struct{}, concurrentAnswers)}
}

func (s *server) newRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Path, s.answer)
	mux.HandleFunc(ChargesPath, s.answer)
	mux.HandleFunc(budget.Path, s.answerBudgets)
	mux.HandleFunc(HistoryPath, s.answer)
	mux.HandleFunc(MetricsPath, s.answerMetrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.refuse(w, &refusal{http.StatusNotFound, "there are only " + strings.Join([]string{Path, ChargesPath, HistoryPath, MetricsPath}, ", ") +
			" and " + budget.Path})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// No cache may keep an answer that one user's token has opened.
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		mux.ServeHTTP(w, r.WithContext(ctx))
	})
}

// respondBare is respond for a resource without parameters.
func (s *server) respondBare(w http.ResponseWriter, r *http.Request, audience string, answer func(caller authenticationv1.UserInfo) error) {
	for _, c := range s.bareChecks {
		if refused := c.find(r); refused != nil {
			s.refuse(w, refused)
			return
		}
	}
	s.respond(w, r, audience, answer)
}

// respond checks a request and its token, and waits until the server may prepare one more answer. Then
// it calls answer, and responds with its error.
func (s *server) respond(w http.ResponseWriter, r *http.Request, audience string, answer func(caller authenticationv1.UserInfo) error) {
	for _, c := range s.checks {
		if refused := c.find(r); refused != nil {
			s.refuse(w, refused)
			return
		}
	}
	token := s.findToken(r)
	if token == "" {
		s.refuse(w, &refusal{http.StatusUnauthorized, "write your token of the cluster in the header Authorization: Bearer TOKEN"})
		return
	}
	caller, err := s.authenticate(r.Context(), token, audience)
	if err != nil {
		s.respondError(w, r, err)
		return
	}
	leave, err := s.enter(r.Context())
	if err != nil {
		s.respondError(w, r, err)
		return
	}
	defer leave()
	if err := answer(caller); err != nil {
		s.respondError(w, r, err)
	}
}

// answer responds with a report, and for ChargesPath also with its charges, or with a history.
func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	s.respond(w, r, "", func(caller authenticationv1.UserInfo) error {
		q := parseQuestion(r)
		from := s.Now().Add(-q.since).UTC().Truncate(time.Hour)
		access, err := s.authorize(r.Context(), caller, q.namespace)
		if err != nil {
			return err
		}
		view, err := s.Source.Read(from)
		if err != nil {
			return err
		}
		if err := s.addTenant(r.Context(), access, caller, view.Tenants); err != nil {
			return err
		}
		records, err := view.Select(selectRows(access, r.URL.Path, q.by))
		if err != nil {
			return err
		}
		defer records.Close()
		readable := s.filter(view, records, from, access)
		if r.URL.Path == HistoryPath {
			history, err := report.BuildHistory(readable, q.by)
			return writeJSON(w, history, err)
		}
		costs, err := report.BuildStored(readable, q.by)
		if r.URL.Path == ChargesPath && err == nil {
			return writeCharges(w, costs, readable)
		}
		return writeJSON(w, costs, err)
	})
}

// selectRows returns the rows that an answer needs. It is no guard: the filters are applied to each selected row.
func selectRows(a *access, path, by string) store.Selection {
	if !a.readsAll() {
		return store.Selection{Tenant: &a.tenant}
	}
	return store.Selection{Totals: path != ChargesPath && report.UsesTotals(by)}
}

// writeJSON writes nothing if it gets or returns an error.
func writeJSON(w http.ResponseWriter, content any, err error) error {
	if err != nil {
		return err
	}
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
	return nil
}

// enter waits until the server may prepare one more answer. The caller calls leave at its end.
func (s *server) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.answers <- struct{}{}:
		return func() { <-s.answers }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// writeCharges writes a report, and then each charge of it on a line of its own. A client knows that it
// got all charges if their sum is the report's total. It writes nothing if it returns an error.
func writeCharges(w http.ResponseWriter, total any, readable report.Stored) error {
	body, err := json.Marshal(total)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	buffered := bufio.NewWriter(w)
	_, _ = buffered.Write(append(body, '\n'))
	encoder := json.NewEncoder(buffered)
	// After the first byte, an error can only end the connection.
	_ = report.ListStoredCharges(readable, func(c *report.Charge) error { return encoder.Encode(c) })
	_ = buffered.Flush()
	return nil
}

// refusal is an error that the caller may read.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

var (
	errNoToken   = &refusal{http.StatusUnauthorized, "the cluster does not accept the token: log in again"}
	errForbidden = &refusal{http.StatusForbidden, "you may not read this cost: name a namespace of your tenant"}
	errBusy      = &refusal{http.StatusServiceUnavailable, "the ledger is busy: try again later"}
)

// respondError responds without details of the cluster, which are in the log.
func (s *server) respondError(w http.ResponseWriter, r *http.Request, err error) {
	var refused *refusal
	if errors.As(err, &refused) {
		s.refuse(w, refused)
		return
	}
	s.Log.ErrorContext(r.Context(), "no answer", "error", err)
	s.refuse(w, &refusal{http.StatusServiceUnavailable, "the ledger cannot answer now: its log has the error"})
}

func (s *server) refuse(w http.ResponseWriter, refused *refusal) {
	w.Header().Set("Content-Type", "application/json")
	if refused.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(refused.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": refused.message})
}
