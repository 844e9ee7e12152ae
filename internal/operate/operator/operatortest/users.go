package operatortest

import (
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
)

// Impersonate returns a client of a user.
func (f *Fixture) Impersonate(name string, groups ...string) client.Client {
	f.Helper()
	config := rest.CopyConfig(f.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}
	return f.NewClient(config)
}

// NewClient returns a client without a rate limit.
func (f *Fixture) NewClient(config *rest.Config) client.Client {
	f.Helper()
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// AssertRefused fails the test unless err contains why.
func (f *Fixture) AssertRefused(attempt string, err error, why string) {
	f.Helper()
	if err == nil || !strings.Contains(err.Error(), why) {
		f.Errorf("%s: want a refusal with %q, got %v", attempt, why, err)
	}
}
