package login

import (
	"context"
	"slices"
	"testing"
	"time"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/access/dex"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/test/openidtest"
)

// TestDex fails if a user cannot log in at Dex with the configuration of croft render
// --dex: with any port of the redirect, with a code on another device, and again with the
// refresh token. It runs in `make test` if CROFT_DEX names a Dex binary.
func TestDex(t *testing.T) {
	p := openidtest.StartDex(t, func(issuer string) ([]byte, error) {
		platform := estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{ClusterName: "demo"}}
		return dex.Config(&estate.Estate{Platform: platform}, dex.Options{Issuer: issuer, ClientID: "croft"})
	})
	for name, change := range map[string]func(*Options){
		"Browser":   func(*Options) {},
		"Localhost": func(o *Options) { o.RedirectURL = "http://localhost/" },
		"Device":    func(o *Options) { o.Device = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, p, func(o *Options) {
				o.OpenBrowser = newBrowser(t, p, "jane@example.org")
				o.Scopes, o.Prompt = nil, "" // uses the scopes that Dex supports
				change(o)
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			token, err := s.Login(ctx)
			s.expectJane(t, token, err)
			s.options.OpenBrowser = forbidBrowser(t)
			renewed, err := s.refresh(t.Context())
			s.expectJane(t, renewed, err)
		})
	}
	t.Run("Scopes", func(t *testing.T) {
		scopes, err := newSession(t, p, func(o *Options) { o.Scopes = nil }).Scopes(t.Context())
		if want := append([]string{"openid"}, DefaultScopes()...); err != nil || !slices.Equal(scopes, want) {
			t.Errorf("croft requests %v, want %v: %v", scopes, want, err)
		}
	})
}
