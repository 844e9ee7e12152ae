package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/attack"
)

const argoCDVersion = "argoproj.io/v1alpha1"

// argoCD are attacks by Argo CD on the tenant's behalf, if it reads Applications in tenants'
// namespaces.
func (s scene) argoCD() []attack.Attack {
	const inCluster = "https://kubernetes.default.svc"
	source := map[string]any{"repoURL": "https://git.example.org/own/app", "path": ".", "targetRevision": "main"}
	destination := map[string]any{"server": inCluster, "namespace": s.other}
	application := map[string]any{"project": "default", "source": source, "destination": destination}
	byPolicy := attack.ByPolicy(ArgoCDPolicy, ApplicationsRule)
	all := []attack.Attack{
		attack.Creating("write-application", "have Argo CD apply manifests to another tenant's namespace", attack.ByRBAC,
			attack.Custom(argoCDVersion, "Application", s.own, "croft-write-application", application)),
		attack.Mistake(attack.Changing("sync-application-when-permitted", "have Argo CD sync an Application that is there", byPolicy,
			attack.Custom(argoCDVersion, "Application", s.own, "croft-sync-application", application).DeepCopy(), func(u *unstructured.Unstructured) {
				u.Object["operation"] = map[string]any{"sync": map[string]any{"revision": "mine"}}
			}), right("argoproj.io", "applications", "get", "update")),
	}
	for _, kind := range []struct {
		name, does string
		spec       map[string]any
		edit       func(*unstructured.Unstructured)
	}{
		{"Application", "apply manifests to another tenant's namespace", application, func(u *unstructured.Unstructured) { set(u, "system", "spec", "project") }},
		{
			"ApplicationSet", "write Applications for another tenant's namespace",
			map[string]any{"generators": []any{}, "template": map[string]any{"metadata": map[string]any{"name": "app"}, "spec": application}},
			func(u *unstructured.Unstructured) { set(u, "system", "spec", "template", "spec", "project") },
		},
		{
			"AppProject", "take any repository and namespace for the tenant's",
			map[string]any{"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": "*"}}},
			func(u *unstructured.Unstructured) { set(u, "mine", "spec", "description") },
		},
	} {
		lower := strings.ToLower(kind.name)
		object := func(name string) *unstructured.Unstructured {
			return attack.Custom(argoCDVersion, kind.name, s.own, "croft-"+name, kind.spec).DeepCopy()
		}
		all = append(all,
			attack.Mistake(attack.Creating("write-"+lower+"-when-permitted", "have Argo CD "+kind.does, byPolicy, object("write-"+lower)), right("argoproj.io", lower+"s", "create")),
			attack.Mistake(attack.Changing("change-"+lower+"-when-permitted", "have Argo CD "+kind.does+", by a change", byPolicy, object("change-"+lower), kind.edit), right("argoproj.io", lower+"s", "get", "update")))
	}
	return attack.Because("Argo CD applies with the rights of the cluster's administrator unless impersonation is on",
		[]string{"https://argo-cd.readthedocs.io/en/stable/operator-manual/app-any-namespace/"}, all...)
}
