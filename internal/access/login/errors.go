package login

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// ErrLoginNeeded means that there is no usable refresh token, so the user has to log in.
var ErrLoginNeeded = errors.New("run croft login")

// providerError is an OAuth 2.0 error response of the provider (RFC 6749, RFC 8628).
type providerError struct{ code, description string }

func (e *providerError) Error() string {
	message := e.code
	if e.description != "" {
		message += " (" + e.description + ")"
	}
	switch e.code {
	case "access_denied":
		return "the identity provider refused the login: " + message
	case "expired_token":
		return "the code was not entered in time: " + message + ": run croft login again"
	case "invalid_grant":
		return "the session has ended: " + message + ": run croft login"
	case "invalid_client", "unauthorized_client":
		return "the identity provider does not accept the client: " + message + ": check --client-id, --client-secret and the client's settings at the provider"
	case "invalid_scope":
		return "the identity provider does not support a scope: " + message + ": set --scope to scopes that it supports"
	default:
		return "the identity provider returned " + message
	}
}

// explainError converts a library's error into one line that names the cause and the remedy.
func (s *Session) explainError(err error) error {
	var (
		response  *oauth2.RetrieveError
		refused   *providerError
		network   *url.Error
		expired   *oidc.TokenExpiredError
		authority x509.UnknownAuthorityError
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &refused):
		return err
	case errors.As(err, &authority):
		return fmt.Errorf("cannot reach the identity provider %s: %w: set --issuer-certificate-authority to its CA bundle", s.options.Issuer, authority)
	case errors.As(err, &network):
		return fmt.Errorf("cannot reach the identity provider %s: %w: check --issuer and the network", s.options.Issuer, network.Err)
	case errors.As(err, &response) && response.ErrorCode != "":
		return &providerError{code: response.ErrorCode, description: response.ErrorDescription}
	case errors.As(err, &response):
		return fmt.Errorf("the identity provider %s returned %s", s.options.Issuer, response.Response.Status)
	case errors.As(err, &expired):
		return fmt.Errorf("the identity provider's new token expired at %s, but this machine's clock shows %s: set the clock", formatLocalTime(expired.Expiry), formatLocalTime(s.now()))
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("timed out waiting for the login: run croft login again")
	default:
		return fmt.Errorf("identity provider %s: %w", s.options.Issuer, err)
	}
}

func formatLocalTime(t time.Time) string { return t.Local().Format(time.DateTime) }
