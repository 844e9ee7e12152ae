package oncall

import (
	"fmt"
	"time"

	"croft.dev/croft/internal/declare/secondary"
)

var networkRecords = []Record{
	{"croft:ec2_calls_throttled:rate10m", `sum by (action) (rate(croft_ec2_calls_total{result="throttled"}[10m]))`},
}

var networkAlerts = []Alert{
	{
		Name: "CroftInterfacesThrottled", Expr: `croft:ec2_calls_throttled:rate10m > 0.1`,
		For: 15 * time.Minute, Severity: Warning,
		Summary: "AWS throttles {{ $labels.action }}: nodes wait for their network interfaces",
		Meaning: "the account has reached the limits of EC2's API, by calls of croft or of other clients. Nodes start, and " +
			"get their interfaces later",
		Fix: "find the other clients that call EC2, such as another cluster in the same account and region; request " +
			"higher limits from AWS",
		Run: "kubectl get events -A --field-selector reason=NetworksAttached",
	},
	{
		Name: "CroftInterfacesOrphaned", Expr: `sum by (network) (croft_interfaces{state="orphaned"}) > 0`,
		For: 15 * time.Minute, Severity: Warning,
		Summary: "{{ $value }} interfaces of network {{ $labels.network }} have no node and are not deleted",
		Meaning: "croft cannot delete them. They use addresses of the subnet",
		Fix:     "the operator's log has the reason of AWS's refusal; compare its role with the output of `croft iam`",
		Run:     "kubectl describe secondarynetworks",
	},
	{
		Name: "CroftNodeNetworksPending", Expr: `time() - max by (pool) (croft_node_networks_waiting_since_timestamp_seconds) > 600`,
		For: time.Minute, Severity: Warning,
		Summary: "A node of pool {{ $labels.pool }} has been waiting for its secondary networks for more than ten minutes",
		Meaning: "the node accepts no pods: an interface is not attached, croft's agent does not run there or cannot set it " +
			"up, or Multus or whereabouts is not Ready there",
		Fix: "the Node's condition croft.dev/PodNetworksReady gives the reason, and croft why node/NAME the fix. Without " +
			"croft's agent: croft install --agent, or agent.enabled of the chart. Without interfaces, see the condition " +
			"InterfacesReady of the SecondaryNetworks",
		Run: "kubectl describe nodes -l croft.dev/secondary-networks=true",
	},
	{
		Name: "CroftNetworkAddressesLow", Expr: fmt.Sprint(`croft_network_addresses_used / croft_network_addresses >= `, secondary.NearlyFull),
		For: 5 * time.Minute, Severity: Warning,
		Summary: "{{ $value | humanizePercentage }} of the addresses of network {{ $labels.network }} in {{ $labels.zone }} are used",
		Meaning: "pods that request the network still get an address there, or, at 100 %, wait for one. Running pods keep " +
			"their addresses. The next rolling update may use up the rest, since it needs addresses for old and new pods " +
			"at the same time",
		Fix: secondary.MoreAddresses + ". The reconciler of whereabouts releases the addresses of deleted pods: if there are more " +
			"allocations than pods, check its log",
		Run: "kubectl describe secondarynetworks",
	},
}
