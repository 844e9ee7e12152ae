package cli

import (
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
)

func (a *app) explainAttack(attacks []attack.Attack, rules []wall.Rule, name string) error {
	i := slices.IndexFunc(attacks, func(at attack.Attack) bool { return at.Name == name })
	if i < 0 {
		return errUnknownAttack(name)
	}
	at := attacks[i]
	printSafely(a.out, "%s\n\n", at.Name)
	line := func(title, text string) {
		if text != "" {
			printSafely(a.out, "  %-12s %s\n", title+":", text)
		}
	}
	line("wall", at.Wall)
	if at.Kind == attack.Mirror {
		line("kind", "mirror: something that a tenant must still be able to do")
	} else {
		line("kind", "attack: something that a tenant must not be able to do")
	}
	line("tries to", at.Summary)
	line("by", describeMeans(at, describeActor(at)))
	line("why", at.Harm)
	line("stopped by", at.StoppedBy.Name)
	for _, r := range rules {
		if r.Policy == at.StoppedBy.Policy && r.Name == at.StoppedBy.Rule {
			line("requires", r.Summary)
			line("exception", r.Exception)
		}
	}
	for n, reference := range at.References {
		title := ""
		if n == 0 {
			title = "known from:"
		}
		printSafely(a.out, "  %-12s %s\n", title, reference)
	}
	return nil
}

// describeActor describes the user that an attack is made as.
func describeActor(at attack.Attack) string {
	switch {
	case at.AsUser != "":
		return at.AsUser
	case len(at.AsGroups) > 0:
		return "a member of " + strings.Join(at.AsGroups, ", ")
	case at.Role == "":
		return "the tenant's " + string(v1alpha1.RoleOperator)
	default:
		return "the tenant's " + string(at.Role)
	}
}

// describeMeans describes how an attack is made.
func describeMeans(at attack.Attack, who string) string {
	switch {
	case at.Request != nil:
		kind := at.Request.Object.GetObjectKind().GroupVersionKind().Kind
		if at.Request.Subresource != "" {
			kind += "/" + at.Request.Subresource
		}
		text := fmt.Sprintf("a dry-run request as %s: %s %s", who, at.Request.Verb, kind)
		if len(at.Setup) > 0 {
			var prepared []string
			for _, o := range at.Setup {
				prepared = append(prepared, o.GetObjectKind().GroupVersionKind().Kind)
			}
			text += ", after the platform has prepared " + strings.Join(prepared, ", ")
		}
		return text
	case at.Sweep != nil:
		verbs := make([]string, len(at.Sweep.Verbs))
		for i, v := range at.Sweep.Verbs {
			verbs[i] = string(v)
		}
		return fmt.Sprintf("a dry-run request as %s for every kind that the cluster serves: %s", who, strings.Join(verbs, ", "))
	case at.Pairs != nil:
		return "an evaluation of the network policies in the cluster, for every pair of namespaces"
	default:
		return fmt.Sprintf("an evaluation of the network policies in the cluster, for a %s connection to port %d", at.Flow.Protocol, at.Flow.Port)
	}
}
