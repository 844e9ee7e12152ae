package iam

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// networked is a file with a pool that has secondary networks.
const networked = `
platform: {clusterName: demo, nodeClass: {aws: {role: KarpenterNodeRole-demo}}}
secondaryNetworks:
  n3: {zones: [{zone: eu-west-1a, subnet: subnet-1, securityGroups: [sg-1], cidr: 10.0.4.0/24, podCIDR: 10.0.4.32/27}]}
  n6: {zones: [{zone: eu-west-1a, subnet: subnet-2, securityGroups: [sg-1], cidr: 10.0.6.0/24, podCIDR: 10.0.6.32/27}]}
  unused: {zones: [{zone: eu-west-1a, subnet: subnet-9, cidr: 10.0.8.0/24, podCIDR: 10.0.8.32/27}]}
pools:
  telco: {secondaryNetworks: [n3, n6]}
  plain: {}
`

var (
	requestTags = makeTags("aws:RequestTag/croft.dev/cluster", "demo", "aws:RequestTag/croft.dev/network", "n3", "aws:RequestTag/croft.dev/nodeclaim", "u1")
	owned       = makeTags("aws:ResourceTag/croft.dev/cluster", "demo")
)

// operatorCalls are the operator's calls over the life of a node with secondary networks.
var operatorCalls = []Request{
	{"ec2:DescribeInstances", nil, makeTags()}, {"ec2:DescribeInstanceTypes", nil, makeTags()}, {"ec2:DescribeNetworkInterfaces", nil, makeTags()},
	{"ec2:CreateNetworkInterface", []string{arn + "network-interface/*"}, requestTags},
	{"ec2:CreateNetworkInterface", []string{arn + "subnet/subnet-1", arn + "security-group/sg-1"}, makeTags()},
	{"ec2:CreateNetworkInterface", []string{"arn:aws:ec2:eu-west-1:2:subnet/subnet-2"}, makeTags()}, // a shared network's subnet
	{"ec2:CreateTags", []string{arn + "network-interface/*"}, mergeContexts(requestTags, makeTags("ec2:CreateAction", "CreateNetworkInterface"))},
	{"ec2:AttachNetworkInterface", []string{arn + "network-interface/eni-1"}, owned},
	{"ec2:AttachNetworkInterface", []string{arn + "instance/i-1"}, standsAs},
	{"ec2:ModifyNetworkInterfaceAttribute", []string{arn + "network-interface/eni-1"}, owned},
	{"ec2:ModifyNetworkInterfaceAttribute", []string{arn + "instance/i-1"}, standsAs},
	{"ec2:DeleteNetworkInterface", []string{arn + "network-interface/eni-1"}, owned},
}

// TestOperatorRightsSuffice fails if a call is refused, or if no call needs an action.
func TestOperatorRightsSuffice(t *testing.T) {
	expectJustEnough(t, here.Resolve(OperatorRights(buildEstate(t, networked))), operatorCalls)
}

func TestOperatorRightsAreLimited(t *testing.T) {
	statements := here.Resolve(OperatorRights(buildEstate(t, networked)))
	without := func(key string) map[string][]string {
		fewer := maps.Clone(requestTags)
		delete(fewer, "aws:RequestTag/croft.dev/"+key)
		return fewer
	}
	theirs := makeTags("aws:ResourceTag/croft.dev/cluster", "other")
	for name, r := range map[string]Request{
		"an interface without tags":           {"ec2:CreateNetworkInterface", []string{arn + "network-interface/*"}, makeTags()},
		"an interface for another cluster":    {"ec2:CreateNetworkInterface", []string{arn + "network-interface/*"}, mergeContexts(requestTags, makeTags("aws:RequestTag/croft.dev/cluster", "other"))},
		"an interface for no network":         {"ec2:CreateNetworkInterface", []string{arn + "network-interface/*"}, without("network")},
		"an interface for no node":            {"ec2:CreateNetworkInterface", []string{arn + "network-interface/*"}, without("nodeclaim")},
		"the nodes' own subnet":               {"ec2:CreateNetworkInterface", []string{arn + "subnet/subnet-7"}, makeTags()},
		"a network that no pool uses":         {"ec2:CreateNetworkInterface", []string{arn + "subnet/subnet-9"}, makeTags()},
		"another security group":              {"ec2:CreateNetworkInterface", []string{arn + "security-group/sg-7"}, makeTags()},
		"another region":                      {"ec2:DescribeInstances", nil, makeTags("aws:RequestedRegion", "us-east-1")},
		"to make another's interface its own": {"ec2:CreateTags", []string{arn + "network-interface/eni-1"}, requestTags},
		"another cluster's interface":         {"ec2:DeleteNetworkInterface", []string{arn + "network-interface/eni-1"}, theirs},
		"a node's first interface":            {"ec2:ModifyNetworkInterfaceAttribute", []string{arn + "network-interface/eni-1"}, standsAs},
		"another cluster's instance":          {"ec2:AttachNetworkInterface", []string{arn + "instance/i-1"}, foreign},
		"to end an instance":                  {"ec2:TerminateInstances", []string{arn + "instance/i-1"}, standsAs},
		"to start one":                        {"ec2:RunInstances", []string{arn + "instance/*"}, asked},
	} {
		if Allows(statements, r) {
			t.Errorf("allowed: %s", name)
		}
	}
	if got := OperatorRights(buildEstate(t, everything)); len(got) > 0 {
		t.Errorf("without secondary networks: %v", got)
	}
}

// TestOperatorRole fails if a format lacks the operator's role, or has it where it is not
// needed.
func TestOperatorRole(t *testing.T) {
	for name, o := range ways {
		s := planStack(t, networked, o)
		terraform, err := s.Terraform()
		if err != nil {
			t.Fatal(err)
		}
		for format, content := range map[string]map[string]any{"cloudformation": s.CloudFormation(), "terraform": terraform, "json": s.JSON()} {
			data, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"CroftOperator-demo", "CroftOperator-interfaces-demo", "ec2:AttachNetworkInterface", "croft-system"} {
				if !strings.Contains(string(data), part) {
					t.Errorf("%s, %s: there is no %s", name, format, part)
				}
			}
		}
		data, err := json.Marshal(planStack(t, everything, o).JSON())
		if err != nil || strings.Contains(string(data), "CroftOperator") {
			t.Errorf("%s: a role that nothing needs: %v", name, err)
		}
	}
	const most = 6144
	data, err := json.Marshal(buildPolicyDocument(Location{"aws-us-gov", "ap-southeast-2", "123456789012"}.Resolve(OperatorRights(buildEstate(t, networked)))))
	if err != nil || len(data) > most {
		t.Errorf("%d characters, %v", len(data), err)
	}
}
