package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
	webhooktoken "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

const (
	// reviewCacheTTL is how long the result of a token review is cached, accepted or
	// rejected: 10 s, as in kube-apiserver.
	reviewCacheTTL = 10 * time.Second
	// verifiedCacheTTL is how long an identity provider's token is accepted without another
	// check: 10 s, as in kube-apiserver. A token may be accepted for up to this time after
	// it has expired.
	verifiedCacheTTL = 10 * time.Second
	// reloadInterval is how often the configuration file is read. ConfigMap volumes replace
	// files by symbolic links, which not every file watcher notices.
	reloadInterval = 5 * time.Second
	// keysTimeout is how long the identity providers of a changed file may take to return
	// their signing keys before the file is tried again. keysInterval is how often their
	// health is checked meanwhile.
	keysTimeout, keysInterval = 30 * time.Second, 50 * time.Millisecond
	// reviewTimeout is the time limit of a token review.
	reviewTimeout = 10 * time.Second
	// systemPrefix begins the names of Kubernetes' own users and groups.
	systemPrefix = "system:"
)

// configCodecs decodes all versions of the API server's AuthenticationConfiguration.
var configCodecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

// parseConfiguration decodes and validates an AuthenticationConfiguration, with the API
// server's own validation.
func parseConfiguration(content []byte) (*apiserver.AuthenticationConfiguration, error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, errors.New("the file is empty: write an AuthenticationConfiguration of apiserver.config.k8s.io/v1")
	}
	decoded, err := runtime.Decode(configCodecs.UniversalDecoder(), content)
	if err != nil {
		return nil, err
	}
	config, ok := decoded.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("unexpected kind %s: write an AuthenticationConfiguration", decoded.GetObjectKind().GroupVersionKind().Kind)
	}
	if config.Anonymous != nil && config.Anonymous.Enabled {
		return nil, errors.New("anonymous: the proxy does not accept anonymous requests: remove the field")
	}
	return config, validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config, nil).ToAggregate()
}

// CheckConfiguration validates an AuthenticationConfiguration, with the API server's own
// validation.
func CheckConfiguration(content []byte) error {
	_, err := parseConfiguration(content)
	return err
}

// issuers is the set of identity providers of a configuration.
type issuers struct {
	content []byte
	token   authenticator.Token
	// checks has one function for each provider. It returns nil once the provider's keys
	// have been fetched.
	checks []func() error
	cancel context.CancelFunc
}

func newIssuers(ctx context.Context, content []byte) (*issuers, error) {
	config, err := parseConfiguration(content)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var tokens []authenticator.Token
	var checks []func() error
	for i, jwt := range config.JWT {
		options := oidc.Options{JWTAuthenticator: jwt, APIServerID: "croft-proxy"}
		if jwt.Issuer.CertificateAuthority != "" {
			options.CAContentProvider, err = dynamiccertificates.NewStaticCAContent("issuer", []byte(jwt.Issuer.CertificateAuthority))
		}
		var issuer oidc.AuthenticatorTokenWithHealthCheck
		if err == nil {
			issuer, err = oidc.New(ctx, options)
		}
		if err != nil {
			cancel()
			return nil, fmt.Errorf("jwt[%d], issuer %s: %w", i, jwt.Issuer.URL, err)
		}
		tokens, checks = append(tokens, issuer), append(checks, issuer.HealthCheck)
	}
	// Without a cache, the signature of every request's token is verified.
	token := tokencache.New(tokenunion.NewFailOnError(tokens...), false, verifiedCacheTTL, 0)
	return &issuers{content: content, token: token, checks: checks, cancel: cancel}, nil
}

// checkHealth returns nil once the keys of every provider have been fetched.
func (i *issuers) checkHealth() error {
	var errs []error
	for _, check := range i.checks {
		errs = append(errs, check())
	}
	return errors.Join(errs...)
}

// countKeys returns the number of providers whose keys have been fetched.
func (i *issuers) countKeys() int {
	n := 0
	for _, check := range i.checks {
		if check() == nil {
			n++
		}
	}
	return n
}

// waitForKeys waits until the keys of every provider have been fetched.
func (i *issuers) waitForKeys(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, keysInterval, keysTimeout, true, func(context.Context) (bool, error) {
		return i.checkHealth() == nil, nil
	})
	if err != nil {
		err = errors.Join(err, i.checkHealth())
	}
	return err
}

// authentication authenticates the tokens of identity providers. It reloads its
// configuration file when it changes.
type authentication struct {
	file    string
	log     *slog.Logger
	current atomic.Pointer[issuers]
}

// newAuthentication loads the configuration file. An invalid file is an error.
func newAuthentication(ctx context.Context, file string, log *slog.Logger) (*authentication, error) {
	a := &authentication{file: file, log: log}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	first, err := newIssuers(ctx, content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	a.current.Store(first)
	return a, nil
}

// AuthenticateToken implements authenticator.Token.
func (a *authentication) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return a.current.Load().token.AuthenticateToken(ctx, token)
}

// run polls the file until ctx ends, and loads each change. If the new content is invalid,
// it logs an error once and keeps the previous configuration.
func (a *authentication) run(ctx context.Context) {
	var rejected []byte
	unreadable := false
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		content, err := os.ReadFile(a.file)
		if err != nil {
			if !unreadable {
				a.log.ErrorContext(ctx, "cannot read the authentication configuration: keeping the previous one", "file", a.file, "err", err)
			}
			unreadable = true
			return
		}
		unreadable = false
		previous := a.current.Load()
		if bytes.Equal(content, previous.content) || bytes.Equal(content, rejected) {
			return
		}
		next, err := newIssuers(ctx, content)
		if err != nil {
			rejected = content
			a.log.ErrorContext(ctx, "invalid authentication configuration: keeping the previous one", "file", a.file, "err", err)
			return
		}
		// An identity provider's tokens cannot be verified before its keys are fetched.
		if err := next.waitForKeys(ctx); err != nil {
			if next.countKeys() == 0 {
				next.cancel()
				a.log.ErrorContext(ctx, "cannot fetch the keys of any identity provider: keeping the previous authentication configuration and retrying", "file", a.file, "err", err)
				return
			}
			a.log.ErrorContext(ctx, "cannot fetch the keys of an identity provider: rejecting its tokens until it answers", "file", a.file, "err", err)
		}
		rejected = nil
		a.current.Store(next)
		a.log.InfoContext(ctx, "loaded the authentication configuration", "file", a.file)
		previous.cancel()
	}, reloadInterval)
}

// newRequestAuthenticator authenticates requests by a token of an identity provider, by a
// token that the API server reviews, or, if clients is not nil, by a client certificate. It
// removes the token from the request. reviewed may be nil.
func newRequestAuthenticator(oidcTokens, reviewed authenticator.Token, clients dynamiccertificates.CAContentProvider) authenticator.Request {
	tokens := []authenticator.Token{rejectSystemTokens(oidcTokens)}
	if reviewed != nil {
		tokens = append(tokens, acceptServiceAccounts(reviewed))
	}
	// tokenunion.New, not NewFailOnError: an unreachable identity provider must not lock
	// out the users of others.
	token := recordToken(tokenunion.New(tokens...))
	authenticators := []authenticator.Request{bearertoken.New(token), websocket.NewProtocolAuthenticator(token)}
	if clients != nil {
		certificates := x509.NewDynamic(clients.VerifyOptions, x509.CommonNameUserConversion)
		authenticators = append(authenticators, authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			return rejectSystemNames(certificates.AuthenticateRequest(r))
		}))
	}
	return group.NewAuthenticatedGroupAdder(union.New(authenticators...))
}

// newReviewer authenticates tokens by TokenReview, and caches the answers.
func newReviewer(reviews authenticationclient.AuthenticationV1Interface) (authenticator.Token, error) {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 3}
	review, err := webhooktoken.NewFromInterface(reviews, nil, backoff, reviewTimeout, webhooktoken.AuthenticatorMetrics{
		RecordRequestTotal:   func(context.Context, string) {},
		RecordRequestLatency: func(context.Context, string, float64) {},
	})
	if err != nil {
		return nil, err
	}
	return tokencache.New(limitReviews(review), false, reviewCacheTTL, reviewCacheTTL), nil
}

// recordToken records the token that has authenticated a request. Requests of service accounts, and requests to
// croft ledger, are forwarded with it.
func recordToken(tokens authenticator.Token) authenticator.Token {
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		response, ok, err := tokens.AuthenticateToken(ctx, token)
		if holder, found := ctx.Value(tokenHolderKey{}).(*string); found && ok {
			*holder = token
		}
		return response, ok, err
	})
}

// acceptServiceAccounts accepts service accounts that the API server authenticates, but no other names that are
// reserved for Kubernetes.
func acceptServiceAccounts(reviewed authenticator.Token) authenticator.Token {
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		response, ok, err := reviewed.AuthenticateToken(ctx, token)
		if ok && isServiceAccount(response.User) {
			return response, ok, err
		}
		return rejectSystemNames(response, ok, err)
	})
}

func rejectSystemTokens(tokens authenticator.Token) authenticator.Token {
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		return rejectSystemNames(tokens.AuthenticateToken(ctx, token))
	})
}

// rejectSystemNames rejects users whose name begins with system:, and removes groups whose
// name does. These names are reserved for Kubernetes: a provider whose names are mapped
// without a prefix could otherwise make its users kube-controller-manager or members of
// system:masters. It also rejects users with an empty name, such as an empty claim that is
// mapped without a prefix: the API server treats an empty Impersonate-User header as
// absent, and would answer the request with the proxy's own permissions (CVE-2026-23990).
func rejectSystemNames(response *authenticator.Response, ok bool, err error) (*authenticator.Response, bool, error) {
	if !ok || err != nil {
		return response, ok, err
	}
	u := response.User
	if u.GetName() == "" {
		return nil, false, errors.New("the user has no name")
	}
	if strings.HasPrefix(u.GetName(), systemPrefix) {
		return nil, false, fmt.Errorf("user names that begin with %s are reserved", systemPrefix)
	}
	filtered := *response
	filtered.User = &user.DefaultInfo{
		Name: u.GetName(), UID: u.GetUID(), Extra: u.GetExtra(),
		Groups: slices.DeleteFunc(slices.Clone(u.GetGroups()), func(g string) bool { return strings.HasPrefix(g, systemPrefix) }),
	}
	return &filtered, true, nil
}
