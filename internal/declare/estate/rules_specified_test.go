package estate_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// TestContainersFitQuota fails if `croft check` does not warn of a quota that refuses
// containers without requests and limits.
func TestContainersFitQuota(t *testing.T) {
	for _, c := range []struct {
		platform, tenant string
		warnings         []string
	}{
		{``, `quota: {limits.cpu: 8, limits.memory: 16Gi}`, []string{
			`tenants.shop.quota["limits.cpu"]: warning: with this quota every container must set limits.cpu, and there is no default: pods of charts and injected containers without it are refused; set limits.default.cpu, or leave limits.cpu out of the quota`,
			`tenants.shop.quota["limits.memory"]: warning: with this quota every container must set limits.memory`,
		}},
		{``, `quota: {requests.cpu: 4, requests.memory: 8Gi, cpu: 4, memory: 8Gi, pods: 50}`, nil}, // the built-in default requests apply
		{``, `quota: {requests.cpu: 4}, limits: {default: {memory: 1Gi}}`, []string{`quota["requests.cpu"]: warning: with this quota every container must set requests.cpu, and there is no default: pods of charts and injected containers without it are refused; set limits.defaultRequest.cpu`}},
		{``, `quota: {memory: 4Gi}, limits: {max: {cpu: 4}}`, []string{`quota.memory: warning: with this quota every container must set memory`}},
		{``, `quota: {limits.cpu: 8}, limits: {default: {cpu: 1}}`, nil},
		{``, `quota: {limits.cpu: 8}, limits: {max: {cpu: 4}}`, nil}, // the API server uses max as the missing default
		{``, `quota: {limits.cpu: 2}, limits: {default: {cpu: 4}}`, []string{"the quota is 2, and a container without this setting gets 4 by limits.default.cpu: each such container is refused"}},
		{``, `quota: {requests.memory: 1Gi}, limits: {default: {memory: 2Gi}}`, []string{`quota["requests.memory"]: warning: the quota is 1Gi`}},
		{``, `quota: {requests.ephemeral-storage: 1Gi, limits.ephemeral-storage: 2Gi}`, nil}, // the API server does not require these
		{`tenantDefaults: {limits: {default: {cpu: 1}}}`, `quota: {limits.cpu: 8}`, nil},
		{`tenantDefaults: {quota: {limits.cpu: 8}}`, ``, []string{`platform.tenantDefaults.quota["limits.cpu"]: warning: with this quota every container`}},
		{`tenantDefaults: {quota: {limits.cpu: 8}, limits: {default: {cpu: 1}}}`, `limits: {default: {memory: 1Gi}}`, []string{`tenants.shop.limits: warning: with this quota every container`}},
	} {
		text := "platform: {clusterName: demo, nodeClass: {kwok: {}}, " + c.platform + "}\npools: {apps: {}}\ntenants: {shop: {pool: apps, " + c.tenant + "}}\n"
		d, problems := manifest.Parse("croft.yaml", []byte(text))
		e, more := estate.Build(d)
		if len(problems)+len(more) > 0 {
			t.Fatal(problems, more)
		}
		if len(e.Warnings) != len(c.warnings) {
			t.Errorf("%s %s: want %d warnings, got %v", c.platform, c.tenant, len(c.warnings), e.Warnings)
			continue
		}
		for i, want := range c.warnings {
			if got := e.Warnings[i].Error(); !strings.Contains(got, want) {
				t.Errorf("%s %s: %s, want %s", c.platform, c.tenant, got, want)
			}
		}
	}
}
