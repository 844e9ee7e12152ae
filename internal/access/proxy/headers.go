package proxy

import (
	"net/http"
	"net/textproto"
	"strings"
)

// identityHeaders are the headers with which various systems identify the sender of a
// request. None of them may pass from a client to the API server, which must receive only
// the proxy's own values. A name that ends in a dash is a prefix.
var identityHeaders = []string{
	"Authorization", "Proxy-Authorization", "Cookie",
	"Impersonate-",
	"X-Remote-",
	"X-Forwarded-", "Forwarded", "X-Real-Ip",
	"X-Client-", "X-Ssl-", "Ssl-Client-", "Client-Cert", "Client-Cert-Chain",
}

// isImpersonationHeader reports whether a header requests impersonation.
func isImpersonationHeader(name string) bool {
	return strings.HasPrefix(textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-")), "Impersonate-")
}

// isIdentityHeader reports whether a header identifies the sender of a request. Underscores
// count as dashes, because some servers behind a gateway treat them alike.
func isIdentityHeader(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
	for _, h := range identityHeaders {
		if name == h || strings.HasSuffix(h, "-") && strings.HasPrefix(name, h) {
			return true
		}
	}
	return false
}

// upgradeProtocols are the protocols of the API server's streams (exec, attach,
// port-forward). Any other, such as h2c, would open a tunnel past the proxy on an
// authenticated connection.
var upgradeProtocols = map[string]bool{"websocket": true, "spdy/3.1": true}

// explainMalformed returns an error message for a request with ambiguous credentials or with
// connection headers that no Kubernetes client sends, and "" for any other. Such requests
// are rejected rather than repaired.
func explainMalformed(r *http.Request) string {
	if len(r.Header["Authorization"]) > 1 {
		return "the request has more than one Authorization header: send one"
	}
	if values, sent := r.Header["Authorization"]; sent {
		scheme, token, _ := strings.Cut(values[0], " ")
		if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(token) == "" {
			return "the Authorization header has no bearer token"
		}
	}
	for _, value := range r.Header["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			// The next proxy removes the headers named here, and would remove an identity
			// that this proxy has set (CVE-2022-23652).
			if name = strings.TrimSpace(name); isIdentityHeader(name) {
				return "the Connection header must not name " + name
			}
		}
	}
	for _, value := range r.Header["Upgrade"] {
		if !upgradeProtocols[strings.ToLower(strings.TrimSpace(value))] {
			return "upgrade to unsupported protocol " + value + ": use WebSockets or SPDY/3.1"
		}
	}
	return ""
}

// removeIdentityHeaders deletes all identity headers.
func removeIdentityHeaders(h http.Header) {
	for name := range h {
		if isIdentityHeader(name) {
			delete(h, name)
		}
	}
}
