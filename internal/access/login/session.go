package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// expiryMargin is the minimum remaining lifetime of a token that is returned, to allow
	// for the duration of a request and for clock skew.
	expiryMargin = time.Minute
	// maxClockSkew is how far this machine's clock may be behind the provider's, as in the
	// API server.
	maxClockSkew = 5 * time.Minute
	// loginTimeout is the time limit for a user to log in.
	loginTimeout = 10 * time.Minute
)

// DefaultScopes returns the scopes that are requested by default, if the provider supports them.
func DefaultScopes() []string { return []string{"profile", "email", "groups", oidc.ScopeOfflineAccess} }

// Token is an ID token and its claims.
type Token struct {
	// Raw is the encoded token. It is printed only in an ExecCredential.
	Raw    string
	Expiry time.Time
	// User and Groups are the provider's names, without the prefixes that the API server
	// adds.
	User   string
	Groups []string
	// Renewable is true if the provider issued a refresh token.
	Renewable bool
}

// Session is the login of one client at one provider.
type Session struct {
	options  Options
	redirect *url.URL
	client   *http.Client
	store    *store
	// now returns the current time; tests replace it.
	now func() time.Time
}

// New validates the options; an invalid option is a BadInputError. It does not contact the
// provider.
func New(o Options) (*Session, error) {
	redirect, client, err := o.validate()
	if err != nil {
		return nil, err
	}
	o.GroupsClaim = cmp.Or(o.GroupsClaim, "groups")
	if o.Sanitize == nil {
		o.Sanitize = func(text string) string { return fmt.Sprintf("%q", text) }
	}
	return &Session{options: o, redirect: redirect, client: client, store: newStore(&o, o.Scopes), now: time.Now}, nil
}

// Login runs a new login, even if a valid token is stored.
func (s *Session) Login(ctx context.Context) (*Token, error) {
	unlock, err := s.store.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return s.login(ctx)
}

// Token returns the stored ID token, or renews it with the refresh token. If neither works,
// it runs a login if interactive is true, and otherwise returns ErrLoginNeeded. A lock
// ensures that only one process at a time contacts the provider.
func (s *Session) Token(ctx context.Context, interactive bool) (*Token, error) {
	if token, err := s.loadCurrentToken(); token != nil || err != nil {
		return token, err
	}
	unlock, err := s.store.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another process may have renewed the token in the meantime.
	if token, err := s.loadCurrentToken(); token != nil || err != nil {
		return token, err
	}
	token, err := s.refresh(ctx)
	if ended := (*providerError)(nil); errors.As(err, &ended) && ended.code == "invalid_grant" || errors.Is(err, ErrLoginNeeded) {
		if interactive {
			return s.login(ctx)
		}
	}
	return token, err
}

// Forget deletes the stored login.
func (s *Session) Forget(ctx context.Context) error {
	unlock, err := s.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.store.delete()
}

// loadCurrentToken returns the stored ID token; nil if there is none or if it expires soon.
func (s *Session) loadCurrentToken() (*Token, error) {
	k, err := s.store.load()
	if err != nil || k.Expiry.Sub(s.now()) < expiryMargin {
		return nil, err
	}
	return k.toToken(), nil
}

func (k *storedLogin) toToken() *Token {
	return &Token{Raw: k.IDToken, Expiry: k.Expiry, User: k.User, Groups: k.Groups, Renewable: k.InKeyring || k.RefreshToken != ""}
}

// discoveredProvider is the provider's discovery document.
type discoveredProvider struct {
	*oidc.Provider
	oauth oauth2.Config
	// offline is true if the scope offline_access is requested.
	offline bool
}

// discover fetches the provider's discovery document.
func (s *Session) discover(ctx context.Context) (*discoveredProvider, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.options.Issuer)
	if err != nil {
		return nil, s.explainError(err)
	}
	var metadata struct {
		Scopes []string `json:"scopes_supported"`
	}
	if err := provider.Claims(&metadata); err != nil {
		return nil, s.explainError(err)
	}
	scopes := s.options.Scopes
	if len(scopes) == 0 {
		scopes = slices.DeleteFunc(DefaultScopes(), func(scope string) bool { return !slices.Contains(metadata.Scopes, scope) })
	}
	endpoint := provider.Endpoint()
	if s.options.ClientSecret == "" {
		// Without a secret there is no authentication style to detect.
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &discoveredProvider{
		Provider: provider,
		oauth: oauth2.Config{
			ClientID: s.options.ClientID, ClientSecret: s.options.ClientSecret, Endpoint: endpoint,
			Scopes: append([]string{oidc.ScopeOpenID}, slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool { return scope == oidc.ScopeOpenID })...),
		},
		offline: slices.Contains(scopes, oidc.ScopeOfflineAccess),
	}, nil
}

// Scopes returns the scopes that a login requests.
func (s *Session) Scopes(ctx context.Context) ([]string, error) {
	provider, err := s.discover(ctx)
	if err != nil {
		return nil, err
	}
	return provider.oauth.Scopes, nil
}

// refresh renews the ID token with the refresh token.
func (s *Session) refresh(ctx context.Context) (*Token, error) {
	k, err := s.store.load()
	if err != nil {
		return nil, err
	}
	token, err := s.store.loadRefreshToken(k)
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, fmt.Errorf("not logged in at %s for client %s: %w", s.options.Issuer, s.options.ClientID, ErrLoginNeeded)
	}
	provider, err := s.discover(ctx)
	if err != nil {
		return nil, err
	}
	response, err := provider.oauth.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, s.client), &oauth2.Token{RefreshToken: token}).Token()
	if err != nil {
		return nil, s.explainError(err)
	}
	raw, id, err := s.verify(ctx, provider, response)
	if err != nil {
		return nil, err
	}
	if k.Subject != id.Subject {
		return nil, fmt.Errorf("the identity provider %s returned a token of another user", s.options.Issuer)
	}
	return s.save(raw, id, response.RefreshToken)
}

// login runs an interactive login.
func (s *Session) login(ctx context.Context) (*Token, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	provider, err := s.discover(ctx)
	if err != nil {
		return nil, err
	}
	flow := s.loginByBrowser
	if s.options.Device {
		flow = s.loginByDevice
	}
	response, nonce, err := flow(ctx, provider)
	if err != nil {
		return nil, s.explainError(err)
	}
	raw, id, err := s.verify(ctx, provider, response)
	if err != nil {
		return nil, err
	}
	if id.Nonce != nonce {
		return nil, fmt.Errorf("the identity provider %s returned a token of another login", s.options.Issuer)
	}
	return s.save(raw, id, response.RefreshToken)
}

// verify extracts the ID token of a token response and verifies it.
func (s *Session) verify(ctx context.Context, provider *discoveredProvider, response *oauth2.Token) (raw string, id *oidc.IDToken, err error) {
	raw, ok := response.Extra("id_token").(string)
	if !ok || raw == "" {
		return "", nil, fmt.Errorf("the identity provider %s returned no ID token: check that the client may request the scope openid", s.options.Issuer)
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: s.options.ClientID, Now: s.now})
	if id, err = verifier.Verify(oidc.ClientContext(ctx, s.client), raw); err != nil {
		return "", nil, s.explainError(err)
	}
	if ahead := id.IssuedAt.Sub(s.now()); ahead > maxClockSkew {
		return "", nil, fmt.Errorf("this machine's clock is %s behind the identity provider's: set the clock", ahead.Round(time.Second))
	}
	return raw, id, nil
}

// save stores a verified ID token and its refresh token.
func (s *Session) save(raw string, id *oidc.IDToken, refreshToken string) (*Token, error) {
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return nil, s.explainError(err)
	}
	user, groups := parseIdentity(claims, s.options.GroupsClaim)
	if err := s.checkAccount(id.Subject, user, claims); err != nil {
		return nil, err
	}
	k := &storedLogin{
		Issuer: s.options.Issuer, ClientID: s.options.ClientID, Subject: id.Subject, User: user, Groups: groups,
		IDToken: raw, Expiry: id.Expiry, RefreshToken: refreshToken,
	}
	if err := s.store.save(k); err != nil {
		return nil, err
	}
	return k.toToken(), nil
}

// checkAccount rejects a login by another user than the session's: every kubeconfig with
// this session would otherwise change its user without notice.
func (s *Session) checkAccount(subject, user string, claims map[string]any) error {
	if account := s.options.Account; account != "" {
		if slices.ContainsFunc(userClaims, func(name string) bool { return claims[name] == account }) {
			return nil
		}
		return fmt.Errorf("you logged in as %s, and --account is %s: log in as that user with --prompt login, or correct --account", user, account)
	}
	k, err := s.store.load()
	if err != nil || k.Subject == "" || k.Subject == subject {
		return err
	}
	return fmt.Errorf("you logged in as %s, and the session at %s is %s's: add --account %s for a session of its own, or end the other one with croft login forget",
		user, s.options.Issuer, k.User, user)
}

// userClaims are the claims with the user's name, in order of preference.
var userClaims = []string{"preferred_username", "email", "sub"}

// parseIdentity extracts the user and groups from claims.
func parseIdentity(claims map[string]any, groupsClaim string) (user string, groups []string) {
	for _, name := range userClaims {
		if text, ok := claims[name].(string); ok && text != "" {
			user = text
			break
		}
	}
	switch named := claims[groupsClaim].(type) {
	case string:
		groups = []string{named}
	case []any:
		for _, one := range named {
			if text, ok := one.(string); ok {
				groups = append(groups, text)
			}
		}
	}
	return user, groups
}
