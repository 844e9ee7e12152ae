package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/doctor"
)

// countAllocated returns the number of addresses that whereabouts has allocated.
func (n *cniNode) countAllocated(t *testing.T) int {
	t.Helper()
	out := n.runKubectl(t, "", "get", "ippools.whereabouts.cni.cncf.io", "-A", "-o", "json").expectExit(t, 0).stdout
	var pools struct {
		Items []struct {
			Spec struct{ Allocations map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(out), &pools); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, pool := range pools.Items {
		total += len(pool.Spec.Allocations)
	}
	return total
}

// testMultusNoAddressLeft fails if a pod starts when no address of the reservation is free,
// does not start when an address is released, or if croft does not report the full range.
func testMultusNoAddressLeft(t *testing.T, n *cniNode, pod *corev1.Pod) {
	// Sixteen addresses are allocated to other pods. whereabouts counts from the start of the
	// subnet, and the reservations of the estate start at its address 32.
	taken := map[string]any{}
	for i := 32; i < 32+16; i++ {
		taken[fmt.Sprint(i)] = map[string]string{"id": fmt.Sprint("other-", i), "podref": fmt.Sprint("core/other-", i), "ifname": "net1"}
	}
	n.writeAllocations(t, "n4", taken)
	n.awaitAddressCondition(t, "n4", metav1.ConditionFalse, v1alpha1.ReasonRangeFull)
	n.awaitDoctorFinding(t, "addresses", doctor.Problem, moments, "SecondaryNetwork/n4", "16 of 16 addresses")
	namespace := n.createNetworkNamespace(t, "beyond")
	if err := n.callMultus(t, "ADD", pod, "beyond", namespace); err == nil || !strings.Contains(err.Error(), "Could not allocate IP in range") {
		t.Errorf("with no address left: %v", err)
	}
	n.restoreInterfaces(t, namespace)
	n.writeAllocations(t, "n4", map[string]any{})
	n.awaitAddressCondition(t, "n4", metav1.ConditionTrue, v1alpha1.ReasonAddressesAvailable)
	namespace = n.createNetworkNamespace(t, "next")
	if err := n.callMultus(t, "ADD", pod, "next", namespace); err != nil {
		t.Fatal(err)
	}
	n.deleteSandbox(t, pod, "next", namespace)
}

// awaitAddressCondition waits until a network's condition AddressesAvailable has the status and the
// reason.
func (n *cniNode) awaitAddressCondition(t *testing.T, network string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	awaitCondition(t, moments, "the addresses of "+network, func(ctx context.Context) error {
		o := &v1alpha1.SecondaryNetwork{}
		if err := n.admin.Get(ctx, client.ObjectKey{Name: network}, o); err != nil {
			return err
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionAddressesAvailable)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
}

// writeAllocations overwrites the allocations in a network's reservation in the node's zone.
func (n *cniNode) writeAllocations(t *testing.T, network string, allocations map[string]any) {
	t.Helper()
	pools := n.runKubectl(t, "", "get", "ippools.whereabouts.cni.cncf.io", "-n", "kube-system", "-o", "name").expectExit(t, 0).stdout
	zone := n.zone[network]
	first := strings.ReplaceAll(netip.MustParsePrefix(zone.PodCIDR).Addr().String(), ":", "-")
	cidr, _, _ := strings.Cut(zone.CIDR, "/")
	for pool := range strings.Lines(pools) {
		pool = strings.TrimSpace(pool)
		if !strings.Contains(pool, first) && !strings.Contains(pool, cidr) {
			continue
		}
		patch, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec/allocations", "value": allocations}})
		if err != nil {
			t.Fatal(err)
		}
		n.runKubectl(t, "", "patch", pool, "-n", "kube-system", "--type=json", "-p", string(patch)).expectExit(t, 0)
		return
	}
	t.Fatalf("no pool of addresses for %s in %s", zone.PodCIDR, pools)
}
