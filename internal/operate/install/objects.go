// Package install installs croft itself in a cluster: its CRDs, and the operator with
// minimal rights.
package install

import (
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/crds"
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
)

const (
	// name is the name of the operator's objects, and the value of NameLabel for all
	// objects without another one.
	name = v1alpha1.ManagedBy
	// namespace is the operator's namespace.
	namespace = v1alpha1.SystemNamespace
)

// Options configure an installation.
type Options struct {
	// Image is the operator's container image. If it is empty no Deployment is installed,
	// and the operator runs elsewhere.
	Image string
	// Roles are the names of the Platform's own roles. The operator may only write and bind
	// these roles, so a new one requires another installation.
	Roles []string
	// Authentication is an AuthenticationConfiguration (apiserver.config.k8s.io) for croft
	// proxy, as text. Without it, or without an image, no proxy is installed.
	Authentication string
	// ProxyLedger connects croft proxy to croft ledger: the proxy forwards requests for costs, and the ledger accepts
	// the tokens that the proxy accepts. It requires both.
	ProxyLedger bool
	// Dashboard installs croft dashboard, too. It requires an image.
	Dashboard bool
	// DashboardArgs are more arguments of croft dashboard. DashboardEgress are the TCP ports to
	// which it connects, on the API server's machines and at the identity provider;
	// DefaultDashboardEgress by default.
	DashboardArgs   []string
	DashboardEgress []int32
	// Ledger installs croft ledger, too. It requires an image.
	Ledger bool
	// LedgerArgs are more arguments of croft ledger. LedgerStorage is the size of its volume,
	// DefaultLedgerStorage by default, and LedgerStorageClass the volume's StorageClass, the
	// cluster's default one by default.
	LedgerArgs         []string
	LedgerStorage      resource.Quantity
	LedgerStorageClass string
	// Agent installs croft agent, too, on the nodes of pools with waitForNetworks. It
	// requires an image.
	Agent bool
	// AgentJournal makes the agent read the journal of its node once, for croft latency.
	AgentJournal bool
	// PluginsNamespace and PluginsLabels select the DaemonSets that nodes wait for if the
	// agent is installed, in the format of secondary.ParsePlugins. Without a namespace the
	// defaults are secondary.PluginsNamespace and secondary.PluginsLabels. With a namespace
	// but without labels, nodes wait for none.
	PluginsNamespace, PluginsLabels string
	// CopySecrets installs `croft copy-secrets`, too. It requires an image. Secrets are the copies that
	// it may write: a new name requires another installation.
	CopySecrets bool
	Secrets     []estate.SecretCopy
	// VerifySchedule is the schedule of `croft verify --record`, in cron's format. Without
	// it, or without an image, the command is not scheduled.
	VerifySchedule string
	// KeepKinds leaves croft's CRDs unchanged: an older croft's CRDs would drop the fields
	// that a newer one has stored.
	KeepKinds bool
}

// Objects returns all installed objects, in the order in which they are applied.
func Objects(o Options) ([]client.Object, error) {
	if o.KeepKinds {
		return buildOperatorObjects(o), nil
	}
	kinds, err := loadDefinitions()
	if err != nil {
		return nil, err
	}
	return append(kinds, buildOperatorObjects(o)...), nil
}

// KindObjects returns croft's CRDs only.
func KindObjects() ([]client.Object, error) { return loadDefinitions() }

// buildOperatorObjects returns all objects except the CRDs.
func buildOperatorObjects(o Options) []client.Object {
	all := append([]client.Object{buildSystemNamespace(), buildElevationsNamespace()}, buildRights(o.Roles)...)
	all = append(all, PolicyObjects()...)
	if o.Image != "" {
		all = append(all, buildWorkload(o.Image, buildOperatorArgs(o), o.Ledger)...)
	}
	if o.Image != "" && o.Authentication != "" {
		all = append(all, buildProxyObjects(&o)...)
	}
	if o.Image != "" && o.Dashboard {
		all = append(all, buildDashboardObjects(o.Image, o.DashboardArgs, o.DashboardEgress)...)
	}
	if o.Image != "" && o.Ledger {
		all = append(all, buildLedgerObjects(&o)...)
	}
	if o.Image != "" && o.Agent {
		all = append(all, buildAgentObjects(o.Image, o.AgentJournal)...)
		all = append(all, buildPluginRights(o.getPlugins())...)
	}
	if o.Image != "" && o.CopySecrets {
		all = append(all, buildSecretsObjects(o.Image, o.Secrets)...)
	}
	if o.Image != "" && o.VerifySchedule != "" {
		all = append(all, buildVerifyObjects(o.Image, o.VerifySchedule)...)
	}
	for _, object := range all {
		object.SetLabels(addLabels(object.GetLabels()))
	}
	return all
}

// addLabels returns more with the labels that all objects have. It adds no wall's label, so
// that installed objects are never pruned with the walls.
func addLabels(more map[string]string) map[string]string {
	all := map[string]string{apply.NameLabel: name, v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// loadDefinitions returns croft's CustomResourceDefinitions. They are untyped, so that fields
// that are unknown to this version's Go types are kept.
func loadDefinitions() ([]client.Object, error) {
	files, err := fs.Glob(crds.FS, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []client.Object
	for _, file := range files {
		text, err := crds.FS.ReadFile(file)
		if err != nil {
			return nil, err
		}
		json, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		definition := &unstructured.Unstructured{}
		if err := definition.UnmarshalJSON(json); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		definition.SetLabels(addLabels(definition.GetLabels()))
		all = append(all, definition)
	}
	return all, nil
}
