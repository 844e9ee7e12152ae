package estate

import "testing"

// TestNetworkWarnings tests pools on AWS whose nodes may be created in zones without their
// networks, or with too few interfaces.
func TestNetworkWarnings(t *testing.T) {
	const (
		pool = "pools: {apps: {secondaryNetworks: [n3, n6], nodeClass: {ref: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}}, instances: {requirements: ["
		m5   = "{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}"
		t3   = "{key: karpenter.k8s.aws/instance-family, operator: In, values: [t3]}, {key: karpenter.k8s.aws/instance-size, operator: In, values: [nano, large]}"
		zone = "{key: topology.kubernetes.io/zone, operator: In, values: [b]}"

		anyZone = "croft.yaml:10: pools.apps.instances.requirements: warning: the pool's secondary networks have subnets in a, b, " +
			"and nodes may come up in other zones; require topology.kubernetes.io/zone to be in these"
		tooSmall = "croft.yaml:10: pools.apps.secondaryNetworks: warning: a node needs 3 network interfaces, its own and one for each of n3, n6, " +
			"and t3.nano, which the pool may get, has 2; name instanceTypes, or families and sizes, that have enough"
	)
	for requirements, want := range map[string]string{
		m5 + ", " + zone: "", m5: anyZone, t3 + ", " + zone: tooSmall, t3: anyZone + "\n" + tooSmall,
	} {
		_, e := parseValid(t, base+twoNetworks+pool+requirements+"]}}}\n")
		if got := e.Warnings.Error(); got != want {
			t.Errorf("%s: %s", requirements, got)
		}
	}
}
