package server

import "net/http"

// contentSecurityPolicy allows only files of the dashboard itself, and no inline script or style.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// securityHeaders are in every response.
var securityHeaders = map[string]string{
	"Content-Security-Policy":      contentSecurityPolicy,
	"Strict-Transport-Security":    "max-age=31536000",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
	// Without any referrer, browsers would send the origin "null" with the forms.
	"Referrer-Policy": "same-origin",
	// No cache may keep a page that one user's token has filled.
	"Cache-Control": "no-store",
}

// withHeaders sets the headers first, so that errors have them, too.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}
