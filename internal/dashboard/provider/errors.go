package provider

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

var (
	// ErrForeign means that a response does not belong to the login of this browser.
	ErrForeign = errors.New("the response does not belong to this login")
	// ErrEnded means that the provider no longer renews the user's tokens.
	ErrEnded = errors.New("the session at the identity provider has ended")
)

// RefusedError is an OAuth 2.0 error response of the provider (RFC 6749).
type RefusedError struct{ Code, Description string }

// Error implements error.
func (e *RefusedError) Error() string {
	switch e.Code {
	case "invalid_client", "unauthorized_client":
		return fmt.Sprintf("the identity provider does not accept the client: %s (%s): check --oidc-client-id, --oidc-client-secret-file and the client's settings", e.Code, e.Description)
	case "invalid_scope":
		return fmt.Sprintf("the identity provider does not support a scope: %s (%s): set --oidc-scopes", e.Code, e.Description)
	default:
		return fmt.Sprintf("the identity provider returned %s (%s)", e.Code, e.Description)
	}
}

// explainError converts a library's error into one line, without the response's body.
func (p *Provider) explainError(err error) error {
	var (
		response  *oauth2.RetrieveError
		network   *url.Error
		expired   *oidc.TokenExpiredError
		authority x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &authority):
		return fmt.Errorf("cannot reach the identity provider %s: %w: set --oidc-ca-file to its CA bundle", p.options.Issuer, authority)
	case errors.As(err, &network):
		return fmt.Errorf("cannot reach the identity provider %s: %w", p.options.Issuer, network.Err)
	case errors.As(err, &response) && response.ErrorCode != "":
		return &RefusedError{Code: response.ErrorCode, Description: response.ErrorDescription}
	case errors.As(err, &response):
		return fmt.Errorf("the identity provider %s returned %s", p.options.Issuer, response.Response.Status)
	case errors.As(err, &expired):
		return fmt.Errorf("the identity provider's token expired at %s: check the clocks", expired.Expiry.Format(time.RFC3339))
	default:
		return fmt.Errorf("identity provider %s: %w", p.options.Issuer, err)
	}
}
