// Command bench compares croft with an alternative and prints the ratios. It is run by `make
// bench`, which builds bin/croft and bin/croft-sandbox first:
//
//	go run ./hack/bench                           # everything, a few minutes
//	go run ./hack/bench -only render,start        # some of it
//	go run ./hack/bench -tenants 500 -o raw.json  # larger, raw data kept
//
// An absolute figure depends more on the machine than on croft. So each comparison measures
// both sides in one run, alternately if possible, and the ratio is the result. The table goes
// to standard output, progress to standard error, and with -o every sample is written to a file
// as JSON.
//
// The measurements, each with its alternative:
//
//   - start: a whole sandbox with croft until it is ready, compared with etcd and
//     kube-apiserver alone. The ratio is the cost of everything else.
//   - render: `croft render` of 1,000 tenants, as a process from start to end, compared with
//     marshalling the same objects from memory to YAML, which is the minimum for printing them.
//     Then the time for each tenant beyond the first of 1,000, compared with the same for 100: a
//     ratio of 1 is linear.
//   - admission: the creation of a pod with all rules in tenants' namespaces, compared with one
//     in a namespace that no policy matches, with 1, 100 and 1,000 tenants; and of a pod of 30
//     containers, which must stay below the limits of CEL.
//   - converge: `croft apply` of a file of tenants until all are Ready, compared with a client
//     that writes as many tenants' objects without waiting, with as many workers as croft. Both
//     count from the first write. Platform and pool are Ready beforehand, so that Karpenter's
//     speed does not matter; croft's operator is stopped while the other side writes. The sides
//     alternate in being first.
//   - steady: croft's writes while nothing changes, which must be zero, compared with all
//     clients' writes. Any write of croft's fails the run.
//   - memory: the operator's memory with tenants, compared with its memory without.
//   - proxy, by `make bench-proxy` or -only proxy: users' requests through croft proxy,
//     compared with the same requests sent directly to the API server and through a minimal
//     reverse proxy.
//   - dashboard, by `make bench-dashboard` or -only dashboard: pages of croft dashboard,
//     compared with the same requests sent directly to the API server; the same pages in
//     Chromium, with a fast log, and with many open pages, compared with their targets; and
//     with -headlamp DIRECTORY, compared with Headlamp.
//   - cost, by `make bench-cost` or -only cost: the files of croft ledger with 13 months of
//     records, its memory, and its answers about 30 days, compared with their targets.
//   - neighbours, by `make bench-neighbours` or -only neighbours: the work of one team alone, during floods
//     by another team, and alone again, in a cluster with croft and in one without.
//   - scale, by `make bench-scale` or -only scale: the first `croft apply` of many tenants and pools, all commands that
//     read a file or the cluster, restarts, changes, deletion, steady state, and the processes' memory and CPU time,
//     compared with their targets, or with a client that only writes.
//   - objects, by `make bench-objects` or -only objects: five declared objects in the namespaces of all
//     tenants, compared with a client that writes the same objects; croft's writes for each object; and the
//     time until a changed object, and a changed Secret, are in all namespaces, compared with targets.
//   - karpenter, by `make bench-karpenter` or -only karpenter: the time from a pod to its NodeClaim, and Karpenter's
//     scheduling loop, with 20, 100 and 500 pools, compared with one pool in the same cluster.
//
// Every cluster is a separate sandbox, which is stopped at the end, after a failure and on an
// interrupt. It needs Linux: data about processes is read from /proc.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/internal/prove/flood"
	"croft.dev/croft/internal/test/sandbox"
)

// measurement compares croft with an alternative in one or several respects.
type measurement struct {
	name string
	run  func(context.Context, *bench) ([]comparison, error)
}

// measurements are in their order of execution: steady and memory share a sandbox, which runs
// until the end.
var measurements = []measurement{
	{"start", measureStart},
	{"render", measureRender},
	{"admission", measureAdmission},
	{"converge", measureConverge},
	{"steady", measureSteady},
	{"memory", measureMemory},
}

// onRequest are measurements that run only with -only.
var onRequest = []measurement{{"proxy", measureProxy}, {"dashboard", measureDashboard}, {"cost", measureCost}, {"neighbours", measureNeighbours}, {"scale", measureScale}, {"objects", measureObjects}, {"karpenter", measureKarpenter}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends the process at once, and its sandboxes with it.
	context.AfterFunc(ctx, stop)
	err := run(ctx)
	switch {
	case err == nil:
		return
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "bench: interrupted:", err)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	os.Exit(1)
}

func run(ctx context.Context) error {
	var (
		b            bench
		only         = flag.String("only", "", "measure only these, separated by commas: "+strings.Join(listNames(slices.Concat(measurements, onRequest)), ", "))
		output       = flag.String("o", "", "file to keep the raw data in, as JSON")
		chosenFloods = flag.String("floods", "", "neighbours: run only these floods, separated by commas: "+strings.Join(flood.ListNames(), ", "))
	)
	flag.StringVar(&b.croft, "croft", "", "croft binary to measure (default: in the directory of croft-sandbox)")
	flag.IntVar(&b.tenants, "tenants", 200, "how many tenants to converge, and to watch in steady state")
	flag.DurationVar(&b.window, "window", time.Minute, "how long to watch the steady state")
	flag.DurationVar(&b.phase, "phase", 10*time.Second, "neighbours: how long to measure alone, and during each flood")
	flag.BoolVar(&b.bare, "bare", true, "neighbours: measure the same floods in a cluster without croft")
	flag.StringVar(&b.headlamp, "headlamp", "", "dashboard: directory of Headlamp's sources, built by its `make backend frontend`, to compare with")
	flag.IntVar(&b.controllerQPS, "controller-qps", 0, "neighbours: kube-controller-manager's requests a second, such as its own default of 20 (default: the sandbox's)")
	flag.IntVar(&b.pools, "pools", 20, "scale: how many pools the tenants are distributed among; karpenter: the largest number of pools")
	flag.Parse()

	chosen, err := chooseMeasurements(*only)
	switch {
	case err != nil:
		return err
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: use flags", flag.Arg(0))
	case b.tenants < 1:
		return errors.New("-tenants: write at least 1")
	case b.window <= 0:
		return errors.New("-window: write a positive duration, such as 60s")
	case b.phase <= 0:
		return errors.New("-phase: write a positive duration, such as 10s")
	case b.pools < 1:
		return errors.New("-pools: write at least 1")
	case b.controllerQPS < 0:
		return errors.New("-controller-qps: write a positive number, such as 20")
	}
	var names []string
	if *chosenFloods != "" {
		names = strings.Split(*chosenFloods, ",")
	}
	if b.floods, err = flood.Choose(names); err != nil {
		return fmt.Errorf("-floods: %w", err)
	}
	if b.croft == "" {
		sandboxBinary, err := sandbox.FindBinary()
		if err != nil {
			return err
		}
		b.croft = filepath.Join(filepath.Dir(sandboxBinary), "croft")
	}
	// Failures are returned as errors, so the libraries' logs add nothing.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())

	r := report{Started: time.Now()}
	if r.Machine, err = machine.Describe(ctx); err != nil {
		return err
	}
	err = b.runMeasurements(ctx, chosen, &r)
	r.Seconds = time.Since(r.Started).Seconds()
	// Results from before a failure are still valid.
	return errors.Join(err, r.print(os.Stdout), r.save(*output))
}

func chooseMeasurements(only string) ([]measurement, error) {
	if only == "" {
		return measurements, nil
	}
	all := slices.Concat(measurements, onRequest)
	chosen := strings.Split(only, ",")
	for _, name := range chosen {
		if !slices.Contains(listNames(all), name) {
			return nil, fmt.Errorf("-only: there is no measurement %q: choose from %s", name, strings.Join(listNames(all), ", "))
		}
	}
	return slices.DeleteFunc(all, func(m measurement) bool { return !slices.Contains(chosen, m.name) }), nil
}

func listNames(all []measurement) []string {
	list := make([]string, len(all))
	for i, m := range all {
		list[i] = m.name
	}
	return list
}
