package kubernetes

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/wording"
)

// ReadAccess reads the RoleBindings in tenants' namespaces.
func ReadAccess(d *draft.Draft) {
	prefix := FindGroupPrefix(d)
	bound := indexBindings(d)
	for _, o := range d.List(draft.RBACGroup, "RoleBinding") {
		name := d.FindTenant(o.Namespace)
		if name == "" {
			o.Root().MarkOther("is in namespace %s, which belongs to no tenant", o.Namespace)
			continue
		}
		if draft.IsManaged(o) && o.At("metadata", "labels", v1alpha1.SecretLabel).Text() != "" {
			readSecretCopy(d, name, o)
			continue
		}
		readBinding(d, name, o, prefix, bound)
	}
}

// readSecretCopy reads the RoleBinding of a copy of a Secret that croft wrote, back into secrets.
func readSecretCopy(d *draft.Draft, tenant string, o *source.Object) {
	name, from := o.At("metadata", "labels", v1alpha1.SecretLabel).Text(), o.At("metadata", "annotations", v1alpha1.SecretSourceAnnotation).Text()
	if from == name {
		from = "" // the default
	}
	spec := &d.Tenants[tenant].Spec
	if spec.Secrets == nil {
		spec.Secrets = map[string]v1alpha1.SecretCopy{}
	}
	spec.Secrets[name] = v1alpha1.SecretCopy{From: from}
	o.Root().MarkKept(draft.TenantField(tenant, "secrets"))
}

// subjectIn is a subject of RoleBindings in a namespace.
type subjectIn struct{ namespace, kind, name string }

// indexBindings returns croft's roles of all subjects of RoleBindings.
func indexBindings(d *draft.Draft) map[subjectIn][]v1alpha1.Role {
	bound := map[subjectIn][]v1alpha1.Role{}
	for _, o := range d.List(draft.RBACGroup, "RoleBinding") {
		ref := o.At("roleRef")
		role, _ := MatchRole(d, ref.At("kind").Text(), o.Namespace, ref.At("name").Text())
		for _, s := range o.At("subjects").Items() {
			at := subjectIn{o.Namespace, s.At("kind").Text(), s.At("name").Text()}
			bound[at] = append(bound[at], role)
		}
	}
	return bound
}

// listUnbound returns the namespaces of a tenant in which a subject has neither a role nor operator, which
// includes viewer.
func listUnbound(d *draft.Draft, name string, s source.Field, role v1alpha1.Role, bound map[subjectIn][]v1alpha1.Role) []string {
	return slices.DeleteFunc(slices.Clone(d.Namespaces(name)), func(namespace string) bool {
		roles := bound[subjectIn{namespace, s.At("kind").Text(), s.At("name").Text()}]
		return slices.Contains(roles, role) || slices.Contains(roles, v1alpha1.RoleOperator)
	})
}

// ReadSharing sets shareWith to the subjects to which a tenant's rules let it bind roles and that
// have no access.
func ReadSharing(d *draft.Draft) {
	prefix := FindGroupPrefix(d)
	for _, t := range d.Tenants {
		for _, subject := range t.Subjects {
			var s v1alpha1.Sharer
			kind, subjectName, _ := strings.Cut(subject, ":")
			switch kind {
			case "Group":
				s.Group = subjectName
			case "User":
				s.User = subjectName
			case "ServiceAccount":
				s.ServiceAccount = subjectName
			default:
				continue
			}
			exists := slices.ContainsFunc(t.Spec.Access, func(a v1alpha1.Access) bool {
				return s.User != "" && a.User == s.User || s.Group != "" && prefix+a.Group == s.Group
			})
			if !exists {
				t.Spec.Policy.ShareWith = append(t.Spec.Policy.ShareWith, s)
			}
		}
	}
}

// FindGroupPrefix returns the common prefix, up to a colon, of all groups in bindings. The API
// server adds it to the groups of its identity provider.
func FindGroupPrefix(d *draft.Draft) string {
	if d.Options.GroupPrefix != "" {
		return d.Options.GroupPrefix
	}
	if d.Platform.GroupPrefix != "" {
		return d.Platform.GroupPrefix
	}
	prefix, found := "", false
	for _, group := range listBoundGroups(d) {
		before, _, ok := strings.Cut(group, ":")
		switch {
		case !ok, found && before+":" != prefix:
			return ""
		default:
			prefix, found = before+":", true
		}
	}
	d.Platform.GroupPrefix = prefix
	return prefix
}

// listBoundGroups returns the groups of an identity provider in any binding.
func listBoundGroups(d *draft.Draft) []string {
	var all []string
	add := func(subjects []source.Field) {
		for _, s := range subjects {
			if group := s.At("name").Text(); s.At("kind").Text() == "Group" && !strings.HasPrefix(group, "system:") {
				all = append(all, group)
			}
		}
	}
	for _, o := range d.List(draft.RBACGroup, "RoleBinding") {
		add(o.At("subjects").Items())
	}
	for _, o := range d.List(draft.CapsuleGroup, "Tenant") {
		add(o.At("spec", "owners").Items())
		for _, b := range o.At("spec", "additionalRoleBindings").Items() {
			add(b.At("subjects").Items())
		}
	}
	for _, kind := range []string{"GlobalTenantResource", "TenantResource"} {
		for _, o := range d.List(draft.CapsuleGroup, kind) {
			for _, resource := range o.At("spec", "resources").Items() {
				for _, item := range resource.At("rawItems").Items() {
					add(item.At("subjects").Items())
				}
			}
		}
	}
	return all
}

// readBinding converts a RoleBinding into access, if it binds users to a role that is similar to
// one of croft's two, in all namespaces of the tenant. Access to a tenant is access to all of them.
func readBinding(d *draft.Draft, name string, o *source.Object, prefix string, bound map[subjectIn][]v1alpha1.Role) {
	source.AccountMetadata(o, draft.TenantField(name, "access"))
	ref := o.At("roleRef")
	role, reason := MatchRole(d, ref.At("kind").Text(), o.Namespace, ref.At("name").Text())
	stays := false
	for _, s := range o.At("subjects").Items() {
		if s.At("kind").Text() == "ServiceAccount" {
			if !s.HasOutcome() {
				s.MarkOther("the binding of a ServiceAccount stays as it is: croft does not change teams' own bindings")
			}
			continue
		}
		if s.HasOutcome() {
			continue
		}
		if missing := listUnbound(d, name, s, role, bound); role != "" && len(missing) > 0 {
			s.MarkNotKept("has this role in only some namespaces of %s, not in %s, and croft gives access to all namespaces of a tenant: the binding stays as it is; write access: [{%s: %s, role: %s}] into tenants.%s if all are meant",
				name, wording.FormatFirst(missing, 5), strings.ToLower(s.At("kind").Text()), strings.TrimPrefix(s.At("name").Text(), prefix), role, name)
			stays = true
			continue
		}
		AddSubject(d, name, s, prefix, role, reason)
	}
	switch {
	case role == "":
		ref.MarkNotKept("%s", reason)
	case stays:
		ref.MarkNotKept("the binding stays as it is: croft.yaml gives some of its people no access")
	case draft.IsManaged(o):
		ref.MarkKept(draft.TenantField(name, "access"))
	default:
		ref.MarkChanged(draft.TenantField(name, "access"), "%s; croft creates its own binding: delete this one when croft's walls are in place, or its rights stay in force", reason)
	}
}

// AddSubject gives a user or a group access.
func AddSubject(d *draft.Draft, name string, s source.Field, prefix string, role v1alpha1.Role, reason string) {
	subject := s.At("name").Text()
	if role == "" {
		s.MarkNotKept("%s; write access: [{%s: %s, role: viewer}] into %s if they only read, or role: operator if they run workloads",
			reason, strings.ToLower(s.At("kind").Text()), strings.TrimPrefix(subject, prefix), "tenants."+name)
		return
	}
	access := v1alpha1.Access{Role: role}
	switch s.At("kind").Text() {
	case "User":
		access.User = subject
	case "Group":
		access.Group = strings.TrimPrefix(subject, prefix)
		if prefix != "" && strings.HasPrefix(subject, prefix) {
			s.At("name").MarkKeptAs("platform.groupPrefix", "%s is the prefix of all groups", prefix)
		}
	}
	if strings.HasPrefix(subject, "system:") {
		s.MarkNotKept("%s is a group of Kubernetes, and does not identify a team: name a group of your identity provider", subject)
		return
	}
	t := d.Tenants[name]
	if !slices.Contains(t.Spec.Access, access) {
		t.Spec.Access = append(t.Spec.Access, access)
	}
	s.MarkKept(draft.TenantField(name, "access"))
}

// likeViewer and likeOperator are the names of well-known roles that are similar to croft's.
var (
	likeViewer   = []string{"view", "croft-viewer"}
	likeOperator = []string{"edit", "admin", "cluster-admin", "croft-operator"}
)

// MatchRole returns croft's role that is similar to a role, and how they differ.
func MatchRole(d *draft.Draft, kind, namespace, name string) (v1alpha1.Role, string) {
	const (
		viewer   = "becomes viewer, who may read everything but Secrets"
		operator = "becomes operator, who may run workloads, and may not change quotas or croft's objects"
	)
	switch {
	case slices.Contains(likeViewer, name):
		return v1alpha1.RoleViewer, name + " " + viewer
	case slices.Contains(likeOperator, name):
		return v1alpha1.RoleOperator, name + " " + operator
	}
	for _, o := range d.List(draft.RBACGroup, kind) {
		if o.Name != name || kind == "Role" && o.Namespace != namespace {
			continue
		}
		switch reads, runs := classifyRole(o); {
		case runs:
			o.Root().Account(source.Changed, "tenants.*.access", "croft's roles viewer and operator replace it")
			return v1alpha1.RoleOperator, name + " writes workloads, and " + operator
		case reads:
			o.Root().Account(source.Changed, "tenants.*.access", "croft's roles viewer and operator replace it")
			return v1alpha1.RoleViewer, name + " only reads, and " + viewer
		}
		return "", name + " has other rights than croft's roles viewer and operator: the binding stays as it is"
	}
	for _, like := range []string{"viewer", "view", "read", "reader", "readonly"} {
		if strings.HasSuffix(strings.ReplaceAll(strings.ToLower(name), "-only", "only"), "-"+like) {
			return v1alpha1.RoleViewer, name + " (by its name) " + viewer
		}
	}
	return "", "the input lacks " + kind + " " + name + ", so its rights are unknown: add its file"
}

// classifyRole reports whether a role only reads, and whether it writes workloads.
func classifyRole(o *source.Object) (onlyReads, runs bool) {
	rules := o.At("rules").Items()
	onlyReads = len(rules) > 0
	for _, r := range rules {
		writes := slices.ContainsFunc(r.At("verbs").Texts(), func(verb string) bool {
			return !slices.Contains([]string{"get", "list", "watch"}, verb)
		})
		if !writes {
			continue
		}
		onlyReads = false
		for _, resource := range r.At("resources").Texts() {
			runs = runs || slices.Contains([]string{"*", "pods", "deployments", "statefulsets", "jobs"}, resource)
		}
	}
	return onlyReads, runs
}
