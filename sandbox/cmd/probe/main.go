// Command probe is the program in the image of real nodes' containers: a server, and the
// clients that tests run in pods. It is small, static, and needs no other file.
//
//	probe serve                  HTTP on ports 80, 443 and 8080, and UDP on 8080, until SIGTERM
//	probe pause                  wait for SIGTERM
//	probe dial NETWORK/ADDRESS…  connect by tcp or udp, and print the outcome for each
//	probe watch DURATION ADDRESS…  print when TCP connections to each address open
//	probe packets …              the program of croft verify --packets (package dial)
//	probe resolve NAME           print the addresses of a name
//	probe exit CODE
//	probe memory MEBIBYTES       allocate, and wait
//	probe cpu                    use one processor
//	probe read FILE              print a file
//	probe id                     print user, groups and host name
package main

import (
	"context"
	"errors"
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

	"croft.dev/croft/internal/prove/dial"
)

// ports are the servers' ports: the images that real nodes replace listen on one of them.
var ports = []string{":80", ":443", datagramPort}

// datagramPort is the port of the servers of TCP and UDP.
const datagramPort = ":8080"

func main() {
	if len(os.Args) < 2 {
		exitOnError(fmt.Errorf("name a command"))
	}
	commands := map[string]func([]string) error{
		"serve": runServers, "pause": waitForSignal, "dial": dialAll, "watch": watch, "packets": packets, "resolve": resolveName, "exit": exitWith, "memory": allocateMemory, "cpu": useProcessor, "read": readFile, "id": printIdentity,
	}
	run, ok := commands[os.Args[1]]
	if !ok {
		exitOnError(fmt.Errorf("there is no command %q", os.Args[1]))
	}
	exitOnError(run(os.Args[2:]))
}

func exitOnError(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func getFirst(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func waitForSignal([]string) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
	return nil
}

func runServers([]string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	datagrams, err := net.ListenPacket("udp", datagramPort)
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
			exitOnError(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Println(r.Method, r.URL.Path, "from", r.RemoteAddr)
				_, _ = fmt.Fprintln(w, host)
			})))
		}()
	}
	if err := waitForSignal(nil); err != nil {
		return err
	}
	fmt.Println(host, "ends")
	return nil
}

// dialAll prints the outcome for each address. It connects to all at once, and once.
func dialAll(addresses []string) error {
	if len(addresses) == 0 {
		return errors.New("name an address")
	}
	for i, outcome := range dial.Dial(context.Background(), time.Nanosecond, addresses) {
		fmt.Println(addresses[i], outcome)
	}
	return nil
}

const (
	// watchInterval is the interval between two tries of watch, and watchTimeout the time limit
	// of each: later tries do not wait for earlier ones, whose packets may be dropped.
	watchInterval = 3 * time.Millisecond
	watchTimeout  = 100 * time.Millisecond
)

// watch connects to each address every few milliseconds, and prints for each the time in which
// connections opened, as `10.1.2.3:80 open 43 ms` or `10.1.2.3:80 closed`.
func watch(args []string) error {
	duration, err := time.ParseDuration(getFirst(args))
	if err != nil {
		return err
	}
	fmt.Println("watching")
	var all sync.WaitGroup
	for _, address := range args[1:] {
		all.Go(func() { fmt.Println(address, watchOne(duration, address)) })
	}
	all.Wait()
	return nil
}

func watchOne(duration time.Duration, address string) string {
	var mu sync.Mutex
	var first, last time.Time
	var tries sync.WaitGroup
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(watchInterval) {
		tries.Go(func() {
			started := time.Now()
			c, err := net.DialTimeout("tcp", address, watchTimeout)
			if err != nil {
				return
			}
			_ = c.Close()
			mu.Lock()
			defer mu.Unlock()
			if first.IsZero() || started.Before(first) {
				first = started
			}
			if started.After(last) {
				last = started
			}
		})
	}
	tries.Wait()
	if first.IsZero() {
		return "closed"
	}
	return fmt.Sprintf("open %d ms", last.Sub(first).Milliseconds())
}

// packets is the program of the pods of `croft verify --packets`.
func packets(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return dial.Run(ctx, args, os.Stdout)
}

func resolveName(args []string) error {
	addresses, err := net.LookupHost(getFirst(args))
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(addresses, "\n"))
	return nil
}

func exitWith(args []string) error {
	code, err := strconv.Atoi(getFirst(args))
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

func allocateMemory(args []string) error {
	mebibytes, err := strconv.Atoi(getFirst(args))
	if err != nil {
		return err
	}
	b := make([]byte, mebibytes<<20)
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	fmt.Println("has allocated", mebibytes, "MiB")
	return waitForSignal(nil)
}

func useProcessor([]string) error {
	go func() {
		for { //nolint:staticcheck // it is there to use a processor
		}
	}()
	return waitForSignal(nil)
}

func readFile(args []string) error {
	content, err := os.ReadFile(getFirst(args))
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(content)
	return err
}

func printIdentity([]string) error {
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
