package wall_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/walls/gitops"
	"croft.dev/croft/internal/walls/wall"
)

const withSource = `
platform: {clusterName: demo, nodeClass: {kwok: {}}, network: {platformNamespaces: [ingress]}}
pools: {apps: {}}
tenants: {shop: {pool: apps, namespaces: [shop, shop-dev], policy: {sourceHosts: %s}, sources: {app: {git: %q}}}}
`

// TestSourceHostsAgree fails if `croft check` and the admission policy disagree about the
// host of a source: the API server would refuse a source that check accepts. It needs no
// control plane, so it belongs to the first tier.
func TestSourceHostsAgree(t *testing.T) {
	for _, hosts := range []string{`["*"]`, `[]`, `[git.example.org, "*.example.com", 10.0.0.1, "fd00::1", git.bank.svc]`} {
		base, _ := manifest.Parse("croft.yaml", fmt.Appendf(nil, withSource, hosts, "https://git.shop.svc/a"))
		good, problems := estate.Build(base)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		e, err := evaluator.NewLazy(wall.Objects(good))
		if err != nil {
			t.Fatal(err)
		}
		accepted := 0
		for _, host := range []string{
			"git.example.org", "Git.Example.ORG", "git.example.org:8443", "a.example.com", "example.com", "x.a.example.com", "git.shop.svc:3000", "git.shop-dev.svc.cluster.local",
			"git.ingress.svc", "git.bank.svc", "git.bank.svc.cluster.local", "git", "git.shop", "localhost", "git.local", "a.internal", "metadata.google.internal", "metadata.goog",
			"169.254.169.254", "2852039166", "0xA9FEA9FE", "0251.0376.0251.0376", "127.1", "10.0.0.1", "10.0.0.2", "[fd00::1]", "[fd00::1]:443", "[fd00:ec2::254]",
			"git.example.org.", "g_t.example.org", "-git.example.org", "xn--gt-mja.example.xn--p1ai", "git.example.123", "pod.example.org", "a.pod.example.org",
		} {
			url := "https://" + host + "/a"
			d, wrong := manifest.Parse("croft.yaml", fmt.Appendf(nil, withSource, hosts, url))
			_, more := estate.Build(d)
			checked := len(wrong)+len(more) == 0
			repository := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"interval": "1m", "url": url}}}
			repository.SetGroupVersionKind(gitops.GitRepository)
			repository.SetNamespace("shop")
			repository.SetName("app")
			answer, err := e.Evaluate(t.Context(), newCreateRequest(repository, &user.DefaultInfo{Name: "ann", Groups: []string{user.AllAuthenticated}}))
			if err != nil {
				t.Fatal(err)
			}
			if admitted := len(answer.Denials) == 0; admitted != checked {
				t.Errorf("sourceHosts %s, %s: check calls it good: %t (%v %v); the policy admits it: %t", hosts, url, checked, wrong, more, admitted)
			}
			if checked {
				accepted++
			}
		}
		if accepted < 3 {
			t.Errorf("sourceHosts %s: only %d hosts are good, which proves little", hosts, accepted)
		}
	}
}

// TestSourcesAreAdmitted fails if a croft policy refuses croft's objects for sources. They
// are written by the operator, and by a GitOps tool without special permissions that applies
// the same objects without croft's labels. It belongs to the first tier.
func TestSourcesAreAdmitted(t *testing.T) {
	good := loadEstate(t, "../../cli/testdata/every-field.yaml")
	good.FindTenant("shop").Freeze = nil // a freeze refuses the person's changes
	e, err := evaluator.NewLazy(wall.Objects(good))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, o := range wall.TenantObjects(&good.Platform, good.FindTenant("shop")) {
		u, ok := o.(*unstructured.Unstructured)
		if !ok || !strings.HasSuffix(u.GroupVersionKind().Group, ".fluxcd.io") {
			continue
		}
		tried++
		operator := serviceaccount.UserInfo(v1alpha1.SystemNamespace, v1alpha1.ManagedBy, "")
		person := &user.DefaultInfo{Name: "ann", Groups: []string{user.AllAuthenticated}}
		for _, by := range []user.Info{operator, person} {
			sent := u.DeepCopy()
			if by == user.Info(person) {
				sent.SetLabels(nil)
			}
			answer, err := e.Evaluate(t.Context(), newCreateRequest(sent, by))
			if err != nil {
				t.Fatal(err)
			}
			if len(answer.Denials) > 0 {
				t.Errorf("%s %s by %s: %v", u.GetKind(), u.GetName(), by.GetName(), answer.Denials)
			}
		}
	}
	if tried != 7 {
		t.Errorf("tried %d objects, want three sources, three Kustomizations and a Receiver", tried)
	}
}

func newCreateRequest(o *unstructured.Unstructured, by user.Info) evaluator.Request {
	return evaluator.Request{
		User: by, Verb: "create", Authorized: true, Resource: evaluator.FindResource(o.GroupVersionKind()),
		Namespace: o.GetNamespace(), Name: o.GetName(), Object: o,
	}
}
