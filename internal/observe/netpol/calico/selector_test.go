package calico

import (
	"strings"
	"testing"
)

// TestSelectors evaluates the examples of Calico's reference of selectors, and its statements
// about missing labels.
func TestSelectors(t *testing.T) {
	pod := map[string]string{"role": "frontend", "env": "production", "k8s-app": "kube-dns", "a.b/c-d_e": "x", "in": "1"}
	for selector, want := range map[string]bool{
		"":                                       true,
		"all()":                                  true,
		"role == 'frontend'":                     true,
		`role == "frontend"`:                     true,
		"role=='frontend'":                       true,
		"role == 'backend'":                      false,
		"role != 'backend'":                      true,
		"missing != 'x'":                         true,
		"missing == 'x'":                         false,
		"has(role)":                              true,
		"has( role )":                            true,
		"has(missing)":                           false,
		"!has(missing)":                          true,
		"! has(role)":                            false,
		"role in {'frontend', 'backend'}":        true,
		"role in {}":                             false,
		"role not in {'frontend'}":               false,
		"missing not in {'frontend'}":            true,
		"role contains 'front'":                  true,
		"role starts with 'front'":               true,
		"role startswith 'front'":                true,
		"role ends with 'end'":                   true,
		"role endswith 'front'":                  false,
		"missing contains ''":                    false,
		"role == 'x' || env == 'production'":     true,
		"role == 'x' && env == 'production'":     false,
		"(role == 'x' || has(env)) && has(role)": true,
		"has(role) || has(x) && has(y)":          true,
		"(has(role) || has(x)) && has(y)":        false,
		"a.b/c-d_e == 'x'":                       true,
		"in == '1'":                              true,
		"in in {'1'}":                            true,
		"!(has(role) && has(env))":               false,
		"!!has(role)":                            true,
		"global()":                               true,
	} {
		s, err := Parse(selector)
		if err != nil {
			t.Errorf("%s: %v", selector, err)
		} else if got := s.Matches(pod); got != want {
			t.Errorf("%s: %v, want %v", selector, got, want)
		}
	}
	inNamespace, err := Parse("global()")
	if err != nil || inNamespace.Matches(map[string]string{nameLabel: "shop"}) {
		t.Errorf("global() selects what is in no namespace: %v", err)
	}
	for _, selector := range []string{
		"role", "role =", "role = 'x'", "role == x", "role == 'x", "== 'x'", "'role' == 'x'", "role in 'x'", "role in {'x'", "role in {'x' 'y'}",
		"has()", "has('x')", "has(x", "all(", "none()", "(has(x)", "has(x))", "has(x) &&", "has(x) & has(y)", "role not 'x'", "role starts 'x'",
		"has(x) has(y)", "rôle == 'x'", strings.Repeat("(", 10_000), strings.Repeat("!", 10_000) + "has(x)",
	} {
		if _, err := Parse(selector); err == nil {
			t.Errorf("%.40s: want an error", selector)
		}
	}
}

// FuzzSelector fails on a panic, if negation does not invert a readable selector, or if
// parentheses change it.
func FuzzSelector(f *testing.F) {
	for _, seed := range []string{"", "all()", "has(a) && !(b in {'c', \"d\"} || e not in {})", "a starts with 'b' || a endswith 'c'", "a!='b'", "((("} {
		f.Add(seed)
	}
	samples := []map[string]string{nil, {"a": "b"}, {"a": "bc", "b": "c", "e": ""}}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil || strings.TrimLeft(text, " \t") == "" {
			return
		}
		wrapped, err := Parse("!(" + text + ")")
		if err != nil {
			if strings.Contains(err.Error(), "nested") {
				return
			}
			t.Fatalf("%q can be read, but not its negation: %v", text, err)
		}
		for _, labels := range append(samples, s.Samples()...) {
			if s.Matches(labels) == wrapped.Matches(labels) {
				t.Errorf("%q and its negation agree about %v", text, labels)
			}
		}
	})
}
