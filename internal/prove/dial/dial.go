// Package dial is the program in the pods of `croft verify --packets`: a server, and a client
// that reports which of its connections opened. croft's image runs it, and the image of the
// sandbox's real nodes.
package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Port is the port of Serve, for TCP and UDP.
const Port = 8080

// The outcomes of a connection.
const (
	Open = "open"
	// Refused means that a packet came back that refuses the connection: from the network
	// plugin, or from a host that does not listen on the port.
	Refused = "refused"
	// Silent means that no packet came back.
	Silent = "silent"
	// Unresolved means that no name server resolved the host's name.
	Unresolved = "unresolved"
)

const (
	// attempt is the time limit of one try to connect.
	attempt = time.Second
	// pause is the interval between two tries.
	pause = 100 * time.Millisecond
	// message is the file that Kubernetes reads a container's termination message from.
	message = "/dev/termination-log"
)

// Run runs the program:
//
//	serve                       listen on Port until the context ends
//	dial DURATION ADDRESS…      connect to addresses such as tcp/10.1.2.3:80 during that time
//
// dial writes a line with the outcome of each address to out, and, in a container, into its
// termination message.
func Run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve(ctx, ":"+strconv.Itoa(Port))
	case len(args) > 2 && args[0] == "dial":
		duration, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		lines := strings.Join(Dial(ctx, duration, args[2:]), "\n") + "\n"
		if _, err := io.WriteString(out, lines); err != nil {
			return err
		}
		return writeMessage(lines)
	default:
		return errors.New("write serve, or dial DURATION ADDRESS…")
	}
}

// writeMessage writes the termination message, if this is a container.
func writeMessage(text string) error {
	file, err := os.OpenFile(message, os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// serve accepts connections, and sends datagrams back, until the context ends.
func serve(ctx context.Context, address string) error {
	datagrams, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	connections, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, datagrams.Close())
	}
	context.AfterFunc(ctx, func() { _, _ = datagrams.Close(), connections.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := datagrams.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = datagrams.WriteTo(b[:n], from)
		}
	}()
	for {
		c, err := connections.Accept()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the listener was closed
		}
		if err != nil {
			return err
		}
		_ = c.Close()
	}
}

// Dial connects to all addresses at once, again and again for the duration, and returns the
// outcome of each: Open if one try succeeded, otherwise the outcome of the last try.
func Dial(ctx context.Context, duration time.Duration, addresses []string) []string {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	outcomes := make([]string, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() {
			network, host, _ := strings.Cut(address, "/")
			for {
				outcomes[i] = classifyError(connect(network, host))
				if outcomes[i] == Open {
					return
				}
				select {
				case <-ctx.Done():
					return
				case <-time.After(pause):
				}
			}
		})
	}
	all.Wait()
	return outcomes
}

func classifyError(err error) string {
	var unresolved *net.DNSError
	switch {
	case err == nil:
		return Open
	case errors.As(err, &unresolved):
		return Unresolved
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	default:
		return Silent
	}
}

// connect connects to an address. By UDP, which has no connections, it sends a byte and waits
// until the server sends it back.
func connect(network, address string) (err error) {
	c, err := net.DialTimeout(network, address, attempt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if network != "udp" {
		return nil
	}
	if err := c.SetDeadline(time.Now().Add(attempt)); err != nil {
		return err
	}
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

// Format returns an address in the form of Dial.
func Format(network, host string, port int) string {
	return fmt.Sprintf("%s/%s", network, net.JoinHostPort(host, strconv.Itoa(port)))
}
