// Command probe is the program in the image of real nodes' containers: a server, and the
// clients that tests run in pods. It is small, static, and needs no other file.
//
//	probe serve                  HTTP on ports 80 and 8080, and UDP on 8080, until SIGTERM
//	probe pause                  wait for SIGTERM
//	probe dial NETWORK/ADDRESS…  connect by tcp or udp, and print "open" or the error for each
//	probe resolve NAME           print the addresses of a name
//	probe exit CODE
//	probe memory MEBIBYTES       allocate, and wait
//	probe cpu                    use one processor
//	probe id                     print user, groups and host name
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ports are the servers' ports: the images that real nodes replace listen on either.
var ports = []string{":80", ":8080"}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("name a command"))
	}
	commands := map[string]func([]string) error{
		"serve": serve, "pause": pause, "dial": dial, "resolve": resolve, "exit": exit, "memory": memory, "cpu": cpu, "id": id,
	}
	run, ok := commands[os.Args[1]]
	if !ok {
		fail(fmt.Errorf("there is no command %q", os.Args[1]))
	}
	fail(run(os.Args[2:]))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func pause([]string) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
	return nil
}

func serve([]string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	datagrams, err := net.ListenPacket("udp", ports[1])
	if err != nil {
		return err
	}
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
	for _, port := range ports {
		l, err := net.Listen("tcp", port)
		if err != nil {
			return err
		}
		fmt.Println(host, "listens on", port)
		go func() {
			fail(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Println(r.Method, r.URL.Path, "from", r.RemoteAddr)
				_, _ = fmt.Fprintln(w, host)
			})))
		}()
	}
	if err := pause(nil); err != nil {
		return err
	}
	fmt.Println(host, "ends")
	return nil
}

// dial prints the outcome for each address: open, or an error. It connects to all at once.
func dial(addresses []string) error {
	outcomes := make([]string, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() {
			network, address, _ := strings.Cut(address, "/")
			outcomes[i] = "open"
			if err := dialOne(network, address); err != nil {
				outcomes[i] = err.Error()
			}
		})
	}
	all.Wait()
	for i, outcome := range outcomes {
		fmt.Println(addresses[i], outcome)
	}
	return nil
}

// dialOne connects to an address. By UDP, which has no connections, it sends a byte and waits
// until the server sends it back.
func dialOne(network, address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if network != "udp" {
		return nil
	}
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

func resolve(args []string) error {
	addresses, err := net.LookupHost(argument(args, 0))
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(addresses, "\n"))
	return nil
}

func exit(args []string) error {
	code, err := strconv.Atoi(argument(args, 0))
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

func memory(args []string) error {
	mebibytes, err := strconv.Atoi(argument(args, 0))
	if err != nil {
		return err
	}
	b := make([]byte, mebibytes<<20)
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	fmt.Println("has allocated", mebibytes, "MiB")
	return pause(nil)
}

func cpu([]string) error {
	go func() {
		for { //nolint:staticcheck // it is there to use a processor
		}
	}()
	return pause(nil)
}

func id([]string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	groups, err := os.Getgroups()
	if err != nil {
		return err
	}
	fmt.Println("user", os.Getuid(), "group", os.Getgid(), "groups", groups, "host", host)
	return nil
}
