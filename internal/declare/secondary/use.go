package secondary

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
)

// IPPool is the kind in which whereabouts stores pods' addresses. There is one object for
// each subnet, even if a definition uses only a part of it.
var IPPool = schema.GroupVersionKind{Group: "whereabouts.cni.cncf.io", Version: "v1alpha1", Kind: "IPPool"}

// NearlyFull is the used fraction of a reservation from which a warning is reported. The
// last tenth leaves time to widen a reservation of a hundred addresses before a Deployment
// that rolls out with its default surge of a quarter exhausts it. A lower value would warn
// of networks that are merely well used.
const NearlyFull = 0.9

// Use is the number of addresses that pods have in one zone of a network.
type Use struct {
	Network, Zone string
	// Range is the reservation.
	Range string
	// Used is the number of addresses that pods have, Total the number that pods may have.
	Used, Total uint64
}

// IsFull reports whether the next pod gets no address.
func (u Use) IsFull() bool { return u.Used >= u.Total }

// IsNearlyFull reports whether to warn. It is true for full ranges, too.
func (u Use) IsNearlyFull() bool { return u.IsFull() || float64(u.Used) >= NearlyFull*float64(u.Total) }

// CountUse counts the used addresses of a network in each of its zones, from the cluster's
// IPPools. Several definitions may use one subnet, so an address in several IPPools counts
// once, and only if it is in the reservation. CountUse omits malformed zones.
func CountUse(network string, spec *v1alpha1.SecondaryNetworkSpec, pools []unstructured.Unstructured) []Use {
	var all []Use
	for _, r := range Reservations(network, spec) {
		used, excluded := map[netip.Addr]bool{}, r.Excluded()
		for i := range pools {
			if !r.isServedBy(&pools[i]) {
				continue
			}
			for _, address := range listAllocated(&pools[i]) {
				if r.Pods.Contains(address) && !containsAddress(excluded, address) {
					used[address] = true
				}
			}
		}
		all = append(all, Use{network, r.Zone, r.Pods.String(), uint64(len(used)), r.CountUsable()})
	}
	return all
}

// IsServedBy reports whether an IPPool may have addresses of a network.
func IsServedBy(network string, spec *v1alpha1.SecondaryNetworkSpec, pool *unstructured.Unstructured) bool {
	for _, r := range Reservations(network, spec) {
		if r.isServedBy(pool) {
			return true
		}
	}
	return false
}

func (r Reservation) isServedBy(pool *unstructured.Unstructured) bool {
	whole, err := parseRange(pool)
	return err == nil && whole.Overlaps(r.Pods)
}

func containsAddress(all []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(address) })
}

// parseRange returns the network from whose first address an IPPool's allocations are counted,
// as whereabouts reads it.
func parseRange(pool *unstructured.Unstructured) (netip.Prefix, error) {
	text, _, err := unstructured.NestedString(pool.Object, "spec", "range")
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.ParsePrefix(text)
}

// listAllocated returns the addresses of an IPPool that pods have. The keys of allocations are
// offsets from the range's first address. Other keys are ignored, as whereabouts does.
func listAllocated(pool *unstructured.Unstructured) []netip.Addr {
	whole, err := parseRange(pool)
	if err != nil {
		return nil
	}
	spec, _ := pool.Object["spec"].(map[string]any)
	allocations, _ := spec["allocations"].(map[string]any)
	var all []netip.Addr
	for key := range allocations {
		offset, err := strconv.ParseUint(key, 10, 64)
		if err != nil {
			continue
		}
		if address := addOffset(whole.Addr(), offset); address.IsValid() {
			all = append(all, address)
		}
	}
	return all
}

// addOffset adds an offset to an address. The result is invalid beyond the last address.
func addOffset(address netip.Addr, offset uint64) netip.Addr {
	if address.Is4() {
		first := address.As4()
		if offset > math.MaxUint32 {
			return netip.Addr{}
		}
		sum := uint64(binary.BigEndian.Uint32(first[:])) + offset
		if sum > math.MaxUint32 {
			return netip.Addr{}
		}
		binary.BigEndian.PutUint32(first[:], uint32(sum))
		return netip.AddrFrom4(first)
	}
	first := address.As16()
	low, carry := bits.Add64(binary.BigEndian.Uint64(first[8:]), offset, 0)
	high, carry := bits.Add64(binary.BigEndian.Uint64(first[:8]), 0, carry)
	if carry > 0 {
		return netip.Addr{}
	}
	binary.BigEndian.PutUint64(first[:8], high)
	binary.BigEndian.PutUint64(first[8:], low)
	return netip.AddrFrom16(first)
}

// String describes how full the range is.
func (u Use) String() string {
	return fmt.Sprintf("%s: %d of %d addresses of %s are used", u.Zone, u.Used, u.Total, u.Range)
}

// MoreAddresses is the remedy for a full range.
const MoreAddresses = "widen podCIDR of the zone, and the reservation with it (croft networks plan), " +
	"let the pods run in other zones, or add a zone to the network"
