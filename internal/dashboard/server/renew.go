package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	"croft.dev/croft/internal/dashboard/provider"
	"croft.dev/croft/internal/dashboard/session"
)

const (
	// renewBefore is the time before the expiry of a token at which it is renewed. It exceeds the
	// time of a page, so that a page's token does not expire.
	renewBefore = 2 * requestTimeout
	// renewTimeout limits a renewal.
	renewTimeout = 15 * time.Second
	// keepRenewed is the time for which renewed tokens are kept for requests with the previous
	// cookies. keepFailed is the time for which a failure is kept, so that an outage of the provider
	// does not delay every page.
	keepRenewed, keepFailed = time.Minute, 10 * time.Second
)

// errLoginNeeded means that the browser is not logged in, or that its token cannot be renewed.
var errLoginNeeded = errors.New("log in")

// providerError means that the identity provider did not answer, although the session has not ended.
type providerError struct{ err error }

// Error implements error.
func (e *providerError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *providerError) Unwrap() error { return e.err }

// openSession returns the session of a browser that is logged in. If its token expires soon, it renews
// the token and replaces the cookies.
func (d *dashboard) openSession(w http.ResponseWriter, r *http.Request) (session.Session, error) {
	now := time.Now()
	s, err := d.Keys.Open(r.Cookies(), now)
	if err != nil || s.Token == "" {
		return s, errLoginNeeded
	}
	if s.TokenExpiry.IsZero() || s.TokenExpiry.Sub(now) > renewBefore {
		return s, nil
	}
	tokens, err := d.renewTokens(r.Context(), s)
	if err == nil {
		setTokens(&s, tokens)
		if err = d.setSession(w, r, s, now); err == nil {
			return s, nil
		}
	}
	if s.Refresh != "" {
		d.Log.InfoContext(r.Context(), "the token of a session was not renewed", "user", s.User, "error", err)
	}
	// Another replica may have renewed the token for another tab, whose response then has the new
	// cookies. Therefore this response keeps the cookies.
	if now.Before(s.TokenExpiry) {
		return s, nil
	}
	if errors.Is(err, provider.ErrEnded) || errors.Is(err, session.ErrTooLarge) {
		return s, errLoginNeeded
	}
	return s, &providerError{err}
}

// renewTokens renews the tokens of a session.
func (d *dashboard) renewTokens(ctx context.Context, s session.Session) (*provider.Tokens, error) {
	if s.Refresh == "" || d.Provider == nil {
		return nil, provider.ErrEnded
	}
	return d.renewals.do(ctx, s.Refresh, func(ctx context.Context) (*provider.Tokens, error) {
		return d.Provider.Renew(ctx, s.Refresh, s.Subject)
	})
}

// renewals are the latest renewals. Providers that rotate refresh tokens accept each one once, and
// some end the user's session at a second use. Therefore concurrent requests with one refresh token
// share a renewal, and a later request with the previous cookies gets the same tokens, such as after
// a browser has closed the connection before the response.
type renewals struct {
	mu sync.Mutex
	// byToken has the hashes of the refresh tokens.
	byToken map[[sha256.Size]byte]*renewal
}

type renewal struct {
	// done is closed when the renewal has ended.
	done   chan struct{}
	tokens *provider.Tokens
	err    error
	// expiry is the time after which the renewal is deleted.
	expiry time.Time
}

// do renews a refresh token, or waits for the renewal of another request.
func (all *renewals) do(ctx context.Context, refresh string, renew func(context.Context) (*provider.Tokens, error)) (*provider.Tokens, error) {
	one := all.start(context.WithoutCancel(ctx), sha256.Sum256([]byte(refresh)), renew)
	select {
	case <-one.done:
		return one.tokens, one.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start returns the renewal of a refresh token, which it starts unless there is one.
func (all *renewals) start(ctx context.Context, key [sha256.Size]byte, renew func(context.Context) (*provider.Tokens, error)) *renewal {
	all.mu.Lock()
	defer all.mu.Unlock()
	now := time.Now()
	for old, one := range all.byToken {
		if now.After(one.expiry) {
			delete(all.byToken, old)
		}
	}
	if one := all.byToken[key]; one != nil {
		return one
	}
	one := &renewal{done: make(chan struct{}), expiry: now.Add(renewTimeout + keepRenewed)}
	if all.byToken == nil {
		all.byToken = map[[sha256.Size]byte]*renewal{}
	}
	all.byToken[key] = one
	go func() {
		// The request that began the renewal may end before the provider's answer, which must not
		// get lost.
		ctx, cancel := context.WithTimeout(ctx, renewTimeout)
		defer cancel()
		tokens, err := renew(ctx)
		all.mu.Lock()
		defer all.mu.Unlock()
		one.tokens, one.err, one.expiry = tokens, err, time.Now().Add(keepFailed)
		if err == nil {
			// Providers without rotation return the same refresh token, which must not lead to
			// a token that has expired.
			one.expiry = time.Now().Add(min(keepRenewed, time.Until(tokens.Expiry)/2))
		}
		close(one.done)
	}()
	return one
}
