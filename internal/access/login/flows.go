package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// maxInterval is the longest polling interval of the device flow that croft accepts, in
// seconds.
const maxInterval = 60

const resultPage = "<!doctype html><html lang=en><meta charset=utf-8><title>croft</title><p>%s You can close this page."

// loginByBrowser runs the authorization code flow with PKCE: the browser returns a code that
// only this process can exchange for a token, because only it has the code verifier.
func (s *Session) loginByBrowser(ctx context.Context, provider *discoveredProvider) (*oauth2.Token, string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(s.redirect.Hostname(), cmp.Or(s.redirect.Port(), "0")))
	if err != nil {
		return nil, "", fmt.Errorf("listening for the redirect: %w", err)
	}
	redirect := *s.redirect
	if _, port, err := net.SplitHostPort(listener.Addr().String()); err == nil {
		redirect.Host = net.JoinHostPort(s.redirect.Hostname(), port)
	}
	state, nonce, verifier := oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	type result struct {
		code string
		err  error
	}
	results := make(chan result, 1)
	server := &http.Server{ReadHeaderTimeout: requestTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		// Other web pages can send requests here, too, but they do not know the state.
		if r.URL.Path != cmp.Or(redirect.Path, "/") || query.Get("state") != state {
			http.Error(w, "This request does not belong to the current login.", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		received := result{code: query.Get("code")}
		message := "You are logged in."
		if received.code == "" {
			received.err = &providerError{code: cmp.Or(query.Get("error"), "no code"), description: query.Get("error_description")}
			message = "The login failed; see croft's output."
		}
		_, _ = fmt.Fprintf(w, resultPage, message)
		select {
		case results <- received:
		default: // a reload of the page
		}
	})}
	serveErr := make(chan error, 1)
	go func() { serveErr <- server.Serve(listener) }()
	defer func() {
		// Shutdown lets the browser receive its page first.
		drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(drained) != nil {
			_ = server.Close()
		}
	}()

	config := provider.oauth
	config.RedirectURL = redirect.String()
	parameters := []oauth2.AuthCodeOption{oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)}
	if s.options.Account != "" {
		parameters = append(parameters, oauth2.SetAuthURLParam("login_hint", s.options.Account))
	}
	prompt := s.options.Prompt
	if !provider.offline {
		// Google has no offline_access scope, but this parameter.
		parameters = append(parameters, oauth2.AccessTypeOffline)
		prompt = cmp.Or(prompt, "consent")
	}
	if prompt != "" {
		parameters = append(parameters, oauth2.SetAuthURLParam("prompt", prompt))
	}
	s.promptUser("Log in at", config.AuthCodeURL(state, parameters...), "")

	select {
	case received := <-results:
		if received.err != nil {
			return nil, "", received.err
		}
		token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, s.client), received.code, oauth2.VerifierOption(verifier))
		return token, nonce, err
	case err := <-serveErr:
		return nil, "", err
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
}

// loginByDevice runs the device flow (RFC 8628): the user enters a code on another device.
func (s *Session) loginByDevice(ctx context.Context, provider *discoveredProvider) (*oauth2.Token, string, error) {
	if provider.oauth.Endpoint.DeviceAuthURL == "" {
		return nil, "", errors.New("the device flow is not supported: omit --device")
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, s.client)
	device, err := provider.oauth.DeviceAuth(ctx)
	if err != nil {
		return nil, "", err
	}
	if device.Interval < 0 || device.Interval > maxInterval {
		return nil, "", fmt.Errorf("the polling interval is %d s: at most %d s are supported", device.Interval, maxInterval)
	}
	s.promptUser("Log in from any device at", cmp.Or(device.VerificationURIComplete, device.VerificationURI), device.UserCode)
	token, err := provider.oauth.DeviceAccessToken(ctx, device)
	return token, "", err
}

// promptUser prints the login page's URL and opens it in the browser.
func (s *Session) promptUser(title, page, code string) {
	if s.options.Out != nil {
		_, _ = fmt.Fprintf(s.options.Out, "%s\n\n  %s\n\n", title, s.options.Sanitize(page))
		if code != "" {
			_, _ = fmt.Fprintf(s.options.Out, "and check that the page shows the code %s\n", s.options.Sanitize(code))
		}
	}
	// A provider must not be able to open anything but https URLs on this machine.
	if parsed, err := url.Parse(page); err != nil || parsed.Scheme != "https" || s.options.OpenBrowser == nil {
		return
	}
	go func() { _ = s.options.OpenBrowser(page) }() // if this fails, the user has the printed URL
}
