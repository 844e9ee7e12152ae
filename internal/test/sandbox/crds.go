package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"
)

// These are the addons whose CRDs InstallCRDs installs. Their versions are set in
// sandbox/addons/go.mod, or by the files that replace modules which cannot be downloaded.
const (
	// GatewayAPI is its standard channel: Gateways, all routes, ReferenceGrants.
	GatewayAPI = "gateway-api"
	// CertManager has Certificates, their requests and their issuers.
	CertManager = "cert-manager"
	// Flux has sources, Kustomizations and HelmReleases. Options.With runs its
	// kustomize-controller, and installs the CRDs of the first two.
	Flux = "flux"
	// ArgoCD has Applications, ApplicationSets and AppProjects, with schemas that accept any
	// field.
	ArgoCD = "argocd"
	// Gatekeeper has its mutators, templates and configuration. Options.With also runs it, and
	// then its CRDs exist already.
	Gatekeeper = "gatekeeper"
	// Calico has its policies and tiers in the API for users: projectcalico.org/v3.
	Calico = "calico"
	// CalicoStorage has the same in the API for storage: crd.projectcalico.org/v1.
	CalicoStorage = "calico-storage"
	// NetworkPolicyAPI has the ClusterNetworkPolicies that network plugins share.
	NetworkPolicyAPI = "network-policy-api"
	// AmazonVPC has the ClusterNetworkPolicies of the Amazon VPC CNI.
	AmazonVPC = "amazon-vpc"
	// KarpenterAWS has the EC2NodeClasses of Karpenter's provider for AWS.
	KarpenterAWS = "karpenter-aws"
	// Multus has NetworkAttachmentDefinitions, and the kinds in which whereabouts stores
	// addresses. Their versions are set in sandbox/cni/go.mod.
	Multus = "multus"
)

// crdsOf maps addons to the modules with their CRDs, and to the paths in these.
var crdsOf = map[string][]crdSource{
	GatewayAPI:  {{module: "sigs.k8s.io/gateway-api", files: "config/crd/standard/*.yaml"}},
	CertManager: {{module: "github.com/cert-manager/cert-manager", files: "deploy/crds/*.yaml"}},
	Flux: {
		{module: "github.com/fluxcd/source-controller", files: "config/crd/bases/*.yaml"},
		{module: "github.com/fluxcd/kustomize-controller", files: "config/crd/bases/*.yaml"},
		{module: "github.com/fluxcd/helm-controller", files: "config/crd/bases/*.yaml"},
	},
	ArgoCD:     {{files: "crds/argocd.yaml"}},
	Gatekeeper: {{module: "github.com/open-policy-agent/gatekeeper/v3", files: "charts/gatekeeper/crds/*.yaml"}},
	Calico:     {{files: "crds/calico.yaml"}},
	CalicoStorage: {{files: "crds/calico.yaml", renamed: strings.NewReplacer(
		"projectcalico.org", "crd.projectcalico.org", "- name: v3", "- name: v1")}},
	NetworkPolicyAPI: {{module: "sigs.k8s.io/network-policy-api", files: "config/crd/standard/*networkpolicies.yaml"}},
	AmazonVPC:        {{files: "crds/aws.yaml"}},
	KarpenterAWS:     {{module: "github.com/aws/karpenter-provider-aws", files: "pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml"}},
	Multus: {
		{parent: "cni", module: "github.com/k8snetworkplumbingwg/network-attachment-definition-client", files: "artifacts/networks-crd.yaml"},
		{parent: "cni", module: "github.com/k8snetworkplumbingwg/whereabouts", files: "doc/crds/whereabouts.cni.cncf.io_*.yaml"},
	},
}

// crdSource is a set of files in a module, or in sandbox/addons itself if it names none, for
// CRDs without a module.
type crdSource struct {
	// parent is the folder of sandbox whose go.mod has the module's version. Defaults to
	// addons.
	parent        string
	module, files string
	// renamed are replacements in the text, or nil for none.
	renamed *strings.Replacer
}

func (s crdSource) readFile(path string) (io.Reader, error) {
	content, err := os.ReadFile(path)
	if err != nil || s.renamed == nil {
		return bytes.NewReader(content), err
	}
	return strings.NewReader(s.renamed.Replace(string(content))), nil
}

const (
	// crdOwner is the field manager of InstallCRDs.
	crdOwner = "croft-sandbox-addons"
	// served is the time limit for the API server to serve new kinds, which usually takes a
	// second.
	served, servedInterval = time.Minute, 50 * time.Millisecond
)

// InstallCRDs installs the CRDs of addons, without controllers. When it returns, the API server
// serves their kinds and lists them in its discovery. It may be called again, even for the same
// addons.
//
// The CRDs come from the Go module cache. Missing modules are downloaded first, with the go
// command.
func (c *Cluster) InstallCRDs(ctx context.Context, addons ...string) error {
	crds, err := readCRDs(ctx, addons)
	if err != nil {
		return err
	}
	definitions, err := apiextensions.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	writes, writeCtx := errgroup.WithContext(ctx)
	for _, crd := range crds {
		writes.Go(func() error {
			// The typed client would decode the whole response.
			return definitions.ApiextensionsV1().RESTClient().Patch(types.ApplyYAMLPatchType).
				Resource("customresourcedefinitions").Name(crd.name).
				Param("fieldManager", crdOwner).Param("force", "true").
				Body(crd.json).Do(writeCtx).Error()
		})
	}
	if err := writes.Wait(); err != nil {
		return err
	}
	return c.awaitCRDs(ctx, definitions, crds)
}

// awaitCRDs waits until the API server serves the kinds, and lists them in its discovery, which
// includes only established CRDs.
//
// For a second, while it prepares to serve a kind, the API server refuses requests for it.
// Waiting here takes that time once for all kinds.
func (c *Cluster) awaitCRDs(ctx context.Context, definitions apiextensions.Interface, crds []crd) error {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	until := func(ctx context.Context, condition func() error) error {
		var last error
		err := wait.PollUntilContextTimeout(ctx, servedInterval, served, true, func(context.Context) (bool, error) {
			last = condition()
			return last == nil, nil
		})
		if err != nil {
			err = errors.Join(err, last)
		}
		return err
	}
	waits, waitCtx := errgroup.WithContext(ctx)
	for _, crd := range crds {
		for _, resource := range crd.resources {
			waits.Go(func() error {
				err := until(waitCtx, func() error {
					return d.RESTClient().Get().AbsPath("apis", resource.Group, resource.Version, resource.Resource).
						Param("limit", "1").MaxRetries(0).Do(waitCtx).Error()
				})
				if err != nil {
					err = fmt.Errorf("the API server does not serve %s: %w; %s", resource, err, explainUnserved(ctx, definitions, crd.name))
				}
				return err
			})
		}
	}
	if err := waits.Wait(); err != nil {
		return err
	}
	return until(ctx, func() error { return checkDiscovery(d, crds) })
}

// checkDiscovery returns an error that lists the resources missing from the discovery.
func checkDiscovery(d discovery.DiscoveryInterface, crds []crd) error {
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	found := map[schema.GroupVersionResource]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			found[group.WithResource(resource.Name)] = true
		}
	}
	for _, crd := range crds {
		for _, resource := range crd.resources {
			if !found[resource] {
				return fmt.Errorf("the API server's discovery does not name %s", resource)
			}
		}
	}
	return nil
}

// explainUnserved returns a CRD's conditions, such as a conflict of its names.
func explainUnserved(ctx context.Context, definitions apiextensions.Interface, name string) string {
	crd, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	for _, condition := range crd.Status.Conditions {
		required := condition.Type == apiextensionsv1.Established || condition.Type == apiextensionsv1.NamesAccepted
		if required && condition.Status != apiextensionsv1.ConditionTrue {
			return fmt.Sprintf("%s is %s: %s", condition.Type, condition.Status, condition.Message)
		}
	}
	return "its definition is in order"
}

// crd is a CRD, with the resources that the API server serves for it.
type crd struct {
	name      string
	json      []byte
	resources []schema.GroupVersionResource
}

func readCRDs(ctx context.Context, addons []string) ([]crd, error) {
	var sources []crdSource
	for _, addon := range addons {
		of, ok := crdsOf[addon]
		if !ok {
			return nil, fmt.Errorf("there is no addon %q", addon)
		}
		sources = append(sources, of...)
	}
	dirs, err := findModuleDirs(ctx, sources)
	if err != nil {
		return nil, err
	}
	type file struct {
		crdSource
		path string
	}
	var all []file
	for _, source := range sources {
		found, err := filepath.Glob(filepath.Join(dirs[source.module], filepath.FromSlash(source.files)))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("module %s has no %s: add to internal/test/sandbox where its version keeps its definitions", source.module, source.files)
		}
		for _, path := range found {
			all = append(all, file{source, path})
		}
	}
	// Files are read concurrently: they are long, and slow to parse with the race detector.
	crds := make([][]crd, len(all))
	var reads errgroup.Group
	for i, f := range all {
		reads.Go(func() error {
			content, err := f.readFile(f.path)
			if err == nil {
				crds[i], err = parseCRDs(content)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", f.path, err)
			}
			return err
		})
	}
	err = reads.Wait()
	return slices.Concat(crds...), err
}

// parseCRDs reads the CRDs in a file. It leaves out other objects, such as the admission
// policy of the Gateway API.
func parseCRDs(content io.Reader) ([]crd, error) {
	var crds []crd
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(content)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		// Only these fields are decoded: the schemas are large.
		var definition struct {
			metav1.PartialObjectMetadata
			Spec struct {
				Group    string
				Names    apiextensionsv1.CustomResourceDefinitionNames
				Versions []struct {
					Name   string
					Served bool
				}
			}
		}
		if err := json.Unmarshal(content, &definition); err != nil {
			return nil, err
		}
		if definition.Kind != "CustomResourceDefinition" {
			continue
		}
		found := crd{name: definition.Name, json: content}
		for _, version := range definition.Spec.Versions {
			if version.Served {
				found.resources = append(found.resources, schema.GroupVersionResource{
					Group: definition.Spec.Group, Version: version.Name, Resource: definition.Spec.Names.Plural,
				})
			}
		}
		crds = append(crds, found)
	}
}

// findModuleDirs downloads missing modules, and returns the directories of all.
func findModuleDirs(ctx context.Context, sources []crdSource) (map[string]string, error) {
	root, err := findRepositoryRoot()
	if err != nil {
		return nil, fmt.Errorf("addons: %w", err)
	}
	dirs := map[string]string{"": filepath.Join(root, "sandbox", addonsFolder)}
	modules := map[string][]string{}
	for _, source := range sources {
		if source.module != "" {
			parent := cmp.Or(source.parent, addonsFolder)
			modules[parent] = append(modules[parent], source.module)
		}
	}
	for parent, names := range modules {
		if err := downloadModules(ctx, root, parent, names, dirs); err != nil {
			return nil, err
		}
	}
	return dirs, nil
}

// addonsFolder is the folder of sandbox with the versions of most addons.
const addonsFolder = "addons"

// downloadModules adds the directories of modules in the versions of a folder's go.mod.
func downloadModules(ctx context.Context, root, parent string, modules []string, dirs map[string]string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"mod", "download", "-json"}, modules...)...)
	cmd.Dir = filepath.Join(root, "sandbox", parent)
	out, failed := runCommand(cmd)
	// A failure is reported in the entry of its module.
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var module struct{ Path, Dir, Error string }
		err := decoder.Decode(&module)
		if errors.Is(err, io.EOF) {
			return failed
		}
		if err != nil {
			return errors.Join(failed, err)
		}
		if module.Error != "" {
			return fmt.Errorf("download %s, which sandbox/%s/go.mod names: %s", module.Path, parent, module.Error)
		}
		dirs[module.Path] = module.Dir
	}
}
