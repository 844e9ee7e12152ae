package iam

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// everything is a file that needs every right that a file can need.
const everything = `
platform: {clusterName: demo, nodeClass: {aws: {role: KarpenterNodeRole-demo}}}
pools:
  apps: {}
  own: {nodeClass: {aws: {instanceProfile: nodes, amiFamily: AL2023, amiSelectorTerms: [{ssmParameter: /nodes/image}, {ssmParameter: "arn:aws:ssm:eu-west-1:2:parameter/theirs"}]}}}
  rocket: {nodeClass: {aws: {amiAlias: bottlerocket@latest, capacityReservationSelectorTerms: [{id: cr-1}]}}}
  secret: {nodeClass: {aws: {blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 20Gi, kmsKeyID: alias/nodes}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 20Gi, kmsKeyID: 1234-abcd}}]}}}
`

func buildEstate(t *testing.T, file string) *estate.Estate {
	t.Helper()
	d, problems := manifest.Parse("croft.yaml", []byte(file))
	e, more := estate.Build(d)
	if err := slices.Concat(problems, more).Err(); err != nil {
		t.Fatal(err)
	}
	return e
}

var here = Location{Partition: "aws", Region: "eu-west-1", Account: "123456789012"}

const arn = "arn:aws:ec2:eu-west-1:123456789012:"

// makeTags returns a context from pairs of keys and values, and adds the region.
func makeTags(of ...string) map[string][]string {
	context := map[string][]string{"aws:RequestedRegion": {"eu-west-1"}}
	for i := 0; i < len(of); i += 2 {
		context[of[i]] = []string{of[i+1]}
	}
	return context
}

func mergeContexts(of ...map[string][]string) map[string][]string {
	all := map[string][]string{}
	for _, m := range of {
		maps.Copy(all, m)
	}
	return all
}

var (
	asked    = makeTags("aws:RequestTag/kubernetes.io/cluster/demo", "owned", "aws:RequestTag/eks:eks-cluster-name", "demo", "aws:RequestTag/karpenter.sh/nodepool", "apps")
	standsAs = makeTags("aws:ResourceTag/kubernetes.io/cluster/demo", "owned", "aws:ResourceTag/karpenter.sh/nodepool", "apps")
	foreign  = makeTags("aws:ResourceTag/kubernetes.io/cluster/other", "owned", "aws:ResourceTag/karpenter.sh/nodepool", "apps")
	profile  = makeTags("aws:RequestTag/kubernetes.io/cluster/demo", "owned", "aws:RequestTag/eks:eks-cluster-name", "demo",
		"aws:RequestTag/topology.kubernetes.io/region", "eu-west-1", "aws:RequestTag/karpenter.k8s.aws/ec2nodeclass", "apps")
	profiled = makeTags("aws:ResourceTag/kubernetes.io/cluster/demo", "owned", "aws:ResourceTag/topology.kubernetes.io/region", "eu-west-1", "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass", "apps")
	passed   = makeTags("iam:PassedToService", "ec2.amazonaws.com")
	via      = makeTags("kms:ViaService", "ec2.eu-west-1.amazonaws.com", "kms:GrantIsForAWSResource", "true")
)

const (
	profileARN = "arn:aws:iam::123456789012:instance-profile/karpenter/eu-west-1/demo/uid/demo_1"
	keyARN     = "arn:aws:kms:eu-west-1:123456789012:key/1234-abcd"
)

// calls are the calls of Karpenter's AWS provider over a cluster's life, as IAM authorizes
// them: one entry for each kind of resource.
var calls = append(listKeyCalls(), []Request{
	{"eks:DescribeCluster", []string{"arn:aws:eks:eu-west-1:123456789012:cluster/demo"}, nil},
	{"pricing:GetProducts", nil, makeTags("aws:RequestedRegion", "us-east-1")},
	{"ec2:DescribeInstanceTypes", nil, makeTags()}, {"ec2:DescribeInstanceTypeOfferings", nil, makeTags()}, {"ec2:DescribeSpotPriceHistory", nil, makeTags()},
	{"ec2:DescribeSubnets", nil, makeTags()}, {"ec2:DescribeSecurityGroups", nil, makeTags()}, {"ec2:DescribeImages", nil, makeTags()}, {"ec2:DescribeCapacityReservations", nil, makeTags()},
	{"ssm:GetParameter", []string{"arn:aws:ssm:eu-west-1::parameter/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"}, nil},
	{"ssm:GetParameter", []string{"arn:aws:ssm:eu-west-1::parameter/aws/service/bottlerocket/aws-k8s-1.36/x86_64/latest/image_id"}, nil},
	{"ssm:GetParameter", []string{"arn:aws:ssm:eu-west-1:123456789012:parameter/nodes/image"}, nil},
	{"ssm:GetParameter", []string{"arn:aws:ssm:eu-west-1:2:parameter/theirs"}, nil},
	// Instance profiles. Karpenter requests a profile by name before it creates it.
	{"iam:GetInstanceProfile", []string{"arn:aws:iam::123456789012:instance-profile/demo_1"}, nil},
	{"iam:CreateInstanceProfile", []string{profileARN}, profile},
	{"iam:TagInstanceProfile", []string{profileARN}, mergeContexts(profile, profiled)},
	{"iam:AddRoleToInstanceProfile", []string{profileARN}, profiled},
	{"iam:PassRole", []string{"arn:aws:iam::123456789012:role/KarpenterNodeRole-demo"}, passed},
	{"iam:PassRole", []string{"arn:aws:iam::123456789012:role/nodes"}, passed},
	{"iam:RemoveRoleFromInstanceProfile", []string{profileARN}, profiled},
	{"iam:DeleteInstanceProfile", []string{profileARN}, profiled},
	{"iam:ListInstanceProfiles", nil, nil},
	// A launch.
	{"ec2:DescribeLaunchTemplates", nil, makeTags()},
	{"ec2:CreateLaunchTemplate", []string{arn + "launch-template/lt-1"}, asked},
	{"ec2:CreateTags", []string{arn + "launch-template/lt-1"}, mergeContexts(asked, makeTags("ec2:CreateAction", "CreateLaunchTemplate"))},
	{"ec2:CreateFleet", []string{arn + "fleet/fleet-1", arn + "instance/*", arn + "volume/*", arn + "network-interface/*", arn + "spot-instances-request/*"}, asked},
	{"ec2:CreateFleet", []string{"arn:aws:ec2:eu-west-1::image/ami-1", "arn:aws:ec2:eu-west-1:2:subnet/subnet-1", arn + "security-group/sg-1"}, nil},
	{"ec2:CreateFleet", []string{arn + "launch-template/lt-1"}, standsAs},
	{"ec2:RunInstances", []string{arn + "instance/*", arn + "volume/*", arn + "network-interface/*"}, asked},
	{"ec2:RunInstances", []string{"arn:aws:ec2:eu-west-1::image/ami-1", "arn:aws:ec2:eu-west-1::snapshot/snap-1", arn + "subnet/subnet-1", arn + "security-group/sg-1", arn + "capacity-reservation/cr-1"}, nil},
	{"ec2:RunInstances", []string{arn + "launch-template/lt-1"}, standsAs},
	// The dry run that validates a node class is not yet for a pool.
	{"ec2:RunInstances", []string{arn + "instance/*"}, mergeContexts(asked, makeTags("aws:RequestTag/karpenter.sh/nodepool", ""))},
	{"ec2:CreateTags", []string{arn + "instance/i-1"}, mergeContexts(asked, makeTags("ec2:CreateAction", "CreateFleet"))},
	// The life of an instance.
	{"ec2:DescribeInstances", nil, makeTags()}, {"ec2:DescribeInstanceStatus", nil, makeTags()},
	{"ec2:CreateTags", []string{arn + "instance/i-1"}, mergeContexts(standsAs, map[string][]string{"aws:TagKeys": {"Name", "karpenter.sh/nodeclaim"}})},
	{"sqs:GetQueueUrl", []string{"arn:aws:sqs:eu-west-1:123456789012:demo"}, nil},
	{"sqs:ReceiveMessage", []string{"arn:aws:sqs:eu-west-1:123456789012:demo"}, nil},
	{"sqs:DeleteMessage", []string{"arn:aws:sqs:eu-west-1:123456789012:demo"}, nil},
	{"ec2:TerminateInstances", []string{arn + "instance/i-1"}, standsAs},
	{"ec2:DeleteLaunchTemplate", []string{arn + "launch-template/lt-1"}, standsAs},
}...)

// listKeyCalls returns EC2's calls with the disks' keys, on the controller's behalf.
func listKeyCalls() []Request {
	var all []Request
	aliased := mergeContexts(via, map[string][]string{"kms:ResourceAliases": {"alias/a", "alias/nodes"}})
	for _, action := range []string{"DescribeKey", "GenerateDataKeyWithoutPlaintext", "Decrypt", "ReEncryptFrom", "ReEncryptTo", "CreateGrant"} {
		all = append(all, Request{"kms:" + action, []string{keyARN}, via},
			Request{"kms:" + action, []string{"arn:aws:kms:eu-west-1:123456789012:key/other"}, aliased})
	}
	return all
}

// TestControllerIsEnough fails if a call is refused, or if no call needs an action.
func TestControllerIsEnough(t *testing.T) {
	expectJustEnough(t, here.Resolve(ControllerRights(buildEstate(t, everything))), calls)
}

// expectJustEnough fails the test for each refused call, and for each action that no call
// needs.
func expectJustEnough(t *testing.T, statements []Statement, calls []Request) {
	t.Helper()
	for _, r := range calls {
		if !Allows(statements, r) {
			t.Errorf("refused: %s on %v by %v", r.Action, r.Resources, r.Context)
		}
	}
	for i, s := range statements {
		for j, action := range s.Actions {
			less := slices.Clone(statements)
			less[i].Actions = slices.Delete(slices.Clone(s.Actions), j, j+1)
			if !slices.ContainsFunc(calls, func(r Request) bool { return !Allows(less, r) }) {
				t.Errorf("%s: nothing needs %s", s.Sid, action)
			}
		}
	}
}

// TestControllerIsNotMore fails if the policies of a cluster allow requests outside its
// scope.
func TestControllerIsNotMore(t *testing.T) {
	statements := here.Resolve(ControllerRights(buildEstate(t, everything)))
	for name, r := range map[string]Request{
		"another cluster's instance":            {"ec2:TerminateInstances", []string{arn + "instance/i-1"}, foreign},
		"an instance without tags":              {"ec2:TerminateInstances", []string{arn + "instance/i-1"}, nil},
		"an instance in another region":         {"ec2:TerminateInstances", []string{"arn:aws:ec2:us-east-1:123456789012:instance/i-1"}, standsAs},
		"to look into another region":           {"ec2:DescribeInstances", nil, makeTags("aws:RequestedRegion", "us-east-1")},
		"another cluster's launch template":     {"ec2:RunInstances", []string{arn + "launch-template/lt-1"}, foreign},
		"an instance without tags":              {"ec2:RunInstances", []string{arn + "instance/*"}, nil},
		"an instance of another cluster's":      {"ec2:RunInstances", []string{arn + "instance/*"}, mergeContexts(asked, makeTags("aws:RequestTag/eks:eks-cluster-name", "other"))},
		"to make another's instance its own":    {"ec2:CreateTags", []string{arn + "instance/i-1"}, asked},
		"other tags on its instances":           {"ec2:CreateTags", []string{arn + "instance/i-1"}, mergeContexts(standsAs, map[string][]string{"aws:TagKeys": {"kubernetes.io/cluster/other"}})},
		"to hand its instances over":            {"ec2:CreateTags", []string{arn + "instance/i-1"}, mergeContexts(standsAs, makeTags("aws:RequestTag/eks:eks-cluster-name", "other"))},
		"another role":                          {"iam:PassRole", []string{"arn:aws:iam::123456789012:role/Admin"}, passed},
		"its role for another service":          {"iam:PassRole", []string{"arn:aws:iam::123456789012:role/nodes"}, makeTags("iam:PassedToService", "lambda.amazonaws.com")},
		"another's instance profile":            {"iam:AddRoleToInstanceProfile", []string{"arn:aws:iam::123456789012:instance-profile/admin"}, profiled},
		"another cluster's instance profile":    {"iam:DeleteInstanceProfile", []string{"arn:aws:iam::123456789012:instance-profile/karpenter/eu-west-1/other/uid/other_1"}, profiled},
		"to make a profile its own":             {"iam:TagInstanceProfile", []string{profileARN}, profile},
		"another queue":                         {"sqs:ReceiveMessage", []string{"arn:aws:sqs:eu-west-1:123456789012:other"}, nil},
		"a message":                             {"sqs:SendMessage", []string{"arn:aws:sqs:eu-west-1:123456789012:demo"}, nil},
		"another parameter":                     {"ssm:GetParameter", []string{"arn:aws:ssm:eu-west-1:123456789012:parameter/secrets/db"}, nil},
		"another key":                           {"kms:Decrypt", []string{"arn:aws:kms:eu-west-1:123456789012:key/other"}, via},
		"the key by itself":                     {"kms:Decrypt", []string{keyARN}, makeTags("kms:ViaService", "s3.eu-west-1.amazonaws.com")},
		"a grant of the key to somebody":        {"kms:CreateGrant", []string{keyARN}, mergeContexts(via, makeTags("kms:GrantIsForAWSResource", "false"))},
		"another cluster":                       {"eks:DescribeCluster", []string{"arn:aws:eks:eu-west-1:123456789012:cluster/other"}, nil},
		"network interfaces, as nodes once did": {"ec2:CreateNetworkInterface", []string{arn + "network-interface/*"}, asked},
	} {
		if Allows(statements, r) {
			t.Errorf("allowed: %s", name)
		}
	}
}

// TestOnlyWhatIsNeeded fails if a file that needs fewer rights gets the rights of a larger
// one.
func TestOnlyWhatIsNeeded(t *testing.T) {
	plain := here.Resolve(ControllerRights(buildEstate(t, "platform: {clusterName: demo, nodeClass: {aws: {instanceProfile: nodes}}}\npools: {apps: {}}\n")))
	for _, r := range calls {
		switch {
		case strings.HasPrefix(r.Action, "kms:"), strings.Contains(r.Action, "InstanceProfile") && r.Action != "iam:ListInstanceProfiles", r.Action == "ec2:DescribeCapacityReservations",
			slices.Contains(r.Resources, arn+"capacity-reservation/cr-1"), slices.Contains(r.Resources, "arn:aws:iam::123456789012:role/KarpenterNodeRole-demo"):
			if Allows(plain, r) {
				t.Errorf("allowed, and nothing needs it: %s on %v", r.Action, r.Resources)
			}
		case r.Action != "ssm:GetParameter" && !Allows(plain, r):
			t.Errorf("refused: %s on %v", r.Action, r.Resources)
		}
	}
}

// TestStatements checks every statement that can be generated.
func TestStatements(t *testing.T) {
	seen := map[string]bool{}
	plain := regexp.MustCompile(`^[A-Za-z0-9]+$`)
	for _, s := range ControllerRights(buildEstate(t, everything)) {
		if seen[s.Sid] || !plain.MatchString(s.Sid) {
			t.Errorf("the Sid %q is taken, or not plain", s.Sid)
		}
		seen[s.Sid] = true
		for _, action := range s.Actions {
			_, name, _ := strings.Cut(action, ":")
			if strings.ContainsAny(action, "*?") {
				t.Errorf("%s: the action %s", s.Sid, action)
			}
			reads := strings.HasPrefix(name, "Describe") || strings.HasPrefix(name, "Get") || strings.HasPrefix(name, "List")
			if slices.Contains(s.Resources, "*") && !reads {
				t.Errorf("%s: %s on any resource", s.Sid, action)
			}
		}
		if len(s.Resources) == 0 {
			t.Errorf("%s is about nothing", s.Sid)
		}
	}
}

// TestPoliciesFit fails if a policy exceeds IAM's limit, even with the longest cluster
// name.
func TestPoliciesFit(t *testing.T) {
	const most = 6144
	long := strings.Repeat("x", 100)
	for _, p := range buildPolicies(collectNeeds(buildEstate(t, strings.Replace(everything, "clusterName: demo", "clusterName: "+long, 1)))) {
		data, err := json.Marshal(buildPolicyDocument(Location{"aws-us-gov", "ap-southeast-2", "123456789012"}.Resolve(p.Statements)))
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > most || len(p.Name) > maxPolicyName {
			t.Errorf("%s has %d characters, and its name %d", p.Name, len(data), len(p.Name))
		}
	}
}
