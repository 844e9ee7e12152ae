package estate

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// checkSources refuses sources in namespaces that are not the tenant's, sources at hosts that the
// policy croft-flux-sources does not allow Flux to connect to, and URLs with credentials, which
// every reader of the Tenant could see.
func checkSources(w *checker, t *v1alpha1.Tenant) []finding {
	var all []finding
	namespaces := listNamespaces(t)
	hosts := mergeAllowances(&w.platform.TenantDefaults.Policy, &t.Spec.Policy.Allowances).SourceHosts
	services := slices.Concat(namespaces, w.platform.Network.PlatformNamespaces)
	for _, name := range slices.Sorted(maps.Keys(t.Spec.Sources)) {
		source, at := t.Spec.Sources[name], field.NewPath("spec", "sources").Key(name)
		if source.Namespace != "" && !slices.Contains(namespaces, source.Namespace) {
			all = append(all, makeFinding(at.Child("namespace"), "%s is not one of the tenant's namespaces, which are %s; name one of them",
				source.Namespace, strings.Join(namespaces, ", "))...)
		}
		if w.platform.GitOps == v1alpha1.GitOpsArgoCD {
			all = append(all, checkArgoCDSource(source, at)...)
		}
		text, at := source.Git, at.Child("git")
		if text == "" {
			text, at = source.OCI, field.NewPath("spec", "sources").Key(name).Child("oci")
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			all = append(all, makeFinding(at, "is not a URL; write one such as https://git.example.org/shop/deploy")...)
			continue
		}
		if _, secret := u.User.Password(); secret || u.User != nil && u.Scheme != "ssh" {
			all = append(all, makeFinding(at, "contains credentials, which every reader of the Tenant would see; put them into a Secret, and name it in secretRef")...)
			continue
		}
		if host := strings.ToLower(u.Hostname()); !allowsSourceHost(host, hosts, services) {
			all = append(all, makeFinding(at, "%s may not connect to %s for tenant %s, whose policy.sourceHosts are %s (* is every host name outside of the cluster); add the host there, or name another",
				formatGitOpsTool(w.platform.GitOps), host, t.Name, cmp.Or(strings.Join(hosts, ", "), "none"))...)
		}
	}
	return all
}

// formatGitOpsTool returns the tool's product name.
func formatGitOpsTool(tool v1alpha1.GitOpsTool) string {
	if tool == v1alpha1.GitOpsArgoCD {
		return "Argo CD"
	}
	return "Flux"
}

// checkArgoCDSource refuses fields that an Argo CD Application does not have, and would ignore.
func checkArgoCDSource(source v1alpha1.Source, at *field.Path) []finding {
	var all []finding
	for _, f := range []struct {
		name string
		set  bool
		why  string
	}{
		{"oci", source.OCI != "", "is for Flux, and platform.gitops is ArgoCD; name a Git repository in git"},
		{"secretRef", source.SecretRef != nil, "is for Flux; Argo CD finds credentials by the repository's URL, in Secrets of its own namespace: leave secretRef out"},
		{"webhook", source.Webhook != nil, "is for Flux; Git servers call Argo CD at /api/webhook, for all repositories: leave webhook out"},
		{"interval", source.Interval != "", "is for Flux; Argo CD has one interval for all repositories, timeout.reconciliation in its ConfigMap argocd-cm: leave interval out"},
		{"timeout", source.Timeout != "", "is for Flux; Argo CD does not wait until the applied objects are ready: leave timeout out"},
		{"git", strings.ContainsAny(source.Git, repositoryPattern), "Argo CD would take any of " + repositoryPattern + " for a pattern, which other repositories match, too; name a repository without these characters"},
	} {
		if f.set {
			all = append(all, makeFinding(at.Child(f.name), "%s", f.why)...)
		}
	}
	return all
}

// repositoryPattern lists the characters with a special meaning in the repositories of an
// AppProject.
const repositoryPattern = `*?[]{}\!`

var (
	hostname = regexp.MustCompile(`^([a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9])?[.])*[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// topLevelDomain matches the end of an external host name, and no IP address in any
	// notation.
	topLevelDomain = regexp.MustCompile(`[.]([a-z]{2,63}|xn--[-a-z0-9]+)$`)
	insideName     = regexp.MustCompile(`(^|[.])((svc|pod)([.]|$)|(local|localhost|localdomain|internal)$)`)
)

// allowsSourceHost returns the decision of the policy croft-flux-sources on a host in lower
// case; a test compares the two. Services of the given namespaces need not be listed in hosts.
func allowsSourceHost(host string, hosts, services []string) bool {
	if slices.Contains(hosts, host) {
		return true
	}
	if !hostname.MatchString(host) {
		return false
	}
	outside := topLevelDomain.MatchString(host) && !insideName.MatchString(host) && host != "metadata.goog"
	if outside && slices.Contains(hosts, "*") {
		return true
	}
	return slices.ContainsFunc(hosts, func(h string) bool { return strings.HasPrefix(h, "*.") && strings.HasSuffix(host, h[1:]) }) ||
		slices.ContainsFunc(services, func(ns string) bool {
			return strings.HasSuffix(host, "."+ns+".svc") || strings.HasSuffix(host, "."+ns+".svc.cluster.local")
		})
}
