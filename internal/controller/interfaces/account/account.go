// Package account speaks to EC2 for the operator: the few calls that network
// interfaces take, and nothing else. Nothing in croft calls EC2 but through it.
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

	"croft.dev/croft/internal/secondary/attach"
)

// patience is how long one call may take.
const patience = 20 * time.Second

// Account is an account of AWS in one region.
type Account struct {
	calls   calls
	limiter *limiter
	windows *windows
}

// calls are methods of EC2's client. They are held as functions: a client in a field
// keeps all of its 700 methods in the program, and these keep eight.
type calls struct {
	instances  func(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	types      func(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	interfaces func(context.Context, *ec2.DescribeNetworkInterfacesInput, ...func(*ec2.Options)) (*ec2.DescribeNetworkInterfacesOutput, error)
	create     func(context.Context, *ec2.CreateNetworkInterfaceInput, ...func(*ec2.Options)) (*ec2.CreateNetworkInterfaceOutput, error)
	attach     func(context.Context, *ec2.AttachNetworkInterfaceInput, ...func(*ec2.Options)) (*ec2.AttachNetworkInterfaceOutput, error)
	modify     func(context.Context, *ec2.ModifyNetworkInterfaceAttributeInput, ...func(*ec2.Options)) (*ec2.ModifyNetworkInterfaceAttributeOutput, error)
	remove     func(context.Context, *ec2.DeleteNetworkInterfaceInput, ...func(*ec2.Options)) (*ec2.DeleteNetworkInterfaceOutput, error)
}

// New returns the account that a configuration of the SDK is for. The SDK does not
// retry: what failed is planned again, and there is one limiter for all calls. now is
// the limiter's clock.
func New(cfg aws.Config, now func() time.Time) *Account {
	c := ec2.NewFromConfig(cfg, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
	return &Account{limiter: newLimiter(now), windows: newWindows(), calls: calls{
		instances: c.DescribeInstances, types: c.DescribeInstanceTypes, interfaces: c.DescribeNetworkInterfaces,
		create: c.CreateNetworkInterface, attach: c.AttachNetworkInterface, modify: c.ModifyNetworkInterfaceAttribute, remove: c.DeleteNetworkInterface,
	}}
}

// ErrDeferred says that a call was not made, to stay below the limits of EC2's API.
// It is to be made later.
var ErrDeferred = errors.New("deferred: the limit of EC2's API is reached")

// Code is EC2's code of an error, such as InvalidSubnetID.NotFound; "" if it has none.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// refusedBefore is the key of a context's mark.
type refusedBefore struct{}

// RefusedBefore marks a context: its calls were refused for their rate before. They are made
// more slowly than others, so that they are not refused again.
func RefusedBefore(ctx context.Context) context.Context {
	return context.WithValue(ctx, refusedBefore{}, true)
}

// begin says whether a call may be made now.
func (a *Account) begin(ctx context.Context, action string) bool {
	if !a.windows.enter(action) {
		return false
	}
	_, again := ctx.Value(refusedBefore{}).(bool)
	if !a.limiter.allow(action, again) {
		a.windows.cancel(action)
		return false
	}
	return true
}

// call makes a call, if the limiter lets it, and tells the limiter what came of it.
func call[In, Out any](ctx context.Context, a *Account, action string, do func(context.Context, In, ...func(*ec2.Options)) (Out, error), in In) (Out, error) {
	var none Out
	if !a.begin(ctx, action) {
		counted.WithLabelValues(action, "deferred").Inc()
		return none, ErrDeferred
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := do(ctx, in)
	a.windows.leave(action, err)
	a.limiter.done(action, err)
	counted.WithLabelValues(action, result(err)).Inc()
	return out, err
}

func result(err error) string {
	switch {
	case err == nil:
		return "ok"
	case Throttled(err):
		return "throttled"
	default:
		return "error"
	}
}

// The most values that a filter takes, and instance types that a call takes.
const (
	filterValues = 200
	typeNames    = 100
)

// Instances are the phases of instances. Those that EC2 does not show are not in it.
func (a *Account) Instances(ctx context.Context, ids []string) (map[string]attach.Phase, error) {
	phases := map[string]attach.Phase{}
	for chunk := range slices.Chunk(ids, filterValues) {
		in := &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-id"), Values: chunk}}, MaxResults: aws.Int32(1000)}
		for {
			out, err := call(ctx, a, "DescribeInstances", a.calls.instances, in)
			if err != nil {
				return nil, err
			}
			for _, r := range out.Reservations {
				for _, i := range r.Instances {
					phases[aws.ToString(i.InstanceId)] = phase(i.State)
				}
			}
			if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
				break
			}
		}
	}
	return phases, nil
}

func phase(s *types.InstanceState) attach.Phase {
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

// Interfaces are those that croft made for a cluster.
func (a *Account) Interfaces(ctx context.Context, cluster string) ([]attach.Interface, error) {
	var all []attach.Interface
	in := &ec2.DescribeNetworkInterfacesInput{
		Filters: []types.Filter{{Name: aws.String("tag:" + attach.ClusterTag), Values: []string{cluster}}}, MaxResults: aws.Int32(1000),
	}
	for {
		out, err := call(ctx, a, "DescribeNetworkInterfaces", a.calls.interfaces, in)
		if err != nil {
			return nil, err
		}
		for i := range out.NetworkInterfaces {
			all = append(all, interfaceOf(&out.NetworkInterfaces[i]))
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return all, nil
		}
	}
}

func interfaceOf(n *types.NetworkInterface) attach.Interface {
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
			Done: t.Status == types.AttachmentStatusAttached, DeleteOnTermination: aws.ToBool(t.DeleteOnTermination),
		}
	}
	return out
}

// Limits are how many interfaces types of instances have. Types that EC2 does not know
// are not in it.
func (a *Account) Limits(ctx context.Context, names []string) (map[string]int, error) {
	limits := map[string]int{}
	for chunk := range slices.Chunk(names, typeNames) {
		in := &ec2.DescribeInstanceTypesInput{}
		for _, name := range chunk {
			in.InstanceTypes = append(in.InstanceTypes, types.InstanceType(name))
		}
		out, err := call(ctx, a, "DescribeInstanceTypes", a.calls.types, in)
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
