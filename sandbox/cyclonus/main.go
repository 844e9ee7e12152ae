// Command cyclonus evaluates NetworkPolicies with Cyclonus, a conformance suite for network
// plugins. It reads connections, one JSON object each. For each it writes one line: whether the
// policies select the pod, and whether they allow the connection.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	networkingv1 "k8s.io/api/networking/v1"
)

// question is a connection in one direction, in Cyclonus's own types.
type question struct {
	Policies []*networkingv1.NetworkPolicy
	Traffic  matcher.Traffic
	Ingress  bool
}

type answer struct {
	Selected bool `json:"selected"`
	Allowed  bool `json:"allowed"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cyclonus:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	questions, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q question
		if err := questions.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		verdict := matcher.BuildNetworkPolicies(false, q.Policies).IsIngressOrEgressAllowed(&q.Traffic, q.Ingress)
		if err := answers.Encode(answer{
			Selected: len(verdict.AllowingTargets)+len(verdict.DenyingTargets) > 0,
			Allowed:  verdict.IsAllowed(),
		}); err != nil {
			return err
		}
	}
}
