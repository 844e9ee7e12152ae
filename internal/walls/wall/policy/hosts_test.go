package policy

import (
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// TestMatchURLHost evaluates the policies' expression on URLs with the API server's libraries.
// It fails if a host is misclassified as outside of the cluster or as the tenant's own.
func TestMatchURLHost(t *testing.T) {
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
	if err != nil {
		t.Fatal(err)
	}
	env, err := base.Extend(cel.Variable("url", cel.StringType), cel.Variable("params", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(matchURLHost("url", matchSafeHost("h")))
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]any{"spec": map[string]any{"namespaces": []any{"shop"}, "platformNamespaces": []any{"ingress"}}}
	for url, want := range map[string]bool{
		"https://github.com/example/app":                  true,
		"ssh://git@git.example.org:22/example/app":        true,
		"oci://ghcr.io/example/charts":                    true,
		"https://Git-1.internal.example.co.uk:8443/a.git": true,
		"https://xn--bcher-kva.example/":                  true,
		"https://example.xn--p1ai/":                       true,
		"http://web.shop.svc/":                            true,
		"http://web.shop.svc.cluster.local:8080/":         true,
		"http://auth.ingress.svc/":                        true,
		"http://web.bank.svc/":                            false,
		"http://web.bank.svc.cluster.local/":              false,
		"http://web.bank.svc.corp.example.org/":           false,
		"http://10-0-0-1.bank.pod.cluster.local/":         false,
		"http://web.bank-2/":                              false,
		"http://web/":                                     false,
		"http://localhost/":                               false,
		"http://metadata.google.internal/":                false,
		"http://METADATA.google.INTERNAL/":                false,
		"http://metadata.google.internal./":               false,
		"http://metadata.goog/":                           false,
		"http://ip-10-0-0-1.eu-west-1.compute.internal/":  false,
		"http://169.254.169.254/":                         false,
		"http://203.0.113.7/":                             false,
		"http://[::ffff:169.254.169.254]/":                false,
		"http://[fd00:ec2::254]/":                         false,
		"http://[fe80::1%25eth0]/":                        false,
		"http://2852039166/":                              false,
		"http://0xa9fea9fe/":                              false,
		"http://0xa9.0xfe.0xa9.0xfe/":                     false,
		"http://0251.0376.0251.0376/":                     false,
		"http://127.1/":                                   false,
		"http://169.254.169.254#.shop.svc/":               false,
		"http://169.254.169.254#@github.com/":             false,
		"http://github.com@169.254.169.254/":              false,
		"http://github.com\\@169.254.169.254/":            false,
		"http://github.com%2f.web.bank.svc/":              false,
		"http://github.com\t/":                            false,
		"http://git hub.com/":                             false,
		"http://$host/":                                   false,
		"http:///path":                                    false,
		"github.com/example":                              false,
		"//github.com/example":                            false,
		"":                                                false,
	} {
		got, _, err := program.Eval(map[string]any{"url": url, "params": params})
		if err != nil {
			t.Errorf("%q: %v", url, err)
		} else if got.Value() != want {
			t.Errorf("%q is outside or the tenant's: %v, want %v", url, got.Value(), want)
		}
	}
}
