package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// program is a command in a container. It returns the status with which the container's node ends it; empty if the
// node breaks off.
type program func(line string, stdout, stderr io.Writer) (status string)

const success = `{"metadata":{},"status":"Success"}`

// exitWith returns the status of a command with an exit code.
func exitWith(code string) string {
	return `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"` + code + `"}]}}`
}

// failWith returns the status of a command that the node could not run.
func failWith(message string) string {
	text, err := json.Marshal(map[string]string{"status": "Failure", "reason": "InternalError", "message": message})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// runEcho writes the command to both streams.
func runEcho(line string, stdout, stderr io.Writer) string {
	_, _ = io.WriteString(stdout, "output of "+line+"\n")
	_, _ = io.WriteString(stderr, "error of "+line+"\n")
	return success
}

// isExec reports whether a request runs a command, by a WebSocket or SPDY.
func isExec(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/exec") }

// setProgram sets the command in each container, and the protocols that a gateway does not forward.
func (a *apiServer) setProgram(run program, without string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.program, a.without = run, without
}

// serveExec runs a command over the protocol of the request. The server is not locked meanwhile.
func (a *apiServer) serveExec(w http.ResponseWriter, r *http.Request) {
	run, without, line := a.program, a.without, r.URL.Query()["command"]
	a.mu.Unlock()
	defer a.mu.Lock()
	r = r.WithContext(klog.NewContext(r.Context(), logr.Discard())) // it would log each connection that the dashboard closes
	if run == nil {
		run = runEcho
	}
	isWebSocket := wsstream.IsWebSocketRequest(r)
	switch {
	case len(line) != 3 || !httpstream.IsUpgradeRequest(r):
		respondStatus(w, http.StatusBadRequest)
	case isWebSocket && strings.Contains(without, "no WebSockets"), !isWebSocket && strings.Contains(without, "no SPDY"):
		w.WriteHeader(http.StatusBadGateway)
	case isWebSocket:
		serveWebSocket(w, r, line[2], run)
	default:
		serveSPDY(w, r, line[2], run)
	}
}

func serveWebSocket(w http.ResponseWriter, r *http.Request, line string, run program) {
	write, ignore := wsstream.WriteChannel, wsstream.IgnoreChannel
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		"v5.channel.k8s.io": {Binary: true, Channels: []wsstream.ChannelType{ignore, write, write, write, ignore}},
	})
	_, streams, err := conn.Open(w, r)
	if err != nil {
		return
	}
	status := run(line, streams[1], streams[2])
	if status == "" {
		conn.SetWriteDeadline(-time.Second) // so that the end is no normal one
	}
	_, _ = io.WriteString(streams[3], status)
	_ = conn.Close()
}

func serveSPDY(w http.ResponseWriter, r *http.Request, line string, run program) {
	if _, err := httpstream.Handshake(r, w, []string{"v5.channel.k8s.io", "v4.channel.k8s.io"}); err != nil {
		return // the handshake has sent the error
	}
	opened := make(chan httpstream.Stream, 3)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		opened <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	streams := map[string]httpstream.Stream{}
	for len(streams) < 3 {
		select {
		case s := <-opened:
			streams[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	status := run(line, streams["stdout"], streams["stderr"])
	_, _ = io.WriteString(streams["error"], status)
	for _, s := range streams {
		_ = s.Close()
	}
	<-conn.CloseChan() // the client has read all
}
