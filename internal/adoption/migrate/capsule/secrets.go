package capsule

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/adoption/migrate/copies"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// isNamedSecret reports whether a reference names one Secret. The input need not contain it: its content does not
// matter.
func isNamedSecret(reference source.Field) bool {
	return reference.At("kind").Text() == "Secret" && reference.At("apiVersion").Text() == "v1" && reference.At("name").Text() != ""
}

// readSecret writes a Secret into the secrets of tenants. It returns the fields of croft.yaml that contain it, and
// whether croft.yaml replaces it for all of the tenants.
func (r *replication) readSecret(d *draft.Draft, c copied, tenants []string, every bool) ([]string, bool) {
	s := copies.Secret{
		Name: cmp.Or(c.content.At("metadata", "name").Text(), c.content.At("name").Text()), Type: corev1.SecretType(c.content.At("type").Text()),
	}
	if c.isReference() || isNamedSecret(c.at) {
		s.Prefix = cmp.Or(c.content.At("metadata", "namespace").Text(), c.at.At("namespace").Text(), r.Namespace)
		s.Origin = s.Prefix + "/" + s.Name
	} else {
		if strings.Contains(fmt.Sprint(c.content.Value()), "{{") {
			reportLostObjects(d, c.at, "has templates, and every copy has the content of the same Secret", "Secret")
			return nil, false
		}
		s.Prefix, s.Origin = strings.ToLower(r.Name), r.Kind+"/"+r.Namespace+"/"+r.Name+"/"+c.at.Path()
	}
	to, name, why := copies.DeclareSecret(d, tenants, every, s)
	if why != "" {
		reportLostObjects(d, c.at, why, "Secret")
		return nil, false
	}
	for _, field := range to {
		c.at.MarkChanged(field, "%s", copies.FormatSecretStep(name))
	}
	return to, true
}
