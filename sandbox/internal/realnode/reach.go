package realnode

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
)

// forwardConnections forwards each connection that a listener accepts.
func forwardConnections(log *slog.Logger, l net.Listener, dial func(context.Context) (net.Conn, error)) {
	for {
		from, err := l.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				log.Error("accept", "error", err)
			}
			return
		}
		go func() {
			to, err := dial(context.Background())
			if err != nil {
				log.Error("forward a connection", "error", err)
				_ = from.Close()
				return
			}
			copyBothWays(from, to)
		}()
	}
}

// serveProxy answers the API server's CONNECT requests (its egress selector of type HTTPConnect).
// It connects to loopback addresses on the machine, and to all others, such as kubelets, pods
// and Services, in the nodes' network.
func (n *network) serveProxy(log *slog.Logger, l net.Listener) error {
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
			return
		}
		dial := n.dial
		if host, _, err := net.SplitHostPort(r.Host); err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()) {
			dial = func(ctx context.Context, address string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", address)
			}
		}
		to, err := dial(r.Context(), r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			log.Error("hijack a connection", "error", err)
			_ = to.Close()
			return
		}
		if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			_, _ = from.Close(), to.Close()
			return
		}
		copyBothWays(from, to)
	}))
}

// copyBothWays copies in both directions until both streams end.
func copyBothWays(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(b, a)
		closeWrite(b)
		close(done)
	}()
	_, _ = io.Copy(a, b)
	closeWrite(a)
	<-done
	_, _ = a.Close(), b.Close()
}

// closeWrite ends the outgoing stream. It closes a connection that does not support that.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
