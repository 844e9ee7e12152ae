package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/version"
)

// clusterFlags choose the cluster, and log the requests to it. They have the names and
// meanings of kubectl's flags.
type clusterFlags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
	// verbosity is klog's, which client-go uses to log requests.
	verbosity uint
}

// clusterFlagNames are the flags that have no effect if a command uses no cluster.
var clusterFlagNames = []string{"kubeconfig", "context", "as", "as-group", "v"}

func newClusterFlags() *clusterFlags {
	return &clusterFlags{rules: clientcmd.NewDefaultClientConfigLoadingRules(), overrides: &clientcmd.ConfigOverrides{}}
}

func (f *clusterFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.rules.ExplicitPath, "kubeconfig", "", "path of the kubeconfig file")
	flags.StringVar(&f.overrides.CurrentContext, "context", "", "name of the kubeconfig's context")
	flags.StringVar(&f.overrides.AuthInfo.Impersonate, "as", "", "user to act as")
	flags.StringArrayVar(&f.overrides.AuthInfo.ImpersonateGroups, "as-group", nil, "group to act as a member of; may be repeated")
	flags.UintVarP(&f.verbosity, "v", "v", 0, "verbosity of the log, as kubectl has it: 6 prints each request to the cluster with its status and duration, 8 also headers and bodies, which may contain secrets")
}

// loadConfig returns the configuration of the chosen cluster. The client has no rate limit of
// its own: the API server's priority and fairness covers that.
func (a *app) loadConfig() (*rest.Config, error) {
	if err := a.logRequests(); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(a.cluster.rules, a.cluster.overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster is configured: %w: name one with --kubeconfig or --context", err)
	}
	if as := a.cluster.overrides.AuthInfo; as.Impersonate != "" {
		// The in-cluster configuration of a pod ignores these flags.
		config.Impersonate.UserName, config.Impersonate.Groups = as.Impersonate, as.ImpersonateGroups
	}
	config.QPS = -1
	// The API server derives the field manager of plain writes from the user agent. The
	// binary may have another name, such as kubectl-croft.
	config.UserAgent = v1alpha1.ManagedBy + "/" + version.String()
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if a.interrupt != nil {
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return untilInterrupted{rt, a.interrupt} })
	}
	return config, nil
}

// currentNamespace returns the namespace of the kubeconfig's context, or default.
func (a *app) currentNamespace() string {
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(a.cluster.rules, a.cluster.overrides).Namespace()
	if err != nil {
		return "default" // a missing cluster is reported at the first request
	}
	return namespace
}

func (a *app) newClient() (client.Client, error) {
	config, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	return c, explainUnreachable(err)
}

// explainUnreachable adds the remedy to errors of the network and of refused credentials. After an
// interruption by the user it returns the error unchanged.
func explainUnreachable(err error) error {
	const logIn = ": log in again (`croft login`, or your provider's own command), or name another user with --kubeconfig or --context"
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the cluster does not accept your credentials: %w%s", err, logIn)
	}
	var netErr *url.Error
	if errors.As(err, &netErr) && !errors.Is(err, context.Canceled) {
		if strings.Contains(netErr.Error(), "getting credentials: ") {
			return fmt.Errorf("your kubeconfig gives no credentials: %w%s", netErr.Err, logIn)
		}
		return fmt.Errorf("cannot reach the cluster: %w: check that it runs, and that --kubeconfig and --context name the right one", netErr.Err)
	}
	return err
}

// namedList is a list to read, and the name of its resource in messages.
type namedList struct {
	name string
	list client.ObjectList
}

// readLists reads lists in all namespaces. A kind that the cluster does not serve has no objects.
// The error is hiddenLists if the caller may not read some.
func readLists(ctx context.Context, c client.Reader, lists []namedList) error {
	var hidden hiddenLists
	for _, l := range lists {
		switch err := c.List(ctx, l.list); {
		case apierrors.IsForbidden(err):
			hidden = append(hidden, l.name)
		case err != nil && !meta.IsNoMatchError(err):
			return fmt.Errorf("read %s: %w", l.name, explainUnreachable(err))
		}
	}
	if len(hidden) > 0 {
		return hidden
	}
	return nil
}

// hiddenLists are the names of lists that the caller may not read.
type hiddenLists []string

// Error names all lists, so that one request to a platform admin is enough.
func (h hiddenLists) Error() string {
	return fmt.Sprintf("you may not read %s: ask a platform admin for the right to list them in all namespaces", strings.Join(h, ", "))
}

// readDeclaration reads croft's objects from the cluster.
func readDeclaration(ctx context.Context, c client.Reader) (*manifest.Declaration, error) {
	var (
		platforms v1alpha1.PlatformList
		pools     v1alpha1.PoolList
		tenants   v1alpha1.TenantList
		networks  v1alpha1.SecondaryNetworkList
	)
	for _, list := range []client.ObjectList{&platforms, &pools, &tenants, &networks} {
		if err := c.List(ctx, list); err != nil {
			if meta.IsNoMatchError(err) {
				return nil, errors.New("this cluster does not know croft's kinds: run `croft install` first")
			}
			return nil, fmt.Errorf("reading the declared objects in the cluster: %w", explainUnreachable(err))
		}
	}
	// An older installation of croft does not have these kinds.
	var requests v1alpha1.TenantNamespaceList
	if err := c.List(ctx, &requests); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("reading TenantNamespaces: %w", explainUnreachable(err))
	}
	var callers v1alpha1.TenantCallerList
	if err := c.List(ctx, &callers); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("reading TenantCallers: %w", explainUnreachable(err))
	}
	return &manifest.Declaration{
		Platforms: platforms.Items, Pools: pools.Items, Tenants: tenants.Items, Networks: networks.Items,
		Requests: requests.Items, Callers: callers.Items, Now: time.Now(),
	}, nil
}
