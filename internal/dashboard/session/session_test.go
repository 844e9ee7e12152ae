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

// sealSession seals a session with a token of the given length.
func sealSession(t *testing.T, k *session.Keys, user string, length int) (session.Session, []*http.Cookie) {
	t.Helper()
	s := session.New(strings.Repeat(user[:1], length), user, now)
	cookies, err := k.Seal(s, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	return s, cookies
}

// findFirstCookie returns the index of the first cookie, which names the others and is the last to
// be set.
func findFirstCookie(cookies []*http.Cookie) int {
	return slices.IndexFunc(cookies, func(c *http.Cookie) bool { return c.Name == "__Host-croft-session" })
}

// TestOpen changes the cookies of a session in each way that a browser or another user could.
func TestOpen(t *testing.T) {
	k := makeKeys(t, "a")
	ana, hers := sealSession(t, k, "ana", 9000)
	_, his := sealSession(t, k, "bob", 9000)
	attempt, err := k.SealAttempt(session.NewAttempt("/", now))
	if err != nil {
		t.Fatal(err)
	}
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
		"with the first cookie missing":     {k, hers[:findFirstCookie(hers)], now, false},
		"with the last cookie missing":      {k, hers[1:], now, false},
		"with another user's second cookie": {k, change(func(c []*http.Cookie) []*http.Cookie { c[1].Value = his[1].Value; return c }), now, false},
		"with another user's first cookie": {k, change(func(c []*http.Cookie) []*http.Cookie {
			return append(c[:findFirstCookie(c)], his[findFirstCookie(his)])
		}), now, false},
		"with another user's cookies, too": {k, append(slices.Clone(his[:findFirstCookie(his)]), hers...), now, true},
		"with two cookies swapped": {k, change(func(c []*http.Cookie) []*http.Cookie {
			c[0].Value, c[1].Value = c[1].Value, c[0].Value
			return c
		}), now, false},
		"with a huge number of cookies": {k, change(func(c []*http.Cookie) []*http.Cookie {
			c[findFirstCookie(c)].Value = "999999999" + c[findFirstCookie(c)].Value[1:]
			return c
		}), now, false},
		"with a fewer number of cookies": {k, change(func(c []*http.Cookie) []*http.Cookie {
			c[findFirstCookie(c)].Value = "1" + c[findFirstCookie(c)].Value[1:]
			return c
		}), now, false},
		"with a text that is not sealed": {k, []*http.Cookie{{Name: hers[findFirstCookie(hers)].Name, Value: "1.a.eyJ0b2tlbiI6ImEifQ"}}, now, false},
		"with a login":                   {k, []*http.Cookie{{Name: hers[findFirstCookie(hers)].Name, Value: "1.a." + attempt.Value}}, now, false},
		"with an empty text":             {k, []*http.Cookie{{Name: hers[findFirstCookie(hers)].Name, Value: "1.a."}}, now, false},
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
	_, old := sealSession(t, makeKeys(t, "a"), "ana", 10)
	both := makeKeys(t, "ba")
	if _, err := both.Open(old, now); err != nil {
		t.Errorf("the old key's session: %v", err)
	}
	_, sealed := sealSession(t, both, "ana", 10)
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
	_, large := sealSession(t, k, "ana", 300*63*4/3)
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
	if deleted != len(large)-1 || findFirstCookie(small) != 0 {
		t.Errorf("a session with one cookie deletes %d of %d old ones", deleted, len(large)-1)
	}
	if _, err := k.Seal(session.New(strings.Repeat("a", 60_000), "ana", now), nil, now); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("a token of 60 kB: %v, want ErrTooLarge", err)
	}
	if expired := session.Expire(append(large, &http.Cookie{Name: "theme"})); len(expired) != len(large) {
		t.Errorf("a logout deletes %d cookies, want %d", len(expired), len(large))
	}
}

// TestAttempt opens the cookie of a login in each way that a browser or another user could.
func TestAttempt(t *testing.T) {
	k := makeKeys(t, "a")
	a := session.NewAttempt("/tenants", now)
	c, err := k.SealAttempt(a)
	if err != nil {
		t.Fatal(err)
	}
	_, sealed := sealSession(t, k, "ana", 10)
	_, value, _ := strings.Cut(strings.TrimPrefix(sealed[0].Value, "1."), ".")
	for name, test := range map[string]struct {
		keys  *session.Keys
		value string
		at    time.Time
		opens bool
	}{
		"as sealed": {k, c.Value, now, true}, "with a new key": {makeKeys(t, "ba"), c.Value, now, true}, "with other keys": {makeKeys(t, "b"), c.Value, now, false},
		"at its end": {k, c.Value, a.Expiry, false}, "changed": {k, c.Value[:len(c.Value)-4] + "AAAA", now, false}, "empty": {k, "", now, false},
		"a session": {k, value, now, false},
	} {
		got, err := test.keys.OpenAttempt([]*http.Cookie{{Name: "other", Value: "x"}, {Name: c.Name, Value: test.value}}, test.at)
		if (err == nil) != test.opens || test.opens != (got == a) {
			t.Errorf("%s: %v, want to open: %t", name, err, test.opens)
		}
	}
	if _, err := k.OpenAttempt(nil, now); !errors.Is(err, session.ErrNone) {
		t.Errorf("without cookies: %v", err)
	}
	if long, err := k.SealAttempt(session.NewAttempt("/"+strings.Repeat("a", 1499), now)); err != nil || len(long.String()) > 4096 {
		t.Errorf("a long path: %d bytes, %v", len(long.String()), err)
	}
}

// TestReplace expects other keys after a change of the file.
func TestReplace(t *testing.T) {
	k := makeKeys(t, "a")
	_, cookies := sealSession(t, k, "ana", 10)
	k.Replace(makeKeys(t, "ba"))
	if _, err := k.Open(cookies, now); err != nil {
		t.Errorf("with both keys: %v", err)
	}
	k.Replace(makeKeys(t, "b"))
	if _, err := k.Open(cookies, now); !errors.Is(err, session.ErrNone) {
		t.Errorf("with the new key: %v", err)
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
