package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/prove/trial"
)

type tryOptions struct {
	files   fileFlags
	tenant  string
	live    bool
	options trial.Options
	output  format
}

func newTry(a *app) *cobra.Command {
	var o tryOptions
	c := &cobra.Command{
		Use:   "try (-f FILE --tenant NAME | --live) MANIFEST...",
		Short: "Check a team's manifests against its walls, without a cluster or by dry runs",
		Long: `Check a team's manifests against the tenant's walls: which objects they would refuse,
and by which rule; which they would change, and how; and which they would warn about,
each with file and line. A MANIFEST is a file of objects, a directory of files, or - for
standard input, such as the output of helm template or kustomize build.

-f needs no cluster: the API server's own code decides, with the walls that the file
declares. The creator of the objects is a user with the tenant's role operator, or a
service account. The state of a cluster is unknown: quotas in use, kinds of add-ons and
their own rules, and other admission policies.

With --live the cluster decides, by dry runs that change nothing: as you, in the
namespace of -n or of the kubeconfig's context; with --tenant as a user with the
tenant's role operator, or with --as-service-account as that account. These two need
the right to impersonate.

The command also tries the pods and claims that Kubernetes would create from the objects.

-o junit prints a test case for each object, and -o sarif prints annotations for the
lines of a change, as GitHub and others show them.

Exit status 0 means that no object is refused, 1 that some are, 2 bad input.`,
		Example: `  croft try -f croft.yaml --tenant shop manifests/
  helm template web ./chart | croft try -f croft.yaml --tenant shop -
  croft try -f croft.yaml --tenant shop --as-service-account ci/deployer job.yaml
  croft try --live -n shop manifests/`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.tryManifests(cmd.Context(), o, args) },
	}
	c.Flags().StringSliceVarP(&o.files.names, "filename", "f", nil, "croft.yaml, a stream of croft's objects, a directory of either, or - for standard input")
	c.Flags().BoolVar(&o.live, "live", false, "send dry runs to the cluster")
	c.Flags().StringVar(&o.tenant, "tenant", "", "tenant of the manifests")
	c.Flags().StringVarP(&o.options.Namespace, "namespace", "n", "", "namespace of objects that name none (default the tenant's first)")
	c.Flags().StringVar(&o.options.ServiceAccount, "as-service-account", "", "service account that creates the objects: NAME or NAMESPACE/NAME")
	c.Flags().StringVar(&o.options.StorageClass, "storage-class", "", "the cluster's default storage class (default the first that the tenant may use)")
	c.MarkFlagsMutuallyExclusive("filename", "live")
	c.MarkFlagsMutuallyExclusive("storage-class", "live")
	o.output.addFlags(c, formatTable, formatJSON, formatYAML, formatJUnit, formatSARIF)
	return c
}

func (a *app) tryManifests(ctx context.Context, o tryOptions, names []string) error {
	var (
		t   *trial.Trial
		err error
	)
	if slices.Contains(names, "-") && slices.Contains(o.files.names, "-") {
		return errors.New("-f - and the manifest - are both standard input: name a file for one of them")
	}
	manifests, err := a.readManifests(names)
	if err != nil {
		return err
	}
	started := time.Now()
	if o.live {
		t, err = a.tryLive(ctx, o)
	} else {
		t, err = a.tryOffline(o)
	}
	if err != nil {
		return err
	}
	report, err := t.Try(ctx, manifests)
	var impersonation *trial.ImpersonationError
	if errors.As(err, &impersonation) {
		return failuref("nothing was tried: %w: omit --tenant and --as-service-account to try the manifests as yourself (see docs/reference/rights.md)", err)
	}
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	if err := a.printTrial(report, o, time.Since(started)); err != nil {
		return err
	}
	if report.Refuses() {
		return errReported()
	}
	return nil
}

// tryOffline sends no requests to a cluster.
func (a *app) tryOffline(o tryOptions) (*trial.Trial, error) {
	if len(o.files.names) == 0 || o.tenant == "" {
		return nil, errors.New("name the file that declares the tenant with -f and the tenant with --tenant, or use the cluster with --live")
	}
	e, err := o.files.buildEstate(a.in)
	if err != nil {
		return nil, err
	}
	tenant := e.FindTenant(o.tenant)
	if tenant == nil {
		return nil, fmt.Errorf("--tenant %s: %s declares no such tenant", o.tenant, strings.Join(o.files.names, ", "))
	}
	return trial.New(e, tenant, o.options)
}

// tryLive sends requests to the cluster: as a member of a declared tenant, or as the
// caller.
func (a *app) tryLive(ctx context.Context, o tryOptions) (*trial.Trial, error) {
	config, err := a.loadConfig()
	if err != nil {
		return nil, toFailure(err)
	}
	var tenant *estate.Tenant
	if o.tenant != "" {
		c, err := a.newClient()
		if err != nil {
			return nil, toFailure(err)
		}
		declaration, err := a.readSubject(ctx, c, &subjectFlags{})
		if apierrors.IsForbidden(err) {
			return nil, failuref("nothing was tried: you may not read the declared objects (%w): omit --tenant to try the manifests as yourself", err)
		}
		if err != nil {
			return nil, err
		}
		e, problems := estate.Build(declaration)
		if e == nil {
			return nil, toFailure(problems)
		}
		if tenant = e.FindTenant(o.tenant); tenant == nil {
			return nil, fmt.Errorf("--tenant %s: there is no such tenant, or it is not valid: `croft status` lists them", o.tenant)
		}
	} else if o.options.Namespace == "" {
		o.options.Namespace = a.currentNamespace()
	}
	t, err := trial.NewLive(config, tenant, o.options)
	if err != nil && tenant == nil {
		return nil, toFailure(explainUnreachable(err))
	}
	return t, err
}

func (a *app) readManifests(names []string) ([]trial.Manifest, error) {
	var all []trial.Manifest
	for _, name := range names {
		files, err := listFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := readFile(file, a.in)
			if err != nil {
				return nil, err
			}
			if file == "-" {
				file = "<stdin>"
			}
			some, err := trial.ReadManifests(file, data)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: the file contains no object", strings.Join(names, ", "))
	}
	return all, nil
}
