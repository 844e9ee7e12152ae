package cloud_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"croft.dev/croft/sandbox/internal/cloud"
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/service"
)

// clock is a clock that only advance moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *clock) advanceTime(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// simulated is an account behind its endpoint, and AWS's own clients of it.
type simulated struct {
	*account.Account
	*clock
	server *cloud.Server
	config aws.Config
	client cloud.Client
	ec2    *ec2.Client
	iam    *iam.Client
}

func startAccount(t *testing.T) *simulated {
	t.Helper()
	s := &simulated{clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	var err error
	s.Account, err = account.Open(filepath.Join(t.TempDir(), "aws.json"), settings, s.Now)
	if err != nil {
		t.Fatal(err)
	}
	s.server = cloud.NewServer(s.Account, service.Cluster{
		Endpoint: "https://127.0.0.1:6443", CA: "Y2E=", Version: "1.36", ServiceRange: "10.96.0.0/16", Queue: "demo",
	})
	endpoint := httptest.NewServer(s.server)
	t.Cleanup(endpoint.Close)
	s.config = aws.Config{
		Region: settings.Region, BaseEndpoint: &endpoint.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIATEST", "secret", ""),
	}
	s.client = cloud.Client{Address: endpoint.URL}
	s.ec2, s.iam = ec2.NewFromConfig(s.config), iam.NewFromConfig(s.config)
	return s
}

var settings = account.Settings{Region: "us-west-2", Zones: []string{"us-west-2a", "us-west-2b"}, Cluster: "demo", Speed: 1}

// getCode returns the code of an error from AWS, "" for nil.
func getCode(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	default:
		return err.Error()
	}
}

// requireValue fails the test on an error, and returns the value otherwise.
func requireValue[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// createTemplate creates the instance profile and the launch template that a fleet needs.
func (s *simulated) createTemplate(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	_, err := s.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("nodes"), Path: aws.String("/karpenter/us-west-2/demo/x/")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{
		InstanceProfileName: aws.String("nodes"), RoleName: aws.String("KarpenterNodeRole-demo"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("lt"),
		TagSpecifications: []ec2types.TagSpecification{{
			ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: []ec2types.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("demo")}},
		}},
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes")},
			UserData:           aws.String("IyEvYmluL3No"),
			MetadataOptions: &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
				HttpTokens: ec2types.LaunchTemplateHttpTokensStateRequired, HttpPutResponseHopLimit: aws.Int32(1),
			},
			NetworkInterfaces: []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{Groups: []string{"sg-1"}, DeviceIndex: aws.Int32(0)}},
			BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMappingRequest{{
				DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{KmsKeyId: aws.String("key")},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return "lt"
}

func (s *simulated) newFleetInput(capacity string, types ...ec2types.InstanceType) *ec2.CreateFleetInput {
	var overrides []ec2types.FleetLaunchTemplateOverridesRequest
	for _, subnet := range s.ListSubnets(nil) {
		for _, name := range types {
			overrides = append(overrides, ec2types.FleetLaunchTemplateOverridesRequest{
				InstanceType: name, SubnetId: aws.String(subnet.ID), AvailabilityZone: aws.String(subnet.Zone), ImageId: aws.String("ami-1"),
			})
		}
	}
	return &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant,
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("lt"), Version: aws.String("$Latest")},
			Overrides:                   overrides,
		}},
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			DefaultTargetCapacityType: ec2types.DefaultTargetCapacityType(capacity), TotalTargetCapacity: aws.Int32(1),
		},
		TagSpecifications: []ec2types.TagSpecification{{
			ResourceType: ec2types.ResourceTypeInstance, Tags: []ec2types.Tag{{Key: aws.String("karpenter.sh/nodepool"), Value: aws.String("pool")}},
		}},
	}
}

// launchInstance starts one instance, and returns its ID.
func (s *simulated) launchInstance(t *testing.T, capacity string) string {
	t.Helper()
	s.createTemplate(t)
	out := requireValue[*ec2.CreateFleetOutput](t)(s.ec2.CreateFleet(t.Context(), s.newFleetInput(capacity, "m5.large", "c5.large")))
	if len(out.Instances) != 1 || len(out.Instances[0].InstanceIds) != 1 {
		t.Fatalf("%+v, errors %+v", out.Instances, out.Errors)
	}
	return out.Instances[0].InstanceIds[0]
}

func TestDescribe(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	types := requireValue[*ec2.DescribeInstanceTypesOutput](t)(s.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{}))
	i := slices.IndexFunc(types.InstanceTypes, func(i ec2types.InstanceTypeInfo) bool { return i.InstanceType == "m5.large" })
	if i < 0 {
		t.Fatal("there is no m5.large")
	}
	m5 := types.InstanceTypes[i]
	if *m5.VCpuInfo.DefaultVCpus != 2 || *m5.MemoryInfo.SizeInMiB != 8192 || *m5.NetworkInfo.NetworkCards[0].MaximumNetworkInterfaces != 3 ||
		*m5.NetworkInfo.Ipv4AddressesPerInterface != 10 || m5.ProcessorInfo.SupportedArchitectures[0] != "x86_64" ||
		len(m5.SupportedUsageClasses) != 2 || m5.Hypervisor != "nitro" {
		t.Errorf("m5.large: %+v", m5)
	}
	offers := requireValue[*ec2.DescribeInstanceTypeOfferingsOutput](t)(s.ec2.DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{}))
	if len(offers.InstanceTypeOfferings) != 2*len(types.InstanceTypes) {
		t.Errorf("%d offerings of %d types in 2 zones", len(offers.InstanceTypeOfferings), len(types.InstanceTypes))
	}
	spot := requireValue[*ec2.DescribeSpotPriceHistoryOutput](t)(s.ec2.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{}))
	if len(spot.SpotPriceHistory) == 0 || spot.SpotPriceHistory[0].Timestamp == nil {
		t.Errorf("spot prices: %+v", spot.SpotPriceHistory)
	}
	_, err := s.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	if getCode(err) != "DryRunOperation" {
		t.Errorf("dry run: %v", err)
	}
	discovery := []ec2types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{"demo"}}}
	subnets := requireValue[*ec2.DescribeSubnetsOutput](t)(s.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: discovery}))
	if len(subnets.Subnets) != 2 || *subnets.Subnets[1].AvailabilityZoneId != "usw2-az2" || *subnets.Subnets[0].AvailableIpAddressCount == 0 {
		t.Errorf("subnets: %+v", subnets.Subnets)
	}
	groups := requireValue[*ec2.DescribeSecurityGroupsOutput](t)(s.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: discovery}))
	if len(groups.SecurityGroups) != 1 || groups.SecurityGroups[0].GroupId == nil {
		t.Errorf("security groups: %+v", groups.SecurityGroups)
	}
	other := []ec2types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{"another"}}}
	if subnets := requireValue[*ec2.DescribeSubnetsOutput](t)(s.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: other})); len(subnets.Subnets) != 0 {
		t.Errorf("subnets of another cluster: %+v", subnets.Subnets)
	}
}

func TestImages(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	parameters := ssm.NewFromConfig(s.config)
	for _, test := range []struct{ name, arch string }{
		{"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard/recommended/image_id", "arm64"},
		{"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.36-v20260101/image_id", "x86_64"},
		{"/aws/service/bottlerocket/aws-k8s-1.36/x86_64/latest/image_id", "x86_64"},
	} {
		out := requireValue[*ssm.GetParameterOutput](t)(parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: &test.name}))
		images := requireValue[*ec2.DescribeImagesOutput](t)(s.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{
			Filters: []ec2types.Filter{{Name: aws.String("image-id"), Values: []string{*out.Parameter.Value}}},
		}))
		if len(images.Images) != 1 || string(images.Images[0].Architecture) != test.arch {
			t.Errorf("%s: %+v", test.name, images.Images)
		}
	}
	if _, err := parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/mine")}); getCode(err) != "ParameterNotFound" {
		t.Errorf("a missing parameter: %v", err)
	}
	named := requireValue[*ec2.DescribeImagesOutput](t)(s.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{
		Owners: []string{"self", "amazon"}, Filters: []ec2types.Filter{{Name: aws.String("name"), Values: []string{"amazon-eks-node-1.36-*arm64*"}}},
	}))
	if len(named.Images) == 0 {
		t.Error("no image by its name")
	}
}

func TestEKSPricingAndSTS(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	clusters := eks.NewFromConfig(s.config)
	cluster := requireValue[*eks.DescribeClusterOutput](t)(clusters.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("demo")})).Cluster
	if *cluster.Endpoint != "https://127.0.0.1:6443" || *cluster.KubernetesNetworkConfig.ServiceIpv4Cidr != "10.96.0.0/16" {
		t.Errorf("%+v", cluster)
	}
	if _, err := clusters.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("other")}); getCode(err) != "ResourceNotFoundException" {
		t.Errorf("a missing cluster: %v", err)
	}
	products := requireValue[*pricing.GetProductsOutput](t)(pricing.NewFromConfig(s.config).GetProducts(ctx, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2")}))
	if len(products.PriceList) == 0 || !strings.Contains(products.PriceList[0], "pricePerUnit") {
		t.Errorf("%v", products.PriceList)
	}
	who := requireValue[*sts.GetCallerIdentityOutput](t)(sts.NewFromConfig(s.config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))
	if *who.Account != account.ID {
		t.Errorf("%+v", who)
	}
}

func TestInstanceProfiles(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	s.createTemplate(t)
	got := requireValue[*iam.GetInstanceProfileOutput](t)(s.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("nodes")}))
	if roles := got.InstanceProfile.Roles; len(roles) != 1 || *roles[0].RoleName != "KarpenterNodeRole-demo" {
		t.Errorf("%+v", got.InstanceProfile)
	}
	listed := requireValue[*iam.ListInstanceProfilesOutput](t)(s.iam.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/")}))
	if len(listed.InstanceProfiles) != 1 {
		t.Errorf("%+v", listed.InstanceProfiles)
	}
	name := aws.String("nodes")
	if _, err := s.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name}); getCode(err) != "DeleteConflict" {
		t.Errorf("with a role in it: %v", err)
	}
	_, err := s.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("KarpenterNodeRole-demo")})
	if err != nil {
		t.Error(err)
	}
	_, err = s.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("none")})
	if getCode(err) != "NoSuchEntity" || !strings.Contains(err.Error(), "role") {
		t.Errorf("a missing role: %v", err)
	}
	if _, err := s.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name}); err != nil {
		t.Error(err)
	}
}

func TestInstanceLifecycle(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	id := s.launchInstance(t, "on-demand")
	state := func() ec2types.InstanceStateName {
		t.Helper()
		out := requireValue[*ec2.DescribeInstancesOutput](t)(s.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}}))
		return out.Reservations[0].Instances[0].State.Name
	}
	pass := func(d time.Duration) []account.Instance {
		t.Helper()
		s.advanceTime(d)
		return requireValue[[]account.Instance](t)(s.Advance())
	}
	if got := state(); got != "pending" {
		t.Errorf("at first it is %s", got)
	}
	if due := pass(8 * time.Second); len(due) != 0 || state() != "pending" {
		t.Errorf("after 8 s it is %s", state())
	}
	if due := pass(3 * time.Second); len(due) != 0 || state() != "running" {
		t.Errorf("after 11 s it is %s", state())
	}
	due := pass(8 * time.Second)
	if len(due) != 1 || due[0].Registered {
		t.Fatalf("after 19 s it does not register: %+v", due)
	}
	if err := s.UpdateInstance(id, func(i *account.Instance) { i.Registered = true }); err != nil {
		t.Fatal(err)
	}
	i := s.FindInstance(id)
	if ready := i.ReadyAt.Sub(i.Launched); ready < 23*time.Second || ready > 28*time.Second {
		t.Errorf("its node gets ready after %s", ready)
	}
	if due := pass(time.Minute); len(due) != 0 {
		t.Errorf("something is still due: %+v", due)
	}
	if i.Data.MetadataOptions["HttpPutResponseHopLimit"] != "1" || i.Data.SecurityGroups[0] != "sg-1" || i.Data.KMSKeys[0] != "key" ||
		i.Tags["karpenter.sh/nodepool"] != "pool" || i.Type != "c5.large" {
		t.Errorf("wrong settings of the instance: %+v", i)
	}
	if _, err := s.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []ec2types.Tag{{Key: aws.String("Name"), Value: aws.String("x")}}}); err != nil {
		t.Error(err)
	}
	if s.FindInstance(id).Tags["Name"] != "x" {
		t.Error("it has no tag Name")
	}
	out := requireValue[*ec2.TerminateInstancesOutput](t)(s.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))
	if out.TerminatingInstances[0].CurrentState.Name != "shutting-down" {
		t.Errorf("%+v", out.TerminatingInstances)
	}
	if due := pass(10 * time.Second); len(due) != 1 || state() != "terminated" {
		t.Errorf("10 s later it is %s", state())
	}
	if _, err := s.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{"i-none"}}); getCode(err) != "InvalidInstanceID.NotFound" {
		t.Errorf("a missing instance: %v", err)
	}
}

func TestOpenRestoresAccount(t *testing.T) {
	s := startAccount(t)
	file := filepath.Join(t.TempDir(), "aws.json")
	a := requireValue[*account.Account](t)(account.Open(file, settings, s.Now))
	if _, err := a.AddFault(account.Fault{Kind: account.Throttled}); err != nil {
		t.Fatal(err)
	}
	again := requireValue[*account.Account](t)(account.Open(file, settings, s.Now))
	if len(again.ListFaults()) != 1 || again.ListSubnets(nil)[0].ID != a.ListSubnets(nil)[0].ID {
		t.Errorf("%+v, %+v", again.ListFaults(), again.ListSubnets(nil))
	}
}

func TestFleetFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault    account.Fault
		capacity string
		want     string
	}{
		"no capacity":         {account.Fault{Kind: account.NoCapacity}, "on-demand", "InsufficientInstanceCapacity"},
		"vcpu quota":          {account.Fault{Kind: account.VCPUQuota, Limit: 1}, "on-demand", "VcpuLimitExceeded"},
		"spot quota":          {account.Fault{Kind: account.SpotQuota}, "spot", "MaxSpotInstanceCountExceeded"},
		"spot role missing":   {account.Fault{Kind: account.SpotRoleMissing}, "spot", "AuthFailure.ServiceLinkedRoleCreationNotPermitted"},
		"subnet full":         {account.Fault{Kind: account.SubnetFull}, "on-demand", "InsufficientFreeAddressesInSubnet"},
		"pass role denied":    {account.Fault{Kind: account.PassRoleDenied}, "on-demand", "UnauthorizedOperation"},
		"only of other types": {account.Fault{Kind: account.NoCapacity, Case: account.Case{Type: "r5.large"}}, "on-demand", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := startAccount(t)
			s.createTemplate(t)
			if _, err := s.client.AddFault(t.Context(), test.fault); err != nil {
				t.Fatal(err)
			}
			out := requireValue[*ec2.CreateFleetOutput](t)(s.ec2.CreateFleet(t.Context(), s.newFleetInput(test.capacity, "m5.large")))
			if test.want == "" {
				if len(out.Instances) != 1 {
					t.Errorf("no instance: %+v", out.Errors)
				}
				return
			}
			if len(out.Instances) != 0 || len(out.Errors) == 0 || *out.Errors[0].ErrorCode != test.want {
				t.Fatalf("instances %+v, errors %+v", out.Instances, out.Errors)
			}
			if overrides := out.Errors[0].LaunchTemplateAndOverrides.Overrides; overrides.InstanceType != "m5.large" || overrides.AvailabilityZone == nil {
				t.Errorf("the error does not name the offer: %+v", overrides)
			}
		})
	}
}

func TestInstanceFaults(t *testing.T) {
	for name, test := range map[string]struct {
		kind account.FaultKind
		want func(*account.Instance) bool
	}{
		"never registers": {account.NeverRegisters, func(i *account.Instance) bool { return i.State == account.Running && i.Lost }},
		"never ready":     {account.NeverReady, func(i *account.Instance) bool { return i.Unready }},
		"taint lost":      {account.TaintLost, func(i *account.Instance) bool { return i.Untainted }},
		"key denied": {account.KMSDenied, func(i *account.Instance) bool {
			return i.State == account.ShuttingDown && strings.HasPrefix(i.Reason, "Client.InternalError")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startAccount(t)
			if _, err := s.client.AddFault(t.Context(), account.Fault{Kind: test.kind, Times: 1}); err != nil {
				t.Fatal(err)
			}
			id := s.launchInstance(t, "on-demand")
			s.advanceTime(11 * time.Second)
			requireValue[[]account.Instance](t)(s.Advance())
			if i := s.FindInstance(id); !test.want(i) {
				t.Errorf("%+v", i)
			}
			if left := s.ListFaults(); len(left) > 0 {
				t.Errorf("it is to happen once: %+v", left)
			}
		})
	}
}

func TestMissingInstanceProfile(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	_, err := s.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("lt"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("eks-node-role-dev")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.ec2.RunInstances(ctx, &ec2.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("lt")},
	})
	const want = "Value (eks-node-role-dev) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
	if getCode(err) != "InvalidParameterValue" || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

func TestEncodedDenial(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	_, err := s.client.AddFault(ctx, account.Fault{
		Kind: account.Unauthorized, Case: account.Case{Action: "ec2:CreateLaunchTemplate"}, NodeRole: true, Times: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	create := func() error {
		_, err := s.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String("lt"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{},
		})
		return err
	}
	err = create()
	_, encoded, found := strings.Cut(err.Error(), "Encoded authorization failure message: ")
	if getCode(err) != "UnauthorizedOperation" || !found {
		t.Fatalf("%v", err)
	}
	client := sts.NewFromConfig(s.config)
	decoded := requireValue[*sts.DecodeAuthorizationMessageOutput](t)(client.DecodeAuthorizationMessage(ctx, &sts.DecodeAuthorizationMessageInput{EncodedMessage: &encoded}))
	for _, part := range []string{`"action":"ec2:CreateLaunchTemplate"`, `assumed-role/KarpenterNodeRole-demo/i-`, `launch-template/*`, `"explicitDeny":false`} {
		if !strings.Contains(*decoded.DecodedMessage, part) {
			t.Errorf("there is no %s in %s", part, *decoded.DecodedMessage)
		}
	}
	_, err = client.DecodeAuthorizationMessage(ctx, &sts.DecodeAuthorizationMessageInput{EncodedMessage: aws.String("nonsense")})
	if getCode(err) != "InvalidAuthorizationMessageException" {
		t.Errorf("nonsense: %v", err)
	}
	if err := create(); err != nil {
		t.Errorf("the fault was to happen once: %v", err)
	}
}

func TestClearFaults(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	f, err := s.client.AddFault(ctx, account.Fault{Kind: account.Throttled, Case: account.Case{Action: "ec2:DescribeSubnets"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{}); getCode(err) != "RequestLimitExceeded" {
		t.Errorf("%v", err)
	}
	if _, err := s.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{}); err != nil {
		t.Errorf("another call: %v", err)
	}
	if cleared, err := s.client.ClearFaults(ctx, f.ID); cleared != 1 || err != nil {
		t.Errorf("%d cleared: %v", cleared, err)
	}
	if _, err := s.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if _, err := s.client.AddFault(ctx, account.Fault{Kind: "no such"}); err == nil || !strings.Contains(err.Error(), `no fault "no such"`) {
		t.Errorf("a fault that there is not: %v", err)
	}
}

func TestSpotInterruption(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	id := s.launchInstance(t, "spot")
	queue := sqs.NewFromConfig(s.config)
	address := requireValue[*sqs.GetQueueUrlOutput](t)(queue.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("demo")}))
	if _, err := queue.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("other")}); getCode(err) != "QueueDoesNotExist" {
		t.Errorf("a missing queue: %v", err)
	}
	drain := func(wait int32) (bodies []string) {
		t.Helper()
		out := requireValue[*sqs.ReceiveMessageOutput](t)(queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: address.QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 20, WaitTimeSeconds: wait,
		}))
		for _, m := range out.Messages {
			bodies = append(bodies, *m.Body)
			if _, err := queue.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: address.QueueUrl, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Error(err)
			}
		}
		return bodies
	}
	if first := drain(0); len(first) != 1 || !strings.Contains(first[0], `"state":"pending"`) {
		t.Errorf("at its start: %v", first)
	}
	waiting := make(chan []string)
	go func() { waiting <- drain(20) }()
	if err := s.client.Interrupt(ctx, id); err != nil {
		t.Fatal(err)
	}
	if got := <-waiting; len(got) != 1 || !strings.Contains(got[0], "EC2 Spot Instance Interruption Warning") || !strings.Contains(got[0], id) {
		t.Errorf("the waiting call received %v", got)
	}
	s.advanceTime(119 * time.Second)
	requireValue[[]account.Instance](t)(s.Advance())
	if got := s.FindInstance(id).State; got != account.Pending {
		t.Errorf("before the two minutes are over it is %s", got)
	}
	s.advanceTime(2 * time.Second)
	requireValue[[]account.Instance](t)(s.Advance())
	if got := s.FindInstance(id).State; got != account.ShuttingDown {
		t.Errorf("after two minutes it is %s", got)
	}
}

func TestReservations(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	id, err := s.client.Reserve(ctx, account.CapacityReservation{Type: "m5.large", Zone: "us-west-2a", Total: 2, Tags: account.Tags{"team": "a"}})
	if err != nil {
		t.Fatal(err)
	}
	out := requireValue[*ec2.DescribeCapacityReservationsOutput](t)(s.ec2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{
		Filters: []ec2types.Filter{{Name: aws.String("tag:team"), Values: []string{"a"}}, {Name: aws.String("state"), Values: []string{"active"}}},
	}))
	if len(out.CapacityReservations) != 1 || *out.CapacityReservations[0].CapacityReservationId != id || *out.CapacityReservations[0].AvailableInstanceCount != 2 {
		t.Errorf("%+v", out.CapacityReservations)
	}
}

func TestOnDemandIsNotInterrupted(t *testing.T) {
	s := startAccount(t)
	err := s.client.Interrupt(t.Context(), s.launchInstance(t, "on-demand"))
	if err == nil || !strings.Contains(err.Error(), "only spot instances can be interrupted") {
		t.Errorf("an instance on demand: %v", err)
	}
}

func TestListCalls(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	s.createTemplate(t)
	calls := requireValue[[]cloud.Call](t)(s.client.ListCalls(ctx))
	i := slices.IndexFunc(calls, func(c cloud.Call) bool { return c.Action == "CreateLaunchTemplate" })
	if i < 0 || calls[i].Service != "ec2" || calls[i].KeyID != "AKIATEST" || calls[i].Params["LaunchTemplateData.MetadataOptions.HttpTokens"] != "required" {
		t.Errorf("%+v", calls)
	}
	if left := requireValue[cloud.Holding](t)(s.client.GetHolding(ctx)); len(left.ListLeft()) != 2 {
		t.Errorf("resources left: %v", left.ListLeft())
	}
}

func TestUnknownCall(t *testing.T) {
	s := startAccount(t)
	if _, err := s.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}); getCode(err) != "InvalidAction" {
		t.Errorf("%v", err)
	}
}

func TestUnsignedCall(t *testing.T) {
	s := startAccount(t)
	config := s.config.Copy()
	config.Credentials = aws.AnonymousCredentials{}
	_, err := ec2.NewFromConfig(config).DescribeSubnets(context.Background(), &ec2.DescribeSubnetsInput{})
	var refused *awshttp.ResponseError
	if !errors.As(err, &refused) || refused.HTTPStatusCode() != http.StatusForbidden {
		t.Errorf("a call without a signature: %v", err)
	}
}
