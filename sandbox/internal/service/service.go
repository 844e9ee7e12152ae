// Package service acts as a Kubernetes Service with one endpoint: it forwards connections to a
// process, but only while that process is ready.
//
// A webhook needs one. It answers as soon as it listens, even before it has read its
// configuration. On a cluster, its Service sends it no requests until then.
package service

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// patience is the time limit for a process to report that it is ready, and to accept a
// connection.
const patience = 2 * time.Second

// Forward accepts connections until the listener is closed. While ready reports success,
// it passes new connections to the address; otherwise it closes them. Established
// connections stay, as behind a Service.
func Forward(listener net.Listener, address func() string, ready func(context.Context) error) error {
	for {
		from, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go forwardConnection(from, address, ready)
	}
}

func forwardConnection(from net.Conn, address func() string, ready func(context.Context) error) {
	defer from.Close() //nolint:errcheck // the last writer has got the error
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if ready(ctx) != nil {
		return
	}
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", address())
	if err != nil {
		return
	}
	defer to.Close() //nolint:errcheck // as above
	var both sync.WaitGroup
	for _, ends := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			// When one side has closed its connection, both end.
			_, _ = io.Copy(ends[0], ends[1])
			_ = from.Close()
			_ = to.Close()
		})
	}
	both.Wait()
}
