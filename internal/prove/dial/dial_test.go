package dial

import (
	"bytes"
	"context"
	"net"
	"slices"
	"testing"
	"time"
)

func TestDial(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	closed := []string{"tcp/" + address, "udp/" + address}
	if got := Dial(ctx, time.Millisecond, closed); !slices.Equal(got, []string{Refused, Refused}) {
		t.Errorf("without a server: %v", got)
	}
	ended := make(chan error)
	go func() { ended <- serve(ctx, address) }()
	if got := Dial(ctx, 10*time.Second, closed); !slices.Equal(got, []string{Open, Open}) {
		t.Errorf("with a server that starts meanwhile: %v", got)
	}
	if got := Dial(ctx, time.Millisecond, []string{"tcp/nowhere.invalid:80"}); got[0] != Unresolved {
		t.Errorf("a name that does not resolve: %v", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRun(t *testing.T) {
	for _, args := range [][]string{nil, {"serve", "now"}, {"dial", "1s"}, {"dial", "soon", "tcp/127.0.0.1:1"}} {
		if err := Run(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	var out bytes.Buffer
	if err := Run(t.Context(), []string{"dial", "1ms", "tcp/127.0.0.1:1"}, &out); err != nil || out.String() != Refused+"\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}
