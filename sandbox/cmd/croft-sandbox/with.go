package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/component"
	"croft.dev/croft/sandbox/internal/gatekeeper"
	"croft.dev/croft/sandbox/internal/home"
)

// withOptions say what a sandbox has besides what it always has, and what its
// API server does without.
type withOptions struct {
	with, without []string
	gatekeeper    string
	audit         bool
}

func (o *withOptions) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.with, "with", nil, "what to run besides: "+component.Gatekeeper+"; --with= ends it")
	f.StringVar(&o.gatekeeper, "gatekeeper", "",
		"path of a gatekeeper binary to run, if not the one beside croft-sandbox; its manifest lies beside it, as PATH.yaml")
	f.BoolVar(&o.audit, "audit", true, "whether Gatekeeper does what its audit pod does, too: audit, and write the status of what it enforces")
	f.StringSliceVar(&o.without, "without", nil,
		"what the API server does without: MutatingAdmissionPolicy, which clusters before Kubernetes 1.36 do not have; --without= ends it")
}

// config changes what was asked for last time by what is asked for now.
func (o *withOptions) config(cmd *cobra.Command, config *home.Config) (err error) {
	for _, name := range o.with {
		if name != component.Gatekeeper {
			return usageError{fmt.Errorf("--with: there is no %q: choose from %s", name, component.Gatekeeper)}
		}
	}
	switch {
	case o.gatekeeper != "":
		config.Gatekeeper, err = findGatekeeper(o.gatekeeper)
	case len(o.with) > 0:
		config.Gatekeeper, err = gatekeeperBeside()
	case cmd.Flags().Changed("with") || cmd.Flags().Changed("gatekeeper"):
		config.Gatekeeper = ""
	}
	if err != nil {
		return err
	}
	if config.Gatekeeper != "" && !slices.Contains(config.Components, component.APIServer) {
		return usageError{fmt.Errorf("gatekeeper needs %q: add it to --components", component.APIServer)}
	}
	if cmd.Flags().Changed("audit") {
		config.Unaudited = !o.audit
	}
	if cmd.Flags().Changed("without") {
		if err := component.CheckWithout(o.without); err != nil {
			return usageError{fmt.Errorf("--without: %w", err)}
		}
		config.Without = o.without
	}
	return nil
}

// gatekeeperBeside is the one that the Makefile builds.
func gatekeeperBeside() (string, error) {
	binary, err := os.Executable()
	if err != nil {
		return "", err
	}
	return findGatekeeper(filepath.Join(filepath.Dir(binary), component.Gatekeeper))
}

// findGatekeeper checks that a gatekeeper binary can be run, and that what it
// wants in the cluster is known.
func findGatekeeper(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	_, err = exec.LookPath(abs)
	if err == nil {
		_, err = gatekeeper.Read(gatekeeper.ManifestOf(abs))
	}
	if err != nil {
		return "", usageError{errors.Join(
			fmt.Errorf("gatekeeper: %w", err),
			errors.New("build it with `make gatekeeper` (minutes the first time), or name another with --gatekeeper PATH, its deploy/gatekeeper.yaml beside it as PATH.yaml"),
		)}
	}
	return abs, nil
}
