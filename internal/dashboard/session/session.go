// Package session seals a user's session and login into cookies. Every replica with the same keys can
// open them, and no replica stores a session. The package does no I/O.
package session

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// Lifetime is the maximum lifetime of a session. The cluster refuses a token that expires
	// earlier, and then the user logs in again.
	Lifetime = 8 * time.Hour

	// cookieName is the name of the first cookie, and begins the names of the others. Browsers
	// accept a cookie with the prefix __Host- only over HTTPS and from the host itself, so no
	// other host can set it.
	cookieName = "__Host-croft-session"
	// setLength is the length of the random text that the cookies of one session share.
	setLength = 8
	// chunkSize is the maximum length of a cookie's value. Browsers limit a cookie with its
	// name and attributes to 4096 bytes.
	chunkSize = 3600
	// maxChunks limits the size of a session to 54 KB, enough for an ID token with a thousand
	// groups.
	maxChunks = 15
)

// Errors of this package.
var (
	// ErrNone means that there is no valid session: the cookies are missing, expired, changed,
	// or sealed with an unknown key.
	ErrNone = errors.New("no session")
	// ErrTooLarge means that the token does not fit into the cookies of a browser.
	ErrTooLarge = errors.New("the token is too large for the cookies of a browser")
)

// Session is the state of a user's browser.
type Session struct {
	// Token is the user's bearer token at the cluster. It is empty before the login.
	Token string `json:"token,omitempty"`
	// TokenExpiry is the time until which the token is valid; zero if it is unknown, as after a
	// login with a token.
	TokenExpiry time.Time `json:"tokenExpiry,omitzero"`
	// Subject is the user's identifier at the identity provider; empty after a login with a
	// token.
	Subject string `json:"subject,omitempty"`
	// Refresh is the provider's refresh token, which renews Token; empty without one.
	Refresh string `json:"refresh,omitempty"`
	// User is the user's name at the cluster.
	User string `json:"user,omitempty"`
	// CSRF is a random text that every form of the session contains.
	CSRF string `json:"csrf"`
	// Expiry is the end of the session.
	Expiry time.Time `json:"expiry"`
}

// New returns a session for a user, or, with an empty token, for a browser before its login.
func New(token, user string, now time.Time) Session {
	return Session{Token: token, User: user, CSRF: rand.Text(), Expiry: now.Add(Lifetime).Truncate(time.Second)}
}

// Seal returns the cookies of a session. They replace the cookies that the browser has. Their order
// matters: each session has cookies with names of its own, and the first cookie, which names the
// others, follows them. Therefore each request of the browser contains one whole session, also while
// two responses set cookies at the same time.
func (k *Keys) Seal(s Session, present []*http.Cookie, now time.Time) ([]*http.Cookie, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sealed := base64.RawURLEncoding.EncodeToString(k.seal(text, forSession))
	count := (len(sealed) + chunkSize - 1) / chunkSize
	if count > maxChunks {
		return nil, ErrTooLarge
	}
	set := rand.Text()[:setLength]
	var cookies []*http.Cookie
	for i := count - 1; i >= 0; i-- {
		c := newCookie(nameChunk(set, i))
		c.Value, c.MaxAge = sealed[i*chunkSize:min(len(sealed), (i+1)*chunkSize)], int(s.Expiry.Sub(now)/time.Second)
		if i == 0 {
			c.Name, c.Value = cookieName, fmt.Sprintf("%d.%s.%s", count, set, c.Value)
		}
		cookies = append(cookies, c)
	}
	for _, old := range Expire(present) {
		if old.Name != cookieName {
			cookies = append(cookies, old)
		}
	}
	return cookies, nil
}

// nameChunk returns the name of a cookie after the first.
func nameChunk(set string, i int) string { return cookieName + "-" + set + "-" + strconv.Itoa(i) }

// Open returns the session in a browser's cookies, or ErrNone.
func (k *Keys) Open(cookies []*http.Cookie, now time.Time) (Session, error) {
	chunks := map[string]string{}
	for _, c := range cookies {
		if strings.HasPrefix(c.Name, cookieName) {
			chunks[c.Name] = c.Value
		}
	}
	number, rest, _ := strings.Cut(chunks[cookieName], ".")
	set, sealed, _ := strings.Cut(rest, ".")
	count, err := strconv.Atoi(number)
	if err != nil || count < 1 || count > maxChunks {
		return Session{}, ErrNone
	}
	for i := 1; i < count; i++ {
		sealed += chunks[nameChunk(set, i)]
	}
	var s Session
	if err := k.openJSON(sealed, forSession, &s); err != nil {
		return Session{}, err
	}
	if !now.Before(s.Expiry) {
		return Session{}, ErrNone
	}
	return s, nil
}

// openJSON opens a sealed text, or returns ErrNone.
func (k *Keys) openJSON(sealed string, p purpose, into any) error {
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return ErrNone
	}
	text, ok := k.open(data, p)
	if !ok {
		return ErrNone
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return nil
}

// Expire returns cookies that delete the session's cookies among a browser's cookies.
func Expire(present []*http.Cookie) []*http.Cookie {
	var expired []*http.Cookie
	for _, c := range present {
		if strings.HasPrefix(c.Name, cookieName) {
			old := newCookie(c.Name)
			old.MaxAge = -1
			expired = append(expired, old)
		}
	}
	return expired
}

// newCookie returns a cookie that no script can read. SameSite=Lax sends it when the user
// follows a link from another site, but not with another site's forms and images.
func newCookie(name string) *http.Cookie {
	return &http.Cookie{Name: name, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}
