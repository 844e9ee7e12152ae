package copies

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
)

const (
	platformSecrets = "platform.tenantDefaults.secrets"
	// maxSecrets is the maximum number of copies in one list of croft.yaml.
	maxSecrets = 16
)

var copyName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Secret is a Secret that another tool copies.
type Secret struct {
	Name string
	Type corev1.SecretType
	// Origin identifies it among all Secrets of this name. Prefix is put before its name in the namespace
	// croft-secrets if another Secret has the name.
	Origin, Prefix string
}

// DeclareSecret gives tenants a copy of a Secret, and, if every is set, tenants to come. It returns the fields of
// croft.yaml that declare the copy, and the name of the Secret in the namespace croft-secrets, or the reason why
// croft cannot copy it.
func DeclareSecret(d *draft.Draft, tenants []string, every bool, s Secret) (to []string, source, why string) {
	source = s.Name
	if origin := d.SecretOrigins[source]; origin != "" && origin != s.Origin {
		source = s.Prefix + "-" + s.Name
	}
	switch origin := d.SecretOrigins[source]; {
	case !copyName.MatchString(s.Name) || !copyName.MatchString(source) || strings.HasPrefix(s.Name, "croft"):
		return nil, "", "names of copies are at most 63 lower-case letters, digits and '-', and do not begin with croft: give it another name"
	case s.Type == corev1.SecretTypeServiceAccountToken:
		return nil, "", "tokens of service accounts are not copied"
	case origin != "" && origin != s.Origin:
		return nil, "", "another Secret of this name is declared: give it another name"
	}
	entry := v1alpha1.SecretCopy{From: source}
	if source == s.Name {
		entry.From = "" // the default
	}
	defaults := &d.Platform.TenantDefaults.Secrets
	if every && len(tenants) == len(d.Tenants) && canDeclare(*defaults, s.Name, entry) {
		declareCopy(defaults, s.Name, entry)
		to = []string{platformSecrets}
	} else {
		for _, name := range tenants {
			if !canDeclare(d.Tenants[name].Spec.Secrets, s.Name, entry) {
				return nil, "", fmt.Sprintf("the tenant %s has another Secret of this name, or %d Secrets: give it another name, or remove one", name, maxSecrets)
			}
		}
		for _, name := range tenants {
			declareCopy(&d.Tenants[name].Spec.Secrets, s.Name, entry)
			to = append(to, draft.TenantField(name, "secrets"))
		}
	}
	d.SecretOrigins[source] = s.Origin
	return to, source, ""
}

func canDeclare(all map[string]v1alpha1.SecretCopy, name string, entry v1alpha1.SecretCopy) bool {
	existing, found := all[name]
	return existing == entry && found || !found && len(all) < maxSecrets
}

func declareCopy(all *map[string]v1alpha1.SecretCopy, name string, entry v1alpha1.SecretCopy) {
	if *all == nil {
		*all = map[string]v1alpha1.SecretCopy{}
	}
	(*all)[name] = entry
}

// FormatSecretStep returns the next step of the platform team for a copy of a Secret.
func FormatSecretStep(source string) string {
	return "create the Secret " + source + " in the namespace " + v1alpha1.SecretsNamespace + ", run `croft install --copy-secrets`, and delete the " +
		"existing copies: croft does not replace them"
}
