package service

import (
	"fmt"
	"net/http"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

// maxUserData is the maximum size of user data in bytes, before its encoding.
const maxUserData = 16 << 10

type templates struct {
	Templates []template `xml:"launchTemplates>item"`
}

type createdTemplate struct {
	Template template `xml:"launchTemplate"`
}

type template struct {
	ID        string    `xml:"launchTemplateId"`
	Name      string    `xml:"launchTemplateName"`
	Created   string    `xml:"createTime"`
	CreatedBy string    `xml:"createdBy"`
	Default   int       `xml:"defaultVersionNumber"`
	Latest    int       `xml:"latestVersionNumber"`
	Tags      []tagItem `xml:"tags>item"`
}

func toTemplate(t account.LaunchTemplate, by string) template {
	return template{t.ID, t.Name, t.Created.UTC().Format(timestamp), by, 1, 1, toTagItems(t.Tags)}
}

func (s *Services) createLaunchTemplate(r *wire.Request) (any, error) {
	name := r.Params.String("LaunchTemplateName")
	if s.account.FindTemplate(name) != nil {
		return nil, &wire.Error{Code: "InvalidLaunchTemplateName.AlreadyExistsException",
			Message: "Launch template name already in use."}
	}
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	data, err := parseTemplateData(r.Params.GetStructure("LaunchTemplateData"))
	if err != nil {
		return nil, err
	}
	t, err := s.account.PutTemplate(account.LaunchTemplate{Name: name, Tags: readResourceTags(r.Params, "launch-template"), Data: data})
	return createdTemplate{toTemplate(t, s.account.Principal(false))}, err
}

func parseTemplateData(p wire.Params) (account.TemplateData, error) {
	data := account.TemplateData{
		ImageID:         p.String("ImageId"),
		Profile:         p.GetStructure("IamInstanceProfile").String("Name"),
		UserData:        p.String("UserData"),
		SecurityGroups:  p.ListStrings("SecurityGroupId"),
		InstanceTags:    readResourceTags(p, "instance"),
		InterfaceTags:   readResourceTags(p, "network-interface"),
		MetadataOptions: map[string]string{},
		Reservation:     p.GetStructure("CapacityReservationSpecification").GetStructure("CapacityReservationTarget").String("CapacityReservationId"),
		Given:           p.ListAll(),
	}
	if len(data.UserData)*3/4 > maxUserData {
		return data, &wire.Error{Code: "InvalidUserData.Malformed", Message: fmt.Sprintf("User data is limited to %d bytes", maxUserData)}
	}
	metadata := p.GetStructure("MetadataOptions")
	for _, option := range []string{"HttpEndpoint", "HttpTokens", "HttpPutResponseHopLimit", "HttpProtocolIpv6"} {
		if value := metadata.String(option); value != "" {
			data.MetadataOptions[option] = value
		}
	}
	for _, nic := range p.ListStructures("NetworkInterface") {
		data.SecurityGroups = append(data.SecurityGroups, nic.ListStrings("SecurityGroupId")...)
	}
	for _, volume := range p.ListStructures("BlockDeviceMapping") {
		if key := volume.GetStructure("Ebs").String("KmsKeyId"); key != "" {
			data.KMSKeys = append(data.KMSKeys, key)
		}
	}
	return data, nil
}

func (s *Services) describeLaunchTemplates(r *wire.Request) (any, error) {
	var out templates
	by := s.account.Principal(false)
	if names := r.Params.ListStrings("LaunchTemplateName"); len(names) > 0 {
		for _, name := range names {
			t := s.account.FindTemplate(name)
			if t == nil {
				return nil, newNoTemplateError()
			}
			out.Templates = append(out.Templates, toTemplate(*t, by))
		}
		return out, nil
	}
	for _, t := range s.account.ListTemplates(r.Params.ReadFilters()) {
		out.Templates = append(out.Templates, toTemplate(t, by))
	}
	return out, nil
}

func (s *Services) deleteLaunchTemplate(r *wire.Request) (any, error) {
	name := r.Params.String("LaunchTemplateName")
	if name == "" {
		name = r.Params.String("LaunchTemplateId")
	}
	t := s.account.FindTemplate(name)
	if t == nil {
		return nil, newNoTemplateError()
	}
	return createdTemplate{toTemplate(*t, s.account.Principal(false))}, s.account.DeleteTemplate(t.Name)
}

func newNoTemplateError() error {
	return &wire.Error{Code: "InvalidLaunchTemplateName.NotFoundException", Status: http.StatusBadRequest,
		Message: "At least one of the launch templates specified in the request does not exist."}
}
