package benchnodes

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"croft.dev/croft/internal/network/attach"
)

// script is the script of the post's user data, as in its repository when the post was
// published (aws-samples/karpenter-with-multus-on-eks, config/nodepool.yaml of 2024-01-24): for
// each network seven calls of the AWS CLI, one after the other, and three seconds of sleeps in
// total. `bash -xe` runs it: it ends when a command fails, but a pipe to jq does not fail when
// the CLI does. The kubelet starts when the script has ended, even if it failed.
type script struct {
	world *world
	claim attach.Claim
}

// scriptResult is the result of a script.
type scriptResult struct {
	took time.Duration
	// up reports that both interfaces were attached when the script set its devices up.
	up bool
}

// run simulates the script on the instance.
func (s *script) run(ctx context.Context) scriptResult {
	began := time.Now()
	var devices []string
	for n := range s.world.networks {
		id, ok := s.attachInterface(ctx, n)
		if !ok {
			return scriptResult{took: time.Since(began)}
		}
		devices = append(devices, id)
	}
	time.Sleep(time.Second) // for the devices
	time.Sleep(2 * time.Second)
	out := scriptResult{took: time.Since(began), up: true}
	for _, id := range devices {
		n := s.world.FindInterface(id)
		out.up = out.up && n != nil && n.Attachment != nil && n.Attachment.Status(time.Now()) == "attached"
	}
	return out
}

// attachInterface creates and attaches the interface in the nth network. If ok is false, the script
// ends.
func (s *script) attachInterface(ctx context.Context, n int) (id string, ok bool) {
	zone := s.world.networks[n].Spec.Zones[0]
	for _, z := range s.world.networks[n].Spec.Zones {
		if z.Zone == s.claim.Zone {
			zone = z
		}
	}
	byName := []types.Filter{{Name: aws.String("tag:Name"), Values: []string{s.world.networks[n].Name + s.claim.Zone}}}
	if _, err := s.startCLI().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: byName}); err != nil {
		return "", false
	}
	byTag := []types.Filter{{Name: aws.String("tag:" + group), Values: []string{cluster}}}
	if _, err := s.startCLI().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: byTag}); err != nil {
		return "", false
	}
	// The script gets the subnet's IPv6 range, if it has one.
	if _, err := s.startCLI().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{zone.Subnet}}); err != nil {
		return "", false
	}
	made, err := s.startCLI().CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{
		SubnetId: &zone.Subnet, Groups: zone.SecurityGroups, Description: aws.String("Multus"),
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeNetworkInterface,
			Tags:         []types.Tag{{Key: aws.String(attach.UnmanagedTag), Value: aws.String("true")}},
		}},
	})
	if err != nil {
		s.startCLI() // attach-network-interface without an ID is a usage error; the pipe hides it
		s.startCLI() // so is modify-network-interface-attribute, which ends the script
		return "", false
	}
	id = aws.ToString(made.NetworkInterface.NetworkInterfaceId)
	attached, err := s.startCLI().AttachNetworkInterface(ctx, &ec2.AttachNetworkInterfaceInput{
		NetworkInterfaceId: &id, InstanceId: &s.claim.Instance, DeviceIndex: aws.Int32(int32(n + 1)),
	})
	lost := err != nil // the pipe hides it
	if _, err := s.startCLI().ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{
		NetworkInterfaceId: &id, SourceDestCheck: &types.AttributeBooleanValue{Value: aws.Bool(false)},
	}); err != nil {
		return "", false
	}
	if lost {
		s.startCLI() // a change without an attachment: EC2 refuses it, and the script ends
		return "", false
	}
	_, err = s.startCLI().ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{
		NetworkInterfaceId: &id,
		Attachment: &types.NetworkInterfaceAttachmentChanges{
			AttachmentId: attached.AttachmentId, DeleteOnTermination: aws.Bool(true),
		},
	})
	return id, err == nil
}

// startCLI simulates a start of the AWS CLI. It tries a call three times, in the retry mode
// "standard", the default of version 2: between tries it waits for a random part of one second,
// then of two seconds, and so on (botocore, retries/standard.py).
func (s *script) startCLI() *ec2.Client {
	time.Sleep(command.drawDuration() - answer)
	return ec2.NewFromConfig(s.world.config, func(o *ec2.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = 3
			o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
				most := min(1<<(attempt-1), 20)
				return time.Duration(rand.Float64() * float64(most) * float64(time.Second)), nil
			})
		})
	})
}
