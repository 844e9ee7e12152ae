// Package service plays a Kubernetes Service with one endpoint: who connects to
// its address reaches a process, but only while that process is ready.
//
// A webhook needs one. It answers as soon as it listens, even if it does not know
// yet what it is to say; on a cluster, its Service keeps the API server away from
// it until then.
package service

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// patience is how long a process may take to say that it is ready, and to take a
// connection.
const patience = 2 * time.Second

// Forward takes connections until the listener is closed. It passes those that
// come while ready says so on to the address, and hangs up on all others. A
// connection that stands stays, as behind a Service.
func Forward(listener net.Listener, address func() string, ready func(context.Context) error) error {
	for {
		from, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go forward(from, address, ready)
	}
}

func forward(from net.Conn, address func() string, ready func(context.Context) error) {
	defer from.Close() //nolint:errcheck // whoever wrote last was told of what failed
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
			// When one side has said all, or is gone, so is the conversation.
			_, _ = io.Copy(ends[0], ends[1])
			_ = from.Close()
			_ = to.Close()
		})
	}
	both.Wait()
}
