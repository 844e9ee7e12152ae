package verify_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/policy"
)

// TestPolicyFields fails if a field of a Tenant's policy has no rule, no attack or no documentation, or if its value
// in a Tenant or in the Platform's defaults changes nothing that a policy reads.
func TestPolicyFields(t *testing.T) {
	platform := newPlatform("ingress")
	scratch, err := verify.NewScratch(platform)
	if err != nil {
		t.Fatal(err)
	}
	attacks, policies := scratch.Attacks(), renderPolicies(t, platform)
	page, err := os.ReadFile("../../../docs/reference/exceptions.md")
	if err != nil {
		t.Fatal(err)
	}
	restricted, exempt := toFields(t, policy.BuildRestrictedAllowances("a")), toFields(t, policy.BuildExemptAllowances("a"))
	_, plain := buildTenant(t, platform, nil, nil)
	builtin, before := toFields(t, plain.Allowances), renderAnnotations(t, platform, nil, nil)
	var every struct {
		Tenants map[string]struct{ Policy map[string]any }
	}
	data, err := os.ReadFile("../../cli/testdata/every-field.yaml")
	if err == nil {
		err = yaml.Unmarshal(data, &every)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.Allowances]()) {
		if f.Anonymous {
			continue
		}
		field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		rule := policy.FindRule(field)
		if rule == "" && field != "trial" { // trial changes other rules
			t.Errorf("policy.%s: no rule file has a value for croft verify's restricted tenant: write it below tenants", field)
		}
		if !strings.Contains(string(page), "`"+field+"`") {
			t.Errorf("policy.%s: docs/reference/exceptions.md does not have it: run make generate", field)
		}
		if _, ok := every.Tenants["shop"].Policy[field]; !ok {
			t.Errorf("policy.%s: internal/cli/testdata/every-field.yaml does not have it", field)
		}
		value, ok := exempt[field]
		if !ok || reflect.DeepEqual(value, builtin[field]) {
			value = restricted[field]
		}
		own := map[string]any{field: value}
		if field == "priorityClass" { // the default is one of the classes
			own["priorityClasses"] = restricted["priorityClasses"]
		}
		for place, got := range map[string]map[string]string{
			"a Tenant":     renderAnnotations(t, platform, own, nil),
			"the Platform": renderAnnotations(t, platform, nil, own),
		} {
			readers := findReaders(policies, before, got)
			if len(readers) == 0 {
				t.Errorf("policy.%s: %v of %s changes no annotation of a namespace that a policy reads", field, value, place)
			}
			// A mutation may change all pods that the rule would refuse.
			if field != "trial" && !slices.ContainsFunc(attacks, func(a attack.Attack) bool {
				return a.StoppedBy.Rule == rule || a.StoppedBy.Rule == "" && slices.Contains(readers, a.StoppedBy.Policy)
			}) {
				t.Errorf("policy.%s: no attack on the rule %s", field, rule)
			}
		}
	}
}

// findReaders returns the policies that read an annotation whose value differs.
func findReaders(policies, before, after map[string]string) []string {
	var readers []string
	for key, value := range after {
		for name, text := range policies {
			if before[key] != value && strings.Contains(text, strconv.Quote(key)) {
				readers = append(readers, name)
			}
		}
	}
	return readers
}

// toFields returns allowances by the names of their fields.
func toFields(t *testing.T, of v1alpha1.Allowances) map[string]any {
	t.Helper()
	data, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// buildTenant returns a tenant with the given fields of policy, and with defaults of the Platform.
func buildTenant(t *testing.T, platform v1alpha1.Platform, own, defaults map[string]any) (*estate.Estate, *estate.Tenant) {
	t.Helper()
	decode := func(fields map[string]any) v1alpha1.Allowances {
		var all v1alpha1.Allowances
		data, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(data, &all)
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	platform.Spec.TenantDefaults.Policy = decode(defaults)
	e, problems := estate.Build(&manifest.Declaration{
		Platforms: []v1alpha1.Platform{platform},
		Pools:     []v1alpha1.Pool{{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}},
		Tenants: []v1alpha1.Tenant{{
			ObjectMeta: metav1.ObjectMeta{Name: "shop"},
			Spec:       v1alpha1.TenantSpec{Pool: "apps", Policy: v1alpha1.TenantPolicy{Allowances: decode(own)}},
		}},
	})
	if err := problems.Err(); err != nil {
		t.Fatalf("%v, %v: %v", own, defaults, err)
	}
	return e, e.Tenants[0]
}

// renderAnnotations returns the annotations of the tenant's namespace.
func renderAnnotations(t *testing.T, platform v1alpha1.Platform, own, defaults map[string]any) map[string]string {
	t.Helper()
	e, tenant := buildTenant(t, platform, own, defaults)
	for _, o := range wall.TenantObjects(&e.Platform, tenant) {
		if o, ok := o.(*corev1.Namespace); ok {
			return o.Annotations
		}
	}
	t.Fatal("the tenant has no namespace")
	return nil
}

// renderPolicies returns the texts of all policies, by their names.
func renderPolicies(t *testing.T, platform v1alpha1.Platform) map[string]string {
	t.Helper()
	e, _ := buildTenant(t, platform, nil, nil)
	texts := map[string]string{}
	for _, o := range wall.PlatformObjects(&e.Platform) {
		switch p := o.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			texts[p.Name] += p.Spec.String()
		case *admissionv1.MutatingAdmissionPolicy:
			texts[p.Name] += p.Spec.String()
		}
	}
	return texts
}
