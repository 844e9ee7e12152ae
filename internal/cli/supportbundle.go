package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/diagnose/supportbundle"
	"croft.dev/croft/internal/operate/heartbeat"
)

type supportOptions struct {
	output string
	redact bool
}

func newSupportBundle(a *app) *cobra.Command {
	var o supportOptions
	c := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect the data for a bug report in one file, without secrets and names",
		Long: `Collect the data for a bug report in one file, without secrets and names: versions, croft's objects with their conditions, the status of its policies, the
operator's Deployment, pods, leases and logs, events, Karpenter's NodePools and
NodeClaims, and the output of croft doctor and croft status. It changes nothing.

Secrets and ConfigMaps are never read. The command removes possible credentials from other
objects and logs: user data, values of environment variables, tokens, passwords in URLs.

By default, names of tenants, namespaces, pools, groups, users, hosts, nodes and the
cluster are replaced by pseudonyms, the same one for the same name, since a bundle is
often attached to a public issue. Each bundle has a new key. A second file next to the
bundle maps the pseudonyms to the names: keep it, and do not send it. Read the bundle
before you send it.

The command reads with your own rights, and lists the data that you may not read.`,
		Example: `  croft support-bundle
  croft support-bundle -o case-42.tar.gz --redact=false`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSupportBundle(cmd.Context(), o) },
	}
	c.Flags().StringVarP(&o.output, "output", "o", "",
		"file to write; croft-support-DATE.tar.gz in the working directory by default")
	c.Flags().BoolVar(&o.redact, "redact", true, "replace names by pseudonyms")
	return c
}

// archiveSuffix is the required end of a bundle's name.
const archiveSuffix = ".tar.gz"

func (a *app) runSupportBundle(ctx context.Context, o supportOptions) error {
	at := time.Now().UTC()
	if o.output == "" {
		o.output = "croft-support-" + at.Format("20060102-150405") + archiveSuffix
	}
	if !strings.HasSuffix(o.output, archiveSuffix) {
		return fmt.Errorf("-o %s: the bundle is a compressed archive: write a name that ends with %s", o.output, archiveSuffix)
	}
	base := strings.TrimSuffix(o.output, archiveSuffix)
	for _, file := range []string{o.output, base + ".names.json"} {
		if _, err := os.Stat(file); err == nil {
			return fmt.Errorf("-o %s: %s exists already: write another name", o.output, file)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("-o %s: %w", o.output, err)
		}
	}
	config, err := a.loadConfig()
	if err != nil {
		return toFailure(err)
	}
	bundle, redactor, err := a.collectBundle(ctx, config, o, at)
	if err != nil {
		return err
	}
	if err := createFile(o.output, func(f *os.File) error { return bundle.Write(f, filepath.Base(base), at) }); err != nil {
		return toFailure(err)
	}
	size, err := os.Stat(o.output)
	if err != nil {
		return toFailure(err)
	}
	printSafely(a.out, "%s\n", o.output)
	printSafely(a.err, "%s, %d KB\n", wording.FormatCount(len(bundle.Files), "file"), (size.Size()+1023)/1024)
	for _, line := range bundle.Unreadable {
		printSafely(a.err, "left out: %s\n", line)
	}
	if redactor == nil {
		printSafely(a.err, "names are not redacted: send the bundle only to people who may know them\n")
		return nil
	}
	err = createFile(base+".names.json", func(f *os.File) error {
		encoder := json.NewEncoder(f)
		encoder.SetIndent("", "  ")
		return encoder.Encode(redactor.Names())
	})
	printSafely(a.err, "names are redacted; %s maps the pseudonyms to the names: keep it, and do not send it\n", base+".names.json")
	return toFailure(err)
}

// createFile writes a new file that only its owner may read.
func createFile(name string, write func(*os.File) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// collectBundle returns the bundle and its redactor, which is nil without redaction.
func (a *app) collectBundle(
	ctx context.Context, config *rest.Config, o supportOptions, at time.Time,
) (*supportbundle.Bundle, *supportbundle.Redactor, error) {
	c, err := a.newClient()
	if err != nil {
		return nil, nil, toFailure(err)
	}
	// A caller who may not read the declared objects gets no bundle: it would be empty.
	if _, err := readDeclaration(ctx, c); err != nil {
		return nil, nil, toFailure(err)
	}
	logs, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, toFailure(err)
	}
	collector := supportbundle.Collector{Client: c, Logs: logs, Server: config.Host}
	if o.redact {
		key := make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return nil, nil, toFailure(err)
		}
		collector.Redactor = supportbundle.NewRedactor(key)
	}
	progress := newProgress(a.err)
	progress.update("running croft doctor and croft status")
	reports := map[string]any{
		"versions.yaml": a.collectVersions(ctx, config, c, o, at),
		"doctor.yaml":   a.buildDoctorReport(ctx, config, c),
		"status.yaml":   a.buildStatusReport(ctx, c),
	}
	progress.update("reading objects, events and logs")
	bundle, err := collector.Collect(ctx, reports)
	progress.finish()
	if err != nil {
		return nil, nil, toFailure(explainUnreachable(err))
	}
	return bundle, collector.Redactor, nil
}

// collectVersions returns the versions of the components.
func (a *app) collectVersions(ctx context.Context, config *rest.Config, c client.Client, o supportOptions, at time.Time) any {
	all := map[string]any{"bundle": at.Format(time.RFC3339), "redacted": o.redact, "croft": version.String()}
	if server, err := discovery.NewDiscoveryClientForConfig(config); err != nil {
		all["kubernetes"] = err.Error()
	} else if info, err := server.ServerVersion(); err != nil {
		all["kubernetes"] = err.Error()
	} else {
		all["kubernetes"] = info.GitVersion
	}
	if beat, err := heartbeat.Read(ctx, c); err != nil {
		all["operator"] = err.Error()
	} else {
		all["operator"], all["operatorSays"] = beat.Version, beat.Describe(at)
	}
	return all
}

// sending lists doctor's checks that send dry runs.
var sending = []string{"attacks", "kubelets"}

// buildDoctorReport returns the findings of croft doctor without sending dry runs.
func (a *app) buildDoctorReport(ctx context.Context, config *rest.Config, c client.Client) any {
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	checks := slices.DeleteFunc(listCheckNames(), func(name string) bool { return slices.Contains(sending, name) })
	seen, err := doctor.Gather(ctx, c, server, doctor.Options{Checks: checks})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return map[string]any{"checks": doctor.Check(seen)}
}

// buildStatusReport returns the output of croft status without the objects, which have their own
// files.
func (a *app) buildStatusReport(ctx context.Context, c client.Client) any {
	look, err := a.readOverview(ctx, c, &subjectFlags{}, &selection{})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return map[string]any{"operator": look.Operator, "walls": look.Walls, "usage": look.Usage, "retained": look.Retained}
}
