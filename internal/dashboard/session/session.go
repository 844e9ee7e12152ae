// Package session seals a user's session into cookies. Every replica with the same keys can open
// them, and no replica stores a session. The package does no I/O.
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

	// namePrefix begins the names of the cookies. Browsers accept a cookie with the prefix
	// __Host- only over HTTPS and from the host itself, so no other host can set it.
	namePrefix = "__Host-croft-session-"
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

// Seal returns the cookies of a session. They replace the cookies that the browser has.
func (k *Keys) Seal(s Session, present []*http.Cookie, now time.Time) ([]*http.Cookie, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sealed := base64.RawURLEncoding.EncodeToString(k.seal(text))
	count := (len(sealed) + chunkSize - 1) / chunkSize
	if count > maxChunks {
		return nil, ErrTooLarge
	}
	var cookies []*http.Cookie
	for i := range count {
		value := sealed[i*chunkSize : min(len(sealed), (i+1)*chunkSize)]
		if i == 0 {
			value = strconv.Itoa(count) + "." + value
		}
		c := newCookie(namePrefix + strconv.Itoa(i))
		c.Value, c.MaxAge = value, int(s.Expiry.Sub(now)/time.Second)
		cookies = append(cookies, c)
	}
	for _, old := range Expire(present) {
		if i, err := strconv.Atoi(strings.TrimPrefix(old.Name, namePrefix)); err != nil || i >= count {
			cookies = append(cookies, old)
		}
	}
	return cookies, nil
}

// Open returns the session in a browser's cookies, or ErrNone.
func (k *Keys) Open(cookies []*http.Cookie, now time.Time) (Session, error) {
	chunks := map[string]string{}
	for _, c := range cookies {
		if strings.HasPrefix(c.Name, namePrefix) {
			chunks[c.Name] = c.Value
		}
	}
	number, sealed, _ := strings.Cut(chunks[namePrefix+"0"], ".")
	count, err := strconv.Atoi(number)
	if err != nil || count < 1 || count > maxChunks {
		return Session{}, ErrNone
	}
	for i := 1; i < count; i++ {
		sealed += chunks[namePrefix+strconv.Itoa(i)]
	}
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return Session{}, ErrNone
	}
	text, ok := k.open(data)
	if !ok {
		return Session{}, ErrNone
	}
	var s Session
	if err := json.Unmarshal(text, &s); err != nil {
		return Session{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if !now.Before(s.Expiry) {
		return Session{}, ErrNone
	}
	return s, nil
}

// Expire returns cookies that delete the session's cookies among a browser's cookies.
func Expire(present []*http.Cookie) []*http.Cookie {
	var expired []*http.Cookie
	for _, c := range present {
		if strings.HasPrefix(c.Name, namePrefix) {
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
