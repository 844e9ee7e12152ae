// Package account calls EC2 for the operator. It offers only the calls that network
// interfaces need. All of croft's EC2 calls go through it.
package account

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"k8s.io/utils/clock"

	"croft.dev/croft/internal/network/attach"
)

// patience is the timeout of one call.
const patience = 20 * time.Second

// Account is an AWS account in one region.
type Account struct {
	calls   calls
	limiter *limiter
	windows *windows
}

// calls are methods of the EC2 client. They are stored as functions so that the linker can
// drop the rest: a client in a field links all of its 700 methods, these functions link
// eight.
type calls struct {
	instances  func(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	types      func(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	interfaces func(context.Context, *ec2.DescribeNetworkInterfacesInput, ...func(*ec2.Options)) (*ec2.DescribeNetworkInterfacesOutput, error)
	create     func(context.Context, *ec2.CreateNetworkInterfaceInput, ...func(*ec2.Options)) (*ec2.CreateNetworkInterfaceOutput, error)
	attach     func(context.Context, *ec2.AttachNetworkInterfaceInput, ...func(*ec2.Options)) (*ec2.AttachNetworkInterfaceOutput, error)
	modify     func(context.Context, *ec2.ModifyNetworkInterfaceAttributeInput, ...func(*ec2.Options)) (*ec2.ModifyNetworkInterfaceAttributeOutput, error)
	remove     func(context.Context, *ec2.DeleteNetworkInterfaceInput, ...func(*ec2.Options)) (*ec2.DeleteNetworkInterfaceOutput, error)
}

// New returns the Account of an SDK configuration. The SDK does not retry: failed calls are
// planned again, and one limiter applies to all calls.
func New(cfg aws.Config, clock clock.PassiveClock) *Account {
	c := ec2.NewFromConfig(cfg, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
	return &Account{limiter: newLimiter(clock), windows: newWindows(), calls: calls{
		instances: c.DescribeInstances, types: c.DescribeInstanceTypes, interfaces: c.DescribeNetworkInterfaces,
		create: c.CreateNetworkInterface, attach: c.AttachNetworkInterface, modify: c.ModifyNetworkInterfaceAttribute, remove: c.DeleteNetworkInterface,
	}}
}

// ErrDeferred reports that a call was not made, to stay below the limits of EC2's API. The
// caller must repeat it later.
var ErrDeferred = errors.New("deferred: the limit of EC2's API is reached")

// Code returns the EC2 error code, such as InvalidSubnetID.NotFound, or "" if there is
// none.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// throttledKey is a context key.
type throttledKey struct{}

// MarkThrottled marks a context whose calls were throttled before. They are made more
// slowly than others, so that they are not throttled again.
func MarkThrottled(ctx context.Context) context.Context {
	return context.WithValue(ctx, throttledKey{}, true)
}

// beginCall reports whether a call may be made now.
func (a *Account) beginCall(ctx context.Context, action string) bool {
	if !a.windows.beginCall(action) {
		return false
	}
	_, again := ctx.Value(throttledKey{}).(bool)
	if !a.limiter.takeToken(action, again) {
		a.windows.cancelCall(action)
		return false
	}
	return true
}

// makeCall makes a call if the limiter allows it, and passes the result to the limiter.
func makeCall[In, Out any](ctx context.Context, a *Account, action string, do func(context.Context, In, ...func(*ec2.Options)) (Out, error), in In) (Out, error) {
	var none Out
	if !a.beginCall(ctx, action) {
		counted.WithLabelValues(action, "deferred").Inc()
		return none, ErrDeferred
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := do(ctx, in)
	a.windows.endCall(action, err)
	a.limiter.recordResult(action, err)
	counted.WithLabelValues(action, classifyResult(err)).Inc()
	return out, err
}

func classifyResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case IsThrottled(err):
		return "throttled"
	default:
		return "error"
	}
}

// The maximum numbers of values in a filter, and of instance types in a call.
const (
	filterValues = 200
	typeNames    = 100
)

// Instances returns the phases of instances. Instances that EC2 does not return are
// missing.
func (a *Account) Instances(ctx context.Context, ids []string) (map[string]attach.Phase, error) {
	phases := map[string]attach.Phase{}
	for chunk := range slices.Chunk(ids, filterValues) {
		in := &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-id"), Values: chunk}}, MaxResults: aws.Int32(1000)}
		for {
			out, err := makeCall(ctx, a, "DescribeInstances", a.calls.instances, in)
			if err != nil {
				return nil, err
			}
			for _, r := range out.Reservations {
				for _, i := range r.Instances {
					phases[aws.ToString(i.InstanceId)] = convertPhase(i.State)
				}
			}
			if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
				break
			}
		}
	}
	return phases, nil
}

func convertPhase(s *types.InstanceState) attach.Phase {
	if s == nil {
		return ""
	}
	switch s.Name {
	case types.InstanceStateNamePending:
		return attach.Starting
	case types.InstanceStateNameRunning, types.InstanceStateNameStopped:
		return attach.Running
	case types.InstanceStateNameStopping:
		return attach.Starting // until it is stopped
	case types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated:
		return attach.Ended
	default:
		return attach.Ended
	}
}

// Interfaces returns the interfaces that croft created for a cluster.
func (a *Account) Interfaces(ctx context.Context, cluster string) ([]attach.Interface, error) {
	var all []attach.Interface
	in := &ec2.DescribeNetworkInterfacesInput{
		Filters: []types.Filter{{Name: aws.String("tag:" + attach.ClusterTag), Values: []string{cluster}}}, MaxResults: aws.Int32(1000),
	}
	for {
		out, err := makeCall(ctx, a, "DescribeNetworkInterfaces", a.calls.interfaces, in)
		if err != nil {
			return nil, err
		}
		for i := range out.NetworkInterfaces {
			all = append(all, convertInterface(&out.NetworkInterfaces[i]))
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return all, nil
		}
	}
}

func convertInterface(n *types.NetworkInterface) attach.Interface {
	out := attach.Interface{
		ID: aws.ToString(n.NetworkInterfaceId), Subnet: aws.ToString(n.SubnetId), MAC: aws.ToString(n.MacAddress),
		SourceDestCheck: aws.ToBool(n.SourceDestCheck), Tags: map[string]string{},
	}
	for _, prefix := range n.Ipv4Prefixes {
		out.Prefixes = append(out.Prefixes, aws.ToString(prefix.Ipv4Prefix))
	}
	for _, tag := range n.TagSet {
		out.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	if t := n.Attachment; t != nil && t.Status != types.AttachmentStatusDetached {
		out.Attachment = &attach.Attachment{
			ID: aws.ToString(t.AttachmentId), Instance: aws.ToString(t.InstanceId), DeviceIndex: int(aws.ToInt32(t.DeviceIndex)),
			Attached: t.Status == types.AttachmentStatusAttached, DeleteOnTermination: aws.ToBool(t.DeleteOnTermination),
		}
	}
	return out
}

// Limits returns the maximum number of interfaces of instance types. Types that EC2 does
// not know are missing.
func (a *Account) Limits(ctx context.Context, names []string) (map[string]int, error) {
	limits := map[string]int{}
	for chunk := range slices.Chunk(names, typeNames) {
		in := &ec2.DescribeInstanceTypesInput{}
		for _, name := range chunk {
			in.InstanceTypes = append(in.InstanceTypes, types.InstanceType(name))
		}
		out, err := makeCall(ctx, a, "DescribeInstanceTypes", a.calls.types, in)
		if err != nil {
			return nil, err
		}
		for _, t := range out.InstanceTypes {
			if t.NetworkInfo != nil {
				limits[string(t.InstanceType)] = int(aws.ToInt32(t.NetworkInfo.MaximumNetworkInterfaces))
			}
		}
	}
	return limits, nil
}
