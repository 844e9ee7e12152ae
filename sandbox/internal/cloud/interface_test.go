package cloud_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"croft.dev/croft/sandbox/internal/cloud"
	"croft.dev/croft/sandbox/internal/cloud/account"
)

// addSecondSubnet creates a second subnet in the first zone.
func (s *simulated) addSecondSubnet(t *testing.T, cidr string) account.Subnet {
	t.Helper()
	return requireValue[account.Subnet](t)(s.client.AddSubnet(t.Context(), settings.Zones[0], cidr, account.Tags{"Name": "Multus1Az1"}))
}

// startInstance starts an instance in the first zone, and waits until it runs.
func (s *simulated) startInstance(t *testing.T) string {
	t.Helper()
	s.createTemplate(t)
	order := s.newFleetInput("on-demand", "m5.large")
	order.LaunchTemplateConfigs[0].Overrides = order.LaunchTemplateConfigs[0].Overrides[:1]
	out := requireValue[*ec2.CreateFleetOutput](t)(s.ec2.CreateFleet(t.Context(), order))
	s.advanceTime(11 * time.Second)
	requireValue[[]account.Instance](t)(s.Advance())
	return out.Instances[0].InstanceIds[0]
}

func (s *simulated) createInterface(t *testing.T, in *ec2.CreateNetworkInterfaceInput) *ec2types.NetworkInterface {
	t.Helper()
	return requireValue[*ec2.CreateNetworkInterfaceOutput](t)(s.ec2.CreateNetworkInterface(t.Context(), in)).NetworkInterface
}

func (s *simulated) describeInterface(t *testing.T, id string) ec2types.NetworkInterface {
	t.Helper()
	out := requireValue[*ec2.DescribeNetworkInterfacesOutput](t)(s.ec2.DescribeNetworkInterfaces(t.Context(), &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{id}}))
	return out.NetworkInterfaces[0]
}

func newTags(tags ...string) []ec2types.TagSpecification {
	spec := ec2types.TagSpecification{ResourceType: ec2types.ResourceTypeNetworkInterface}
	for i := 0; i < len(tags); i += 2 {
		spec.Tags = append(spec.Tags, ec2types.Tag{Key: aws.String(tags[i]), Value: aws.String(tags[i+1])})
	}
	return []ec2types.TagSpecification{spec}
}

func TestInterfaceLifecycle(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	subnet, instance := s.addSecondSubnet(t, "10.0.64.0/24"), s.startInstance(t)
	group := s.ListSecurityGroups(nil)[0].ID
	n := s.createInterface(t, &ec2.CreateNetworkInterfaceInput{
		SubnetId: &subnet.ID, Groups: []string{group}, Description: aws.String("n3"), ClientToken: aws.String("one"), TagSpecifications: newTags("croft.dev/network", "n3"),
	})
	id := *n.NetworkInterfaceId
	if *n.PrivateIpAddress != "10.0.64.4" || n.Status != "available" || !*n.SourceDestCheck || *n.AvailabilityZone != "us-west-2a" ||
		!strings.HasPrefix(*n.MacAddress, "02:") || *n.Groups[0].GroupId != group {
		t.Errorf("as it is made: %+v", n)
	}
	attached := requireValue[*ec2.AttachNetworkInterfaceOutput](t)(s.ec2.AttachNetworkInterface(ctx, &ec2.AttachNetworkInterfaceInput{
		NetworkInterfaceId: &id, InstanceId: &instance, DeviceIndex: aws.Int32(1),
	}))
	if got := s.describeInterface(t, id); got.Status != "in-use" || got.Attachment.Status != "attaching" || *got.Attachment.InstanceId != instance {
		t.Errorf("at first: %+v", got.Attachment)
	}
	for _, in := range []*ec2.ModifyNetworkInterfaceAttributeInput{
		{SourceDestCheck: &ec2types.AttributeBooleanValue{Value: aws.Bool(false)}},
		{Attachment: &ec2types.NetworkInterfaceAttachmentChanges{AttachmentId: attached.AttachmentId, DeleteOnTermination: aws.Bool(true)}},
	} {
		in.NetworkInterfaceId = &id
		if _, err := s.ec2.ModifyNetworkInterfaceAttribute(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	s.advanceTime(16 * time.Second) // longer than the tail
	if got := s.describeInterface(t, id); got.Attachment.Status != "attached" || !*got.Attachment.DeleteOnTermination || *got.SourceDestCheck {
		t.Errorf("later: %+v, source/dest check %t", got.Attachment, *got.SourceDestCheck)
	}
	if _, err := s.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id}); getCode(err) != "InvalidParameterValue" {
		t.Errorf("deleted while it is in use: %v", err)
	}
	if _, err := s.ec2.DetachNetworkInterface(ctx, &ec2.DetachNetworkInterfaceInput{AttachmentId: attached.AttachmentId}); err != nil {
		t.Fatal(err)
	}
	if got := s.describeInterface(t, id).Attachment.Status; got != "detaching" {
		t.Errorf("it is %s", got)
	}
	s.advanceTime(5 * time.Second)
	if got := s.describeInterface(t, id); got.Status != "available" || got.Attachment != nil {
		t.Errorf("detached: %+v", got)
	}
	free := s.ListSubnets(account.Filters{"subnet-id": {subnet.ID}})[0].Free
	if _, err := s.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id}); err != nil {
		t.Fatal(err)
	}
	if got := s.ListSubnets(account.Filters{"subnet-id": {subnet.ID}})[0].Free; got != free+1 {
		t.Errorf("%d addresses are free, and %d were", got, free)
	}
	_, err := s.ec2.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{id}})
	if getCode(err) != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("a deleted interface: %v", err)
	}
}

func TestClientToken(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	subnet := s.addSecondSubnet(t, "10.0.64.0/24")
	order := func(description string) *ec2.CreateNetworkInterfaceInput {
		return &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID, Description: &description, ClientToken: aws.String("t")}
	}
	first, second := s.createInterface(t, order("a")), s.createInterface(t, order("a"))
	if *first.NetworkInterfaceId != *second.NetworkInterfaceId {
		t.Errorf("%s and %s", *first.NetworkInterfaceId, *second.NetworkInterfaceId)
	}
	if _, err := s.ec2.CreateNetworkInterface(ctx, order("b")); getCode(err) != "IdempotentParameterMismatch" {
		t.Errorf("another call with the token: %v", err)
	}
	if _, err := s.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: first.NetworkInterfaceId}); err != nil {
		t.Fatal(err)
	}
	if again := s.createInterface(t, order("a")); *again.NetworkInterfaceId != *first.NetworkInterfaceId || s.FindInterface(*again.NetworkInterfaceId) != nil {
		t.Errorf("after it was deleted: %+v", again)
	}
	// The client fills in a token of its own for each call that has none.
	third, fourth := s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID}), s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID})
	if *third.NetworkInterfaceId == *fourth.NetworkInterfaceId {
		t.Error("two calls without a token made one interface")
	}
}

func TestAttachRefusesBadRequests(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, s *simulated, id, instance string) (string, string, int32)
		want    string
	}{
		"no such interface": {func(_ *testing.T, _ *simulated, _, i string) (string, string, int32) { return "eni-none", i, 1 }, "InvalidNetworkInterfaceID.NotFound"},
		"no such instance":  {func(_ *testing.T, _ *simulated, n, _ string) (string, string, int32) { return n, "i-none", 1 }, "InvalidInstanceID.NotFound"},
		"at index 0":        {func(_ *testing.T, _ *simulated, n, i string) (string, string, int32) { return n, i, 0 }, "InvalidParameterValue"},
		"ended": {func(t *testing.T, s *simulated, n, i string) (string, string, int32) {
			t.Helper()
			if err := s.Terminate(i); err != nil {
				t.Fatal(err)
			}
			return n, i, 1
		}, "IncorrectState"},
		"pending": {func(t *testing.T, s *simulated, n, _ string) (string, string, int32) {
			t.Helper()
			out := requireValue[*ec2.CreateFleetOutput](t)(s.ec2.CreateFleet(t.Context(), s.newFleetInput("on-demand", "m5.large")))
			return n, out.Instances[0].InstanceIds[0], 1
		}, "IncorrectState"},
		"another zone": {func(t *testing.T, s *simulated, _, i string) (string, string, int32) {
			t.Helper()
			n := s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &s.ListSubnets(nil)[1].ID})
			return *n.NetworkInterfaceId, i, 1
		}, "InvalidParameterCombination"},
		"in use": {func(t *testing.T, s *simulated, n, i string) (string, string, int32) {
			t.Helper()
			requireValue[string](t)(s.AttachInterface(n, i, 1))
			return n, i, 2
		}, "InvalidNetworkInterface.InUse"},
		"more than m5.large has": {func(t *testing.T, s *simulated, n, i string) (string, string, int32) {
			t.Helper()
			subnet := s.FindInterface(n).Subnet
			for index := range 2 {
				requireValue[string](t)(s.AttachInterface(*s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet}).NetworkInterfaceId, i, index+1))
			}
			return n, i, 3
		}, "AttachmentLimitExceeded"},
		"more addresses than m5.large has": {func(t *testing.T, s *simulated, n, i string) (string, string, int32) {
			t.Helper()
			subnet := s.FindInterface(n).Subnet
			return *s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet, SecondaryPrivateIpAddressCount: aws.Int32(10)}).NetworkInterfaceId, i, 1
		}, "PrivateIpAddressLimitExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startAccount(t)
			subnet, instance := s.addSecondSubnet(t, "10.0.64.0/24"), s.startInstance(t)
			id, instance, index := test.prepare(t, s, *s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID}).NetworkInterfaceId, instance)
			_, err := s.ec2.AttachNetworkInterface(t.Context(), &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: &id, InstanceId: &instance, DeviceIndex: &index})
			if getCode(err) != test.want {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestTerminateDeletesInterfaces fails if an interface with deleteOnTermination outlives its
// instance, or if another one is not available again.
func TestTerminateDeletesInterfaces(t *testing.T) {
	s := startAccount(t)
	subnet, instance := s.addSecondSubnet(t, "10.0.64.0/24"), s.startInstance(t)
	var ids []string
	for index := range 2 {
		id := *s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID}).NetworkInterfaceId
		attachment := requireValue[string](t)(s.AttachInterface(id, instance, index+1))
		if index == 0 {
			if err := s.ModifyInterface(id, account.InterfaceChange{Attachment: attachment, DeleteOnTermination: true}); err != nil {
				t.Fatal(err)
			}
		}
		ids = append(ids, id)
	}
	if err := s.Terminate(instance); err != nil {
		t.Fatal(err)
	}
	s.advanceTime(10 * time.Second)
	requireValue[[]account.Instance](t)(s.Advance())
	if s.FindInterface(ids[0]) != nil {
		t.Error("the one that was to go is still there")
	}
	if n := s.FindInterface(ids[1]); n == nil || n.Status() != "available" {
		t.Errorf("the one that was to stay: %+v", n)
	}
	if left := requireValue[cloud.Holding](t)(s.client.GetHolding(t.Context())); !strings.Contains(strings.Join(left.ListLeft(), " "), "network-interface/"+ids[1]) {
		t.Errorf("resources left: %v", left.ListLeft())
	}
}

func TestAddressesAndPrefixes(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	subnet, instance := s.addSecondSubnet(t, "10.0.64.0/25"), s.startInstance(t)
	reserve := func(cidr string, kind ec2types.SubnetCidrReservationType) string {
		t.Helper()
		out := requireValue[*ec2.CreateSubnetCidrReservationOutput](t)(s.ec2.CreateSubnetCidrReservation(ctx, &ec2.CreateSubnetCidrReservationInput{SubnetId: &subnet.ID, Cidr: &cidr, ReservationType: kind}))
		return *out.SubnetCidrReservation.SubnetCidrReservationId
	}
	explicit := reserve("10.0.64.32/28", ec2types.SubnetCidrReservationTypeExplicit)
	reserve("10.0.64.48/28", ec2types.SubnetCidrReservationTypePrefix)
	_, err := s.ec2.CreateSubnetCidrReservation(ctx, &ec2.CreateSubnetCidrReservationInput{SubnetId: &subnet.ID, Cidr: aws.String("10.0.64.32/29"), ReservationType: "explicit"})
	if getCode(err) != "InvalidParameterValue" {
		t.Errorf("an overlap: %v", err)
	}
	listed := requireValue[*ec2.GetSubnetCidrReservationsOutput](t)(s.ec2.GetSubnetCidrReservations(ctx, &ec2.GetSubnetCidrReservationsInput{SubnetId: &subnet.ID}))
	if len(listed.SubnetIpv4CidrReservations) != 2 || *listed.SubnetIpv4CidrReservations[0].Cidr != "10.0.64.32/28" {
		t.Errorf("%+v", listed)
	}
	n := s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID, Ipv4PrefixCount: aws.Int32(1)})
	id := n.NetworkInterfaceId
	if len(n.Ipv4Prefixes) != 1 || *n.Ipv4Prefixes[0].Ipv4Prefix != "10.0.64.48/28" {
		t.Errorf("a prefix from the reservation for them: %+v", n.Ipv4Prefixes)
	}
	if _, err := s.ec2.AssignPrivateIpAddresses(ctx, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, Ipv4PrefixCount: aws.Int32(1)}); getCode(err) != "InsufficientFreeAddressesInSubnet" {
		t.Errorf("a prefix more than is reserved: %v", err)
	}
	// EC2 assigns an address of the explicit reservation only if the call names it.
	pods := requireValue[*ec2.AssignPrivateIpAddressesOutput](t)(s.ec2.AssignPrivateIpAddresses(ctx, &ec2.AssignPrivateIpAddressesInput{
		NetworkInterfaceId: id, PrivateIpAddresses: []string{"10.0.64.33", "10.0.64.34"},
	}))
	if len(pods.AssignedPrivateIpAddresses) != 2 {
		t.Errorf("%+v", pods)
	}
	requireValue[string](t)(s.AttachInterface(*id, instance, 1))
	if _, err := s.ec2.AssignPrivateIpAddresses(ctx, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, SecondaryPrivateIpAddressCount: aws.Int32(7)}); getCode(err) != "PrivateIpAddressLimitExceeded" {
		t.Errorf("more than m5.large has: %v", err)
	}
	other := s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID}).NetworkInterfaceId
	move := &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: other, PrivateIpAddresses: []string{"10.0.64.33"}}
	if _, err := s.ec2.AssignPrivateIpAddresses(ctx, move); getCode(err) != "InvalidIPAddress.InUse" {
		t.Errorf("an address that another has: %v", err)
	}
	move.AllowReassignment = aws.Bool(true)
	requireValue[*ec2.AssignPrivateIpAddressesOutput](t)(s.ec2.AssignPrivateIpAddresses(ctx, move))
	if got := s.describeInterface(t, *id).PrivateIpAddresses; len(got) != 2 || *got[1].PrivateIpAddress != "10.0.64.34" {
		t.Errorf("after one has moved: %+v", got)
	}
	release := &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: []string{"10.0.64.34"}, Ipv4Prefixes: []string{"10.0.64.48/28"}}
	requireValue[*ec2.UnassignPrivateIpAddressesOutput](t)(s.ec2.UnassignPrivateIpAddresses(ctx, release))
	if got := s.describeInterface(t, *id); len(got.PrivateIpAddresses) != 1 || len(got.Ipv4Prefixes) != 0 {
		t.Errorf("after they were taken away: %+v", got)
	}
	// EC2 does not choose addresses in a reservation: of 128 addresses 5 are AWS's, 32 are
	// reserved, and two interfaces have one each.
	reserved := netip.MustParsePrefix("10.0.64.32/27")
	for range 128 - 5 - 32 - 2 {
		s.advanceTime(time.Second) // for the token bucket
		got := s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID})
		if reserved.Contains(netip.MustParseAddr(*got.PrivateIpAddress)) {
			t.Fatalf("%s is reserved", *got.PrivateIpAddress)
		}
	}
	if _, err := s.ec2.CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID}); getCode(err) != "InsufficientFreeAddressesInSubnet" {
		t.Errorf("in a full subnet: %v", err)
	}
	requireValue[*ec2.DeleteSubnetCidrReservationOutput](t)(s.ec2.DeleteSubnetCidrReservation(ctx, &ec2.DeleteSubnetCidrReservationInput{SubnetCidrReservationId: &explicit}))
	if got := *s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID}).PrivateIpAddress; !reserved.Contains(netip.MustParseAddr(got)) {
		t.Errorf("%s is not what was reserved", got)
	}
}

func TestDescribeInterfaces(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	subnet, instance := s.addSecondSubnet(t, "10.0.64.0/24"), s.startInstance(t)
	for i := range 7 {
		s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID, TagSpecifications: newTags("croft.dev/network", []string{"n3", "n6"}[i%2])})
	}
	for name, test := range map[string]struct {
		filters []ec2types.Filter
		want    int
	}{
		"all, with the instance's own": {nil, 8},
		"by a tag":                     {[]ec2types.Filter{{Name: aws.String("tag:croft.dev/network"), Values: []string{"n3"}}}, 4},
		"by a tag's key":               {[]ec2types.Filter{{Name: aws.String("tag-key"), Values: []string{"croft.dev/network"}}}, 7},
		"by the instance":              {[]ec2types.Filter{{Name: aws.String("attachment.instance-id"), Values: []string{instance}}}, 1},
		"available":                    {[]ec2types.Filter{{Name: aws.String("status"), Values: []string{"available"}}}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			pages, got := ec2.NewDescribeNetworkInterfacesPaginator(s.ec2, &ec2.DescribeNetworkInterfacesInput{Filters: test.filters, MaxResults: aws.Int32(5)}), 0
			for pages.HasMorePages() {
				page := requireValue[*ec2.DescribeNetworkInterfacesOutput](t)(pages.NextPage(ctx))
				got += len(page.NetworkInterfaces)
			}
			if got != test.want {
				t.Errorf("%d, not %d", got, test.want)
			}
		})
	}
}

// TestStale fails if any call finds an interface before the delay of the fault is over.
func TestStale(t *testing.T) {
	s, ctx := startAccount(t), t.Context()
	subnet, instance := s.addSecondSubnet(t, "10.0.64.0/24"), s.startInstance(t)
	if _, err := s.client.AddFault(ctx, account.Fault{Kind: account.Stale, Delay: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	id := s.createInterface(t, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID}).NetworkInterfaceId
	attach := func() error {
		_, err := s.ec2.AttachNetworkInterface(ctx, &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: id, InstanceId: &instance, DeviceIndex: aws.Int32(1)})
		return err
	}
	if err := attach(); getCode(err) != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("%v", err)
	}
	filter := []ec2types.Filter{{Name: aws.String("subnet-id"), Values: []string{subnet.ID}}}
	if out := requireValue[*ec2.DescribeNetworkInterfacesOutput](t)(s.ec2.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{Filters: filter})); len(out.NetworkInterfaces) != 0 {
		t.Errorf("it is seen: %+v", out.NetworkInterfaces)
	}
	s.advanceTime(2 * time.Second)
	if err := attach(); err != nil {
		t.Errorf("after a while: %v", err)
	}
}

// TestTokenBuckets fails if an action is not refused once its bucket is empty, if another
// action is refused, or if the bucket does not fill again.
func TestTokenBuckets(t *testing.T) {
	s := startAccount(t)
	subnet := s.addSecondSubnet(t, "10.0.64.0/20")
	ctx := t.Context()
	refused := func(calls int) (n int) {
		for range calls {
			_, err := s.ec2.CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: &subnet.ID})
			if c := getCode(err); c == "RequestLimitExceeded" {
				n++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	if got := refused(55); got != 5 {
		t.Errorf("of 55 calls at once %d were refused", got)
	}
	if _, err := s.ec2.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{}); err != nil {
		t.Errorf("another action: %v", err)
	}
	s.advanceTime(time.Second)
	if got := refused(7); got != 2 {
		t.Errorf("a second later, of 7 calls %d were refused", got)
	}
}
