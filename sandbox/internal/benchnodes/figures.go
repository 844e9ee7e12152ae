// Package benchnodes measures how long a node with two extra network interfaces takes, and
// what EC2's limits do to a hundred of them at once: without networks, with croft, and with
// the script that AWS's blog post "Deploying Karpenter Nodes with Multus on Amazon EKS" has
// in user data.
//
// It runs on the simulated account, at the wire, with simulated time: everything here runs
// in a bubble of testing/synctest, where time.Sleep costs nothing. That is why its command
// is a test binary (`make bench-nodes`). Real are croft's keeper of interfaces with its
// limiter, its plans, AWS's SDK and the account's token buckets; assumed are the times below.
package benchnodes

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// span is a time that lies anywhere between two.
type span struct{ least, most time.Duration }

func (s span) draw() time.Duration { return s.least + rand.N(s.most-s.least+1) }

func (s span) String() string {
	if s.least == s.most {
		return seconds(s.least)
	}
	return fmt.Sprintf("%.1f to %s", s.least.Seconds(), seconds(s.most))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// The times of others. How long an instance and an attachment take is the simulated
// account's own; see its package.
var (
	// untilLaunched is from a pod that needs a node to an instance: the post's second node.
	untilLaunched = 4 * time.Second
	// answer is how long EC2 takes for a call: creating, attaching and setting up an
	// interface takes Amazon's VPC CNI about 2 s (amazon-vpc-cni-k8s#1872).
	answer = 500 * time.Millisecond
	// untilScript is from an instance that runs to its user data: the post's two nodes, from
	// "VM Initialized" to "Cloud-Init Final Start".
	untilScript = span{4 * time.Second, 5 * time.Second}
	// command is one call of the AWS CLI, start of the program and answer. The post's two
	// nodes spend 21 and 26 s in user data, of which 3 s are sleeps, on 14 calls.
	command = span{1290 * time.Millisecond, 1640 * time.Millisecond}
	// untilAgent is from a registered node to croft's agent on it: as long as Amazon's VPC CNI
	// takes on the post's two nodes, a pod of a DaemonSet on the node's network, too.
	untilAgent = span{6 * time.Second, 8 * time.Second}
	// write is one write to the API server, and until its watchers see it.
	write = 100 * time.Millisecond
)

// Assumption is a time that is assumed.
type Assumption struct {
	What   string `json:"what"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// assumptions are all times that are assumed.
func assumptions() []Assumption {
	const post = "the AWS post's two nodes, by node-latency-for-k8s"
	return []Assumption{
		{"pod created → NodeClaim launched", seconds(untilLaunched), post + " (the second; 11 s the first)"},
		{"launched → running", "9 to 10 s", post},
		{"running → registered, without user data", "6 to 8 s", post},
		{"registered → Ready", "8 to 10 s", post},
		{"an attachment", "1 to 3 s; 5 in 100: 5 to 15 s", "the simulated account; the tail is a guess"},
		{"EC2's answer to a call, of both sides", seconds(answer), "amazon-vpc-cni-k8s#1872: about 2 s to create, attach and set up"},
		{"EC2's limits of an action", "reading 100 at once and 20 a second, changing 50 and 5",
			"EC2's developer guide; of calls on interfaces only"},
		{"running → user data", untilScript.String(), post},
		{"a call of the AWS CLI, with EC2's answer", fmt.Sprintf("%.2f to %.2f s", command.least.Seconds(), command.most.Seconds()),
			post + ": 21 and 26 s of user data, less 3 s of sleeps, by 14 calls"},
		{"registered → croft's agent runs", untilAgent.String(), post + ": as the VPC CNI's pod"},
		{"a write to the API server until it is seen", seconds(write), "an assumption"},
	}
}
