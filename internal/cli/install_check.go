package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/operate/install"
)

// runInstallCheck prints whether croft can be installed and whether it will work. The exit
// status is 0 if so, 1 if there is a problem, and 2 if the check itself fails.
func (a *app) runInstallCheck(ctx context.Context, options install.Options) error {
	found, err := a.runPreflight(ctx, options)
	if err != nil {
		return withStatus(exitBadInput, toFailure(explainUnreachable(err)))
	}
	rows, problems := make([][]string, len(found)), 0
	for i, f := range found {
		if f.State == install.Problem {
			problems++
		}
		rows[i] = []string{f.Check, string(f.State), f.Message}
	}
	printTable(a.out, []string{"CHECK", "STATE", "MESSAGE"}, rows)
	if problems > 0 {
		return failuref("%s to fix before croft install", wording.FormatCount(problems, "problem"))
	}
	return nil
}

func (a *app) runPreflight(ctx context.Context, options install.Options) ([]install.Finding, error) {
	config, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	server, err := d.ServerVersion()
	if err != nil {
		return nil, err
	}
	c, err := a.newClient()
	if err != nil {
		return nil, err
	}
	objects, err := install.Objects(options)
	if err != nil {
		return nil, err
	}
	live, err := readDeclarationIfServed(ctx, c)
	if apierrors.IsForbidden(err) {
		live, err = &manifest.Declaration{}, nil // the rights are checked below
	}
	if err != nil {
		return nil, err
	}
	platform, err := buildPlatformObjects(live)
	if err != nil {
		return nil, err
	}
	found, err := install.Preflight(ctx, c, server.GitVersion, append(objects, platform...))
	if err != nil {
		return nil, err
	}
	present, err := checkInstalled(ctx, c)
	return append(found, present), err
}

// checkInstalled checks for another installation of croft.
func checkInstalled(ctx context.Context, c client.Client) (install.Finding, error) {
	f := install.Finding{Check: "croft", State: install.Good, Message: "not installed yet"}
	const unknown = "unknown, since you may not read its objects"
	helm := checkNotHelm(ctx, c, "upgrade release %s in namespace %s with helm upgrade")
	switch {
	case apierrors.IsForbidden(helm):
		f.State, f.Message = install.Warning, unknown
		return f, nil
	case helm != nil:
		f.State, f.Message = install.Problem, helm.Error()
		return f, nil //nolint:nilerr // it is the finding
	}
	beat, err := heartbeat.Read(ctx, c)
	switch {
	case apierrors.IsForbidden(err):
		f.State, f.Message = install.Warning, unknown
	case err != nil:
		return f, err
	case version.IsOlder(version.String(), beat.Version):
		f.State, f.Message = install.Problem, fmt.Sprintf("the operator is croft %s, and this is the older croft %s: use %[1]s or a newer version, or --allow-downgrade", beat.Version, version.String())
	case beat.Version != "":
		f.Message = fmt.Sprintf("the operator is croft %s (%s), and this is croft %s", beat.Version, beat.Describe(time.Now()), version.String())
	}
	return f, nil
}
