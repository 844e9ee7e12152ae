package cli

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/prove/certificate"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
)

type certificateOptions struct {
	tenant, key string
	timeout     time.Duration
}

func newCertificate(a *app) *cobra.Command {
	var o certificateOptions
	c := &cobra.Command{
		Use:   "certificate --tenant NAME",
		Short: "Try the walls of a tenant, and print an attestation of the result",
		Long: `Try the walls of a tenant, and print an attestation of the result: an in-toto statement
with the attacks that the walls stopped, croft's version, the cluster, the time, and a
digest of the objects of the tenant's walls. It names the open connections to other
tenants, with the end of the consent.

The command tries the attacks of croft verify --tenant: dry runs, as the tenant's people.
It needs the same rights, and changes nothing. If the walls do not stop every attack, or a
connection to another tenant is open after its end, it prints the results and no
attestation.

With --key, the statement is signed with an Ed25519 key, and printed in a DSSE envelope.
openssl genpkey -algorithm ed25519 generates such a key.`,
		Example: `  croft certificate --tenant shop --key signing.pem > shop.intoto.json`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runCertificate(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.tenant, "tenant", "", "name of the tenant")
	c.Flags().StringVar(&o.key, "key", "", "PEM file of an Ed25519 key (PKCS #8) to sign with; without it the attestation is not signed")
	c.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "time limit of the attacks")
	if err := c.MarkFlagRequired("tenant"); err != nil {
		panic(err)
	}
	return c
}

func (a *app) runCertificate(ctx context.Context, o certificateOptions) error {
	if o.tenant == "" {
		return errors.New("--tenant is empty: name a tenant; `croft status` lists them")
	}
	var key ed25519.PrivateKey
	if o.key != "" {
		text, err := readFile(o.key, nil)
		if err != nil {
			return fmt.Errorf("--key: %w", err)
		}
		if key, err = certificate.ParseKey(text); err != nil {
			return fmt.Errorf("--key %s: %w", o.key, err)
		}
	}
	stage, e, err := a.newStage(ctx, verifyOptions{tenant: o.tenant})
	if err != nil {
		return err
	}
	results, err := a.tryAllAttacks(ctx, stage, o.timeout)
	if err != nil {
		return err
	}
	predicate, err := a.buildPredicate(ctx, e, o.tenant)
	if err != nil {
		return err
	}
	statement, err := certificate.New(predicate, wall.TenantObjects(&e.Platform, e.FindTenant(o.tenant)), results)
	if err != nil {
		return toFailure(err)
	}
	if !statement.Predicate.Verified {
		a.printResults(results, false, 0)
		return failuref("no attestation: %s", explainUnverified(&statement.Predicate))
	}
	if key == nil {
		return formatJSON.print(a.out, statement)
	}
	envelope, err := certificate.Sign(statement, key)
	if err != nil {
		return toFailure(err)
	}
	return formatJSON.print(a.out, envelope)
}

// tryAllAttacks runs every attack of a stage.
func (a *app) tryAllAttacks(ctx context.Context, s stage, timeout time.Duration) ([]verify.Result, error) {
	config, err := a.loadConfig()
	if err != nil {
		return nil, toFailure(err)
	}
	timed, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	progress := newProgress(a.err)
	tried := 0
	results, err := s.Run(timed, config, scheme.New(), func(attack.Attack) bool { return true }, func(r verify.Result) {
		tried++
		progress.update("%d tried, last %s/%s", tried, r.Wall, r.Name)
	})
	progress.finish()
	switch {
	case errors.Is(timed.Err(), context.DeadlineExceeded):
		return nil, failuref("not all attacks were tried within %s: set a longer --timeout", timeout)
	case err != nil:
		return nil, toFailure(explainUnreachable(err))
	}
	return results, nil
}

// explainUnverified returns why there is no attestation.
func explainUnverified(p *certificate.Predicate) string {
	var reasons []string
	for _, c := range p.ListExpired() {
		reasons = append(reasons, fmt.Sprintf("the consent to connections from tenant %s to tenant %s ended at %s, and they are still open: "+
			"the operator closes them when it runs; `croft doctor` names the policy", c.Caller, c.Callee, c.Until.UTC().Format(time.RFC3339)))
	}
	if len(reasons) == 0 || len(p.Attacks.Failed) > 0 {
		reasons = append(reasons, fmt.Sprintf("tenant %s's walls did not stop every attack", p.Tenant))
	}
	return strings.Join(reasons, "; ")
}

// buildPredicate returns the cluster, the tenant and its connections after a run of attacks.
func (a *app) buildPredicate(ctx context.Context, e *estate.Estate, tenant string) (certificate.Predicate, error) {
	p := certificate.Predicate{Tenant: tenant, At: time.Now().UTC().Truncate(time.Second), Version: version.String()}
	config, err := a.loadConfig()
	if err != nil {
		return p, toFailure(err)
	}
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return p, toFailure(err)
	}
	info, err := server.ServerVersion()
	if err != nil {
		return p, toFailure(explainUnreachable(err))
	}
	c, err := a.newClient()
	if err != nil {
		return p, toFailure(err)
	}
	var system corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		return p, failuref("reading the cluster's identity (namespace kube-system): %w", explainUnreachable(err))
	}
	open, err := verify.ListConnections(ctx, c, tenant)
	if err != nil {
		return p, toFailure(explainUnreachable(err))
	}
	p.Connections = certificate.ListConnections(open, p.At)
	p.Cluster = certificate.Cluster{Name: e.Platform.ClusterName, UID: string(system.UID), Kubernetes: info.GitVersion}
	if version.MutationScore != "" {
		score, err := strconv.ParseFloat(version.MutationScore, 64)
		if err != nil {
			return p, failuref("the mutation score of this release is not a number: %q: %w", version.MutationScore, err)
		}
		p.MutationScore = &score
	}
	return p, nil
}
