package e2e

import (
	"context"
	"net/http"
	"testing"

	"golang.org/x/oauth2"

	"croft.dev/croft/internal/test/openidtest"
)

// openID is an identity provider.
type openID struct {
	*openidtest.Provider
	issuer string
	// authority is the CA of the provider's certificate, in PEM.
	authority string
}

// startOpenID starts an identity provider. It skips the test if Node.js is missing.
func startOpenID(t testing.TB, env ...string) *openID {
	t.Helper()
	p := openidtest.Start(t, env...)
	return &openID{Provider: p, issuer: p.Issuer, authority: p.Authority}
}

// newCertificate writes a self-signed certificate for 127.0.0.1 and its key.
func newCertificate(t testing.TB) (certificate, key string) {
	t.Helper()
	return openidtest.WriteCertificate(t)
}

// getIDToken returns the ID token of a user who logs in to a client: the client redirects the user
// to the provider, the user fills in its forms and returns with a code that only this client
// can use, since only it has the verifier (PKCE).
func (o *openID) getIDToken(t testing.TB, client, account string) string {
	t.Helper()
	config := oauth2.Config{
		ClientID:    client,
		Endpoint:    oauth2.Endpoint{AuthURL: o.issuer + "/auth", TokenURL: o.issuer + "/token", AuthStyle: oauth2.AuthStyleInParams},
		RedirectURL: "http://127.0.0.1:1/callback", // nothing listens here: the redirect's address contains the code
		Scopes:      []string{"openid", "profile", "groups"},
	}
	verifier, state := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	back := o.Visit(t, config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)), account)
	if back == nil || back.Query().Get("state") != state || !back.Query().Has("code") {
		t.Fatalf("the provider sends back to %v, which has no code for us", back)
	}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: o.Transport, Timeout: moments})
	token, err := config.Exchange(ctx, back.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	id, ok := token.Extra("id_token").(string)
	if !ok {
		t.Fatal("the provider gave no ID token")
	}
	return id
}
