package account

import (
	"cmp"
	"slices"
	"time"
)

// LaunchTemplate is an EC2 launch template.
type LaunchTemplate struct {
	ID, Name string
	Created  time.Time
	Tags     Tags
	Data     TemplateData
}

// TemplateData is the part of a launch template that instances get.
type TemplateData struct {
	ImageID         string            `json:"imageID"`
	Profile         string            `json:"profile,omitempty"` // the instance profile's name
	UserData        string            `json:"userData,omitempty"`
	SecurityGroups  []string          `json:"securityGroups,omitempty"`
	MetadataOptions map[string]string `json:"metadataOptions,omitempty"`
	// InstanceTags are put on instances that are started without a fleet.
	InstanceTags Tags `json:"instanceTags,omitempty"`
	// InterfaceTags are put on the network interfaces that instances start with.
	InterfaceTags Tags `json:"interfaceTags,omitempty"`
	// KMSKeys encrypt the volumes.
	KMSKeys []string `json:"kmsKeys,omitempty"`
	// Reservation is the capacity reservation that instances use.
	Reservation string `json:"reservation,omitempty"`
	// Given are all parameters of the call, by EC2's names.
	Given map[string]string `json:"given"`
}

// ListTemplates returns the launch templates that match, the oldest first.
func (a *Account) ListTemplates(f Filters) []LaunchTemplate {
	return readState(a, func(s *state) (out []LaunchTemplate) {
		for _, t := range s.Templates {
			if f.matches(map[string][]string{"launch-template-name": {t.Name}}, t.Tags) {
				out = append(out, *t)
			}
		}
		slices.SortFunc(out, func(x, y LaunchTemplate) int {
			return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.Name, y.Name))
		})
		return out
	})
}

// FindTemplate returns a launch template by its name or its ID; nil if there is none.
func (a *Account) FindTemplate(nameOrID string) *LaunchTemplate {
	return readState(a, func(s *state) *LaunchTemplate { return copyOf(s.findTemplate(nameOrID)) })
}

func (s *state) findTemplate(nameOrID string) *LaunchTemplate {
	for _, t := range s.Templates {
		if t.Name == nameOrID || t.ID == nameOrID {
			return t
		}
	}
	return nil
}

// PutTemplate creates a launch template.
func (a *Account) PutTemplate(t LaunchTemplate) (LaunchTemplate, error) {
	t.ID, t.Created = newID("lt"), a.now()
	return t, a.changeState(func(s *state) error {
		s.Templates[t.Name] = &t
		return nil
	})
}

// DeleteTemplate deletes a launch template.
func (a *Account) DeleteTemplate(name string) error {
	return a.changeState(func(s *state) error {
		delete(s.Templates, name)
		return nil
	})
}
