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

func templateOf(t account.LaunchTemplate, by string) template {
	return template{t.ID, t.Name, t.Created.UTC().Format(timestamp), by, 1, 1, tagItems(t.Tags)}
}

func (s *Services) createLaunchTemplate(r *wire.Request) (any, error) {
	name := r.Params.String("LaunchTemplateName")
	if s.account.Template(name) != nil {
		return nil, &wire.Error{Code: "InvalidLaunchTemplateName.AlreadyExistsException",
			Message: "Launch template name already in use."}
	}
	if err := dryRun(r); err != nil {
		return nil, err
	}
	data, err := templateData(r.Params.Under("LaunchTemplateData"))
	if err != nil {
		return nil, err
	}
	t, err := s.account.PutTemplate(account.LaunchTemplate{Name: name, Tags: tagsOf(r.Params, "launch-template"), Data: data})
	return createdTemplate{templateOf(t, s.account.Principal(false))}, err
}

func templateData(p wire.Params) (account.TemplateData, error) {
	data := account.TemplateData{
		ImageID:         p.String("ImageId"),
		Profile:         p.Under("IamInstanceProfile").String("Name"),
		UserData:        p.String("UserData"),
		SecurityGroups:  p.Strings("SecurityGroupId"),
		InstanceTags:    tagsOf(p, "instance"),
		InterfaceTags:   tagsOf(p, "network-interface"),
		MetadataOptions: map[string]string{},
		Reservation:     p.Under("CapacityReservationSpecification").Under("CapacityReservationTarget").String("CapacityReservationId"),
		Given:           p.Given(),
	}
	if len(data.UserData)*3/4 > maxUserData {
		return data, &wire.Error{Code: "InvalidUserData.Malformed", Message: fmt.Sprintf("User data is limited to %d bytes", maxUserData)}
	}
	metadata := p.Under("MetadataOptions")
	for _, option := range []string{"HttpEndpoint", "HttpTokens", "HttpPutResponseHopLimit", "HttpProtocolIpv6"} {
		if value := metadata.String(option); value != "" {
			data.MetadataOptions[option] = value
		}
	}
	for _, nic := range p.Each("NetworkInterface") {
		data.SecurityGroups = append(data.SecurityGroups, nic.Strings("SecurityGroupId")...)
	}
	for _, volume := range p.Each("BlockDeviceMapping") {
		if key := volume.Under("Ebs").String("KmsKeyId"); key != "" {
			data.KMSKeys = append(data.KMSKeys, key)
		}
	}
	return data, nil
}

func (s *Services) describeLaunchTemplates(r *wire.Request) (any, error) {
	var out templates
	by := s.account.Principal(false)
	if names := r.Params.Strings("LaunchTemplateName"); len(names) > 0 {
		for _, name := range names {
			t := s.account.Template(name)
			if t == nil {
				return nil, noTemplate()
			}
			out.Templates = append(out.Templates, templateOf(*t, by))
		}
		return out, nil
	}
	for _, t := range s.account.Templates(r.Params.Filters()) {
		out.Templates = append(out.Templates, templateOf(t, by))
	}
	return out, nil
}

func (s *Services) deleteLaunchTemplate(r *wire.Request) (any, error) {
	name := r.Params.String("LaunchTemplateName")
	if name == "" {
		name = r.Params.String("LaunchTemplateId")
	}
	t := s.account.Template(name)
	if t == nil {
		return nil, noTemplate()
	}
	return createdTemplate{templateOf(*t, s.account.Principal(false))}, s.account.DeleteTemplate(t.Name)
}

func noTemplate() error {
	return &wire.Error{Code: "InvalidLaunchTemplateName.NotFoundException", Status: http.StatusBadRequest,
		Message: "At least one of the launch templates specified in the request does not exist."}
}
