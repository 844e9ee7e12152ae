// Package backstage describes tenants to a Backstage catalog: teams as Groups, tenants as
// Systems, and their namespaces as Components. It does no I/O.
//
// The format is Backstage's "Descriptor Format of Catalog Entities". The Kubernetes plugin of
// Backstage reads the annotations.
package backstage

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// Entity is one entity of the catalog.
type Entity struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   Metadata       `json:"metadata"`
	Spec       map[string]any `json:"spec"`
}

// Metadata are the fields that all kinds have.
type Metadata struct {
	// Name has 1 to 63 letters, digits, hyphens, underscores and dots.
	Name        string            `json:"name"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ownerRoles are the roles by whose groups a tenant is owned, the best first.
var ownerRoles = []v1alpha1.Role{v1alpha1.RoleOperator, v1alpha1.RoleViewer}

// List returns the entities of an estate: first the groups that own tenants, then each tenant with
// its namespaces. A tenant without a group is owned by a Group of its own name. contacts maps
// tenants to their contacts. It returns an error if two groups get the same name.
func List(e *estate.Estate, contacts map[string]string) ([]Entity, error) {
	var groups, tenants []Entity
	titles := map[string]string{} // of groups, by their names
	for _, t := range e.Tenants {
		title := findOwner(t, e.Platform.GroupPrefix)
		owner := formatName(title)
		switch other, ok := titles[owner]; {
		case !ok:
			titles[owner] = title
			groups = append(groups, newEntity("Group", Metadata{Name: owner, Title: title}, map[string]any{"type": "team", "children": []string{}}))
		case other != title:
			return nil, fmt.Errorf("the groups %q and %q have the same name in Backstage, %s: rename one", other, title, owner)
		}
		tenants = append(tenants, newEntity("System", Metadata{Name: t.Name, Description: contacts[t.Name]}, map[string]any{"owner": "group:" + owner}))
		for _, namespace := range t.Namespaces {
			tenants = append(tenants, newEntity("Component", Metadata{
				Name: namespace,
				Annotations: map[string]string{
					"backstage.io/kubernetes-namespace": namespace,
					// All objects of the namespace: none has this label.
					"backstage.io/kubernetes-label-selector": "!" + v1alpha1.GroupVersion.Group + "/not-in-backstage",
				},
			}, map[string]any{"type": "kubernetes-namespace", "lifecycle": "production", "owner": "group:" + owner, "system": t.Name}))
		}
	}
	return append(groups, tenants...), nil
}

func newEntity(kind string, metadata Metadata, spec map[string]any) Entity {
	return Entity{APIVersion: "backstage.io/v1alpha1", Kind: kind, Metadata: metadata, Spec: spec}
}

// findOwner returns the group that owns a tenant, without the platform's prefix: the first one with
// the best role.
func findOwner(t *estate.Tenant, prefix string) string {
	group := ""
	for _, role := range ownerRoles {
		for _, access := range t.Access {
			if group == "" && access.Role == role {
				group = access.Group
			}
		}
	}
	for _, access := range t.Access { // with a role of the platform's own
		group = cmp.Or(group, access.Group)
	}
	return cmp.Or(strings.TrimPrefix(group, prefix), t.Name)
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// maxName is the maximum length of a name.
const maxName = 63

// formatName converts a group to a name of Backstage.
func formatName(group string) string {
	name := cmp.Or(strings.Trim(notInNames.ReplaceAllString(group, "-"), "-"), "team")
	return strings.Trim(name[:min(len(name), maxName)], "-")
}
