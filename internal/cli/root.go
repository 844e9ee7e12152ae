// Package cli is croft's command line, with one file per command. Data goes to standard
// output, progress and messages to standard error. The exit status is 0 for success, 1 for
// a failure, 2 for bad input and 130 for an interruption.
//
// It may import: declare, rules, observe, network, walls, operate, prove, adoption, diagnose,
// access, cloud, dashboard, cost.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/version"
)

// These are the exit statuses.
const (
	exitGood     = 0
	exitFailed   = 1
	exitBadInput = 2
)

// app is the state that all commands share.
type app struct {
	in      io.Reader
	out     io.Writer
	err     io.Writer
	cluster *clusterFlags
	// interrupt is cancelled when the command ends or when the user interrupts it.
	interrupt context.Context
}

// Main runs croft with the given arguments and returns its exit status. An interrupt ends
// the command in order; a second one ends it at once.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	defer stop()

	// Log messages of libraries are discarded; the operator sets its own logger.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())

	root := newRoot(&app{in: in, out: out, err: errOut, cluster: newClusterFlags(), interrupt: ctx})
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitGood
	}
	err = explainUsage(command, args, err)
	if i := findInterruption(ctx, err); i != nil {
		printSafely(errOut, "croft: %v\n", i)
		return exitInterrupted
	}
	var failed *failure
	if errors.As(err, &failed) {
		if !failed.printed {
			printSafely(errOut, "croft: %v\n", err)
			printFixes(errOut, err)
		}
		return cmp.Or(failed.status, exitFailed)
	}
	var reported *reportedBadInput
	if errors.As(err, &reported) {
		return exitBadInput
	}
	var problems document.Problems
	if errors.As(err, &problems) {
		// Each line begins with a file and a line number, which editors recognise.
		printSafely(errOut, "%v\n", err)
	} else {
		printSafely(errOut, "croft: %v\n", err)
	}
	return exitBadInput
}

// Tree returns all commands, to generate their man pages (hack/man). Main runs them.
func Tree() *cobra.Command {
	return newRoot(&app{in: os.Stdin, out: os.Stdout, err: os.Stderr, cluster: newClusterFlags(), interrupt: context.Background()})
}

// shortCommands are the commands that end before a small heap pays off: with Go's default, garbage collection is a fifth
// of their time.
var shortCommands = []string{"apply", "check", "diff", "doctor", "render", "status", "try"}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "croft",
		Short: "Many teams on one Kubernetes cluster, with four walls around each",
		Long: `croft turns one file of tenants and node pools into four walls around each
tenant (network, nodes, identity, policy), repairs them, and proves that they hold.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.String(),
	}
	root.SetVersionTemplate("croft {{.Version}}\n")
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	a.cluster.addFlags(root.PersistentFlags())
	root.AddGroup(
		&cobra.Group{ID: "declare", Title: "Declare:"},
		&cobra.Group{ID: "inspect", Title: "Inspect:"},
		&cobra.Group{ID: "run", Title: "Run croft:"},
		&cobra.Group{ID: "access", Title: "Get access:"},
	)
	for group, commands := range map[string][]*cobra.Command{
		"declare": {newCheck(a), newTry(a), newRender(a), newIAM(a), newNetworks(a), newDiff(a), newApply(a), newAdopt(a), newMove(a), newDelete(a), newMigrate(a), newExport(a)},
		"inspect": {newStatus(a), newVerify(a), newCertificate(a), newReach(a), newWhy(a), newLatency(a), newCost(a), newDenials(a), newDoctor(a), newSupportBundle(a), newMe(a)},
		"run":     {newInstall(a), newUninstall(a), newOperator(a), newProxy(a), newDashboard(a), newLedger(a), newAgent(a), newCopySecrets(a)},
		"access":  {newLogin(a), newKubeconfig(a), newElevate(a)},
		"":        {newVersion(a), newPacketsProgram(a)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		if slices.Contains(shortCommands, c.Name()) && os.Getenv("GOGC") == "" {
			debug.SetGCPercent(400)
		}
	}
	refuseUnknownCommands(root)
	a.addCompletions(root)
	return root
}

// failure is an error that is not about the input: an operation failed.
type failure struct {
	error
	// printed means that the message was printed already.
	printed bool
	// status is the exit status, if it is not 1.
	status int
}

// reportedBadInput ends the command with exit status 2 without another message.
type reportedBadInput struct{ error }

func (f *failure) Unwrap() error { return f.error }

// toFailure makes err end the command with exit status 1.
func toFailure(err error) error {
	if err == nil {
		return nil
	}
	return &failure{error: err}
}

// failuref is failed with fmt.Errorf.
func failuref(format string, args ...any) error { return toFailure(fmt.Errorf(format, args...)) }

// withStatus gives a failure an exit status other than 1, for commands whose exit status 1
// is an answer.
func withStatus(status int, err error) error {
	var f *failure
	if errors.As(err, &f) {
		return &failure{error: err, printed: f.printed, status: status}
	}
	return err
}

// errReported ends the command with exit status 1 without another message.
func errReported() error { return &failure{error: errors.New("failed"), printed: true} }
