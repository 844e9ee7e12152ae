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
	"k8s.io/utils/clock"
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
	clock  clock.PassiveClock
	// given are configured addresses, which replace the cluster's list.
	given []string

	mu     sync.Mutex
	listed []server
	listAt time.Time
	// answered is set once one of them has answered since the operator started.
	// unreachableAt is the last time when none had.
	answered      bool
	unreachableAt time.Time
}

// server is one API server.
type server struct {
	address string
	client  client.Client
}

// NewServers returns the API servers at the given addresses (HOST:PORT), or, if none
// are given, the API servers that the cluster lists. live reads from the API server that config names.
func NewServers(live client.Client, config *rest.Config, given []string, clock clock.PassiveClock) *Servers {
	return &Servers{live: live, config: config, given: given, clock: clock}
}

// list returns the API servers if there are several.
func (s *Servers) list(ctx context.Context) ([]server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock.Since(s.listAt) < listedFor {
		return s.listed, nil
	}
	addresses := s.given
	if len(addresses) == 0 {
		slice := &discoveryv1.EndpointSlice{}
		key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}
		if err := s.live.Get(ctx, key, slice); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the addresses of the API servers: %w", err)
		}
		addresses = listAddresses(slice)
	}
	var listed []server
	if len(addresses) > 1 {
		for _, address := range addresses {
			found, err := s.connectTo(address)
			if err != nil {
				return nil, err
			}
			listed = append(listed, found)
		}
	}
	s.listed, s.listAt = listed, s.clock.Now()
	return listed, nil
}

// connectTo returns a client of the API server at an address, with the operator's credentials
// and authorities.
func (s *Servers) connectTo(address string) (server, error) {
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

// listAddresses returns the addresses in the EndpointSlice of the Service kubernetes. Each API
// server keeps its own there; one that stops or dies leaves it.
func listAddresses(slice *discoveryv1.EndpointSlice) []string {
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

// areUnreachable reports whether no API server has answered at its own address since the
// operator started, at the last attempt less than unreachableFor ago. From a network without a
// route to these addresses, the operator checks only its own connection.
func (s *Servers) areUnreachable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.answered && s.clock.Since(s.unreachableAt) < unreachableFor
}

// recordAnswer records whether an API server answered, and returns areUnreachable. Configured
// addresses always have to answer.
func (s *Servers) recordAnswer(answered bool) bool {
	s.mu.Lock()
	if s.answered = s.answered || answered; !s.answered && len(s.given) == 0 {
		s.unreachableAt = s.clock.Now()
	}
	s.mu.Unlock()
	return s.areUnreachable()
}

// Caveat returns the limitation of the last confirmation, or "".
func (p *Probe) Caveat() string {
	p.servers.mu.Lock()
	defer p.servers.mu.Unlock()
	if !p.servers.answered && !p.servers.unreachableAt.IsZero() {
		return "one API server confirmed the rules: the operator cannot connect to the addresses of the others"
	}
	return ""
}
