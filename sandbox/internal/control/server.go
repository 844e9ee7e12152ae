// Package control connects the commands to the supervisor of a sandbox: HTTP
// over a Unix socket that only the owner can open.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"croft.dev/croft/sandbox/internal/home"
	"croft.dev/croft/sandbox/internal/supervisor"
)

// maxSocketPath is the longest path of a socket that every system supports.
const maxSocketPath = 100

// Server answers the requests to one supervisor.
type Server struct {
	sup  *supervisor.Supervisor
	down func() // ends the supervisor

	listener net.Listener
	ended    chan struct{}
	tempDir  string
}

// Listen opens the socket and records its path. down is called when a client requests
// the end of the sandbox.
func Listen(h home.Home, sup *supervisor.Supervisor, down func()) (*Server, error) {
	s := &Server{sup: sup, down: down, ended: make(chan struct{})}
	path := h.Path("supervisor.sock")
	if len(path) > maxSocketPath {
		dir, err := os.MkdirTemp("", "croft-sandbox-")
		if err != nil {
			return nil, err
		}
		s.tempDir, path = dir, filepath.Join(dir, "s")
	}
	// It may be the socket of a killed supervisor. The lock proves that no other supervisor runs.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var err error
	if s.listener, err = net.Listen("unix", path); err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, err
	}
	return s, h.SaveSocket(path)
}

// Serve answers until Close.
func (s *Server) Serve() error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", s.handleStatus)
	mux.HandleFunc("GET /watch", s.handleWatch)
	mux.HandleFunc("POST /components/{name}/start", s.handleAction((*supervisor.Supervisor).Start))
	mux.HandleFunc("POST /components/{name}/stop", s.handleAction((*supervisor.Supervisor).Stop))
	mux.HandleFunc("POST /down", func(_ http.ResponseWriter, r *http.Request) {
		s.down()
		select {
		case <-s.ended:
		case <-r.Context().Done():
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		<-s.ended
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close answers the requests for /down, ends all watches, and shuts the server down.
func (s *Server) Close() {
	close(s.ended)
	if s.tempDir != "" {
		_ = os.RemoveAll(s.tempDir)
	}
}

func (s *Server) handleAction(do func(*supervisor.Supervisor, string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := do(s.sup, r.PathValue("name")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

func (s *Server) handleStatus(w http.ResponseWriter, _ *http.Request) {
	statuses, _ := s.sup.ListStatuses()
	if err := json.NewEncoder(w).Encode(statuses); err != nil {
		http.Error(w, fmt.Sprintf("encode the status: %v", err), http.StatusInternalServerError)
	}
}

// handleWatch sends a line of JSON with all statuses now and after every change.
func (s *Server) handleWatch(w http.ResponseWriter, r *http.Request) {
	flush := http.NewResponseController(w)
	encoder := json.NewEncoder(w)
	for {
		statuses, changed := s.sup.ListStatuses()
		if encoder.Encode(statuses) != nil || flush.Flush() != nil {
			return // the client has disconnected
		}
		select {
		case <-changed:
		case <-s.ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}
