package rulefile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
)

func TestBuildSettings(t *testing.T) {
	const valid = "tenants: {only: {serviceTypes: NodePort}, restricted: {serviceTypes: [], priorityClass: {default: $(own)}}}\n"
	for name, c := range map[string]struct{ first, second, err string }{
		"settings":            {valid, "tenants: {restricted: {registries: [a]}, exempt: {registries: [b]}}\n", ""},
		"a setting in two":    {valid, "tenants: {restricted: {serviceTypes: [NodePort]}}\n", "croft-services/type.yaml: tenants: croft-claims/type.yaml sets serviceTypes, too: keep one of them"},
		"an unknown setting":  {valid, "tenants: {restricted: {serviceType: []}}\n", `tenants: unknown field "serviceType"`},
		"an unknown tenant":   {valid, "tenants: {others: {}}\n", `unknown field "tenants.others"`},
		"values of no tenant": {"", "", ""},
	} {
		files := makeFiles(policyText, c.second+ruleText)
		files["croft-claims/policy.yaml"] = files["croft-services/policy.yaml"]
		files["croft-claims/type.yaml"] = makeFiles(policyText, c.first+ruleText)["croft-services/type.yaml"]
		policies, err := ReadPolicies(files, functions)
		var got v1alpha1.Allowances
		if err == nil {
			choose := func(t Tenants) map[string]any { return t.Restricted }
			err = BuildSettings(policies, choose, Scene{Words: map[string]string{"own": "shop"}}, &got)
		}
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: the error is %v, want %s", name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var want v1alpha1.Allowances
		if c.first != "" {
			want.ServiceTypes, want.Registries = []corev1.ServiceType{}, []string{"a"}
			want.PriorityClass = &v1alpha1.PodPriorityClass{Default: "shop"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		rule, tenants := FindTenants(policies, "serviceTypes")
		if (rule == "type") != (c.first != "") {
			t.Errorf("%s: the rule of serviceTypes is %q", name, rule)
		}
		for _, types := range [][]any{{"NodePort"}, {"ClusterIP"}} {
			affects, err := tenants.HaveEffect(map[string]any{"serviceTypes": types})
			if want := c.first == "" || types[0] == "NodePort"; err != nil || affects != want {
				t.Errorf("%s: the settings have an effect on a tenant with %v: %t, want %t: %v", name, types, affects, want, err)
			}
		}
	}
}

func TestListPodFields(t *testing.T) {
	const settings = `exception: policy.seccomp
trial: true
sets: {name: seccomp, path: spec.a, from: [seccomp], values: {Any: {type: a}}, skip: 'object.os == {{quote .}}'}
`
	policies, err := ReadPolicies(makeFiles(policyText, settings+ruleText), functions)
	if err != nil {
		t.Fatal(err)
	}
	got, err := policies["croft-services"].ListPodFields("windows")
	if err != nil {
		t.Fatal(err)
	}
	want := []PodField{{
		Name: "seccomp", Path: "spec.a", From: []string{"seccomp"}, Values: map[string]any{"Any": map[string]any{"type": "a"}},
		Skip: `object.os == ["windows"]`, Trial: "seccomp",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"seccomp"}, ListTrials(policies)); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
}
