package service

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

func TestForwardOnlyWhenReady(t *testing.T) {
	process := startListener(t)
	go func() {
		for {
			conn, err := process.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	var ready atomic.Bool
	front := startListener(t)
	ended := make(chan error, 1)
	go func() {
		ended <- Forward(front, func() string { return process.Addr().String() }, func(context.Context) error {
			if !ready.Load() {
				return errors.New("not yet")
			}
			return nil
		})
	}()

	if echo := sendHello(t, dialListener(t, front)); echo != "" {
		t.Errorf("before it is ready: it answers %q", echo)
	}
	ready.Store(true)
	standing := dialListener(t, front)
	if echo := sendHello(t, standing); echo != "hello" {
		t.Errorf("ready: it answers %q", echo)
	}
	ready.Store(false)
	if echo := sendHello(t, dialListener(t, front)); echo != "" {
		t.Errorf("not ready any more: it answers %q", echo)
	}
	if echo := sendHello(t, standing); echo != "hello" {
		t.Errorf("an open connection: it answers %q", echo)
	}
	if err := front.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func startListener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dialListener(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// sendHello returns the answer, or nothing if the other side closes the connection.
func sendHello(t *testing.T, conn net.Conn) string {
	t.Helper()
	if _, err := conn.Write([]byte("hello")); err != nil {
		return ""
	}
	answer := make([]byte, len("hello"))
	n, err := io.ReadFull(conn, answer)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return string(answer[:n])
}
