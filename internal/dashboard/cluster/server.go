// Package cluster connects users to the API server. Each connection carries the user's own token:
// the package knows no other credentials, and never impersonates.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/prove/warning"
)

// Server is the API server, or croft's proxy, to which users connect.
type Server struct {
	address   string
	transport *http.Transport
	tls       rest.TLSClientConfig
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
}

// NewServer returns the server of a kubeconfig's cluster entry, which contains no credentials. It
// refuses connections on which others could read the users' tokens.
func NewServer(entry *clientcmdapi.Cluster) (*Server, error) {
	address, err := url.Parse(entry.Server)
	switch {
	case err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil:
		return nil, fmt.Errorf("the API server's address %s is not an https URL: the dashboard sends its users' tokens there", entry.Server)
	case entry.InsecureSkipTLSVerify:
		return nil, errors.New("the kubeconfig's cluster has insecure-skip-tls-verify: " +
			"the dashboard sends its users' tokens only to a server with a valid certificate: set certificate-authority")
	}
	authority := rest.TLSClientConfig{CAFile: entry.CertificateAuthority, CAData: entry.CertificateAuthorityData, ServerName: entry.TLSServerName}
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: authority})
	if err != nil {
		return nil, err
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: config})
	if entry.ProxyURL != "" {
		proxy, err := url.Parse(entry.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("the kubeconfig's proxy-url is no URL: %w", err)
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	return &Server{address: entry.Server, transport: transport, tls: authority, scheme: scheme.New(), mapper: newMapper()}, nil
}

// Connect returns a client with the rights of a token. Clients share connections, but no
// responses. A client never follows a redirect, which could lead the token to another server.
func (s *Server) Connect(token string) (*Client, error) {
	if token == "" {
		return nil, errors.New("a connection needs the user's token")
	}
	config := &rest.Config{
		Host: s.address, Transport: s.transport, BearerToken: token,
		QPS: -1, UserAgent: v1alpha1.ManagedBy + "-dashboard/" + version.String(), WarningHandlerWithContext: warning.Handler{},
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	streaming := &rest.Config{Host: s.address, TLSClientConfig: s.tls, Proxy: s.transport.Proxy, BearerToken: token, UserAgent: config.UserAgent}
	c, err := client.NewWithWatch(config, client.Options{HTTPClient: httpClient, Scheme: s.scheme, Mapper: s.mapper})
	return &Client{WithWatch: c, config: config, http: httpClient, streaming: streaming}, err
}

// ErrAnonymous means that the server accepted a request without regard to its token.
var ErrAnonymous = errors.New("the server did not authenticate the token")

// ReviewUser returns the name of the user to whom a token belongs.
func (s *Server) ReviewUser(ctx context.Context, token string) (string, error) {
	c, err := s.Connect(token)
	if err != nil {
		return "", err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return "", err
	}
	name := review.Status.UserInfo.Username
	if name == "" || name == user.Anonymous {
		return "", ErrAnonymous
	}
	return name, nil
}
