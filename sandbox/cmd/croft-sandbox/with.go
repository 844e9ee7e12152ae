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

// withOptions are a sandbox's optional components, and the kinds that its API server does not
// serve.
type withOptions struct {
	with, without []string
	gatekeeper    string
	flux          string
	audit         bool
	aws           awsOptions
}

// awsOptions are the options of the simulated account.
type awsOptions struct {
	karpenter, cluster string
	speed              float64
}

// withAWS, withGatekeeper and withFlux are the optional components.
const (
	withAWS        = component.Cloud
	withGatekeeper = component.Gatekeeper
	withFlux       = component.Flux
)

func (o *withOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.with, "with", nil, "optional components: "+withGatekeeper+", "+withFlux+", "+withAWS+"; --with= removes them")
	f.StringVar(&o.gatekeeper, "gatekeeper", "",
		"path of a gatekeeper binary to run, with its manifest as PATH.yaml; by default the one next to croft-sandbox")
	f.StringVar(&o.flux, "flux", "",
		"path of a kustomize-controller binary to run, with its CRDs as PATH.yaml; by default the one next to croft-sandbox")
	f.StringVar(&o.aws.karpenter, "karpenter-aws", "", "path of a karpenter-aws binary to run; by default the one next to croft-sandbox")
	f.StringVar(&o.aws.cluster, "aws-cluster", "demo", "the cluster's name in the simulated account: platform.clusterName")
	f.Float64Var(&o.aws.speed, "aws-speed", 1, "how many times faster instances are than real ones, which become nodes after about 25 s")
	f.BoolVar(&o.audit, "audit", true, "let Gatekeeper also do the work of its audit pod: audit, and write the status of its policies")
	f.StringSliceVar(&o.without, "without", nil,
		"features to turn off in the API server: MutatingAdmissionPolicy, which clusters before Kubernetes 1.36 do not have, or MutatingAdmissionPolicy/v1; --without= turns them on again")
}

// applyTo applies the requested changes to the saved configuration.
func (o *withOptions) applyTo(cmd *cobra.Command, config *home.Config) error {
	for _, name := range o.with {
		if name != withGatekeeper && name != withFlux && name != withAWS {
			return usageError{fmt.Errorf("--with: there is no %q: choose from %s, %s, %s", name, withGatekeeper, withFlux, withAWS)}
		}
	}
	if err := o.aws.applyTo(cmd, slices.Contains(o.with, withAWS), config); err != nil {
		return err
	}
	if err := o.setGatekeeper(cmd, config); err != nil {
		return err
	}
	if err := o.setFlux(cmd, config); err != nil {
		return err
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

func (o *withOptions) setGatekeeper(cmd *cobra.Command, config *home.Config) (err error) {
	switch {
	case o.gatekeeper != "":
		config.Gatekeeper, err = findGatekeeper(o.gatekeeper)
	case slices.Contains(o.with, withGatekeeper):
		config.Gatekeeper, err = findDefaultGatekeeper()
	case cmd.Flags().Changed("with") || cmd.Flags().Changed("gatekeeper"):
		config.Gatekeeper = ""
	}
	if err != nil {
		return err
	}
	return requireAPIServer(withGatekeeper, config.Gatekeeper, config)
}

func (o *withOptions) setFlux(cmd *cobra.Command, config *home.Config) (err error) {
	switch {
	case o.flux != "" || slices.Contains(o.with, withFlux):
		config.Flux, err = findFlux(o.flux)
	case cmd.Flags().Changed("with") || cmd.Flags().Changed("flux"):
		config.Flux = ""
	}
	if err != nil {
		return err
	}
	return requireAPIServer(withFlux, config.Flux, config)
}

// requireAPIServer returns an error if an optional component is to run without an API server. An
// empty binary means that the component does not run.
func requireAPIServer(name, binary string, config *home.Config) error {
	if binary != "" && !slices.Contains(config.Components, component.APIServer) {
		return usageError{fmt.Errorf("%s needs %q: add it to --components", name, component.APIServer)}
	}
	return nil
}

// findDefaultGatekeeper returns the gatekeeper binary next to this program, which the Makefile builds.
func findDefaultGatekeeper() (string, error) {
	binary, err := os.Executable()
	if err != nil {
		return "", err
	}
	return findGatekeeper(filepath.Join(filepath.Dir(binary), component.Gatekeeper))
}

// findGatekeeper returns the absolute path of a gatekeeper binary that can be run and has a
// manifest.
func findGatekeeper(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	_, err = exec.LookPath(abs)
	if err == nil {
		_, err = gatekeeper.Read(gatekeeper.ManifestPath(abs))
	}
	if err != nil {
		return "", usageError{errors.Join(
			fmt.Errorf("gatekeeper: %w", err),
			errors.New("build it with `make gatekeeper` (minutes the first time), or name another with --gatekeeper PATH, with its deploy/gatekeeper.yaml as PATH.yaml"),
		)}
	}
	return abs, nil
}

// applyTo applies the requested changes to the saved configuration.
func (o *awsOptions) applyTo(cmd *cobra.Command, asked bool, config *home.Config) error {
	f := cmd.Flags()
	if !asked && f.Changed("with") {
		config.AWS = nil
	}
	if asked && config.AWS == nil {
		config.AWS = &home.AWS{Cluster: o.cluster, Speed: o.speed}
	}
	if config.AWS == nil {
		if f.Changed("karpenter-aws") || f.Changed("aws-cluster") || f.Changed("aws-speed") {
			return usageError{fmt.Errorf("--karpenter-aws, --aws-cluster and --aws-speed need the simulated AWS account: add --with %s", withAWS)}
		}
		return nil
	}
	if f.Changed("aws-cluster") {
		config.AWS.Cluster = o.cluster
	}
	if f.Changed("aws-speed") {
		config.AWS.Speed = o.speed
	}
	if config.AWS.Speed <= 0 {
		return usageError{fmt.Errorf("--aws-speed %g: choose a number above 0", config.AWS.Speed)}
	}
	if !slices.Contains(config.Components, component.Karpenter) {
		return usageError{fmt.Errorf("%s needs %q: add it to --components", withAWS, component.Karpenter)}
	}
	var err error
	config.AWS.Karpenter, err = findKarpenterAWS(o.karpenter)
	return err
}

// findKarpenterAWS returns the absolute path of a karpenter-aws binary that can be run; "" means
// the one next to this program, which the Makefile builds.
func findKarpenterAWS(path string) (string, error) {
	if path == "" {
		binary, err := os.Executable()
		if err != nil {
			return "", err
		}
		path = filepath.Join(filepath.Dir(binary), "karpenter-aws")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath(abs); err != nil {
		return "", usageError{fmt.Errorf("karpenter-aws: %w: build it with `make karpenter-aws` (minutes the first time), or name another with --karpenter-aws PATH", err)}
	}
	return abs, nil
}

// findFlux returns the absolute path of a kustomize-controller binary that can be run and has
// CRDs; "" means the one next to this program, which the Makefile builds.
func findFlux(path string) (string, error) {
	if path == "" {
		binary, err := os.Executable()
		if err != nil {
			return "", err
		}
		path = filepath.Join(filepath.Dir(binary), "kustomize-controller")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	_, err = exec.LookPath(abs)
	if err == nil {
		_, err = component.ReadFluxCRDs(abs)
	}
	if _, missing := exec.LookPath("git"); err == nil && missing != nil {
		return "", usageError{fmt.Errorf("flux: %w: the sandbox's Git server needs git: install it", missing)}
	}
	if err != nil {
		return "", usageError{fmt.Errorf("flux: %w: build it with `make flux` (minutes the first time), or name another with --flux PATH, with its CRDs as PATH.yaml", err)}
	}
	return abs, nil
}
