package verify_test

import (
	"context"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall/identity"
)

// right is a verb on a kind.
type right struct{ group, resource, verb string }

// String returns the right as a sweep names it.
func (r right) String() string {
	name, subresource, _ := strings.Cut(r.resource, "/")
	if r.group != "" {
		name += "." + r.group
	}
	if subresource != "" {
		name += "/" + subresource
	}
	return r.verb + " " + name
}

// listServedRights returns all rights to the kinds that the cluster serves.
func (l *lab) listServedRights(namespaced bool) []right {
	client, err := discovery.NewDiscoveryClientForConfig(l.scenes[0].config)
	if err != nil {
		l.t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		l.t.Fatal(err)
	}
	var all []right
	for _, list := range lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			group = ""
		}
		for _, r := range list.APIResources {
			for _, verb := range r.Verbs {
				if right := (right{group, r.Name, verb}); r.Namespaced == namespaced && !slices.Contains(all, right) {
					all = append(all, right)
				}
			}
		}
	}
	return all
}

func hasRight(rules []rbacv1.PolicyRule, r right) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, r.group) && slices.Contains(rule.Resources, r.resource) && slices.Contains(rule.Verbs, r.verb)
	})
}

// formatClass groups rights: one mutant gives the right to read, or to write, one kind.
func formatClass(r right) string {
	if slices.Contains([]string{"get", "list", "watch"}, r.verb) {
		return "reading " + strings.TrimPrefix(r.String(), r.verb+" ")
	}
	return "writing " + strings.TrimPrefix(r.String(), r.verb+" ")
}

// findRightsMutants adds all rights that a role lacks, and then removes all that it has. The
// requests of a sweep are independent of one another, so all of these mutants exist at once,
// and each must be among the breaches of the sweep.
func (l *lab) findRightsMutants() []finding {
	var all []finding
	s := l.scenes[0]
	namespaced, clusterWide := l.listServedRights(true), l.listServedRights(false)
	for _, role := range []struct {
		v1alpha1.Role
		exceeds, uses string
	}{{v1alpha1.RoleOperator, "exceed-own-rights", "use-own-rights"}, {v1alpha1.RoleViewer, "viewer-exceeds-rights", "viewer-uses-own-rights"}} {
		name := identity.ClusterRoleName(role.Role)
		clusterRole := s.findObject(l.t, "ClusterRole", name).(*rbacv1.ClusterRole)
		given, withheld := splitRights(namespaced, clusterRole.Rules)
		all = append(all, l.runSweptMutation("ClusterRole "+name+" gives ", "a right that it withholds", withheld, []string{role.exceeds}, buildEdit(clusterRole, func(live client.Object) {
			live.(*rbacv1.ClusterRole).Rules = append(live.(*rbacv1.ClusterRole).Rules, makeRules(withheld)...)
		}))...)
		all = append(all, l.runSweptMutation("ClusterRole "+name+" withholds ", "a right that it gives", given, []string{role.uses}, buildEdit(clusterRole, func(live client.Object) {
			live.(*rbacv1.ClusterRole).Rules = nil
		}))...)
	}
	_, withheld := splitRights(clusterWide, []rbacv1.PolicyRule{{
		APIGroups: []string{"authorization.k8s.io", "authentication.k8s.io"}, Verbs: []string{"create"},
		Resources: []string{"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"},
	}})
	for _, r := range namespaced {
		if r.verb == "list" {
			withheld = append(withheld, r)
		}
	}
	all = append(all, l.findPlatformMutants(s, namespaced, clusterWide)...)
	return append(all, l.runSweptMutation("somebody gives for the whole cluster ", "a right that no role gives", withheld,
		[]string{"read-anything-cluster-wide", "write-anything-cluster-wide"}, l.giveRights(s, makeRules(withheld)...))...)
}

// findPlatformMutants removes rights from the roles of the platform's admins and auditors, and
// then the roles.
func (l *lab) findPlatformMutants(s *proving, namespaced, clusterWide []right) []finding {
	all := clusterWide
	for _, r := range namespaced {
		if r.verb == "list" || r.verb == "watch" { // these verbs apply to all namespaces
			all = append(all, r)
		}
	}
	var findings []finding
	for role, attack := range map[string]string{identity.AdminRole: "use-rights-of-admin", identity.AuditorRole: "use-rights-of-auditor"} {
		clusterRole := s.findObject(l.t, "ClusterRole", role).(*rbacv1.ClusterRole)
		given, _ := splitRights(all, clusterRole.Rules)
		findings = append(findings, l.runSweptMutation("ClusterRole "+role+" withholds ", "a right that it gives", given, []string{attack}, buildEdit(clusterRole, func(live client.Object) {
			live.(*rbacv1.ClusterRole).Rules = nil
		}))...)
		binding := s.findObject(l.t, "ClusterRoleBinding", role)
		findings = append(findings, l.runSweptMutation("ClusterRoleBinding "+role+" deleted: no ", "a right that it gives", given, []string{attack}, buildDeletion(binding))...)
	}
	return findings
}

func splitRights(rights []right, rules []rbacv1.PolicyRule) (given, withheld []right) {
	for _, r := range rights {
		if hasRight(rules, r) {
			given = append(given, r)
		} else {
			withheld = append(withheld, r)
		}
	}
	return given, withheld
}

func makeRules(rights []right) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range rights {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}})
	}
	return rules
}

// giveRights gives rights in the whole cluster to the tenant's operators.
func (l *lab) giveRights(s *proving, rules ...rbacv1.PolicyRule) mutation {
	meta := metav1.ObjectMeta{Name: "croft-mutant"}
	var group string
	for _, access := range s.by.Access {
		if access.Role == v1alpha1.RoleOperator {
			group = access.Group
		}
	}
	return buildAddition(
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		})
}

// runSweptMutation applies a mutation that affects many rights, and searches the breaches of the
// sweeps for each right.
func (l *lab) runSweptMutation(prefix, group string, rights []right, sweeps []string, mutate mutation) []finding {
	ctx := l.t.Context()
	undo, err := l.applyMutation(ctx, mutate)
	if err != nil {
		return []finding{{mutant: prefix + "everything", err: err}}
	}
	noticed := map[string]string{}
	missing := func() []right {
		return slices.DeleteFunc(slices.Clone(rights), func(r right) bool { return noticed[r.String()] != "" })
	}
	// Most rights take effect at once, so sweeps are repeated only for a part of patience if a
	// mutant is not detected.
	_ = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience/3, true, func(ctx context.Context) (bool, error) {
		s := l.scenes[0]
		for _, name := range sweeps {
			for _, breach := range l.runners[s].Try(ctx, s.findAttack(l.t, name)).Breaches {
				noticed[breach] = name
			}
		}
		return len(missing()) == 0, nil
	})
	err = undo(ctx)
	var all []finding
	byClass := map[string]int{}
	for _, r := range rights {
		i, ok := byClass[formatClass(r)]
		if !ok {
			i = len(all)
			byClass[formatClass(r)] = i
			all = append(all, finding{mutant: prefix + formatClass(r), noticedBy: noticed[r.String()], group: prefix + group, err: err})
		}
		// Each verb must be detected, not only one of a class.
		if noticed[r.String()] == "" {
			all[i].noticedBy = ""
		}
	}
	return all
}

// buildPowerMutants returns mutants that give rights which no sweep requests.
func (l *lab) buildPowerMutants() []mutant {
	var all []mutant
	s := l.scenes[0]
	for _, r := range []right{
		{"", "users", "impersonate"}, {"", "groups", "impersonate"}, {"", "serviceaccounts", "impersonate"},
		{"authentication.k8s.io", "users", "impersonate:user-info"},
		{rbacv1.GroupName, "clusterroles", "bind"}, {rbacv1.GroupName, "clusterroles", "escalate"},
		{rbacv1.GroupName, "roles", "bind"}, {rbacv1.GroupName, "roles", "escalate"},
		{"certificates.k8s.io", "signers", "approve"}, {"certificates.k8s.io", "signers", "sign"},
	} {
		all = append(all, mutant{
			name: "the whole cluster: gives " + r.String(), object: "powers", scenes: []*proving{s},
			suspects: func(a attack.Attack) bool { return a.Wall == "identity" && a.Request != nil && a.Outcome != nil },
			mutate:   l.giveRights(s, makeRules([]right{r})...),
		})
	}
	for _, path := range []string{"/metrics", "/logs", "/debug/pprof/heap"} {
		all = append(all, mutant{
			name: "the whole cluster: gives get " + path, object: "powers", scenes: []*proving{s},
			suspects: func(a attack.Attack) bool { return a.Wall == "identity" && a.Request != nil && a.Outcome != nil },
			mutate:   l.giveRights(s, rbacv1.PolicyRule{NonResourceURLs: []string{path}, Verbs: []string{"get"}}),
		})
	}
	return all
}
