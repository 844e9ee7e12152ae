package account

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"croft.dev/croft/internal/network/attach"
)

// Create creates an interface, or returns the one that was created with the same token.
func (a *Account) Create(ctx context.Context, c attach.Create) (attach.Interface, error) {
	spec := types.TagSpecification{ResourceType: types.ResourceTypeNetworkInterface}
	for _, key := range slices.Sorted(maps.Keys(c.Tags)) {
		spec.Tags = append(spec.Tags, types.Tag{Key: aws.String(key), Value: aws.String(c.Tags[key])})
	}
	in := &ec2.CreateNetworkInterfaceInput{
		SubnetId: aws.String(c.Subnet), Groups: c.Groups, ClientToken: aws.String(c.Token), TagSpecifications: []types.TagSpecification{spec},
		Description: aws.String(fmt.Sprintf("secondary network %s of %s", c.Network, c.Claim.Name)),
	}
	if c.Prefixes > 0 {
		in.Ipv4PrefixCount = aws.Int32(int32(c.Prefixes)) //nolint:gosec // at most 49
	}
	out, err := makeCall(ctx, a, "CreateNetworkInterface", a.calls.create, in)
	if err != nil || out.NetworkInterface == nil {
		return attach.Interface{}, err
	}
	made := convertInterface(out.NetworkInterface)
	made.Tags = c.Tags // the response does not always have them
	return made, nil
}

// Attach attaches an interface, and returns the attachment's ID.
func (a *Account) Attach(ctx context.Context, t attach.Attach) (string, error) {
	out, err := makeCall(ctx, a, "AttachNetworkInterface", a.calls.attach, &ec2.AttachNetworkInterfaceInput{
		NetworkInterfaceId: aws.String(t.Interface), InstanceId: aws.String(t.Instance), DeviceIndex: aws.Int32(int32(t.DeviceIndex)), //nolint:gosec // at most 15
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.AttachmentId), nil
}

// Change changes an attribute of an interface.
func (a *Account) Change(ctx context.Context, c attach.Change) error {
	in := &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: aws.String(c.Interface)}
	if c.Attachment == "" {
		in.SourceDestCheck = &types.AttributeBooleanValue{Value: aws.Bool(false)}
	} else {
		in.Attachment = &types.NetworkInterfaceAttachmentChanges{AttachmentId: aws.String(c.Attachment), DeleteOnTermination: aws.Bool(true)}
	}
	_, err := makeCall(ctx, a, "ModifyNetworkInterfaceAttribute", a.calls.modify, in)
	return err
}

// Delete deletes an interface. It returns no error if the interface does not exist.
func (a *Account) Delete(ctx context.Context, d attach.Delete) error {
	_, err := makeCall(ctx, a, "DeleteNetworkInterface", a.calls.remove, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String(d.Interface)})
	if Code(err) == "InvalidNetworkInterfaceID.NotFound" {
		return nil
	}
	return err
}
