// Command croft-sandbox is a real Kubernetes control plane in one binary: etcd,
// the API server, the controller manager, the scheduler, Karpenter, and kwok,
// which simulates the nodes. It runs itself as each of these components.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"croft.dev/croft/sandbox/internal/run"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	run.HideLinkedFlags()
	code := executeRoot(ctx)
	stop()
	os.Exit(code)
}

func executeRoot(ctx context.Context) int {
	err := newRoot().ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, new(usageError)):
		fmt.Fprintf(os.Stderr, "croft-sandbox: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(os.Stderr, "croft-sandbox: %v\n", err)
		return exitFailed
	}
}

// usageError is a mistake in the command line.
type usageError struct{ error }

// exitCode is an error that ends the program with this code, without a message.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
