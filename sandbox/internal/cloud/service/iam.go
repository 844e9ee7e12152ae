package service

import (
	"maps"
	"net/http"
	"time"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

type roleAnswer struct {
	Role role `xml:"Role"`
}

type role struct {
	Path    string `xml:"Path"`
	Name    string `xml:"RoleName"`
	ID      string `xml:"RoleId"`
	ARN     string `xml:"Arn"`
	Created string `xml:"CreateDate"`
}

func (s *Services) toRole(r *account.Role) role {
	return role{"/", r.Name, r.ID, s.account.ARN("iam", "role/"+r.Name), r.Created.UTC().Format(time.RFC3339)}
}

func (s *Services) getRole(r *wire.Request) (any, error) {
	name := r.Params.String("RoleName")
	found := s.account.FindRole(name)
	if found == nil {
		return nil, newNoEntityError("The role with name " + name + " cannot be found.")
	}
	return roleAnswer{s.toRole(found)}, nil
}

func (s *Services) createRole(r *wire.Request) (any, error) {
	name := r.Params.String("RoleName")
	created, made, err := s.account.CreateRole(name)
	if err != nil {
		return nil, err
	}
	if !created {
		return nil, newExistsError("Role with name " + name + " already exists.")
	}
	return roleAnswer{s.toRole(made)}, nil
}

type profileAnswer struct {
	Profile profile `xml:"InstanceProfile"`
}

type profiles struct {
	Profiles  []profile `xml:"InstanceProfiles>member"`
	Truncated bool      `xml:"IsTruncated"`
}

type profile struct {
	Path    string      `xml:"Path"`
	Name    string      `xml:"InstanceProfileName"`
	ID      string      `xml:"InstanceProfileId"`
	ARN     string      `xml:"Arn"`
	Created string      `xml:"CreateDate"`
	Roles   []role      `xml:"Roles>member"`
	Tags    []memberTag `xml:"Tags>member"`
}

type memberTag struct {
	Key, Value string
}

func (s *Services) toProfile(p account.InstanceProfile) profile {
	out := profile{
		Path: p.Path, Name: p.Name, ID: p.ID, ARN: s.account.ARN("iam", "instance-profile"+p.Path+p.Name),
		Created: p.Created.UTC().Format(time.RFC3339),
	}
	if p.Role != "" {
		out.Roles = append(out.Roles, s.toRole(s.account.FindRole(p.Role)))
	}
	for _, tag := range toTagItems(p.Tags) {
		out.Tags = append(out.Tags, memberTag(tag))
	}
	return out
}

// findProfile returns the instance profile that a call names.
func (s *Services) findProfile(r *wire.Request) (account.InstanceProfile, error) {
	name := r.Params.String("InstanceProfileName")
	if p := s.account.FindProfile(name); p != nil {
		return *p, nil
	}
	return account.InstanceProfile{}, newNoEntityError("Instance Profile " + name + " cannot be found.")
}

func (s *Services) getInstanceProfile(r *wire.Request) (any, error) {
	p, err := s.findProfile(r)
	if err != nil {
		return nil, err
	}
	return profileAnswer{s.toProfile(p)}, nil
}

func (s *Services) createInstanceProfile(r *wire.Request) (any, error) {
	p := account.InstanceProfile{Name: r.Params.String("InstanceProfileName"), Path: "/", Tags: readTags(r.Params, "Tags")}
	if path := r.Params.String("Path"); path != "" {
		p.Path = path
	}
	if s.account.FindProfile(p.Name) != nil {
		return nil, newExistsError("Instance Profile " + p.Name + " already exists.")
	}
	if err := s.account.PutProfile(p); err != nil {
		return nil, err
	}
	return s.getInstanceProfile(r)
}

func (s *Services) deleteInstanceProfile(r *wire.Request) (any, error) {
	p, err := s.findProfile(r)
	if err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, &wire.Error{Code: "DeleteConflict", Status: http.StatusConflict,
			Message: "Cannot delete entity, must remove roles from instance profile first."}
	}
	return nothing{}, s.account.DeleteProfile(p.Name)
}

func (s *Services) addRoleToInstanceProfile(r *wire.Request) (any, error) {
	p, err := s.findProfile(r)
	if err != nil {
		return nil, err
	}
	name := r.Params.String("RoleName")
	if s.account.FindRole(name) == nil {
		return nil, newNoEntityError("The role with name " + name + " cannot be found.")
	}
	if p.Role != "" {
		return nil, &wire.Error{Code: "LimitExceeded", Status: http.StatusConflict,
			Message: "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1"}
	}
	if s.account.CountFault(account.PassRoleDenied, account.Case{Action: "iam:AddRoleToInstanceProfile"}) != nil {
		return nil, &wire.Error{Code: "AccessDenied", Status: http.StatusForbidden, Message: "User: " + s.account.Principal(false) +
			" is not authorized to perform: iam:PassRole on resource: " + s.account.ARN("iam", "role/"+name) +
			" because no identity-based policy allows the iam:PassRole action"}
	}
	p.Role = name
	return nothing{}, s.account.PutProfile(p)
}

func (s *Services) removeRoleFromInstanceProfile(r *wire.Request) (any, error) {
	p, err := s.findProfile(r)
	if err != nil {
		return nil, err
	}
	if name := r.Params.String("RoleName"); p.Role != name {
		return nil, newNoEntityError("The role with name " + name + " cannot be found.")
	}
	p.Role = ""
	return nothing{}, s.account.PutProfile(p)
}

func (s *Services) tagInstanceProfile(r *wire.Request) (any, error) {
	p, err := s.findProfile(r)
	if err != nil {
		return nil, err
	}
	tags := maps.Clone(p.Tags)
	maps.Copy(tags, readTags(r.Params, "Tags"))
	p.Tags = tags
	return nothing{}, s.account.PutProfile(p)
}

func (s *Services) listInstanceProfiles(r *wire.Request) (any, error) {
	var out profiles
	for _, p := range s.account.ListProfiles(r.Params.String("PathPrefix")) {
		out.Profiles = append(out.Profiles, s.toProfile(p))
	}
	return out, nil
}

func newNoEntityError(message string) error {
	return &wire.Error{Code: "NoSuchEntity", Status: http.StatusNotFound, Message: message}
}

func newExistsError(message string) error {
	return &wire.Error{Code: "EntityAlreadyExists", Status: http.StatusConflict, Message: message}
}
