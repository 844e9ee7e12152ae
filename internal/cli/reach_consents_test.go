package cli

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// TestReachShowsConsents expects both sides of each agreed connection, and the missing side of one
// to which only one tenant agrees.
func TestReachShowsConsents(t *testing.T) {
	found := buildConsents(t, `
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {}}
tenants:
  shop: {pool: apps, network: {callers: {billing: {ports: [443, 8000-8010], pods: {app: api}, until: 2999-01-31}, jobs: {ports: [80]}}}}
  billing: {pool: apps, network: {calls: {shop: {ports: [443]}}}}
  jobs: {pool: apps}
`)
	var out bytes.Buffer
	a := &app{out: &out}
	a.printAgreements(&found)
	a.printSides(found.listSides("jobs", "shop"))
	a.printSides(found.listSides("shop", "billing"))
	const want = `
connections to which both tenants agreed:
billing to shop: 443/TCP
  network.calls.shop of tenant billing: ports 443
  network.callers.billing of tenant shop: ports 443, 8000-8010; pods app=api; until 2999-02-01T00:00:00Z
  network.calls.shop of tenant jobs: no consent
  network.callers.jobs of tenant shop: ports 80
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
	if n := len(found.listAgreed("billing", "shop")); n != 1 || len(found.listAgreed("shop", "billing")) != 0 {
		t.Errorf("%d connections from billing to shop", n)
	}
}

// TestReachShowsTenantCallers expects each TenantCaller with its namespace, and the reason why one is
// ignored.
func TestReachShowsTenantCallers(t *testing.T) {
	var callers []v1alpha1.TenantCaller
	for name, caller := range map[string]string{"a": "billing", "b": "jobs"} {
		o := v1alpha1.TenantCaller{
			Spec:   v1alpha1.TenantCallerSpec{Tenant: caller, Ports: v1alpha1.ConsentPorts{intstr.FromInt32(443)}, Pods: map[string]v1alpha1.LabelValue{"app": "api"}},
			Status: v1alpha1.TenantCallerStatus{Giver: "1", Receiver: "2"},
		}
		o.Namespace, o.Name = "shop", name
		callers = append(callers, o)
	}
	found := buildConsents(t, `
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {}}
tenants:
  shop: {pool: apps, network: {callersFrom: [billing], callers: {billing: {ports: [80]}}}}
  billing: {pool: apps, network: {calls: {shop: {}}}}
  jobs: {pool: apps, network: {calls: {shop: {}}}}
`, callers...)
	var out bytes.Buffer
	a := &app{out: &out}
	a.printAgreements(&found)
	a.printSides(found.listSides("jobs", "shop"))
	const want = `
connections to which both tenants agreed:
billing to shop: 80/TCP
billing to shop, namespace shop: 443/TCP
  network.calls.shop of tenant billing: every port
  network.callers.billing of tenant shop: ports 80
  TenantCaller shop/a of tenant shop: ports 443; pods app=api
  network.calls.shop of tenant jobs: every port
  TenantCaller shop/b of tenant shop: ignored: spec.tenant: teams of tenant shop may not accept connections from tenant jobs: a platform admin allows it by network.callersFrom
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

// buildConsents returns the consents in the text of a croft.yaml, and in TenantCallers.
func buildConsents(t *testing.T, text string, callers ...v1alpha1.TenantCaller) consents {
	t.Helper()
	d, problems := manifest.Parse("croft.yaml", []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	d.Callers = callers
	if _, problems := estate.Build(d); problems.Err() != nil {
		t.Fatal(problems.Err())
	}
	return findConsents(d)
}
