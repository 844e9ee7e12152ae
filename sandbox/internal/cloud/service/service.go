// Package service answers calls to a simulated AWS account: the calls of Karpenter's AWS
// provider and of croft, and a few more with which an account is set up.
package service

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

// Cluster is EKS's description of the cluster.
type Cluster struct {
	Endpoint, CA, Version string
	ServiceRange          string
	// Queue is the name of the interruption queue.
	Queue string
}

// Services answers the calls to one account.
type Services struct {
	account *account.Account
	cluster Cluster
}

// New returns the services of an account.
func New(a *account.Account, c Cluster) *Services { return &Services{account: a, cluster: c} }

type handler func(*Services, *wire.Request) (any, error)

// handlers are the supported calls, by service and action.
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

// Answer executes a call, unless a fault or a limit refuses it. needs are the authorizations of
// the call, which a denial names.
func (s *Services) Answer(r *wire.Request, needs []Authorization) (any, error) {
	name := r.Service + ":" + r.Action
	handle, ok := handlers[name]
	if !ok {
		return nil, &wire.Error{Code: "InvalidAction", Message: fmt.Sprintf("the simulated account does not support %s", name)}
	}
	if err := s.checkFaults(r, name, needs); err != nil {
		return nil, err
	}
	return handle(s, r)
}

// checkFaults returns the error of a throttled or denied call, whatever its parameters.
func (s *Services) checkFaults(r *wire.Request, name string, needs []Authorization) error {
	now := account.Case{Action: name}
	narrow := r.Params.Has("Filter") || r.Params.Has("MaxResults") || r.Params.Has("NetworkInterfaceId")
	if s.account.CountFault(account.Throttled, now) != nil || !s.account.SpendToken(name, narrow) {
		return &wire.Error{Code: "RequestLimitExceeded", Message: "Request limit exceeded.", Status: http.StatusServiceUnavailable}
	}
	f := s.account.CountFault(account.Unauthorized, now)
	if f == nil {
		return nil
	}
	denied := account.Denied{Action: name, Resource: "*", NodeRole: f.NodeRole, Explicit: f.ExplicitDeny}
	if r.Protocol == wire.EC2Query {
		if len(needs) > 0 && len(needs[0].Resources) > 0 {
			denied.Resource = needs[0].Resources[0]
		}
		return &wire.Error{Code: "UnauthorizedOperation", Status: http.StatusForbidden, Message: s.account.DescribeDenial(denied)}
	}
	code := "AccessDeniedException"
	if r.Protocol == wire.Query {
		code = "AccessDenied"
	}
	return &wire.Error{Code: code, Status: http.StatusForbidden, Message: "User: " + s.account.Principal(f.NodeRole) +
		" is not authorized to perform: " + name + " because no identity-based policy allows the " + name + " action"}
}

// checkDryRun returns EC2's error for a dry run that would have succeeded; nil if the call is none.
func checkDryRun(r *wire.Request) error {
	if !r.Params.Bool("DryRun") {
		return nil
	}
	return &wire.Error{Code: "DryRunOperation", Status: http.StatusPreconditionFailed,
		Message: "Request would have succeeded, but DryRun flag is set."}
}

// nothing is an empty answer.
type nothing struct{}

// done is EC2's answer to a call without a result.
type done struct {
	Return bool `xml:"return"`
}

type tagItem struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func toTagItems(tags account.Tags) []tagItem {
	out := make([]tagItem, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, tagItem{key, tags[key]})
	}
	return out
}

// readTags reads a list of tags.
func readTags(p wire.Params, list string) account.Tags {
	tags := account.Tags{}
	for _, tag := range p.ListStructures(list) {
		tags[tag.String("Key")] = tag.String("Value")
	}
	return tags
}

// readResourceTags reads the tags that a call sets on resources of a type.
func readResourceTags(p wire.Params, resource string) account.Tags {
	tags := account.Tags{}
	for _, spec := range p.ListStructures("TagSpecification") {
		if spec.String("ResourceType") == resource {
			maps.Copy(tags, readTags(spec, "Tag"))
		}
	}
	return tags
}
