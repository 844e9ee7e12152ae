package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/rules/attack"
)

const argoCDVersion = "argoproj.io/v1alpha1"

// buildArgoCDAttacks are attacks by Argo CD on the tenant's behalf, if it reads Applications in tenants'
// namespaces.
func (s scene) buildArgoCDAttacks() []attack.Attack {
	const inCluster = "https://kubernetes.default.svc"
	source := map[string]any{"repoURL": "https://git.example.org/own/app", "path": ".", "targetRevision": "main"}
	destination := map[string]any{"server": inCluster, "namespace": s.other}
	application := map[string]any{"project": "default", "source": source, "destination": destination}
	byPolicy := attack.ByPolicy(ArgoCDPolicy, ApplicationsRule)
	all := []attack.Attack{
		attack.NewCreate("write-application", "have Argo CD apply manifests to another tenant's namespace", attack.ByRBAC,
			attack.NewCustomObject(argoCDVersion, "Application", s.own, "croft-write-application", application)),
		attack.GrantToEveryone(attack.NewUpdate("sync-application-when-permitted", "have Argo CD sync an existing Application", byPolicy,
			attack.NewCustomObject(argoCDVersion, "Application", s.own, "croft-sync-application", application).DeepCopy(), func(u *unstructured.Unstructured) {
				u.Object["operation"] = map[string]any{"sync": map[string]any{"revision": "mine"}}
			}), makePolicyRule("argoproj.io", "applications", "get", "update")),
	}
	for _, kind := range []struct {
		name, does string
		spec       map[string]any
		edit       func(*unstructured.Unstructured)
	}{
		{"Application", "apply manifests to another tenant's namespace", application, func(u *unstructured.Unstructured) { setField(u, "system", "spec", "project") }},
		{
			"ApplicationSet", "write Applications for another tenant's namespace",
			map[string]any{"generators": []any{}, "template": map[string]any{"metadata": map[string]any{"name": "app"}, "spec": application}},
			func(u *unstructured.Unstructured) { setField(u, "system", "spec", "template", "spec", "project") },
		},
		{
			"AppProject", "allow the tenant any repository and namespace",
			map[string]any{"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": "*"}}},
			func(u *unstructured.Unstructured) { setField(u, "mine", "spec", "description") },
		},
	} {
		lower := strings.ToLower(kind.name)
		object := func(name string) *unstructured.Unstructured {
			return attack.NewCustomObject(argoCDVersion, kind.name, s.own, "croft-"+name, kind.spec).DeepCopy()
		}
		all = append(all,
			attack.GrantToEveryone(attack.NewCreate("write-"+lower+"-when-permitted", "have Argo CD "+kind.does, byPolicy, object("write-"+lower)), makePolicyRule("argoproj.io", lower+"s", "create")),
			attack.GrantToEveryone(attack.NewUpdate("change-"+lower+"-when-permitted", "have Argo CD "+kind.does+", by a change", byPolicy, object("change-"+lower), kind.edit), makePolicyRule("argoproj.io", lower+"s", "get", "update")))
	}
	return attack.WithReason("Argo CD applies with the rights of the cluster's administrator unless impersonation is on",
		[]string{"https://argo-cd.readthedocs.io/en/stable/operator-manual/app-any-namespace/"}, all...)
}
