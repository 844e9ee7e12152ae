package account

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Role is an IAM role.
type Role struct {
	Name, ID string
	Created  time.Time
}

// InstanceProfile passes a role to instances.
type InstanceProfile struct {
	Name, ID, Path, Role string
	Tags                 Tags
	Created              time.Time
}

func newRole(name string) *Role {
	return &Role{Name: name, ID: "AROA" + strings.ToUpper(newID("")[1:])}
}

// FindRole returns a role by its name; nil if there is none.
func (a *Account) FindRole(name string) *Role {
	return readState(a, func(s *state) *Role { return copyOf(s.Roles[name]) })
}

// CreateRole creates a role, unless one with its name exists.
func (a *Account) CreateRole(name string) (created bool, role *Role, err error) {
	err = a.changeState(func(s *state) error {
		if role = s.Roles[name]; role == nil {
			role, created = newRole(name), true
			role.Created = a.now()
			s.Roles[name] = role
		}
		return nil
	})
	return created, role, err
}

// FindProfile returns an instance profile by its name; nil if there is none.
func (a *Account) FindProfile(name string) *InstanceProfile {
	return readState(a, func(s *state) *InstanceProfile { return copyOf(s.Profiles[name]) })
}

// ListProfiles returns all instance profiles below a path, in the order of their names.
func (a *Account) ListProfiles(under string) []InstanceProfile {
	return readState(a, func(s *state) (out []InstanceProfile) {
		for _, name := range slices.Sorted(maps.Keys(s.Profiles)) {
			if strings.HasPrefix(s.Profiles[name].Path, under) {
				out = append(out, *s.Profiles[name])
			}
		}
		return out
	})
}

// PutProfile creates or replaces an instance profile.
func (a *Account) PutProfile(p InstanceProfile) error {
	return a.changeState(func(s *state) error {
		if p.ID == "" {
			p.ID, p.Created = "AIPA"+strings.ToUpper(newID("")[1:]), a.now()
		}
		s.Profiles[p.Name] = &p
		return nil
	})
}

// DeleteProfile deletes an instance profile.
func (a *Account) DeleteProfile(name string) error {
	return a.changeState(func(s *state) error {
		delete(s.Profiles, name)
		return nil
	})
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
