package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/lru"
)

const (
	// reviewsPerSecond and reviewBurst limit the token reviews per client address. Accepted
	// tokens are cached, so the limit affects only clients that guess tokens, and hundreds
	// of programs behind one address that start at the same time.
	reviewsPerSecond, reviewBurst = 10, 100
	// reviewAddresses is the number of addresses with a rate limiter; the least recently
	// used one is evicted.
	reviewAddresses = 1 << 14
	// jwtDots is the number of dots in a JWT, such as a service account token.
	jwtDots = 2
)

// errTooManyReviews rejects a token from an address that has exceeded its rate limit.
var errTooManyReviews = errors.New("too many unknown tokens come from this address")

// clientAddressKey is the context key of the client's address.
type clientAddressKey struct{}

// withClientAddress adds the client's address to the context, for limitReviews.
func withClientAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			address = r.RemoteAddr
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientAddressKey{}, address)))
	})
}

// limitReviews rate-limits token reviews by client address. Tokens of identity providers
// are verified locally, but any other token costs the proxy a request to the API server.
// Tokens that are not JWTs cannot be service account tokens and are rejected without a
// review.
func limitReviews(review authenticator.Token) authenticator.Token {
	addresses := lru.New(reviewAddresses)
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		if strings.Count(token, ".") != jwtDots {
			return nil, false, nil
		}
		address, _ := ctx.Value(clientAddressKey{}).(string)
		limiter, ok := addresses.Get(address)
		if !ok {
			limiter = rate.NewLimiter(reviewsPerSecond, reviewBurst)
			addresses.Add(address, limiter)
		}
		if l, ok := limiter.(*rate.Limiter); ok && !l.AllowN(time.Now(), 1) {
			return nil, false, errTooManyReviews
		}
		return review.AuthenticateToken(ctx, token)
	})
}
