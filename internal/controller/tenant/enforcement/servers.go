package enforcement

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// listedFor is how long a list of API servers is used. An API server that dies leaves
	// the cluster's list within about 25 seconds.
	listedFor = 5 * time.Second
	// answerWithin is the time limit of a request to one API server.
	answerWithin = 3 * time.Second
	// unreachableFor is the time until addresses are tried again of which none answered.
	unreachableFor = 5 * time.Minute

	// servingName is in the certificates of all API servers that pods can connect to.
	servingName = "kubernetes.default.svc"
)

// Servers are the cluster's API servers. The operator's own connection reaches one of
// them, mostly through a load balancer.
type Servers struct {
	live   client.Client
	config *rest.Config
	// given are addresses that need not be looked up.
	given []string

	mu     sync.Mutex
	listed []server
	listAt time.Time
	// answered says that one of them has answered since the operator started, and
	// unreachableAt is when none did before.
	answered      bool
	unreachableAt time.Time
}

// server is one API server.
type server struct {
	address string
	client  client.Client
}

// NewServers returns the API servers at the given addresses (HOST:PORT), or those that
// the cluster lists if there are none. live reads from the API server that config names.
func NewServers(live client.Client, config *rest.Config, given []string) *Servers {
	return &Servers{live: live, config: config, given: given}
}

// list returns the API servers if there are several.
func (s *Servers) list(ctx context.Context) ([]server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.listAt) < listedFor {
		return s.listed, nil
	}
	addresses := s.given
	if len(addresses) == 0 {
		slice := &discoveryv1.EndpointSlice{}
		key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}
		if err := s.live.Get(ctx, key, slice); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the addresses of the API servers: %w", err)
		}
		addresses = addressesOf(slice)
	}
	var listed []server
	if len(addresses) > 1 {
		for _, address := range addresses {
			found, err := s.at(address)
			if err != nil {
				return nil, err
			}
			listed = append(listed, found)
		}
	}
	s.listed, s.listAt = listed, time.Now()
	return listed, nil
}

// at returns the API server at an address. It has the operator's credentials, and its
// certificate is checked as that of the operator's own connection is.
func (s *Servers) at(address string) (server, error) {
	if i := slices.IndexFunc(s.listed, func(known server) bool { return known.address == address }); i >= 0 {
		return s.listed[i], nil
	}
	config := rest.CopyConfig(s.config)
	config.Host, config.Timeout = "https://"+address, answerWithin
	if config.ServerName == "" && len(s.given) == 0 {
		config.ServerName = servingName
	}
	c, err := client.New(config, client.Options{Scheme: s.live.Scheme(), Mapper: s.live.RESTMapper()})
	if err != nil {
		return server{}, fmt.Errorf("API server %s: %w", address, err)
	}
	return server{address, c}, nil
}

// addressesOf are the addresses in the EndpointSlice of the Service kubernetes. Each API
// server keeps its own there; one that stops or dies leaves it.
func addressesOf(slice *discoveryv1.EndpointSlice) []string {
	isHTTPS := func(p discoveryv1.EndpointPort) bool { return ptr.Deref(p.Name, "") == "https" && p.Port != nil }
	i := slices.IndexFunc(slice.Ports, isHTTPS)
	if i < 0 {
		return nil
	}
	port := strconv.Itoa(int(*slice.Ports[i].Port))
	var all []string
	for _, endpoint := range slice.Endpoints {
		if !ptr.Deref(endpoint.Conditions.Ready, true) {
			continue
		}
		for _, address := range endpoint.Addresses {
			all = append(all, net.JoinHostPort(address, port))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unreachable reports whether no API server answered lately at its own address, and none
// has since the operator started: from a network without a way to these addresses, only
// the configured one is asked.
func (s *Servers) unreachable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.answered && time.Since(s.unreachableAt) < unreachableFor
}

// note records whether an API server answered, and reports unreachable. Addresses that
// were given to the operator are never given up.
func (s *Servers) note(answered bool) bool {
	s.mu.Lock()
	if s.answered = s.answered || answered; !s.answered && len(s.given) == 0 {
		s.unreachableAt = time.Now()
	}
	s.mu.Unlock()
	return s.unreachable()
}

// Caveat returns what limits the knowledge that the walls hold; "" if nothing does.
func (p *Probe) Caveat() string {
	p.servers.mu.Lock()
	defer p.servers.mu.Unlock()
	if !p.servers.answered && !p.servers.unreachableAt.IsZero() {
		return "one API server confirmed the rules: the operator cannot connect to the addresses of the others"
	}
	return ""
}
