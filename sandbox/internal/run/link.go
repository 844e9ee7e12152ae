package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

// runLink forwards connections: each argument is FROM=TO, both host:port.
func runLink(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var all sync.WaitGroup
	for _, arg := range args {
		from, to, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not FROM=TO", arg)
		}
		l, err := net.Listen("tcp", from)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = l.Close() })
		all.Go(func() { acceptConnections(l, to) })
	}
	all.Wait()
	if ctx.Err() == nil {
		return errors.New("the link does not listen any more")
	}
	return nil
}

func acceptConnections(l net.Listener, to string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go forwardConnection(from, to)
	}
}

// forwardConnection forwards a connection. It closes both sides when one of them ends.
func forwardConnection(from net.Conn, to string) {
	defer from.Close() //nolint:errcheck // only the other end notices
	onward, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer onward.Close() //nolint:errcheck // as above
	done := make(chan struct{}, 2)
	for _, way := range []struct{ to, from net.Conn }{{onward, from}, {from, onward}} {
		go func() {
			_, _ = io.Copy(way.to, way.from)
			done <- struct{}{}
		}()
	}
	<-done
}
