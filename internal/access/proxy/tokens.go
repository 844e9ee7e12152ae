package proxy

import (
	"context"
	"log/slog"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/user"
)

// NewTokenAuthenticator returns an authenticator for croft ledger, to which the proxy forwards users' own tokens. It
// accepts the identity providers' tokens, and gives them the same user names, as a proxy with the same
// AuthenticationConfiguration. It reloads the file until ctx ends.
func NewTokenAuthenticator(ctx context.Context, file string, log *slog.Logger) (authenticator.Token, error) {
	a, err := newAuthentication(ctx, file, log)
	if err != nil {
		return nil, err
	}
	go a.run(ctx)
	return group.NewTokenGroupAdder(rejectSystemTokens(a), []string{user.AllAuthenticated}), nil
}
