package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/internal/test/sandbox"
)

const (
	// proxyNamespaces is the number of namespaces, ownNamespaces the number that a developer of
	// the group few can get, and listedNamespaces the number that a list of all namespaces
	// merges for the group ten.
	proxyNamespaces, ownNamespaces, listedNamespaces = 5000, 3, 10
	// objectsPerNamespace is the number of ConfigMaps in each listed namespace.
	objectsPerNamespace = 50
	// proxyRounds is the number of measured requests per side.
	proxyRounds = 1000
	// manyGroups is the number of groups of a user with many groups.
	manyGroups = 200
	// openWatches is the number of concurrent watches.
	openWatches = 1000
)

// measureProxy compares requests through croft proxy with the same requests to the API
// server.
func measureProxy(ctx context.Context, b *bench) (found []comparison, err error) {
	dir, err := os.MkdirTemp("", "croft-bench-proxy-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	idp, err := newIssuer()
	if err != nil {
		return nil, err
	}
	defer idp.Close()
	configuration, err := idp.buildConfiguration()
	if err != nil {
		return nil, err
	}
	err = withSandbox(ctx, sandbox.Options{Components: sandbox.APIOnly}, func(c *sandbox.Cluster) error {
		front, err := newFront(c.Config)
		if err != nil {
			return err
		}
		defer front.Close()
		p := &proxyBench{admin: removeRateLimit(c.Config), idp: idp, front: front}
		if err := p.fillCluster(ctx); err != nil {
			return err
		}
		// Only the log benchmark uses front; all others use the API server itself.
		if p.proxy, err = b.startProxy(ctx, dir, c.Config, configuration); err != nil {
			return err
		}
		defer func() { _ = p.proxy.stop() }()
		for _, measure := range []func(context.Context) ([]comparison, error){p.measureGets, p.measureNamespaceLists, p.measureMergedLists, p.measureWatches} {
			more, err := measure(ctx)
			found = append(found, more...)
			if err != nil {
				return err
			}
		}
		more, err := p.measureLogs(ctx, b, dir, configuration)
		found = append(found, more...)
		return err
	})
	return found, err
}

// proxyBench is a cluster behind croft proxy, with an identity provider for its users.
type proxyBench struct {
	admin *rest.Config
	idp   *issuer
	front *httptest.Server
	proxy *proxy
	// account is the direct configuration of a service account with a developer's role.
	account *rest.Config
}

func removeRateLimit(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS = -1
	return c
}

func formatNamespace(i int) string { return fmt.Sprintf("n-%04d", i) }

// fillCluster creates the namespaces, binds developers to a role in some, and gives the group
// everywhere the right to get all of them.
func (p *proxyBench) fillCluster(ctx context.Context) error {
	printProgress("proxy: %d namespaces", proxyNamespaces)
	c, err := kubernetes.NewForConfig(p.admin)
	if err != nil {
		return err
	}
	group, filling := errgroup.WithContext(ctx)
	group.SetLimit(bareWorkers)
	for i := range proxyNamespaces {
		group.Go(func() error {
			_, err := c.CoreV1().Namespaces().Create(filling, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: formatNamespace(i)}}, metav1.CreateOptions{})
			if err != nil || i >= listedNamespaces {
				return err
			}
			return p.fillNamespace(filling, c, i)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, role := range []*rbacv1.ClusterRole{{
		ObjectMeta: metav1.ObjectMeta{Name: "gets-namespaces"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}},
	}, {
		ObjectMeta: metav1.ObjectMeta{Name: "developer"}, // without kube-controller-manager, view has no aggregated rules
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps", "pods/log"}, Verbs: []string{"get", "list", "watch"}}},
	}} {
		if _, err := c.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "gets-namespaces"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "everywhere", APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "gets-namespaces", APIGroup: rbacv1.GroupName},
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	account, err := c.CoreV1().ServiceAccounts(formatNamespace(0)).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "developer"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	issued, err := c.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	p.account = rest.AnonymousClientConfig(p.admin)
	p.account.QPS, p.account.BearerToken = -1, issued.Status.Token
	return nil
}

// fillNamespace binds developers to a role in a namespace and creates its objects. The
// group ten gets a role in every listed namespace, and the group few in the first ones
// only.
func (p *proxyBench) fillNamespace(ctx context.Context, c kubernetes.Interface, i int) error {
	subjects := []rbacv1.Subject{
		{Kind: rbacv1.GroupKind, Name: "ten", APIGroup: rbacv1.GroupName},
		{Kind: rbacv1.ServiceAccountKind, Namespace: formatNamespace(0), Name: "developer"},
	}
	if i < ownNamespaces {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "few", APIGroup: rbacv1.GroupName})
	}
	_, err := c.RbacV1().RoleBindings(formatNamespace(i)).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "developers"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "developer", APIGroup: rbacv1.GroupName},
	}, metav1.CreateOptions{})
	for j := 0; err == nil && j < objectsPerNamespace; j++ {
		_, err = c.CoreV1().ConfigMaps(formatNamespace(i)).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%d", j)}, Data: map[string]string{"key": "value"},
		}, metav1.CreateOptions{})
	}
	return err
}

// newUserConfig returns the configuration of a user who connects through the proxy.
func (p *proxyBench) newUserConfig(user string, groups ...string) (*rest.Config, error) {
	token, err := p.idp.signToken(user, groups...)
	return &rest.Config{Host: p.proxy.url, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(p.proxy.authority)}}, err
}

// request is a request that is measured.
type request func(context.Context) error

// getRequest returns a request that gets each path and reads the whole response.
func getRequest(config *rest.Config, paths ...string) (request, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		for _, path := range paths {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
			if err != nil {
				return err
			}
			answer, err := client.Do(r)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, answer.Body)
			if err = errors.Join(err, answer.Body.Close()); err != nil {
				return err
			}
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", path, answer.Status)
			}
		}
		return nil
	}, nil
}

// runInTurns sends each side's request n times, alternating between the sides, and returns the
// durations in seconds.
func runInTurns(ctx context.Context, n int, sides ...request) ([][]float64, error) {
	durations := make([][]float64, len(sides))
	for round := range n + n/10 {
		for i, side := range sides {
			one, err := timeSeconds(func() error { return side(ctx) })
			if err != nil {
				return nil, err
			}
			if round >= n/10 { // the first rounds are warm-up
				durations[i] = append(durations[i], one)
			}
		}
	}
	return durations, nil
}

// measureGets compares a GET with the same GET sent directly to the API server and through a
// minimal reverse proxy; and a GET by a user with many groups with a proxy that has each
// group reviewed.
func (p *proxyBench) measureGets(ctx context.Context) ([]comparison, error) {
	printProgress("proxy: GET")
	path := "/api/v1/namespaces/" + formatNamespace(0) + "/configmaps/c-0"
	bare, err := newReverseProxy(p.account)
	if err != nil {
		return nil, err
	}
	reviews, err := kubernetes.NewForConfig(p.admin)
	if err != nil {
		return nil, err
	}
	reviewing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range manyGroups {
			_, err := reviews.AuthorizationV1().SubjectAccessReviews().Create(r.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "developer", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "groups", Name: fmt.Sprintf("group-%d", i)},
			}}, metav1.CreateOptions{})
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		bare.ServeHTTP(w, r)
	})
	bareServer, reviewingServer := httptest.NewUnstartedServer(bare), httptest.NewUnstartedServer(reviewing)
	for _, s := range []*httptest.Server{bareServer, reviewingServer} {
		s.EnableHTTP2 = true
		s.StartTLS()
		defer s.Close()
	}
	groups := []string{"few"}
	for i := range manyGroups - 1 {
		groups = append(groups, fmt.Sprintf("group-%d", i))
	}
	few, err := p.newUserConfig("developer", "few")
	if err != nil {
		return nil, err
	}
	many, err := p.newUserConfig("developer", groups...)
	if err != nil {
		return nil, err
	}
	var sides []request
	for _, config := range []*rest.Config{few, p.account, newServerConfig(bareServer), many} {
		side, err := getRequest(config, path)
		if err != nil {
			return nil, err
		}
		sides = append(sides, side)
	}
	durations, err := runInTurns(ctx, proxyRounds, sides...)
	if err != nil {
		return nil, err
	}
	reviewed, err := getRequest(newServerConfig(reviewingServer), path)
	if err != nil {
		return nil, err
	}
	slow, err := runInTurns(ctx, 10, reviewed)
	if err != nil {
		return nil, err
	}
	croft, direct, throughBare, manyGroupsTimes := durations[0], durations[1], durations[2], durations[3]
	added := func(p float64) float64 {
		return (samples.Percentile(p, croft) - samples.Percentile(p, direct)) * 1000
	}
	return []comparison{
		{
			Name: "GET through croft proxy", Unit: inSeconds, Croft: samples.Median(croft), Alternative: samples.Median(direct), Raw: durations,
			Note: fmt.Sprintf("compared with a direct GET from the API server; medians of %d, alternating; overhead p50 %+.2f ms, p99 %+.2f ms", len(croft), added(50), added(99)),
		},
		{
			Name: "  the same", Unit: inSeconds, Croft: samples.Median(croft), Alternative: samples.Median(throughBare),
			Note: "compared with a minimal reverse proxy without authentication",
		},
		{
			Name: fmt.Sprintf("GET by a user with %d groups", manyGroups), Unit: inSeconds, Croft: samples.Median(manyGroupsTimes), Alternative: samples.Median(croft),
			Note: "compared with a user with one group",
		},
		{
			Name: "  the same", Unit: inSeconds, Croft: samples.Median(manyGroupsTimes), Alternative: samples.Median(slow[0]),
			Note: "compared with a proxy that has the API server review each group",
		},
	}, nil
}

// newServerConfig returns the configuration for a server in this process.
func newServerConfig(s *httptest.Server) *rest.Config {
	return &rest.Config{Host: s.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: encodeCertificate(s)}}
}

func encodeCertificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// measureNamespaceLists compares filtered lists of namespaces with an admin's list of all of them.
func (p *proxyBench) measureNamespaceLists(ctx context.Context) ([]comparison, error) {
	printProgress("proxy: namespaces")
	everywhere, err := p.newUserConfig("auditor", "everywhere")
	if err != nil {
		return nil, err
	}
	few, err := p.newUserConfig("developer", "few")
	if err != nil {
		return nil, err
	}
	var sides []request
	for _, config := range []*rest.Config{everywhere, few, p.admin} {
		side, err := getRequest(config, "/api/v1/namespaces")
		if err != nil {
			return nil, err
		}
		sides = append(sides, side)
	}
	durations, err := runInTurns(ctx, 20, sides...)
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("compared with an admin's direct list from the API server; medians of %d, alternating", len(durations[0]))
	return []comparison{
		{Name: fmt.Sprintf("namespaces, all %d", proxyNamespaces), Unit: inSeconds, Croft: samples.Median(durations[0]), Alternative: samples.Median(durations[2]), Note: note},
		{Name: fmt.Sprintf("namespaces, %d of %d", ownNamespaces, proxyNamespaces), Unit: inSeconds, Croft: samples.Median(durations[1]), Alternative: samples.Median(durations[2]), Note: note},
	}, nil
}

// measureMergedLists compares a list across all namespaces with a list of each.
func (p *proxyBench) measureMergedLists(ctx context.Context) ([]comparison, error) {
	printProgress("proxy: lists of all namespaces")
	ten, err := p.newUserConfig("developer", "ten")
	if err != nil {
		return nil, err
	}
	merged, err := getRequest(ten, "/api/v1/configmaps")
	if err != nil {
		return nil, err
	}
	var paths []string
	for i := range listedNamespaces {
		paths = append(paths, "/api/v1/namespaces/"+formatNamespace(i)+"/configmaps")
	}
	each, err := getRequest(p.account, paths...)
	if err != nil {
		return nil, err
	}
	durations, err := runInTurns(ctx, proxyRounds/10, merged, each)
	if err != nil {
		return nil, err
	}
	return []comparison{{
		Name: fmt.Sprintf("list -A, %d namespaces", listedNamespaces), Unit: inSeconds, Croft: samples.Median(durations[0]), Alternative: samples.Median(durations[1]),
		Note: fmt.Sprintf("compared with sequential direct lists of each from the API server; medians of %d, alternating", len(durations[0])),
	}}, nil
}

// measureWatches compares the proxy's memory before and after many watches are opened.
func (p *proxyBench) measureWatches(ctx context.Context) ([]comparison, error) {
	printProgress("proxy: %d watches", openWatches)
	config, err := p.newUserConfig("developer", "few")
	if err != nil {
		return nil, err
	}
	before, _, err := machine.ReadResident(p.proxy.pid)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, opening := errgroup.WithContext(ctx)
	group.SetLimit(bareWorkers)
	for i := range openWatches {
		group.Go(func() error {
			path := "/api/v1/namespaces?watch=true"
			if i%2 == 0 {
				path = "/api/v1/namespaces/" + formatNamespace(0) + "/configmaps?watch=true"
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
			if err != nil {
				return err
			}
			answer, err := client.Do(r) //nolint:bodyclose // closed when ctx ends
			if err == nil && answer.StatusCode != http.StatusOK {
				err = errors.New(answer.Status)
			}
			return errors.Join(err, opening.Err())
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	after, _, err := machine.ReadResident(p.proxy.pid)
	return []comparison{{
		Name: fmt.Sprintf("proxy's memory, %d watches", openWatches), Unit: inBytes, Croft: after, Alternative: before,
		Note: fmt.Sprintf("compared with before the watches, with %d namespaces; half of the watches are of namespaces, half of ConfigMaps", proxyNamespaces),
	}}, err
}

// measureLogs compares the download of a large log through the proxy with a direct download.
func (p *proxyBench) measureLogs(ctx context.Context, b *bench, dir, configuration string) ([]comparison, error) {
	printProgress("proxy: log of %s", machine.FormatBytes(logBytes))
	logProxy, err := b.startProxy(ctx, dir, newServerConfig(p.front), configuration)
	if err != nil {
		return nil, err
	}
	defer func() { _ = logProxy.stop() }()
	previous := p.proxy
	p.proxy = logProxy
	config, err := p.newUserConfig("developer", "few")
	p.proxy = previous
	if err != nil {
		return nil, err
	}
	croft, err := getRequest(config, logPath)
	if err != nil {
		return nil, err
	}
	direct, err := getRequest(newServerConfig(p.front), logPath)
	if err != nil {
		return nil, err
	}
	durations, err := runInTurns(ctx, 3, croft, direct)
	if err != nil {
		return nil, err
	}
	perSecond := func(took []float64) string { return machine.FormatBytes(logBytes/samples.Median(took)) + "/s" }
	return []comparison{{
		Name: "log of " + machine.FormatBytes(logBytes), Unit: inSeconds, Croft: samples.Median(durations[0]), Alternative: samples.Median(durations[1]),
		Note: fmt.Sprintf("compared with a direct download; %s instead of %s; medians of %d, alternating", perSecond(durations[0]), perSecond(durations[1]), len(durations[0])),
	}}, ctx.Err()
}
