// Package install installs croft itself in a cluster: its kinds, and the operator with
// the minimum of rights.
package install

import (
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/crds"
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
)

const (
	// name is that of everything in this package that needs only one.
	name = v1alpha1.ManagedBy
	// namespace is the operator's.
	namespace = v1alpha1.SystemNamespace
)

// Options say what to install.
type Options struct {
	// Image is the operator's container image. Without one no Deployment is
	// installed: the operator runs elsewhere.
	Image string
	// Roles are the names of the Platform's own roles. The operator may write and bind
	// these, and no others: a new one needs another installation.
	Roles []string
	// Authentication is an AuthenticationConfiguration (apiserver.config.k8s.io) for croft
	// proxy, as text. Without one, or without an image, no proxy is installed.
	Authentication string
	// Agent says that croft agent is installed, too, on the nodes of pools with
	// waitForNetworks. It needs an image.
	Agent bool
	// AgentJournal says that the agent reads the journal of its node once, for croft
	// latency.
	AgentJournal bool
	// PluginsNamespace and PluginsLabels say which DaemonSets nodes wait for where there is an
	// agent, as secondary.ParsePlugins reads it. Without a namespace they are
	// secondary.PluginsNamespace and secondary.PluginsLabels; with a namespace and without
	// labels, nodes wait for none.
	PluginsNamespace, PluginsLabels string
	// VerifySchedule is when `croft verify --record` runs, in cron's format. Without one,
	// or without an image, it runs when somebody runs it.
	VerifySchedule string
	// KeepKinds leaves croft's kinds as they are: an older croft's definitions would drop
	// the fields that a newer one has stored.
	KeepKinds bool
}

// Objects returns all installed objects, in the order of their application.
func Objects(o Options) ([]client.Object, error) {
	if o.KeepKinds {
		return operatorObjects(o), nil
	}
	kinds, err := definitions()
	if err != nil {
		return nil, err
	}
	return append(kinds, operatorObjects(o)...), nil
}

// KindObjects returns croft's kinds alone.
func KindObjects() ([]client.Object, error) { return definitions() }

// operatorObjects is everything but the kinds.
func operatorObjects(o Options) []client.Object {
	all := append([]client.Object{systemNamespace(), elevationsNamespace()}, rights(o.Roles)...)
	all = append(all, Probes()...)
	if o.Image != "" {
		all = append(all, workload(o.Image, operatorArgs(o))...)
	}
	if o.Image != "" && o.Authentication != "" {
		all = append(all, proxyObjects(o.Image, o.Authentication)...)
	}
	if o.Image != "" && o.Agent {
		all = append(all, agentObjects(o.Image, o.AgentJournal)...)
		all = append(all, pluginRights(o.plugins())...)
	}
	if o.Image != "" && o.VerifySchedule != "" {
		all = append(all, verifyObjects(o.Image, o.VerifySchedule)...)
	}
	for _, object := range all {
		object.SetLabels(labels(object.GetLabels()))
	}
	return all
}

// labels adds the labels that all objects have. A wall's label is not among them:
// installed objects are never pruned with the walls.
func labels(more map[string]string) map[string]string {
	all := map[string]string{apply.NameLabel: name, v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// definitions are croft's CustomResourceDefinitions. They stay untyped, so that
// nothing which this version's Go types do not know is lost.
func definitions() ([]client.Object, error) {
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
		definition.SetLabels(labels(definition.GetLabels()))
		all = append(all, definition)
	}
	return all, nil
}
