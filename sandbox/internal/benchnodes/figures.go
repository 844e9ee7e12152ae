// Package benchnodes measures the time that a node with two extra network interfaces takes, and
// the effect of EC2's limits on a hundred of them at once: without networks, with croft, and
// with the script that AWS's blog post "Deploying Karpenter Nodes with Multus on Amazon EKS"
// has in user data.
//
// It calls the simulated account by its HTTP API, in simulated time: all code here runs in a
// bubble of testing/synctest, where time.Sleep returns at once. That is why its command is a
// test binary (`make bench-nodes`). croft's keeper of interfaces with its limiter and its plans,
// AWS's SDK and the account's token buckets are real; the times below are assumed.
package benchnodes

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// span is a range of durations, from which random ones are drawn.
type span struct{ least, most time.Duration }

func (s span) drawDuration() time.Duration { return s.least + rand.N(s.most-s.least+1) }

func (s span) String() string {
	if s.least == s.most {
		return formatDuration(s.least)
	}
	return fmt.Sprintf("%.1f to %s", s.least.Seconds(), formatDuration(s.most))
}

func formatDuration(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// The times of other programs. The times of an instance and of an attachment are the simulated
// account's own; see its package.
var (
	// untilLaunched is the time from a pod that needs a node until an instance is launched: the
	// post's second node.
	untilLaunched = 4 * time.Second
	// answer is the time of EC2's answer to a call: creating, attaching and setting up an
	// interface takes Amazon's VPC CNI about 2 s (amazon-vpc-cni-k8s#1872).
	answer = 500 * time.Millisecond
	// untilScript is the time from a running instance to its user data: the post's two nodes,
	// from "VM Initialized" to "Cloud-Init Final Start".
	untilScript = span{4 * time.Second, 5 * time.Second}
	// command is the time of one call of the AWS CLI: the program's start and the answer. The
	// post's two nodes spend 21 and 26 s in user data, of which 3 s are sleeps, on 14 calls.
	command = span{1290 * time.Millisecond, 1640 * time.Millisecond}
	// untilAgent is the time from a registered node until croft's agent runs on it: the time
	// of Amazon's VPC CNI on the post's two nodes, which is also a pod of a DaemonSet on the
	// node's network.
	untilAgent = span{6 * time.Second, 8 * time.Second}
	// write is the time of one write to the API server, until watchers observe it.
	write = 100 * time.Millisecond
)

// Assumption is an assumed time.
type Assumption struct {
	What   string `json:"what"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// listAssumptions returns all assumed times.
func listAssumptions() []Assumption {
	const post = "the AWS post's two nodes, by node-latency-for-k8s"
	return []Assumption{
		{"pod created → NodeClaim launched", formatDuration(untilLaunched), post + " (the second; 11 s the first)"},
		{"launched → running", "9 to 10 s", post},
		{"running → registered, without user data", "6 to 8 s", post},
		{"registered → Ready", "8 to 10 s", post},
		{"an attachment", "1 to 3 s; 5 in 100: 5 to 15 s", "the simulated account; the tail is a guess"},
		{"EC2's answer to a call, of both sides", formatDuration(answer), "amazon-vpc-cni-k8s#1872: about 2 s to create, attach and set up"},
		{"EC2's limits of an action", "reading 100 at once and 20 a second, changing 50 and 5",
			"EC2's developer guide; of calls on interfaces only"},
		{"running → user data", untilScript.String(), post},
		{"a call of the AWS CLI, with EC2's answer", fmt.Sprintf("%.2f to %.2f s", command.least.Seconds(), command.most.Seconds()),
			post + ": 21 and 26 s of user data, less 3 s of sleeps, by 14 calls"},
		{"registered → croft's agent runs", untilAgent.String(), post + ": as the VPC CNI's pod"},
		{"a write to the API server until it is seen", formatDuration(write), "an assumption"},
	}
}
