package service

import (
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

// Authorization is a permission that IAM must grant for a call: an action on resources, with
// condition keys. One call may need several, also of other services.
//
// The Service Authorization Reference of each service lists them.
type Authorization struct {
	Action    string              `json:"action"`
	Resources []string            `json:"resources,omitempty"`
	Context   map[string][]string `json:"context,omitempty"`
}

// ListAuthorizations returns the authorizations that a call needs, by the state of the account
// before the call.
func (s *Services) ListAuthorizations(r *wire.Request) []Authorization {
	if needs, ok := s.authorizeOnInterfaces(r); ok {
		return needs
	}
	action := r.Service + ":" + r.Action
	switch action {
	case "ec2:CreateLaunchTemplate":
		return s.authorizeCreate(r, "launch-template")
	case "ec2:CreateFleet":
		return append(s.authorizeCreate(r, "fleet"), s.authorizeLaunch(r)...)
	case "ec2:RunInstances":
		return s.authorizeLaunch(r)
	case "ec2:TerminateInstances":
		return s.authorizeOnInstances(action, r.Params.ListStrings("InstanceId"), nil)
	case "ec2:CreateTags":
		tags := readTags(r.Params, "Tag")
		asked := buildRequestTags(tags)
		asked["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
		return s.authorizeOnInstances(action, r.Params.ListStrings("ResourceId"), asked)
	case "ec2:DeleteLaunchTemplate":
		return s.authorizeOnTemplate(action, r.Params.String("LaunchTemplateName")+r.Params.String("LaunchTemplateId"))
	}
	switch r.Service {
	case "iam":
		return s.authorizeOnIAM(r, action)
	case "sqs":
		return []Authorization{{Action: action, Resources: []string{s.account.ARN("sqs", s.cluster.Queue)}}}
	case "eks":
		return []Authorization{{Action: action, Resources: []string{s.account.ARN("eks", "cluster"+strings.TrimPrefix(r.Path, "/clusters"))}}}
	case "ssm":
		var asked struct{ Name string }
		if r.Decode(&asked) != nil {
			return nil
		}
		return []Authorization{{Action: action, Resources: []string{"arn:aws:ssm:" + s.account.Region + "::parameter" + asked.Name}}}
	}
	return []Authorization{{Action: action, Context: map[string][]string{"aws:RequestedRegion": {s.account.Region}}}}
}

// authorizeCreate returns the authorizations of a call that creates a resource with tags.
func (s *Services) authorizeCreate(r *wire.Request, kind string) []Authorization {
	resource, asked := []string{s.account.ARN("ec2", kind+"/*")}, buildRequestTags(readResourceTags(r.Params, kind))
	out := []Authorization{{Action: "ec2:" + r.Action, Resources: resource, Context: asked}}
	if len(asked) == 0 {
		return out
	}
	tagging := maps.Clone(asked)
	tagging["ec2:CreateAction"] = []string{r.Action}
	return append(out, Authorization{Action: "ec2:CreateTags", Resources: resource, Context: tagging})
}

// authorizeLaunch returns the authorizations of a call that starts instances by launch templates. A
// fleet starts them with the caller's rights.
func (s *Services) authorizeLaunch(r *wire.Request) []Authorization {
	var out []Authorization
	for _, kind := range []string{"instance", "volume", "network-interface"} {
		asked := buildRequestTags(readResourceTags(r.Params, kind))
		if kind == "network-interface" && len(asked) == 0 {
			continue // the launch template tags it
		}
		resource := []string{s.account.ARN("ec2", kind+"/*")}
		out = append(out, Authorization{Action: "ec2:RunInstances", Resources: resource, Context: asked})
		tagging := maps.Clone(asked)
		tagging["ec2:CreateAction"] = []string{"RunInstances"}
		out = append(out, Authorization{Action: "ec2:CreateTags", Resources: resource, Context: tagging})
	}
	names := []string{r.Params.GetStructure("LaunchTemplate").String("LaunchTemplateName")}
	if r.Action == "CreateFleet" {
		names = nil
		for _, config := range r.Params.ListStructures("LaunchTemplateConfigs") {
			names = append(names, config.GetStructure("LaunchTemplateSpecification").String("LaunchTemplateName"))
		}
	}
	for _, name := range names {
		out = append(out, s.authorizeOnTemplate("ec2:"+r.Action, name)...)
		out = append(out, s.authorizeTemplate(name)...)
	}
	return out
}

// authorizeTemplate returns the authorizations for the resources of a launch template, and for the role that
// it passes to instances.
func (s *Services) authorizeTemplate(template string) []Authorization {
	t := s.account.FindTemplate(template)
	if t == nil {
		return nil
	}
	resources := []string{"arn:aws:ec2:" + s.account.Region + "::image/" + t.Data.ImageID}
	for _, group := range t.Data.SecurityGroups {
		resources = append(resources, s.account.ARN("ec2", "security-group/"+group))
	}
	for _, subnet := range s.account.ListSubnets(nil) {
		resources = append(resources, s.account.ARN("ec2", "subnet/"+subnet.ID))
	}
	out := []Authorization{{Action: "ec2:RunInstances", Resources: resources}}
	if p := s.account.FindProfile(t.Data.Profile); p != nil && p.Role != "" {
		out = append(out, s.authorizePassRole(p.Role))
	}
	return out
}

func (s *Services) authorizePassRole(role string) Authorization {
	return Authorization{
		Action: "iam:PassRole", Resources: []string{s.account.ARN("iam", "role/"+role)},
		Context: map[string][]string{"iam:PassedToService": {"ec2.amazonaws.com"}},
	}
}

func (s *Services) authorizeOnTemplate(action, name string) []Authorization {
	t := s.account.FindTemplate(name)
	if t == nil {
		return nil
	}
	return []Authorization{{
		Action: action, Resources: []string{s.account.ARN("ec2", "launch-template/"+t.ID)}, Context: buildResourceTags(t.Tags),
	}}
}

func (s *Services) authorizeOnInstances(action string, ids []string, asked map[string][]string) []Authorization {
	var out []Authorization
	for _, id := range ids {
		i := s.account.FindInstance(id)
		if i == nil {
			continue
		}
		context := buildResourceTags(i.Tags)
		maps.Copy(context, asked)
		out = append(out, Authorization{Action: action, Resources: []string{s.account.ARN("ec2", "instance/"+id)}, Context: context})
	}
	return out
}

// authorizeOnIAM returns the authorizations of a call on a role or an instance profile.
func (s *Services) authorizeOnIAM(r *wire.Request, action string) []Authorization {
	if r.Action == "GetRole" || r.Action == "CreateRole" {
		return []Authorization{{Action: action, Resources: []string{s.account.ARN("iam", "role/"+r.Params.String("RoleName"))}}}
	}
	if r.Action == "ListInstanceProfiles" {
		return []Authorization{{Action: action, Resources: []string{s.account.ARN("iam", "instance-profile"+r.Params.String("PathPrefix"))}}}
	}
	name, path := r.Params.String("InstanceProfileName"), "/"
	context := buildRequestTags(readTags(r.Params, "Tags"))
	if p := s.account.FindProfile(name); p != nil {
		path = p.Path
		maps.Copy(context, buildResourceTags(p.Tags))
	} else if given := r.Params.String("Path"); given != "" {
		path = given
	}
	out := []Authorization{{Action: action, Resources: []string{s.account.ARN("iam", "instance-profile"+path+name)}, Context: context}}
	if tags := readTags(r.Params, "Tags"); r.Action == "CreateInstanceProfile" && len(tags) > 0 {
		// Karpenter's published policy also has conditions on the resource's tags. A new
		// resource has the tags of the request.
		tagging := maps.Clone(context)
		maps.Copy(tagging, buildResourceTags(tags))
		out = append(out, Authorization{Action: "iam:TagInstanceProfile", Resources: out[0].Resources, Context: tagging})
	}
	if r.Action == "AddRoleToInstanceProfile" {
		out = append(out, s.authorizePassRole(r.Params.String("RoleName")))
	}
	return out
}

func buildRequestTags(tags account.Tags) map[string][]string {
	return addPrefix("aws:RequestTag/", tags)
}
func buildResourceTags(tags account.Tags) map[string][]string {
	return addPrefix("aws:ResourceTag/", tags)
}

func addPrefix(prefix string, tags account.Tags) map[string][]string {
	context := map[string][]string{}
	for key, value := range tags {
		context[prefix+key] = []string{value}
	}
	return context
}
