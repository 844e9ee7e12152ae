package supportbundle

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestScrubText plants credentials in texts in the forms that logs and messages contain.
func TestScrubText(t *testing.T) {
	const planted = "pl4nted"
	for name, text := range map[string]string{
		"a token":             "Authorization: Bearer " + planted,
		"a JWT":               "with eyJhbGciOi" + planted + ".eyJpc3MiOi" + planted + ".c2ln" + planted,
		"in a URL":            "GET https://robot:" + planted + "@git.example.org/x",
		"in JSON":             `{"password":"` + planted + `"}`,
		"as a flag":           "--token=" + planted,
		"as an assignment":    "API_KEY: " + planted,
		"a private key":       "-----BEGIN RSA PRIVATE KEY-----\n" + planted + "\n-----END RSA PRIVATE KEY-----",
		"in capital letters":  "SECRET=" + planted + " and more",
		"an access key (AWS)": "AKIA" + "ABCDEFGHIJKLMNOP" + " " + "password=" + planted,
	} {
		if got := scrubText(text); strings.Contains(got, planted) || strings.Contains(got, "AKIAABCDEFGHIJKLMNOP") {
			t.Errorf("%s stays: %s", name, got)
		}
	}
	for _, fine := range []string{"Ready=True", "restored an object tenant=shop kind=RoleBinding", "https://karpenter.sh/docs"} {
		if got := scrubText(fine); got != fine {
			t.Errorf("%q became %q", fine, got)
		}
	}
}

// TestScrub expects possible credentials to be removed from objects.
func TestScrub(t *testing.T) {
	const planted = "pl4nted"
	o := &unstructured.Unstructured{Object: map[string]any{
		"kind":     "EC2NodeClass",
		"metadata": map[string]any{"annotations": map[string]any{"example.org/x": planted, "croft.dev/applied": "abc"}},
		"spec": map[string]any{
			"userData": planted, "env": []any{map[string]any{"name": "A", "value": planted}}, "instanceProfile": "nodes",
		},
	}}
	scrubObject(o)
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); strings.Contains(got, planted) || !strings.Contains(got, "nodes") || !strings.Contains(got, `"croft.dev/applied":"abc"`) {
		t.Error(got)
	}
}

// TestRedact expects names to be replaced everywhere, and all other text to be kept.
func TestRedact(t *testing.T) {
	r := NewRedactor([]byte("k"))
	r.Add(Tenant, "shop", "bank")
	r.Add(Namespace, "shop", "shop-prod", "kube-system")
	r.Add(Group, "team.devs.platform-access", "Admins (prod)")
	r.Add(Host, "*.shop.example.edu", "shop.example.edu")
	is := func(name string) string {
		t.Helper()
		if r.words[name] == "" {
			t.Fatalf("%s has no pseudonym", name)
		}
		return r.words[name]
	}
	www := r.RedactText("www.shop.example.edu")
	for text, want := range map[string]string{
		"tenant shop is Ready":                     "tenant " + is("shop") + " is Ready",
		"shop-prod/web-1 of shop":                  is("shop-prod") + "/web-1 of " + is("shop"),
		"croft-bank-role":                          "croft-" + is("bank") + "-role",
		"workshop, shops":                          "workshop, shops",
		"group team.devs.platform-access":          "group " + is("team.devs.platform-access"),
		"of Admins (prod), too":                    "of " + is("Admins (prod)") + ", too",
		"https://shop.example.edu/x":               "https://" + is("shop.example.edu") + "/x",
		"https://www.shop.example.edu":             "https://" + www,
		"web.shop-prod.svc.cluster.local":          "web." + is("shop-prod") + ".svc.cluster.local",
		"spec.domains: tenant kube-system":         "spec.domains: tenant kube-system",
		"nodepools.karpenter.sh, controller.go:12": "nodepools.karpenter.sh, controller.go:12",
		"t3a.large of requests.cpu":                "t3a.large of requests.cpu",
	} {
		if got := r.RedactText(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if !strings.HasPrefix(is("shop"), "tenant-") || !strings.HasPrefix(www, "host-") {
		t.Errorf("%s, %s", is("shop"), www)
	}
	if other := NewRedactor([]byte("l")); other.makePseudonym(Tenant, "shop") == is("shop") {
		t.Error("the key makes no difference")
	}
	if r.Names()[is("bank")] != "bank" {
		t.Error("a pseudonym cannot be looked up")
	}
	if none := (*Redactor)(nil); none.RedactText("shop") != "shop" {
		t.Error("without a Redactor names are replaced")
	}
}

// BenchmarkText redacts a log line with the names of 5,000 tenants.
func BenchmarkText(b *testing.B) {
	r := NewRedactor([]byte("k"))
	for i := range 5000 {
		r.Add(Tenant, fmt.Sprintf("tenant-%d", i))
		r.Add(Namespace, fmt.Sprintf("tenant-%d-prod", i))
	}
	line := `{"level":"INFO","msg":"restored an object","tenant":"tenant-4711","namespace":"tenant-4711-prod","managers":"helm"}`
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		r.RedactText(line)
	}
}

// TestRedactContactInMessages expects no contact in messages about budgets.
func TestRedactContactInMessages(t *testing.T) {
	r := NewRedactor([]byte("k"))
	r.Learn(&unstructured.Unstructured{Object: map[string]any{"kind": "Tenant", "spec": map[string]any{"pool": "a", "contact": "#pl4nted"}}})
	got := r.RedactText("at least 120 %; contact: #pl4nted. New pods are refused")
	if strings.Contains(got, "pl4nted") || !strings.Contains(got, "contact: contact-") {
		t.Errorf("the contact stays: %s", got)
	}
}

// TestRedactContacts expects no free text of a Tenant, and no contact of a finding, in the bundle.
func TestRedactContacts(t *testing.T) {
	value := map[string]any{
		"tenants": []any{map[string]any{"spec": map[string]any{"pool": "a", "owner": "Pl4nted team", "contact": "#pl4nted", "description": "Of pl4nted"}}},
		"checks":  []any{map[string]any{"message": "fault", "contact": "pl4nted@example.org"}},
		"walls":   []any{map[string]any{"owner": "Platform", "description": "of all"}},
	}
	got := fmt.Sprint(NewRedactor([]byte("k")).RedactValue("", value))
	if strings.Contains(strings.ToLower(got), "pl4nted") || !strings.Contains(got, "Platform") || !strings.Contains(got, "of all") {
		t.Error(got)
	}
}
