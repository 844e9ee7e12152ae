package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/prove/dial"
	"croft.dev/croft/internal/prove/verify"
)

// newPacketsProgram is the program of the pods of `croft verify --packets`.
func newPacketsProgram(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "packets",
		Short:  "Accept and try connections, in the pods of croft verify --packets",
		Hidden: true,
		RunE:   func(cmd *cobra.Command, args []string) error { return dial.Run(cmd.Context(), args, a.out) },
	}
}

// newPackets returns the test of --packets, or nil without the flag.
func (a *app) newPackets(ctx context.Context, o verifyOptions) (*verify.Packets, error) {
	if !o.packets {
		return nil, nil
	}
	platform, pool, image, err := a.choosePods(ctx, o, "--packets")
	if err != nil {
		return nil, err
	}
	packets, err := verify.NewPackets(*platform, pool, image)
	return packets, toFailure(err)
}

// choosePods returns the Platform, and the pool and the image of the pods of a flag.
func (a *app) choosePods(ctx context.Context, o verifyOptions, flag string) (platform *v1alpha1.Platform, pool, image string, err error) {
	c, err := a.newClient()
	if err != nil {
		return nil, "", "", toFailure(err)
	}
	live, err := a.readSubject(ctx, c, &o.files)
	if err != nil {
		return nil, "", "", err
	}
	if pool, err = choosePool(live, flag, o.pool); err != nil {
		return nil, "", "", err
	}
	image = o.image
	if image == "" {
		image, err = findOperatorImage(ctx, c, flag)
	}
	return &live.Platforms[0], pool, image, err
}

// choosePool returns the named pool, or the only one.
func choosePool(declared *manifest.Declaration, flag, name string) (string, error) {
	var names []string
	for i := range declared.Pools {
		names = append(names, declared.Pools[i].Name)
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "", failuref("%s: the pods need a pool, and none is declared", flag)
	case name == "" && len(names) == 1:
		return names[0], nil
	case name == "":
		return "", fmt.Errorf("%s: there are several pools: name the one on which the pods run with --pool: %s", flag, strings.Join(names, ", "))
	case !slices.Contains(names, name):
		return "", fmt.Errorf("--pool %s: there is no such pool: write one of %s", name, strings.Join(names, ", "))
	default:
		return name, nil
	}
}

// findOperatorImage returns the image of the operator's Deployment.
func findOperatorImage(ctx context.Context, c client.Client, flag string) (string, error) {
	var operator appsv1.Deployment
	err := c.Get(ctx, client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: v1alpha1.ManagedBy}, &operator)
	if client.IgnoreNotFound(err) != nil {
		return "", failuref("reading the operator's Deployment: %w", explainUnreachable(err))
	}
	if err != nil || len(operator.Spec.Template.Spec.Containers) == 0 {
		return "", fmt.Errorf("%s: no Deployment runs croft's operator here: name croft's image with --image", flag)
	}
	return operator.Spec.Template.Spec.Containers[0].Image, nil
}

func (a *app) runPackets(ctx context.Context, packets *verify.Packets, progress *progress) ([]verify.Result, error) {
	c, err := a.newClient()
	if err != nil {
		return nil, err
	}
	return packets.Run(ctx, c, func(text string) { progress.update("packets: %s", text) })
}
