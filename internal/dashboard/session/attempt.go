package session

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"
)

const (
	// AttemptLifetime is the time in which a user has to log in at the identity provider.
	AttemptLifetime = 10 * time.Minute
	// attemptName differs from the names of the session's cookies.
	attemptName = "__Host-croft-login"
	// maxNext is the maximum length of the path after the login, so that the cookie fits into
	// the limit of browsers.
	maxNext = 1500
)

// Attempt is a login that the identity provider has not answered yet. It is in a cookie of the
// browser that began the login, so that no other browser can finish it.
type Attempt struct {
	// State binds the provider's response to the browser, and Nonce the ID token.
	State string `json:"state"`
	Nonce string `json:"nonce"`
	// Verifier is the secret of PKCE (RFC 7636): without it, the code is worthless.
	Verifier string `json:"verifier"`
	// Next is the path of the page after the login.
	Next string `json:"next"`
	// Expiry is the end of the attempt.
	Expiry time.Time `json:"expiry"`
}

// NewAttempt returns an attempt with random texts.
func NewAttempt(next string, now time.Time) Attempt {
	if len(next) > maxNext {
		next = "/"
	}
	// RFC 7636 requires at least 43 characters.
	verifier := rand.Text() + rand.Text()
	return Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: verifier, Next: next, Expiry: now.Add(AttemptLifetime).Truncate(time.Second)}
}

// SealAttempt returns the cookie of an attempt. It replaces the cookie of an earlier attempt.
func (k *Keys) SealAttempt(a Attempt) (*http.Cookie, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	c := newCookie(attemptName)
	c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(k.seal(text, forAttempt)), int(AttemptLifetime/time.Second)
	return c, nil
}

// OpenAttempt returns the attempt in a browser's cookies, or ErrNone.
func (k *Keys) OpenAttempt(cookies []*http.Cookie, now time.Time) (Attempt, error) {
	for _, c := range cookies {
		if c.Name != attemptName {
			continue
		}
		var a Attempt
		if err := k.openJSON(c.Value, forAttempt, &a); err != nil {
			return Attempt{}, err
		}
		if now.Before(a.Expiry) {
			return a, nil
		}
	}
	return Attempt{}, ErrNone
}

// ExpireAttempt returns a cookie that deletes the attempt in a browser.
func ExpireAttempt() *http.Cookie {
	c := newCookie(attemptName)
	c.MaxAge = -1
	return c
}
