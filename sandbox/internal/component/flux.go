package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"croft.dev/croft/sandbox/internal/supervisor"
)

const (
	fluxHealth  = "flux-health"
	fluxMetrics = "flux-metrics"

	// The service account of kustomize-controller in Flux's own manifests.
	fluxNamespace = "flux-system"
	fluxAccount   = "kustomize-controller"
	// sourceAccount is the service account of source-controller. The Git server has it, since it
	// replaces source-controller.
	sourceAccount = "source-controller"
)

func (s *Sandbox) buildFluxSpec() (supervisor.Spec, error) {
	address := s.makeAddressFunc("http", fluxHealth)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := s.ports.Claim(fluxHealth, fluxMetrics); err != nil {
				return nil, err
			}
			cmd := exec.Command(s.config.Flux, s.buildFluxArgs()...)
			cmd.Dir = s.home.Dir
			cmd.Env = append(filterEnv(), "KUBECONFIG="+s.home.Kubeconfig(Flux), "RUNTIME_NAMESPACE="+fluxNamespace)
			return cmd, nil
		},
		Ready: newProber(nil).checkReadyz(address),
	}, nil
}

// buildFluxArgs returns the arguments of kustomize-controller: the multi-tenancy lockdown of Flux's
// documentation, and the feature by which a new push ends the wait for the previous one.
func (s *Sandbox) buildFluxArgs() []string {
	return []string{
		"--watch-all-namespaces=true",
		"--no-cross-namespace-refs=true",
		"--no-remote-bases=true",
		"--default-service-account=default",
		"--feature-gates=CancelHealthCheckOnNewRevision=true",
		"--health-addr=" + s.ports.Address(fluxHealth),
		"--metrics-addr=" + s.ports.Address(fluxMetrics),
		"--log-level=info",
		"--log-encoding=console",
		"--requeue-dependency=5s",
		"--http-retry=2",
	}
}

// buildGitSpec runs the Git server, which replaces source-controller for its repositories.
func (s *Sandbox) buildGitSpec() (supervisor.Spec, error) {
	address := s.makeAddressFunc("http", Git)
	return supervisor.Spec{
		Address: address,
		Command: func() (*exec.Cmd, error) {
			if err := os.MkdirAll(s.home.Git(), 0o700); err != nil {
				return nil, err
			}
			if err := s.ports.Claim(Git); err != nil {
				return nil, err
			}
			return s.buildCommand(Git, []string{"--dir=" + s.home.Dir, "--address=" + s.ports.Address(Git)}), nil
		},
		Ready: newProber(nil).checkReadyz(address),
		// Tenants' GitRepositories contain the server's address.
		Settle: func(context.Context) error { s.ports.Pin(Git); return nil },
	}, nil
}

// buildFluxObjects returns the objects that must exist before Flux starts: its CRDs, and the rights
// of Flux's own manifests. kustomize-controller has all rights, since it impersonates others.
func (s *Sandbox) buildFluxObjects() ([]*unstructured.Unstructured, error) {
	if s.config.Flux == "" {
		return nil, nil
	}
	definitions, err := ReadFluxCRDs(s.config.Flux)
	if err != nil {
		return nil, err
	}
	account := map[string]any{"kind": "ServiceAccount", "namespace": fluxNamespace, "name": fluxAccount}
	sources := map[string]any{"kind": "ServiceAccount", "namespace": fluxNamespace, "name": sourceAccount}
	return append(definitions,
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": fluxNamespace},
		}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"namespace": fluxNamespace, "name": fluxAccount},
		}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"namespace": fluxNamespace, "name": sourceAccount},
		}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "crd-controller"},
			"rules": []any{map[string]any{
				"apiGroups": []any{"source.toolkit.fluxcd.io"}, "resources": []any{"*"}, "verbs": []any{"*"},
			}},
		}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "crd-controller"},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "crd-controller"},
			"subjects": []any{sources},
		}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "cluster-reconciler"},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": []any{account},
		}},
	), nil
}

// ReadFluxCRDs reads the CRDs of a kustomize-controller binary, from BINARY.yaml.
func ReadFluxCRDs(binary string) ([]*unstructured.Unstructured, error) {
	path := binary + ".yaml"
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if u.GetKind() == "CustomResourceDefinition" {
			all = append(all, u)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s contains no CustomResourceDefinitions", path)
	}
	return all, nil
}
