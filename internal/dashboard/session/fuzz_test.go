package session_test

import (
	"net/http"
	"strings"
	"testing"

	"croft.dev/croft/internal/dashboard/session"
)

// FuzzOpen fails if a Cookie header causes a panic, or opens a session other than the sealed one.
func FuzzOpen(f *testing.F) {
	k := session.NewKeys()
	sealed := session.New(strings.Repeat("t", 5000), "ana", now)
	cookies, err := k.Seal(sealed, nil, now)
	if err != nil {
		f.Fatal(err)
	}
	var header []string
	for _, c := range cookies {
		header = append(header, c.Name+"="+c.Value)
	}
	f.Add(strings.Join(header, "; "))
	f.Add(header[0])
	f.Add("__Host-croft-session=99999999999.a; __Host-croft-session=1.a; __Host-croft-session-a-0=x")
	f.Add("__Host-croft-session=; __Host-croft-login=e30")
	f.Fuzz(func(t *testing.T, header string) {
		read, err := http.ParseCookie(header)
		if err != nil {
			t.Skip()
		}
		if opened, err := k.Open(read, now); err == nil && opened.User != sealed.User {
			t.Errorf("%q opens a session of %q", header, opened.User)
		}
		if attempt, err := k.OpenAttempt(read, now); err == nil {
			t.Errorf("%q opens an attempt to log in: %+v", header, attempt)
		}
		session.Expire(read)
	})
}

// FuzzParseKeys fails if a file of keys causes a panic, or an error of several lines.
func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"))
	f.Add([]byte("secret\n\n\r\n="))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := session.ParseKeys(file); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("not one line: %q", err)
		}
	})
}
