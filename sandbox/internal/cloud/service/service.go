// Package service answers the calls that Karpenter's AWS provider makes, and the
// few more that it takes to set up an account, for a simulated one.
package service

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

// Cluster is what EKS says of the cluster.
type Cluster struct {
	Endpoint, CA, Version string
	ServiceRange          string
	// Queue is the name of the interruption queue.
	Queue string
}

// Services answer for one account.
type Services struct {
	account *account.Account
	cluster Cluster
}

// New makes the services of an account.
func New(a *account.Account, c Cluster) *Services { return &Services{account: a, cluster: c} }

type handler func(*Services, *wire.Request) (any, error)

// handlers are all calls that are answered, by service and action.
var handlers = map[string]handler{
	"ec2:DescribeInstanceTypes":         (*Services).describeInstanceTypes,
	"ec2:DescribeInstanceTypeOfferings": (*Services).describeInstanceTypeOfferings,
	"ec2:DescribeSpotPriceHistory":      (*Services).describeSpotPriceHistory,
	"ec2:DescribeAvailabilityZones":     (*Services).describeAvailabilityZones,
	"ec2:DescribeSubnets":               (*Services).describeSubnets,
	"ec2:DescribeSecurityGroups":        (*Services).describeSecurityGroups,
	"ec2:DescribeImages":                (*Services).describeImages,
	"ec2:DescribeCapacityReservations":  (*Services).describeCapacityReservations,
	"ec2:DescribePlacementGroups":       (*Services).describePlacementGroups,
	"ec2:CreateLaunchTemplate":          (*Services).createLaunchTemplate,
	"ec2:DescribeLaunchTemplates":       (*Services).describeLaunchTemplates,
	"ec2:DeleteLaunchTemplate":          (*Services).deleteLaunchTemplate,
	"ec2:CreateFleet":                   (*Services).createFleet,
	"ec2:RunInstances":                  (*Services).runInstances,
	"ec2:DescribeInstances":             (*Services).describeInstances,
	"ec2:DescribeInstanceStatus":        (*Services).describeInstanceStatus,
	"ec2:TerminateInstances":            (*Services).terminateInstances,
	"ec2:CreateTags":                    (*Services).createTags,

	"ec2:CreateNetworkInterface":          (*Services).createNetworkInterface,
	"ec2:DescribeNetworkInterfaces":       (*Services).describeNetworkInterfaces,
	"ec2:AttachNetworkInterface":          (*Services).attachNetworkInterface,
	"ec2:DetachNetworkInterface":          (*Services).detachNetworkInterface,
	"ec2:ModifyNetworkInterfaceAttribute": (*Services).modifyNetworkInterfaceAttribute,
	"ec2:DeleteNetworkInterface":          (*Services).deleteNetworkInterface,
	"ec2:AssignPrivateIpAddresses":        (*Services).assignPrivateIPAddresses,
	"ec2:UnassignPrivateIpAddresses":      (*Services).unassignPrivateIPAddresses,
	"ec2:CreateSubnetCidrReservation":     (*Services).createSubnetCIDRReservation,
	"ec2:GetSubnetCidrReservations":       (*Services).getSubnetCIDRReservations,
	"ec2:DeleteSubnetCidrReservation":     (*Services).deleteSubnetCIDRReservation,

	"iam:GetRole":                       (*Services).getRole,
	"iam:CreateRole":                    (*Services).createRole,
	"iam:GetInstanceProfile":            (*Services).getInstanceProfile,
	"iam:CreateInstanceProfile":         (*Services).createInstanceProfile,
	"iam:DeleteInstanceProfile":         (*Services).deleteInstanceProfile,
	"iam:AddRoleToInstanceProfile":      (*Services).addRoleToInstanceProfile,
	"iam:RemoveRoleFromInstanceProfile": (*Services).removeRoleFromInstanceProfile,
	"iam:TagInstanceProfile":            (*Services).tagInstanceProfile,
	"iam:ListInstanceProfiles":          (*Services).listInstanceProfiles,

	"sts:GetCallerIdentity":          (*Services).getCallerIdentity,
	"sts:DecodeAuthorizationMessage": (*Services).decodeAuthorizationMessage,

	"ssm:GetParameter":    (*Services).getParameter,
	"eks:DescribeCluster": (*Services).describeCluster,
	"pricing:GetProducts": (*Services).getProducts,
	"sqs:GetQueueUrl":     (*Services).getQueueURL,
	"sqs:ReceiveMessage":  (*Services).receiveMessage,
	"sqs:DeleteMessage":   (*Services).deleteMessage,
}

// Answer does what a call asks for, unless something of what IAM has to allow for it
// is refused.
func (s *Services) Answer(r *wire.Request, needs []Authorization) (any, error) {
	name := r.Service + ":" + r.Action
	handle, ok := handlers[name]
	if !ok {
		return nil, &wire.Error{Code: "InvalidAction", Message: fmt.Sprintf("nobody here answers %s", name)}
	}
	if err := s.refused(r, name, needs); err != nil {
		return nil, err
	}
	return handle(s, r)
}

// refused is what goes wrong with a call whatever it asks for.
func (s *Services) refused(r *wire.Request, name string, needs []Authorization) error {
	now := account.Case{Action: name}
	narrow := r.Params.Has("Filter") || r.Params.Has("MaxResults") || r.Params.Has("NetworkInterfaceId")
	if s.account.Happens(account.Throttled, now) != nil || !s.account.Spend(name, narrow) {
		return &wire.Error{Code: "RequestLimitExceeded", Message: "Request limit exceeded.", Status: http.StatusServiceUnavailable}
	}
	f := s.account.Happens(account.Unauthorized, now)
	if f == nil {
		return nil
	}
	denied := account.Denied{Action: name, Resource: "*", NodeRole: f.NodeRole, Explicit: f.ExplicitDeny}
	if r.Protocol == wire.EC2Query {
		if len(needs) > 0 && len(needs[0].Resources) > 0 {
			denied.Resource = needs[0].Resources[0]
		}
		return &wire.Error{Code: "UnauthorizedOperation", Status: http.StatusForbidden, Message: s.account.Denial(denied)}
	}
	code := "AccessDeniedException"
	if r.Protocol == wire.Query {
		code = "AccessDenied"
	}
	return &wire.Error{Code: code, Status: http.StatusForbidden, Message: "User: " + s.account.Principal(f.NodeRole) +
		" is not authorized to perform: " + name + " because no identity-based policy allows the " + name + " action"}
}

// dryRun is EC2's way to say that a call would have succeeded.
func dryRun(r *wire.Request) error {
	if !r.Params.Bool("DryRun") {
		return nil
	}
	return &wire.Error{Code: "DryRunOperation", Status: http.StatusPreconditionFailed,
		Message: "Request would have succeeded, but DryRun flag is set."}
}

// nothing answers a call that has no more to say than that it was done.
type nothing struct{}

// done answers with what EC2 says when it has nothing to say.
type done struct {
	Return bool `xml:"return"`
}

type tagItem struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func tagItems(tags account.Tags) []tagItem {
	out := make([]tagItem, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, tagItem{key, tags[key]})
	}
	return out
}

// readTags reads a list of tags.
func readTags(p wire.Params, list string) account.Tags {
	tags := account.Tags{}
	for _, tag := range p.Each(list) {
		tags[tag.String("Key")] = tag.String("Value")
	}
	return tags
}

// tagsOf reads the tags that a call asks for on resources of a type.
func tagsOf(p wire.Params, resource string) account.Tags {
	tags := account.Tags{}
	for _, spec := range p.Each("TagSpecification") {
		if spec.String("ResourceType") == resource {
			maps.Copy(tags, readTags(spec, "Tag"))
		}
	}
	return tags
}
