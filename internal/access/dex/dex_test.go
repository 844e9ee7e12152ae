package dex

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// TestConfig runs in `make test`. It expects that no name of an estate ends a comment or a
// string, and that only groups that can come from Dex are named, without the prefix.
func TestConfig(t *testing.T) {
	e := &estate.Estate{Platform: estate.Platform{
		PlatformSpec: v1alpha1.PlatformSpec{ClusterName: `de"mo: #`, GroupPrefix: "oidc:"},
		Groups:       []string{"break-glass", "oidc:a\nissuer: https://evil.example", "oidc:devs"},
	}}
	content, err := Config(e, Options{Issuer: "https://dex.example.org/", ClientID: "x # y"})
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Issuer        string `json:"issuer"`
		StaticClients []struct {
			ID, Name     string
			Public       bool
			RedirectURIs []string
		} `json:"staticClients"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	if config.Issuer != "https://dex.example.org/" || len(config.StaticClients) != 1 {
		t.Fatalf("the configuration is\n%s", content)
	}
	if c := config.StaticClients[0]; c.ID != "x # y" || c.Name != `croft on de"mo: #` || !c.Public || c.RedirectURIs != nil {
		t.Errorf("the client is %+v", c)
	}
	lines := strings.Split(string(content), "\n")
	for _, want := range []string{`#   "a\nissuer: https://evil.example"`, `#   "devs"`, `#       redirectURI: "https://dex.example.org/callback"`} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %s in\n%s", want, content)
		}
	}
	if strings.Contains(string(content), "break-glass") {
		t.Errorf("a group without the prefix is named:\n%s", content)
	}
}
