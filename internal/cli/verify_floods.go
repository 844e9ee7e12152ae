package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/prove/flood"
	"croft.dev/croft/internal/prove/verify"
)

// floodOptions are the flags of `croft verify --floods`.
type floodOptions struct {
	names            []string
	phase, stopAbove time.Duration
	yes              bool
}

// allFloods is the value of --floods without one.
const allFloods = "all"

func (o *floodOptions) addFlags(c *cobra.Command) {
	c.Flags().StringSliceVar(&o.names, "floods", nil,
		"instead of attacks, measure the work of one scratch tenant during floods by another: "+strings.Join(flood.ListNames(), ", "))
	c.Flags().Lookup("floods").NoOptDefVal = allFloods
	c.Flags().DurationVar(&o.phase, "phase", 10*time.Second, "with --floods: how long to measure alone, and during each flood")
	c.Flags().DurationVar(&o.stopAbove, "stop-above", time.Second,
		"with --floods: stop if the p99 of the API server's own time for a request for one object is above this")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "with --floods: do not ask for confirmation")
	refusePointlessFlags(c, "only --floods measures load", func() bool { return len(o.names) == 0 }, "phase", "stop-above", "yes")
	for _, other := range []string{"list", "explain", "tenant", "wall", "attack", "all", "record", "packets"} {
		c.MarkFlagsMutuallyExclusive("floods", other)
	}
}

// choose returns the floods of the flag.
func (o *floodOptions) choose() ([]flood.Flood, error) {
	names := o.names
	if len(names) == 1 && names[0] == allFloods {
		names = nil
	}
	floods, err := flood.Choose(names)
	if err != nil {
		return nil, fmt.Errorf("--floods: %w", err)
	}
	return floods, nil
}

// runFloods asks for a confirmation, and measures the effect of one tenant's load on the work of another.
func (a *app) runFloods(ctx context.Context, o verifyOptions) error {
	chosen, err := o.floods.choose()
	switch {
	case err != nil:
		return err
	case o.floods.phase <= 0 || o.floods.stopAbove <= 0:
		return errors.New("--phase and --stop-above: write positive durations, such as 10s and 1s")
	case o.output == formatJUnit:
		return errors.New("-o junit prints results of attacks, and --floods tries none: write one of table|json|yaml")
	case !o.floods.yes && !a.isInteractive():
		return errors.New("nothing was measured: --floods asks for a confirmation, and standard input is not a terminal: use a terminal, or add --yes")
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if _, _, err := a.newStage(ctx, o); err != nil {
		return err
	}
	platform, pool, image, err := a.choosePods(ctx, o, "--floods")
	if err != nil {
		return err
	}
	floods, err := verify.NewFloods(*platform, pool, image)
	if err != nil {
		return toFailure(err)
	}
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	if err := checkRights(ctx, c, platform, floods); err != nil {
		return err
	}
	config, err := a.loadConfig()
	if err != nil {
		return toFailure(err)
	}
	printSafely(a.err, "Load on the cluster %s: a scratch tenant causes %s within the default limits, of %s each, while pods of another one run on the pool %s. "+
		"It stops if a request of the other fails, or if the p99 of the API server's own time for a request for one object is above %s.\n",
		config.Host, wording.FormatCount(len(chosen), "flood"), o.floods.phase, pool, o.floods.stopAbove)
	if !o.floods.yes {
		printSafely(a.err, "Type yes to continue: ")
		if a.readAnswer() != "yes" {
			return failuref("nothing was measured")
		}
	}
	progress, printing := newProgress(a.err), &sync.Mutex{}
	results, err := floods.Measure(ctx, config, scheme.New(), chosen, o.floods.phase, o.floods.stopAbove, func(format string, args ...any) {
		printing.Lock()
		defer printing.Unlock()
		progress.update(format, args...)
	})
	progress.finish()
	if err := a.printFloods(results, err, o.output); err != nil {
		return err
	}
	switch slow := countSlow(results); {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failuref("not all floods were measured within %s: set a longer --timeout, or select some with --floods=NAME,…", o.timeout)
	case errors.Is(ctx.Err(), context.Canceled):
		return newInterruption(": not all floods were measured")
	case err != nil:
		return toFailure(explainUnreachable(err))
	case slow > 0:
		return failuref("%s above the target or with failures: docs/how-to/noisy-neighbours.md describes the bounds of each flood",
			wording.FormatCount(slow, "operation"))
	default:
		return nil
	}
}

// floodData is a flood in the JSON output of `croft verify --floods`.
type floodData struct {
	Flood      string              `json:"flood"`
	Summary    string              `json:"summary"`
	Requests   *flood.RequestCount `json:"requests"`
	Operations []flood.Comparison  `json:"operations"`
}

// printFloods prints the results up to an error.
func (a *app) printFloods(results []flood.Result, failure error, output format) error {
	if output != formatTable {
		data := struct {
			Floods  []floodData    `json:"floods"`
			Stopped *flood.Stopped `json:"stopped,omitempty"`
		}{Floods: []floodData{}}
		errors.As(failure, &data.Stopped)
		for _, r := range results {
			data.Floods = append(data.Floods, floodData{r.Flood, r.Summary, r.Requests, r.Compare()})
		}
		return output.print(a.out, data)
	}
	var rows [][]string
	for _, r := range results {
		for _, o := range r.Compare() {
			rows = append(rows, []string{
				r.Flood, o.Operation, formatSeconds(o.Alone.P50), formatSeconds(o.During.P50), formatSeconds(o.Alone.P99), formatSeconds(o.During.P99),
				fmt.Sprintf("%.2f", o.Ratio), fmt.Sprintf("%.1f", o.Target), strconv.Itoa(o.Alone.Failures), strconv.Itoa(o.During.Failures),
			})
		}
	}
	if len(rows) > 0 {
		printTable(a.out, []string{"FLOOD", "VICTIM", "P50 ALONE", "P50", "P99 ALONE", "P99", "RATIO", "TARGET", "FAILED ALONE", "FAILED"}, rows)
	}
	return nil
}

func formatSeconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Microsecond).String()
}

// countSlow counts the operations that a flood slowed down by more than the target.
func countSlow(results []flood.Result) int {
	slow := 0
	for _, r := range results {
		for _, o := range r.Compare() {
			if !o.IsGood() {
				slow++
			}
		}
	}
	return slow
}
