package service

import (
	"maps"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

// authorizeOnInterfaces returns the authorizations of a call on network interfaces, and reports whether
// it is one. The Service Authorization Reference of EC2 lists them.
func (s *Services) authorizeOnInterfaces(r *wire.Request) ([]Authorization, bool) {
	action := r.Service + ":" + r.Action
	switch action {
	case "ec2:CreateNetworkInterface":
		out := s.authorizeCreate(r, "network-interface")
		resources := []string{s.account.ARN("ec2", "subnet/"+r.Params.String("SubnetId"))}
		for _, group := range r.Params.ListStrings("SecurityGroupId") {
			resources = append(resources, s.account.ARN("ec2", "security-group/"+group))
		}
		return append(out, Authorization{Action: action, Resources: resources, Context: map[string][]string{}}), true
	case "ec2:AttachNetworkInterface":
		return append(s.authorizeOnInterface(action, r.Params.String("NetworkInterfaceId")), s.authorizeOnInstances(action, []string{r.Params.String("InstanceId")}, nil)...), true
	case "ec2:DetachNetworkInterface":
		n, instance := s.findAttachment(r.Params.String("AttachmentId"))
		return append(s.authorizeOnInterface(action, n), s.authorizeOnInstances(action, []string{instance}, nil)...), true
	case "ec2:ModifyNetworkInterfaceAttribute":
		out := s.authorizeOnInterface(action, r.Params.String("NetworkInterfaceId"))
		if id := r.Params.GetStructure("Attachment").String("AttachmentId"); id != "" {
			_, instance := s.findAttachment(id)
			out = append(out, s.authorizeOnInstances(action, []string{instance}, nil)...)
		}
		return out, true
	case "ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses":
		return s.authorizeOnInterface(action, r.Params.String("NetworkInterfaceId")), true
	}
	return nil, false
}

func (s *Services) authorizeOnInterface(action, id string) []Authorization {
	n := s.account.FindInterface(id)
	if n == nil {
		return nil
	}
	context := map[string][]string{}
	maps.Copy(context, buildResourceTags(n.Tags))
	return []Authorization{{Action: action, Resources: []string{s.account.ARN("ec2", "network-interface/"+id)}, Context: context}}
}

// findAttachment returns the IDs of the interface and the instance of an attachment.
func (s *Services) findAttachment(attachment string) (id, instance string) {
	found, err := s.account.ListInterfaces(account.Filters{"attachment.attachment-id": {attachment}})
	if err != nil || len(found) == 0 {
		return "", ""
	}
	return found[0].ID, found[0].Attachment.Instance
}
