package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/access/dex"
	"croft.dev/croft/internal/access/login"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/gitops"
	"croft.dev/croft/internal/walls/wall"
)

func newRender(a *app) *cobra.Command {
	var (
		files      fileFlags
		output     format
		withDex    bool
		options    dex.Options
		withArgoCD bool
		namespace  string
		declared   bool
	)
	c := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Print every object that croft renders from a file, without a cluster",
		Long: `Print every object that croft renders from a file: for review, or for a cluster that is
managed by GitOps without croft's operator. The same file gives the same bytes.

The cluster needs croft's kinds (croft install) and Karpenter's.

With --objects it prints the declared objects instead, the Platform, Pools, Tenants and
SecondaryNetworks, each with the fields that the file sets: for Flux or Argo CD to apply
to a cluster with croft's operator (docs/how-to/gitops.md). Several files are checked together.

With --dex it prints the configuration of Dex instead, with the client for croft login.
Add the connector to your own identity provider; a comment names the groups that it has
to return.

With --argocd it prints Argo CD's objects for tenants' sources instead, if the file has
platform.gitops: ArgoCD: an AppProject for each tenant, an Application for each source.
Turn on impersonation in Argo CD first (docs/how-to/gitops.md): otherwise it applies teams'
manifests with its own rights.`,
		Example: `  croft render -f croft.yaml | kubectl apply --server-side -f -
  croft render -f clusters/production -f tenants --objects > objects.yaml
  croft render -f croft.yaml --dex --issuer https://dex.example.org > dex.yaml
  croft render -f croft.yaml --argocd > argocd/tenants.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, e, err := files.loadEstate(a.in)
			if err != nil {
				return err
			}
			if declared {
				return printObjects(a.out, d.Objects(), output)
			}
			if withDex {
				return a.renderDex(e, options, output)
			}
			if withArgoCD {
				return a.renderArgoCD(e, namespace, output)
			}
			return printObjects(a.out, wall.Objects(e), output)
		},
	}
	files.addFlags(c)
	output.addFlags(c, formatYAML, formatJSON)
	flags := c.Flags()
	flags.BoolVar(&declared, "objects", false, "print the declared objects (Platform, Pools, Tenants), instead of the objects that croft renders from them")
	flags.BoolVar(&withDex, "dex", false, "print the configuration of Dex for croft login, instead of objects")
	flags.StringVar(&options.Issuer, "issuer", "", "with --dex: URL of Dex, as in its tokens")
	flags.StringVar(&options.ClientID, "client-id", "croft", "with --dex: ID of croft login's client")
	flags.BoolVar(&withArgoCD, "argocd", false, "print Argo CD's objects for tenants' sources, instead of croft's objects")
	flags.StringVar(&namespace, "argocd-namespace", "argocd", "with --argocd: namespace that Argo CD runs in")
	refusePointlessFlags(c, "it is for --dex", func() bool { return !withDex }, "issuer", "client-id")
	refusePointlessFlags(c, "it is for --argocd", func() bool { return !withArgoCD }, "argocd-namespace")
	c.MarkFlagsMutuallyExclusive("objects", "dex", "argocd")
	return c
}

// renderArgoCD prints the objects that Argo CD needs to apply tenants' sources.
func (a *app) renderArgoCD(e *estate.Estate, namespace string, output format) error {
	if e.Platform.GitOps != v1alpha1.GitOpsArgoCD {
		return errors.New("--argocd: croft's operator writes objects of Flux for this file: set platform.gitops to ArgoCD, or omit --argocd")
	}
	for _, t := range e.Tenants {
		if slices.Contains(t.Namespaces, namespace) {
			return fmt.Errorf("--argocd-namespace: %s is a namespace of tenant %s, whose people could make Argo CD apply any object: name Argo CD's own namespace",
				namespace, t.Name)
		}
	}
	return printObjects(a.out, gitops.ArgoCD(e, namespace), output)
}

// renderDex prints a configuration of Dex that croft login accepts.
func (a *app) renderDex(e *estate.Estate, o dex.Options, output format) error {
	if output != formatYAML {
		return fmt.Errorf("-o %s: the configuration of Dex is YAML with comments: write -o yaml", output)
	}
	if _, err := login.New(login.Options{Issuer: o.Issuer, ClientID: o.ClientID}); err != nil {
		return classifyLoginError(err)
	}
	content, err := dex.Config(e, o)
	if err != nil {
		return toFailure(err)
	}
	_, err = a.out.Write(content)
	return toFailure(err)
}
