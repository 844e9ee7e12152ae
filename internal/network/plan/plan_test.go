package plan_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/network/plan"
)

func buildPlan(t *testing.T, content string) plan.Plan {
	t.Helper()
	d, problems := manifest.Parse("croft.yaml", []byte(content))
	e, more := estate.Build(d)
	if err := append(problems, more...).Err(); err != nil {
		t.Fatal(err)
	}
	return plan.Build(e)
}

// TestExample covers the file that docs/how-to/networks.md describes.
func TestExample(t *testing.T) {
	data, err := os.ReadFile("../../../examples/networks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := buildPlan(t, string(data))
	want := plan.Range{
		Network: "n4", Zone: "us-west-2a", Subnet: "subnet-0a4", CIDR: "10.0.4.0/24", PodCIDR: "10.0.4.32/27", Gateway: "10.0.4.1",
		Pods: 32, Nodes: 219, Type: "explicit", Tenants: []string{"core"},
	}
	if diff := cmp.Diff(want, p.Ranges[0]); len(p.Ranges) != 4 || diff != "" {
		t.Errorf("of %d ranges the first is another (- expected, + got)\n%s", len(p.Ranges), diff)
	}
	types := []plan.Type{
		{Name: "c6i.2xlarge", Known: true, Interfaces: 4, Needed: 3, Left: 2, Pods: 14, WithPrefixes: 224},
		{Name: "c6i.xlarge", Known: true, Interfaces: 4, Needed: 3, Left: 2, Pods: 14, WithPrefixes: 224},
	}
	pools := []plan.Pool{{Name: "telco", Networks: []string{"n4", "n6"}, Zones: []string{"us-west-2a", "us-west-2b"}, Types: types}}
	if diff := cmp.Diff(pools, p.Pools); diff != "" {
		t.Errorf("- expected, + got\n%s", diff)
	}
}

const odd = `
platform: {clusterName: a, nodeClass: {kwok: {}}}
secondaryNetworks:
  a-b: {zones: [{zone: c, subnet: "s'1", cidr: 10.0.0.0/24, podCIDR: 10.0.0.0/25}]}
  a--b: {zones: [{zone: c, subnet: s2, cidr: 10.1.0.0/24, podCIDR: 10.1.0.32/27}]}
pools:
  any: {secondaryNetworks: [a-b, a--b]}
  new: {secondaryNetworks: [a-b], instances: {instanceTypes: [x9.huge]}}
`

// TestPlanOfUnusualPools covers a pool that lists no type, an unknown type, addresses that the
// VPC reserves, and names that only differ in their hyphens.
func TestPlanOfUnusualPools(t *testing.T) {
	p := buildPlan(t, odd)
	if diff := cmp.Diff([]string{"10.0.0.0/30"}, p.Ranges[1].Excluded); p.Ranges[1].Pods != 124 || diff != "" {
		t.Errorf("%d pods; %s", p.Ranges[1].Pods, diff)
	}
	if any := p.Pools[0]; any.Types != nil || !strings.HasSuffix(any.Choices, " types have enough") {
		t.Errorf("a pool of any type has %v, %q", any.Types, any.Choices)
	}
	if diff := cmp.Diff([]plan.Type{{Name: "x9.huge", Needed: 2}}, p.Pools[1].Types); diff != "" {
		t.Errorf("- expected, + got\n%s", diff)
	}
	resources := p.CloudFormation()["Resources"].(map[string]any)
	for _, id := range []string{"PodsABC", "PodsABC2"} {
		if resources[id] == nil || len(resources) != 2 {
			t.Errorf("there is no %s among %v", id, resources)
		}
	}
}

// TestPrefixes covers a network whose nodes have their own prefixes: the number of nodes
// follows from the number of prefixes, and EC2 takes the prefixes from the reservation.
func TestPrefixes(t *testing.T) {
	p := buildPlan(t, `
platform: {clusterName: a, nodeClass: {kwok: {}}}
secondaryNetworks:
  n4: {prefixesPerNode: 2, zones: [{zone: c, subnet: s1, cidr: 10.0.0.0/24, podCIDR: 10.0.0.0/25}]}
`)
	r := p.Ranges[0] // the first of eight prefixes contains the subnet's reserved addresses
	if r.Pods != 112 || r.Nodes != 3 || r.Type != "prefix" {
		t.Errorf("%+v", r)
	}
	if got := p.Commands(); !strings.Contains(got, "--cidr '10.0.0.0/25' --reservation-type prefix ") {
		t.Error(got)
	}
}

func TestReservations(t *testing.T) {
	p := buildPlan(t, odd)
	p.Ranges = p.Ranges[1:]
	const commands = `aws ec2 create-subnet-cidr-reservation --subnet-id 's'\''1' --cidr '10.0.0.0/25' --reservation-type explicit \
  --description 'croft: pods of network a-b in c' \
  --tag-specifications 'ResourceType=subnet-cidr-reservation,Tags=[{Key=croft.dev/network,Value=a-b}]'
`
	if diff := cmp.Diff(commands, p.Commands()); diff != "" {
		t.Errorf("- expected, + got\n%s", diff)
	}
	terraform := map[string]any{"resource": map[string]any{"aws_ec2_subnet_cidr_reservation": map[string]any{"pods-a-b-c": map[string]any{
		"subnet_id": "s'1", "cidr_block": "10.0.0.0/25", "reservation_type": "explicit", "description": "croft: pods of network a-b in c",
	}}}}
	if diff := cmp.Diff(terraform, p.Terraform()); diff != "" {
		t.Errorf("- expected, + got\n%s", diff)
	}
	cloudFormation := map[string]any{"PodsABC": map[string]any{"Type": "AWS::EC2::SubnetCidrReservation", "Properties": map[string]any{
		"SubnetId": "s'1", "Cidr": "10.0.0.0/25", "ReservationType": "explicit", "Description": "croft: pods of network a-b in c",
		"Tags": []any{map[string]any{"Key": "croft.dev/network", "Value": "a-b"}},
	}}}
	if diff := cmp.Diff(cloudFormation, p.CloudFormation()["Resources"].(map[string]any)); diff != "" {
		t.Errorf("- expected, + got\n%s", diff)
	}
}
