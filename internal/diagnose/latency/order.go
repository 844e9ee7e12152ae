package latency

import (
	"slices"

	"croft.dev/croft/internal/network/boot"
)

// usual is the order of events within the same second.
var usual = listUsualOrder()

func listUsualOrder() []string {
	all := []string{PodCreated, ClaimCreated, PodNominated, ClaimLaunched}
	for _, e := range boot.Events() {
		all = append(all, string(e))
	}
	registered := slices.Index(all, string(boot.KubeletRegistered)) + 1
	all = slices.Insert(all, registered, NodeCreated, ClaimRegistered, InterfacesAttached)
	return append(all, LinksUp, NodeReady, NetworksReady, ClaimInitialized, PodScheduled, PodStarted, PodSandboxReady,
		PodReady)
}
