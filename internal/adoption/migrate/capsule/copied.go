package capsule

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/copies"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/network"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
)

// templatePattern matches the templates in raw items and in additional metadata.
var templatePattern = regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)

// templateValues are the texts that replace Capsule's templates.
type templateValues struct{ tenant, namespace string }

// replaceIn replaces the templates for which croft has parameters. It reports whether no other template is in
// the text: Capsule removes the others.
func (v templateValues) replaceIn(text string) (string, bool) {
	text = templatePattern.ReplaceAllStringFunc(text, func(match string) string {
		switch templatePattern.FindStringSubmatch(match)[1] {
		case "tenant.name":
			return v.tenant
		case "namespace":
			return v.namespace
		}
		return match
	})
	return text, !strings.Contains(text, "{{")
}

// getCapsuleName returns the name of a tenant in Capsule.
func getCapsuleName(d *draft.Draft, tenant string) string {
	if from := d.Tenants[tenant].From; from.Group() == draft.CapsuleGroup && from.Kind == "Tenant" {
		return from.Name
	}
	return tenant
}

// listParameters returns the parameters of croft that replace templates for a tenant. If the tenant has another name in
// croft, its name in Capsule is inserted.
func listParameters(d *draft.Draft, tenant string) templateValues {
	v := templateValues{estate.TenantParameter, "$(namespace)"}
	if name := getCapsuleName(d, tenant); name != tenant {
		v.tenant = name
	}
	return v
}

// buildExpand returns a function that inserts the names of a tenant and of its first namespace.
func buildExpand(d *draft.Draft) copies.Expand {
	return func(text, tenant string) string {
		text, _ = templateValues{getCapsuleName(d, tenant), d.Namespaces(tenant)[0]}.replaceIn(text)
		return text
	}
}

// isReference reports whether the object is in the input, and not in the replication.
func (c copied) isReference() bool { return c.at.Object() != c.content.Object() }

// buildText returns the manifest of the object for croft.yaml, or the reason why there is none.
func (c copied) buildText(d *draft.Draft, tenant, role string) (text, why string) {
	const otherTemplates = "contains templates other than {{ tenant.name }} and {{ namespace }}, which croft does not have"
	content, ok := c.content.Value().(map[string]any)
	if !ok {
		return "", "is not a manifest"
	}
	values := listParameters(d, tenant)
	manifest := copies.BuildManifest(content, listSelectedLabels(c.at)...)
	var err error
	if c.isReference() {
		manifest, _, err = convertTemplates(manifest, nil)
	} else if manifest, ok, err = convertTemplates(content, &values); ok {
		removeSetMetadata(manifest)
	}
	if err != nil {
		return "", err.Error()
	}
	if !ok {
		return "", otherTemplates
	}
	additional, _ := c.resource.At("additionalMetadata").Value().(map[string]any)
	if additional, ok, err = convertTemplates(additional, &values); err != nil || !ok {
		return "", "its additionalMetadata " + otherTemplates
	}
	addMetadata(manifest, additional)
	switch manifest["kind"] {
	case "NetworkPolicy":
		replaceTenantLabel(manifest, getCapsuleName(d, tenant))
	case "RoleBinding":
		copies.BindAccounts(manifest, role)
	}
	if text, err = copies.Marshal(manifest); err != nil {
		return "", err.Error()
	}
	return text, ""
}

// convertTemplates returns a copy of a manifest in which croft's parameters replace the templates, and texts that look
// like parameters are escaped. It reports whether it replaced all templates. Without values, it replaces
// none.
func convertTemplates(manifest map[string]any, values *templateValues) (map[string]any, bool, error) {
	text, err := copies.Marshal(manifest)
	if err != nil {
		return nil, false, err
	}
	text, exact := estate.EscapeParameters(text), true
	if values != nil {
		text, exact = values.replaceIn(text)
	}
	converted := map[string]any{}
	if err := json.Unmarshal([]byte(text), &converted); err != nil {
		return nil, false, err
	}
	return converted, exact, nil
}

// listSelectedLabels returns the labels by which a reference selects objects. Capsule's copies do not have them.
func listSelectedLabels(reference source.Field) []string {
	keys := slices.Collect(maps.Keys(reference.At("selector", "matchLabels").TextMap()))
	for _, e := range reference.At("selector", "matchExpressions").Items() {
		keys = append(keys, e.At("key").Text())
	}
	return keys
}

// removeSetMetadata removes the metadata of a raw item that Capsule and croft set themselves.
func removeSetMetadata(manifest map[string]any) {
	metadata, _ := manifest["metadata"].(map[string]any)
	delete(metadata, "namespace")
	delete(metadata, "creationTimestamp")
	if marks, ok := metadata["labels"].(map[string]any); ok {
		delete(marks, v1alpha1.ManagedByLabel)
	}
}

// addMetadata adds labels and annotations to a manifest. They replace its own.
func addMetadata(manifest, additional map[string]any) {
	metadata, ok := manifest["metadata"].(map[string]any)
	if !ok {
		return // croft check refuses a manifest without metadata
	}
	for _, field := range []string{"labels", "annotations"} {
		more, _ := additional[field].(map[string]any)
		if len(more) == 0 {
			continue
		}
		marks, _ := metadata[field].(map[string]any)
		all := map[string]any{}
		maps.Copy(all, marks)
		maps.Copy(all, more)
		metadata[field] = all
	}
}

// replaceTenantLabel replaces Capsule's label of the tenant's own namespaces by croft's in a NetworkPolicy.
func replaceTenantLabel(manifest map[string]any, capsuleName string) {
	spec, ok := manifest["spec"].(map[string]any)
	if !ok {
		return
	}
	text, err := copies.Marshal(spec)
	if err != nil {
		return
	}
	own := `"` + v1alpha1.TenantLabel + `":"` + estate.TenantParameter + `"`
	for _, value := range []string{estate.TenantParameter, capsuleName} {
		text = strings.ReplaceAll(text, `"`+tenantLabel+`":"`+value+`"`, own)
	}
	replaced := map[string]any{}
	if json.Unmarshal([]byte(text), &replaced) == nil {
		manifest["spec"] = replaced
	}
}

// decodePolicy returns the NetworkPolicy of a tenant's first namespace, and whether it can be read.
func (c copied) decodePolicy(d *draft.Draft, tenant string) (*networkingv1.NetworkPolicy, bool) {
	content, _ := c.content.Value().(map[string]any)
	text, err := copies.Marshal(content)
	if err != nil {
		return nil, false
	}
	exact := true
	if !c.isReference() {
		text, exact = templateValues{getCapsuleName(d, tenant), d.Namespaces(tenant)[0]}.replaceIn(text)
	}
	p := &networkingv1.NetworkPolicy{}
	if !exact || json.Unmarshal([]byte(text), p) != nil {
		return nil, false
	}
	p.Namespace = d.Namespaces(tenant)[0]
	network.SetDefaults(p)
	return p, true
}

// selectsEveryPod reports whether a NetworkPolicy selects all pods, so that croft's own wall replaces it.
func (c copied) selectsEveryPod(d *draft.Draft, tenant string) bool {
	p, ok := c.decodePolicy(d, tenant)
	return ok && len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) == 0
}

// allowsAddresses reports whether a NetworkPolicy allows connections from addresses outside of the cluster.
func (c copied) allowsAddresses() bool {
	return slices.ContainsFunc(c.content.At("spec", "ingress").Items(), func(rule source.Field) bool {
		return slices.ContainsFunc(rule.At("from").Items(), func(peer source.Field) bool { return peer.At("ipBlock").Found() })
	})
}

// readCopiedPolicies adds the NetworkPolicies that Capsule copies into every namespace of tenants.
func readCopiedPolicies(d *draft.Draft, all map[string][]network.Policy) {
	for _, o := range listReplications(d) {
		r, _ := newReplication(d, o)
		if r == nil {
			continue // accountReplication reports the reason
		}
		for _, resource := range o.At("spec", "resources").Items() {
			selector, err := parseSelector(resource.At("namespaceSelector"))
			if err != nil {
				continue
			}
			tenants, _ := r.classifyTenants(d, selector)
			for _, c := range r.listCopied(d, resource) {
				if c.content.At("kind").Text() == "NetworkPolicy" {
					readCopiedPolicy(d, c, tenants, all)
				}
			}
		}
	}
}

// readCopiedPolicy adds one NetworkPolicy of several tenants. One finding describes it for all of them.
func readCopiedPolicy(d *draft.Draft, c copied, tenants []string, all map[string][]network.Policy) {
	for i, name := range tenants {
		spec, ok := c.decodePolicy(d, name)
		if !ok {
			continue
		}
		p := network.NewPolicy(c.content.Object(), c.content.At("spec"))
		p.NetworkPolicy = spec
		if i == 0 {
			network.ReportPolicy(d, name, p)
		}
		all[name] = append(all[name], p)
	}
}
