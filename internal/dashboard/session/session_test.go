package session_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/dashboard/session"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// makeKeys returns keys, each from one repeated byte.
func makeKeys(t *testing.T, seeds string) *session.Keys {
	t.Helper()
	var file string
	for _, seed := range []byte(seeds) {
		file += base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{seed}, 32)) + "\n"
	}
	k, err := session.ParseKeys([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// seal seals a session with a token of the given length.
func seal(t *testing.T, k *session.Keys, user string, length int) (session.Session, []*http.Cookie) {
	t.Helper()
	s := session.New(strings.Repeat(user[:1], length), user, now)
	cookies, err := k.Seal(s, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	return s, cookies
}

// TestOpen changes the cookies of a session in each way that a browser or another user could.
func TestOpen(t *testing.T) {
	k := makeKeys(t, "a")
	ana, hers := seal(t, k, "ana", 9000)
	_, his := seal(t, k, "bob", 9000)
	if len(hers) < 3 {
		t.Fatalf("the session has %d cookies, want several", len(hers))
	}
	change := func(do func(cookies []*http.Cookie) []*http.Cookie) []*http.Cookie {
		var all []*http.Cookie
		for _, c := range hers {
			copied := *c
			all = append(all, &copied)
		}
		return do(all)
	}
	for name, c := range map[string]struct {
		keys    *session.Keys
		cookies []*http.Cookie
		at      time.Time
		opens   bool
	}{
		"as sealed":       {k, hers, now, true},
		"in any order":    {k, change(func(c []*http.Cookie) []*http.Cookie { slices.Reverse(c); return c }), now, true},
		"with others":     {k, append([]*http.Cookie{{Name: "theme", Value: "dark"}}, hers...), now, true},
		"at its end":      {k, hers, ana.Expiry.Add(-time.Second), true},
		"after its end":   {k, hers, ana.Expiry, false},
		"with a new key":  {makeKeys(t, "ba"), hers, now, true},
		"with other keys": {makeKeys(t, "bc"), hers, now, false},
		"with no cookies": {k, nil, now, false},
		"with a changed character": {k, change(func(c []*http.Cookie) []*http.Cookie {
			c[1].Value = "A" + c[1].Value[1:]
			if c[1].Value == hers[1].Value {
				c[1].Value = "B" + c[1].Value[1:]
			}
			return c
		}), now, false},
		"with the last cookie missing":      {k, hers[:len(hers)-1], now, false},
		"with the first cookie missing":     {k, hers[1:], now, false},
		"with another user's second cookie": {k, change(func(c []*http.Cookie) []*http.Cookie { c[1].Value = his[1].Value; return c }), now, false},
		"with two cookies swapped": {k, change(func(c []*http.Cookie) []*http.Cookie {
			c[1].Value, c[2].Value = c[2].Value, c[1].Value
			return c
		}), now, false},
		"with a huge number of cookies": {k, change(func(c []*http.Cookie) []*http.Cookie {
			c[0].Value = "999999999" + c[0].Value[1:]
			return c
		}), now, false},
		"with a fewer number of cookies": {k, change(func(c []*http.Cookie) []*http.Cookie { c[0].Value = "1" + c[0].Value[1:]; return c }), now, false},
		"with a text that is not sealed": {k, []*http.Cookie{{Name: hers[0].Name, Value: "1.eyJ0b2tlbiI6ImEifQ"}}, now, false},
		"with an empty text":             {k, []*http.Cookie{{Name: hers[0].Name, Value: "1."}}, now, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.keys.Open(c.cookies, c.at)
			switch {
			case c.opens && (err != nil || got != ana):
				t.Errorf("got user %q and %v, want ana's session", got.User, err)
			case !c.opens && (!errors.Is(err, session.ErrNone) || got != session.Session{}):
				t.Errorf("got user %q and %v, want no session", got.User, err)
			}
		})
	}
}

// TestRotation opens a session of the old key while both keys exist, and seals with the new one.
func TestRotation(t *testing.T) {
	_, old := seal(t, makeKeys(t, "a"), "ana", 10)
	both := makeKeys(t, "ba")
	if _, err := both.Open(old, now); err != nil {
		t.Errorf("the old key's session: %v", err)
	}
	_, sealed := seal(t, both, "ana", 10)
	if _, err := makeKeys(t, "b").Open(sealed, now); err != nil {
		t.Errorf("a new session is not sealed with the first key: %v", err)
	}
}

// TestCookies expects attributes that keep the session from scripts, from other sites and from
// other hosts, sizes that browsers accept, and the deletion of cookies that a shorter session
// no longer has.
func TestCookies(t *testing.T) {
	k := makeKeys(t, "a")
	// 300 groups of 60 characters, in base64 twice: once in the ID token, once in the cookie.
	_, large := seal(t, k, "ana", 300*63*4/3)
	for _, c := range large {
		text := c.String()
		for _, part := range []string{"__Host-", "; Path=/", "; HttpOnly", "; Secure", "; SameSite=Lax", "; Max-Age=28800"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %s", c.Name, part)
			}
		}
		if strings.Contains(text, "Domain") || len(text) > 4096 || c.Valid() != nil {
			t.Errorf("%s: %d bytes, %v: browsers would not accept it", c.Name, len(text), c.Valid())
		}
	}
	small, err := k.Seal(session.New("a", "ana", now), large, now)
	if err != nil {
		t.Fatal(err)
	}
	deleted := 0
	for _, c := range small {
		if c.MaxAge < 0 {
			deleted++
		}
	}
	if deleted != len(large)-1 {
		t.Errorf("a session with one cookie deletes %d of %d old ones", deleted, len(large)-1)
	}
	if _, err := k.Seal(session.New(strings.Repeat("a", 60_000), "ana", now), nil, now); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("a token of 60 kB: %v, want ErrTooLarge", err)
	}
	if expired := session.Expire(append(large, &http.Cookie{Name: "theme"})); len(expired) != len(large) {
		t.Errorf("a logout deletes %d cookies, want %d", len(expired), len(large))
	}
}

// TestParseKeys expects one or two keys of 32 bytes, and errors that do not quote them.
func TestParseKeys(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	for text, valid := range map[string]bool{
		key: true, key + "\n": true, "\n" + key + "\r\n" + key + "\n": true,
		"": false, "\n": false, key[:40]: false, key + "\n" + key + "\n" + key: false, "secret-" + key: false, key + "\nsecret": false,
	} {
		_, err := session.ParseKeys([]byte(text))
		if (err == nil) != valid {
			t.Errorf("%q: %v, want valid: %t", text, err, valid)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), key[:40])) {
			t.Errorf("the error quotes the key: %v", err)
		}
	}
	a, b := session.NewKeys(), session.NewKeys()
	if cookies, err := a.Seal(session.New("a", "ana", now), nil, now); err != nil {
		t.Error(err)
	} else if _, err := b.Open(cookies, now); err == nil {
		t.Error("two random keys are equal")
	}
}
