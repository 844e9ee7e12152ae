// Command benchadmission measures the cost of placing a pod, compared with the common
// alternative. It is run by `make bench-admission`, which builds its dependencies first:
//
//	go run ./hack/benchadmission                                    # the table, about twenty minutes
//	go run ./hack/benchadmission -sizes 1,20 -rounds 50 -pods 100   # a minute
//	go run ./hack/benchadmission -o docs/reference/benchmarks                 # table, plot and raw data into files
//	go run ./hack/benchadmission -from docs/reference/benchmarks/admission.json -o docs/reference/benchmarks  # the files again, from an old run
//
// docs/reference/benchmarks/README.md describes the measurements, the method and its limits; the results
// are written into it, too. The table goes to standard output, progress to standard error.
//
// All pods of a comparison are created in one API server, alternately: one without any policy,
// one in a croft tenant that the API server itself places, one in a namespace whose pods
// Gatekeeper places. There are two comparisons, each in a separate sandbox, since a Gatekeeper
// with the mutators of both would be slower for either:
//
//   - croft on Gatekeeper: all objects of croft with Gatekeeper as its placement engine.
//   - Gatekeeper alone: the two Assigns for each tenant of the common recipe, without croft.
//
// Before the comparisons, it measures how native's cost grows, in two concurrent sandboxes
// without Gatekeeper, one with few tenants and one with many. In each comparison the engine is
// killed while pods are created.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends the process at once, and its sandboxes with it.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-admission:", err)
		os.Exit(1)
	}
}

// options set the extent of the measurements.
type options struct {
	// sizes are the numbers of tenants, in ascending order.
	sizes []int
	// rounds is the number of pods for each line at each size, one at a time.
	rounds int
	// pods is the number of pods for each line at each size, created by concurrent clients.
	pods, clients int
	// kills is the number of kills in each scenario, and rate the number of pods per second.
	// around is the number of pods before and after each kill.
	kills, rate, around int
	// killAt is the largest number of tenants with which Gatekeeper is killed: with more, its
	// restart takes too long.
	killAt int
	// apiServer enables killing the API server at the end.
	apiServer bool
}

// getKillSize returns the size at which Gatekeeper is killed.
func (o options) getKillSize() int {
	size := o.sizes[0]
	for _, s := range o.sizes {
		if s <= o.killAt {
			size = s
		}
	}
	return size
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("benchadmission", flag.ContinueOnError)
	sizes := flags.String("sizes", "1,100,500,1000", "numbers of tenants, growing, separated by commas")
	flags.IntVar(&o.rounds, "rounds", 300, "pods for each line at each size, one at a time")
	flags.IntVar(&o.pods, "pods", 400, "pods for each line at each size, by clients at once")
	flags.IntVar(&o.clients, "clients", 8, "how many clients create pods at once")
	flags.IntVar(&o.kills, "kills", 2, "number of kills of the engine in each way; 0 for none")
	flags.IntVar(&o.killAt, "kill-at", 100, "kill Gatekeeper when there are so many tenants, or fewer if there are not")
	flags.BoolVar(&o.apiServer, "kill-api-server", true, "also kill the API server, at the end")
	flags.IntVar(&o.rate, "rate", 50, "pods a second while the engine is killed")
	flags.IntVar(&o.around, "around", 100, "pods before and after each kill")
	output := flags.String("o", "", "directory to write README.md, admission.svg and admission.json into; none if empty")
	from := flags.String("from", "", "path of an earlier run's admission.json: write its results again, without measurements")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if o.sizes, err = parseSizes(*sizes); err != nil {
		return err
	}
	if err := o.validate(flags.Args()); err != nil {
		return err
	}
	// Failures are returned as errors, so the libraries' logs add nothing.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())

	var r report
	if *from != "" {
		r, err = loadReport(*from)
	} else {
		r, err = measureAll(ctx, o)
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Print(r.renderMarkdown()); err != nil {
		return err
	}
	if *output == "" {
		return nil
	}
	return r.publish(*output)
}

// parseSizes parses numbers of tenants.
func parseSizes(text string) ([]int, error) {
	var sizes []int
	for word := range strings.SplitSeq(text, ",") {
		size, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || size < 1 || len(sizes) > 0 && size <= sizes[len(sizes)-1] {
			return nil, fmt.Errorf("-sizes: %q in %q: write numbers of tenants from 1 on, each larger than the one before, such as 1,100", word, text)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

func (o options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: use flags", rest[0])
	case min(o.rounds, o.pods, o.clients, o.rate, o.around) < 1:
		return errors.New("-rounds, -pods, -clients, -rate and -around: write at least 1 for each")
	case o.kills < 0:
		return errors.New("-kills: write 0 or more")
	}
	return nil
}

// measureAll runs all measurements one after the other.
func measureAll(ctx context.Context, o options) (report, error) {
	r, err := newReport(ctx, o)
	if err != nil {
		return r, err
	}
	if r.Growth, err = measureGrowth(ctx, o); err != nil {
		return r, fmt.Errorf("growth: %w", err)
	}
	for _, name := range []string{onGatekeeper, alone} {
		found, err := compareEngines(ctx, name, o)
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		r.Comparisons = append(r.Comparisons, found)
	}
	r.Seconds = time.Since(r.Started).Seconds()
	return r, nil
}

// printProgress prints the progress of the benchmark.
func printProgress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
