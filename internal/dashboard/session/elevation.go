package session

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"
)

const (
	// elevationLifetime is the maximum time from a request for elevation to its end: a day for the
	// approval, and a day for the elevation.
	elevationLifetime = 48 * time.Hour
	// elevationName differs from the names of the session's cookies.
	elevationName = "__Host-croft-elevation"
)

// ElevationKey is the private key of a user's last request for elevation. The cluster encrypts the token
// of the elevation for it. It is only in a cookie of the browser that sent the request: a copy of the
// cluster's storage contains the session keys and the encrypted token, and still no token.
type ElevationKey struct {
	User      string    `json:"user"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Private   []byte    `json:"private"`
	Expiry    time.Time `json:"expiry"`
}

// SealElevation returns the cookie of a key. It replaces the key of an earlier request.
func (k *Keys) SealElevation(e ElevationKey, now time.Time) (*http.Cookie, error) {
	e.Expiry = now.Add(elevationLifetime).Truncate(time.Second)
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	c := newCookie(elevationName)
	c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(k.seal(text, forElevation)), int(elevationLifetime/time.Second)
	return c, nil
}

// OpenElevation returns the key of a user's request in a browser's cookies, or ErrNone.
func (k *Keys) OpenElevation(cookies []*http.Cookie, user string, now time.Time) (ElevationKey, error) {
	for _, c := range cookies {
		if c.Name != elevationName {
			continue
		}
		var e ElevationKey
		if err := k.openJSON(c.Value, forElevation, &e); err != nil {
			return ElevationKey{}, err
		}
		if e.User == user && now.Before(e.Expiry) {
			return e, nil
		}
	}
	return ElevationKey{}, ErrNone
}

// ExpireElevation returns a cookie that deletes the key in a browser.
func ExpireElevation() *http.Cookie {
	c := newCookie(elevationName)
	c.MaxAge = -1
	return c
}
