// Command chart writes the generated parts of the Helm chart: the CRDs, the objects of `croft
// install` as templates, the values and their schema. Its argument is the directory of the
// chart. `make generate` calls it. The same code writes the objects of `croft install`, so
// that the two cannot diverge.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/install"
)

func main() {
	if err := generate(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "chart: %v\n", err)
		os.Exit(1)
	}
}

// These are placeholders for values while the objects are built.
const (
	imageMark          = "CROFT-IMAGE"
	roleMark           = "CROFT-ROLE"
	authenticationMark = "CROFT-AUTHENTICATION"
	scheduleMark       = "CROFT-SCHEDULE"
	pluginsMark        = "CROFT-PLUGINS"
	copyMark           = "CROFT-COPY"
	sourceMark         = "CROFT-SOURCE"
)

func generate(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: chart DIRECTORY")
	}
	files, err := renderChart()
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(args[0], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// listObjects returns the objects of an installation and the objects of an upgrade's hooks.
func listObjects() (all, hooks []unstructured.Unstructured, err error) {
	objects, err := install.Objects(install.Options{
		Image: imageMark, Roles: []string{roleMark}, Authentication: authenticationMark, ProxyLedger: true, Dashboard: true, Ledger: true, Agent: true, AgentJournal: true,
		PluginsNamespace: pluginsMark, PluginsLabels: pluginsMark,
		VerifySchedule: scheduleMark,
		CopySecrets:    true, Secrets: []estate.SecretCopy{{Name: copyMark, Source: sourceMark}},
	})
	if err != nil {
		return nil, nil, err
	}
	upgrade, err := install.UpgradeObjects(imageMark)
	if err != nil {
		return nil, nil, err
	}
	if all, err = convertToMaps(objects); err != nil {
		return nil, nil, err
	}
	hooks, err = convertToMaps(upgrade)
	return all, hooks, err
}

// renderChart returns the generated files by name.
func renderChart() (map[string][]byte, error) {
	all, hooks, err := listObjects()
	if err != nil {
		return nil, err
	}
	files, schemas := map[string][]byte{}, map[string]map[string]any{}
	operator, proxy, dashboard, ledger, agent, copySecrets, verify := &page{}, &page{}, &page{}, &page{}, &page{}, &page{}, &page{}
	var defaults defaults
	for _, o := range all {
		switch {
		case o.GetKind() == "CustomResourceDefinition":
			if files["crds/"+o.GetName()+".yaml"], err = marshalObject(o); err != nil {
				return nil, err
			}
			kind, spec, err := readSpec(o)
			if err != nil {
				return nil, err
			}
			schemas[kind] = spec
		case o.GetName() == proxyName:
			proxy.addObject(&o, &defaults.Proxy)
		case o.GetName() == install.DashboardName:
			dashboard.addObject(&o, &defaults.Dashboard)
		case o.GetName() == install.LedgerName:
			ledger.addObject(&o, &defaults.Ledger)
		case o.GetName() == install.AgentName || o.GetName() == install.NodesName:
			agent.addObject(&o, &defaults.Agent)
		case o.GetName() == install.SecretsName || o.GetName() == install.SecretsWatchName:
			copySecrets.addObject(&o, &defaults.CopySecrets)
		case o.GetName() == install.VerifyName:
			verify.addObject(&o, &defaults.Verify)
		default:
			operator.addObject(&o, &defaults.Operator)
		}
	}
	kinds := &page{}
	for i := range hooks {
		kinds.addObject(&hooks[i], &workload{})
		kinds.makeHook(&hooks[i], i)
	}
	pages := map[string]*page{
		"operator": operator, "proxy": proxy, "dashboard": dashboard, "ledger": ledger, "agent": agent,
		"copysecrets": copySecrets, "verify": verify, "kinds": kinds,
	}
	for name, p := range pages {
		if files["templates/"+name+".yaml"], err = p.render(name); err != nil {
			return nil, err
		}
	}
	defaults.DashboardEgress = strings.ReplaceAll(fmt.Sprint(install.DefaultDashboardEgress()), " ", ", ")
	defaults.LedgerStorage = install.DefaultLedgerStorage
	defaults.Plugins.Namespace, defaults.Plugins.Labels = secondary.PluginsNamespace, secondary.PluginsLabels
	if files["values.yaml"], err = renderValues(defaults); err != nil {
		return nil, err
	}
	schema, err := buildValuesSchema(schemas)
	if err != nil {
		return nil, err
	}
	files["values.schema.json"], err = json.MarshalIndent(schema, "", "  ")
	files["values.schema.json"] = append(files["values.schema.json"], '\n')
	return files, err
}

// convertToMaps converts objects to maps, as they are printed.
func convertToMaps(objects []client.Object) ([]unstructured.Unstructured, error) {
	all := make([]unstructured.Unstructured, len(objects))
	for i, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, err
		}
		all[i].Object = runtime.DeepCopyJSON(content)
		delete(all[i].Object, "status")
		unstructured.RemoveNestedField(all[i].Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(all[i].Object, "spec", "template", "metadata", "creationTimestamp")
	}
	return all, nil
}
