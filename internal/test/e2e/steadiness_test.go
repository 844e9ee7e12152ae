package e2e

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/test/sandbox"
)

// steadiness watches the pods and nodes that existed at its start.
type steadiness struct {
	mu sync.Mutex
	// there maps the UID of each pod to its node, and the UID of each node to "".
	there map[types.UID]string
	lost  []string
	stops []func()
}

// watchSteadiness starts to watch all pods and nodes. None may be deleted, restart or move.
func (c *cluster) watchSteadiness(t *testing.T) *steadiness {
	t.Helper()
	s := &steadiness{there: map[types.UID]string{}}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.NodeList{}} {
		s.stops = append(s.stops, sandbox.Watch(t, c.Config, list, s.recordEvent))
	}
	return s
}

func (s *steadiness) recordEvent(event watch.EventType, o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, isPod := o.(*corev1.Pod)
	if event == "" {
		switch {
		case !isPod:
			s.there[o.GetUID()] = ""
		case pod.Namespace != "gatekeeper-system":
			s.there[o.GetUID()] = pod.Spec.NodeName
		}
		return
	}
	node, known := s.there[o.GetUID()]
	if !known {
		return
	}
	if event == watch.Deleted || o.GetDeletionTimestamp() != nil {
		s.lost = append(s.lost, fmt.Sprintf("%T %s went", o, o.GetName()))
	}
	if !isPod {
		return
	}
	if pod.Spec.NodeName != node || pod.Status.Phase != corev1.PodRunning {
		s.lost = append(s.lost, fmt.Sprintf("pod %s is %s on %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName))
	}
	for _, container := range pod.Status.ContainerStatuses {
		if container.RestartCount > 0 {
			s.lost = append(s.lost, fmt.Sprintf("pod %s was restarted", pod.Name))
		}
	}
}

// expectSteady stops the watches and fails the test if a pod or node has changed.
func (s *steadiness) expectSteady(t *testing.T) {
	t.Helper()
	for _, stop := range s.stops {
		stop()
	}
	if len(s.there) == 0 {
		t.Error("nothing was watched")
	}
	for _, lost := range s.lost {
		t.Error(lost)
	}
	t.Logf("%d pods and nodes were watched all the while", len(s.there))
}
