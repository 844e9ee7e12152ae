package provider

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"croft.dev/croft/internal/dashboard/session"
)

// Tokens are the tokens of a user.
type Tokens struct {
	// ID is the ID token, which is the user's bearer token at the cluster.
	ID string
	// Refresh renews ID; empty if the provider issued no refresh token.
	Refresh string
	// Subject is the user's identifier at the provider.
	Subject string
	// Expiry is the time until which ID is valid.
	Expiry time.Time
}

// BuildLoginURL returns the URL at the provider where the browser of an attempt logs in.
func (p *Provider) BuildLoginURL(ctx context.Context, a session.Attempt) (string, error) {
	m, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	parameters := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if !slices.Contains(m.Scopes, oidc.ScopeOfflineAccess) {
		// Google has no scope offline_access, but this parameter.
		parameters = append(parameters, oauth2.AccessTypeOffline)
	}
	if p.options.Prompt != "" {
		parameters = append(parameters, oauth2.SetAuthURLParam("prompt", p.options.Prompt))
	}
	return m.oauth.AuthCodeURL(a.State, parameters...), nil
}

// FinishLogin exchanges the code in the provider's response for tokens. It returns ErrForeign if the
// response does not belong to the attempt.
func (p *Provider) FinishLogin(ctx context.Context, a session.Attempt, response url.Values) (*Tokens, error) {
	if a.State == "" || subtle.ConstantTimeCompare([]byte(response.Get("state")), []byte(a.State)) != 1 {
		return nil, fmt.Errorf("%w: the state differs", ErrForeign)
	}
	m, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	// RFC 9207: a response of another provider must not lead its code here.
	if issuer := response.Get("iss"); issuer != p.options.Issuer && (m.SendsIssuer || response.Has("iss")) {
		return nil, fmt.Errorf("%w: the response is from issuer %q", ErrForeign, issuer)
	}
	code := response.Get("code")
	if code == "" {
		return nil, &RefusedError{Code: cmp.Or(response.Get("error"), "no code"), Description: response.Get("error_description")}
	}
	token, err := m.oauth.Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return nil, p.explainError(err)
	}
	tokens, id, err := p.verify(ctx, m, token)
	if err != nil {
		return nil, err
	}
	if id.Nonce != a.Nonce {
		return nil, fmt.Errorf("%w: the nonce of the ID token differs", ErrForeign)
	}
	return tokens, nil
}

// Renew returns new tokens for a refresh token. It returns ErrEnded if the provider no longer accepts
// the refresh token.
func (p *Provider) Renew(ctx context.Context, refresh, subject string) (*Tokens, error) {
	m, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	token, err := m.oauth.TokenSource(oidc.ClientContext(ctx, p.client), &oauth2.Token{RefreshToken: refresh}).Token()
	if response := (*oauth2.RetrieveError)(nil); errors.As(err, &response) && response.ErrorCode == "invalid_grant" {
		return nil, fmt.Errorf("%w: %w", ErrEnded, p.explainError(err))
	}
	if err != nil {
		return nil, p.explainError(err)
	}
	tokens, _, err := p.verify(ctx, m, token)
	if err != nil {
		return nil, err
	}
	if tokens.Subject != subject {
		return nil, fmt.Errorf("%w: the identity provider returned a token of another user", ErrEnded)
	}
	tokens.Refresh = cmp.Or(tokens.Refresh, refresh)
	return tokens, nil
}

// verify verifies the ID token of a response: its signature, issuer, audience and expiry.
func (p *Provider) verify(ctx context.Context, m *metadata, response *oauth2.Token) (*Tokens, *oidc.IDToken, error) {
	raw, _ := response.Extra("id_token").(string)
	if raw == "" {
		return nil, nil, errors.New("the identity provider returned no ID token: check that the client may request the scope openid")
	}
	id, err := m.Verifier(&oidc.Config{ClientID: p.options.ClientID}).Verify(oidc.ClientContext(ctx, p.client), raw)
	if err != nil {
		return nil, nil, p.explainError(err)
	}
	var claims struct {
		AuthorizedParty string `json:"azp"`
	}
	if err := id.Claims(&claims); err != nil {
		return nil, nil, p.explainError(err)
	}
	if party := claims.AuthorizedParty; party != "" && party != p.options.ClientID {
		return nil, nil, fmt.Errorf("the identity provider issued the ID token to the client %q", party)
	}
	return &Tokens{ID: raw, Refresh: response.RefreshToken, Subject: id.Subject, Expiry: id.Expiry.UTC()}, id, nil
}

// BuildLogoutURL returns the URL at which a browser ends its session at the provider; empty if the
// provider announces none. It does not contain the ID token as a hint: URLs are logged, and this
// token is a bearer token of the cluster.
func (p *Provider) BuildLogoutURL(ctx context.Context) (string, error) {
	m, err := p.discover(ctx)
	if err != nil || m.EndSession == "" {
		return "", err
	}
	u, err := url.Parse(m.EndSession)
	if err != nil {
		return "", err
	}
	query := u.Query()
	query.Set("client_id", p.options.ClientID)
	query.Set("post_logout_redirect_uri", p.options.PublicURL+"/login")
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// Revoke revokes a refresh token (RFC 7009), so that a copy of the session cannot be renewed. It does
// nothing if the provider does not support this.
func (p *Provider) Revoke(ctx context.Context, refresh string) error {
	m, err := p.discover(ctx)
	if err != nil || m.Revocation == "" {
		return err
	}
	form := url.Values{"token": {refresh}, "token_type_hint": {"refresh_token"}}
	basic := m.oauth.Endpoint.AuthStyle == oauth2.AuthStyleInHeader
	if !basic {
		form.Set("client_id", p.options.ClientID)
		if p.options.ClientSecret != "" {
			form.Set("client_secret", p.options.ClientSecret)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if basic {
		request.SetBasicAuth(url.QueryEscape(p.options.ClientID), url.QueryEscape(p.options.ClientSecret))
	}
	response, err := p.client.Do(request)
	if err != nil {
		return p.explainError(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the identity provider did not revoke the refresh token: %s", response.Status)
	}
	return nil
}
