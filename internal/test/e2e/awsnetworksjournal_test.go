package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/latency"
	"croft.dev/croft/internal/network/boot"
	"croft.dev/croft/internal/operate/install"
)

// testNetworksJournal fails if croft latency omits a phase of a node that runs croft's agent as
// croft install configures it. The node's hardware and journal are simulated; the agent, with
// the token of its pod, and every reader and writer of the Node are real. It runs after
// testNetworksWait, which installs the agent's rights and acts as the agent.
func testNetworksJournal(t *testing.T, n *networkedCluster) {
	objects, err := install.Objects(install.Options{Image: "croft:test", Agent: true, AgentJournal: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetName() == install.AgentName && o.GetObjectKind().GroupVersionKind().Kind == "DaemonSet" {
			createObjects(t, n.admin, o)
		}
	}
	n.scaleTenant(t, 2)
	n.awaitRunningPods(t, "core", 2)
	node := &corev1.Node{}
	awaitCondition(t, patience, "the times of a node's boot", func(ctx context.Context) error {
		var nodes corev1.NodeList
		err := n.admin.List(ctx, &nodes, client.MatchingLabels{v1alpha1.NodeNetworksLabel: "true"})
		for i := range nodes.Items {
			// testNetworksWait wrote {} to the other node.
			if text := nodes.Items[i].Annotations[v1alpha1.BootAnnotation]; text != "" && text != "{}" {
				node = &nodes.Items[i]
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("none of %d nodes has them", len(nodes.Items)))
	})
	times, err := boot.Decode(node.Annotations[v1alpha1.BootAnnotation])
	if err != nil || times[boot.AWSNodeStart].IsZero() {
		t.Errorf("the agent has found %v: %v", times, err)
	}
	awaitCondition(t, moments, "all phases", func(context.Context) error {
		out := n.runCroft(t, "latency", "--pool", "telco", "--since", "0", "-o", "json").expectExit(t, 0)
		var report struct {
			Nodes []struct {
				Node   string
				Phases map[latency.Phase]float64
				Events []latency.Event
				Notes  []string
			}
		}
		if err := json.Unmarshal([]byte(out.stdout), &report); err != nil {
			return err
		}
		for _, of := range report.Nodes {
			if of.Node != node.Name {
				continue
			}
			var missing []string
			for _, d := range latency.Definitions() {
				if _, known := of.Phases[d.Phase]; !known {
					missing = append(missing, string(d.Phase))
				}
			}
			if len(missing) > 0 {
				return fmt.Errorf("there is no %s; events: %v; notes: %q", strings.Join(missing, ", "), of.Events, of.Notes)
			}
			return nil
		}
		return fmt.Errorf("%s is not among %d nodes", node.Name, len(report.Nodes))
	})
}
