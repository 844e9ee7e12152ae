package cli

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/certificate"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/verify"
	"croft.dev/croft/internal/version"
	"croft.dev/croft/internal/wall"
)

type certificateOptions struct {
	tenant, key string
	timeout     time.Duration
}

func newCertificate(a *app) *cobra.Command {
	var o certificateOptions
	c := &cobra.Command{
		Use:   "certificate --tenant NAME",
		Short: "Try the walls of a tenant, and write down that they held, signed if you like",
		Long: `Try the walls of a tenant, and write down that they held, signed if you like: an in-toto
statement with the attacks that held, croft's version, the cluster, the time, and a digest
of the objects that stand around the tenant.

The attacks are those of croft verify --tenant: dry runs, as the tenant's people. It needs
the same rights, and changes nothing. If one does not hold, nothing is certified.

With --key the statement is put into a DSSE envelope and signed with an Ed25519 key, which
openssl genpkey -algorithm ed25519 makes.`,
		Example: `  croft certificate --tenant shop --key signing.pem > shop.intoto.json`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.certificate(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.tenant, "tenant", "", "the tenant")
	c.Flags().StringVar(&o.key, "key", "", "PEM file of an Ed25519 key (PKCS #8) to sign with; not signed by default")
	c.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long the attacks may take")
	if err := c.MarkFlagRequired("tenant"); err != nil {
		panic(err)
	}
	return c
}

func (a *app) certificate(ctx context.Context, o certificateOptions) error {
	if o.tenant == "" {
		return errors.New("--tenant: name a tenant: `croft status` lists them")
	}
	var key ed25519.PrivateKey
	if o.key != "" {
		text, err := read(o.key, nil)
		if err != nil {
			return fmt.Errorf("--key: %w", err)
		}
		if key, err = certificate.ParseKey(text); err != nil {
			return fmt.Errorf("--key %s: %w", o.key, err)
		}
	}
	stage, e, err := a.stage(ctx, verifyOptions{tenant: o.tenant})
	if err != nil {
		return err
	}
	results, err := a.tryAll(ctx, stage, o.timeout)
	if err != nil {
		return err
	}
	predicate, err := a.predicate(ctx, e, o.tenant)
	if err != nil {
		return err
	}
	statement, err := certificate.New(predicate, wall.TenantObjects(&e.Platform, e.Tenant(o.tenant)), results)
	if err != nil {
		return failed(err)
	}
	if !statement.Predicate.Verified {
		a.printResults(results, false, 0)
		return failedf("nothing is certified: not every attack on tenant %s was stopped by its wall", o.tenant)
	}
	if key == nil {
		return formatJSON.print(a.out, statement)
	}
	envelope, err := certificate.Sign(statement, key)
	if err != nil {
		return failed(err)
	}
	return formatJSON.print(a.out, envelope)
}

// tryAll runs every attack of a stage.
func (a *app) tryAll(ctx context.Context, s stage, timeout time.Duration) ([]verify.Result, error) {
	config, err := a.config()
	if err != nil {
		return nil, failed(err)
	}
	timed, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	progress := newProgress(a.err)
	tried := 0
	results, err := s.Run(timed, config, scheme.New(), func(attack.Attack) bool { return true }, func(r verify.Result) {
		tried++
		progress.update("%d tried, last %s/%s", tried, r.Wall, r.Name)
	})
	progress.done()
	switch {
	case errors.Is(timed.Err(), context.DeadlineExceeded):
		return nil, failedf("not all attacks were tried within %s: give it more with --timeout", timeout)
	case err != nil:
		return nil, failed(unreachable(err))
	}
	return results, nil
}

// predicate returns the cluster, the tenant and the user of a run of attacks.
func (a *app) predicate(ctx context.Context, e *estate.Estate, tenant string) (certificate.Predicate, error) {
	p := certificate.Predicate{Tenant: tenant, At: time.Now().UTC().Truncate(time.Second), Version: version.String()}
	config, err := a.config()
	if err != nil {
		return p, failed(err)
	}
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return p, failed(err)
	}
	info, err := server.ServerVersion()
	if err != nil {
		return p, failed(unreachable(err))
	}
	c, err := a.client()
	if err != nil {
		return p, failed(err)
	}
	var system corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		return p, failedf("asking which cluster it is: %w", unreachable(err))
	}
	p.Cluster = certificate.Cluster{Name: e.Platform.ClusterName, UID: string(system.UID), Kubernetes: info.GitVersion}
	if version.MutationScore != "" {
		score, err := strconv.ParseFloat(version.MutationScore, 64)
		if err != nil {
			return p, failedf("the mutation score of this release is %q: %w", version.MutationScore, err)
		}
		p.MutationScore = &score
	}
	return p, nil
}
