package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/walls/wall/identity"
)

// proxyName is the name of the objects of croft proxy.
const proxyName = identity.ProxyRole

// page is a file of templates.
type page struct {
	objects []*unstructured.Unstructured
	// slots are the template fragments for the marks in the objects.
	slots []func(indent string) string
}

// workload are the pod settings in the values, with the defaults of `croft install`.
type workload struct {
	Replicas  int64
	Priority  string
	Resources map[string]any
}

// addSlot returns a mark that is replaced by a template fragment. If the mark is the key of a map
// or an element of a list, its whole line is replaced, and the fragment gets the indentation. A
// mark as a key sorts after all other keys.
func (p *page) addSlot(piece func(indent string) string) string {
	p.slots = append(p.slots, piece)
	return fmt.Sprintf("zz-croft-slot-%d-end", len(p.slots)-1)
}

// addInline returns a mark for an expression within a line.
func (p *page) addInline(expression string) string {
	return p.addSlot(func(string) string { return "{{ " + expression + " }}" })
}

// addOptional adds a field that is rendered only if the value is set.
func (p *page) addOptional(in map[string]any, field, value string) {
	in[p.addSlot(func(indent string) string {
		return "{{- with " + value + " }}\n" + indent + field + ":\n" + indentValue(indent, ".") + "\n{{- end }}"
	})] = ""
}

// addBlock sets a field to a value that is a map or a list.
func (p *page) addBlock(in map[string]any, field, value string) {
	delete(in, field)
	in[p.addSlot(func(indent string) string { return indent + field + ":\n" + indentValue(indent, value) })] = ""
}

func indentValue(indent, value string) string {
	return fmt.Sprintf("%s  {{- toYaml %s | nindent %d }}", indent, value, len(indent)+2)
}

// addObject adds an object, and replaces its settings by the chart's values.
func (p *page) addObject(o *unstructured.Unstructured, of *workload) {
	p.objects = append(p.objects, o)
	switch o.GetKind() {
	case "Namespace":
		// The namespace is never deleted with the release: its content belongs to tenants, and
		// it may contain Helm's own record of the release.
		addAnnotations(o, map[string]string{"helm.sh/resource-policy": "keep"})
	case "ClusterRole":
		p.replaceNames(o)
	case "Role", "RoleBinding":
		p.replaceNames(o)
		if o.GetNamespace() == pluginsMark {
			o.SetNamespace(p.addInline(".Values.agent.plugins.namespace"))
		}
	case "ConfigMap":
		data, _, _ := unstructured.NestedMap(o.Object, "data")
		for key, text := range data {
			if text == authenticationMark {
				data[key] = p.addInline(".Values.proxy.authenticationConfig | quote")
			}
		}
		o.Object["data"] = data
	case "Deployment", "DaemonSet", "Job":
		p.replaceWorkload(o, of)
	case "PersistentVolumeClaim":
		p.replaceStorage(o)
	case "NetworkPolicy":
		if o.GetName() == install.DashboardName {
			p.replaceEgress(o)
		}
	case "CronJob":
		o.Object["spec"].(map[string]any)["schedule"] = p.addInline(".Values.verify.schedule | quote")
		p.replaceWorkload(o, of)
	}
}

// replaceEgress replaces the ports of the last rule for connections of the dashboard by the chart's
// values.
func (p *page) replaceEgress(o *unstructured.Unstructured) {
	rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "egress")
	rules[len(rules)-1] = map[string]any{"ports": []any{p.addSlot(func(indent string) string {
		return "{{- range .Values.dashboard.egressPorts }}\n" + indent + "- port: {{ . | int }}\n" + indent + "  protocol: TCP\n{{- end }}"
	})}}
	o.Object["spec"].(map[string]any)["egress"] = rules
}

// replaceStorage replaces the size and the class of the ledger's volume by the chart's values. The
// volume outlives the release, as it outlives `croft uninstall`.
func (p *page) replaceStorage(o *unstructured.Unstructured) {
	addAnnotations(o, map[string]string{"helm.sh/resource-policy": "keep"})
	spec := o.Object["spec"].(map[string]any)
	spec["resources"] = map[string]any{"requests": map[string]any{"storage": p.addInline(".Values.cost.storage.size")}}
	spec[p.addSlot(func(indent string) string {
		return "{{- with .Values.cost.storage.className }}\n" + indent + "storageClassName: {{ . }}\n{{- end }}"
	})] = ""
}

// replaceNames replaces the placeholders in the rules of a role by the platform's own roles, and by the names
// of Secrets.
func (p *page) replaceNames(o *unstructured.Unstructured) {
	rules, ok, _ := unstructured.NestedSlice(o.Object, "rules")
	if !ok {
		return // a binding
	}
	for _, rule := range rules {
		names, _ := rule.(map[string]any)["resourceNames"].([]any)
		for i := range names {
			switch names[i] {
			case identity.ClusterRoleName(roleMark):
				names[i] = p.addNames("croft.roles", identity.ClusterRoleName("{{ . }}"))
			case copyMark:
				names[i] = p.addNames("croft.secretCopies", "{{ . }}")
			case sourceMark:
				names[i] = p.addNames("croft.secretSources", "{{ . }}")
			}
		}
	}
	o.Object["rules"] = rules
}

// addNames adds elements of a list: one for each name that a template returns.
func (p *page) addNames(template, element string) string {
	return p.addSlot(func(indent string) string {
		return `{{- range include "` + template + `" . | fromYamlArray }}` + "\n" + indent + "- " + element + "\n{{- end }}"
	})
}

// findValues returns the path of the chart's values for a workload.
func findValues(name string) string {
	switch name {
	case proxyName:
		return ".Values.proxy"
	case install.DashboardName:
		return ".Values.dashboard"
	case install.LedgerName:
		return ".Values.cost"
	case install.AgentName:
		return ".Values.agent"
	case install.SecretsName:
		return ".Values.copySecrets"
	case install.VerifyName:
		return ".Values.verify"
	default:
		return ".Values.operator"
	}
}

// replaceWorkload replaces the pod settings by the chart's values.
func (p *page) replaceWorkload(o *unstructured.Unstructured, of *workload) {
	values := findValues(o.GetName())
	spec := o.Object["spec"].(map[string]any)
	if o.GetKind() == "CronJob" {
		spec = spec["jobTemplate"].(map[string]any)["spec"].(map[string]any)
	}
	template := spec["template"].(map[string]any)
	pod := template["spec"].(map[string]any)
	if o.GetKind() == "Deployment" && o.GetName() != install.SecretsName { // a second copier has no use
		of.Replicas = spec["replicas"].(int64)
		spec["replicas"] = p.addInline(values + ".replicas")
	}
	if o.GetKind() != "Job" {
		p.addOptional(template["metadata"].(map[string]any), "annotations", values+".podAnnotations")
	}
	of.Priority, _ = pod["priorityClassName"].(string)
	delete(pod, "priorityClassName")
	pod[p.addSlot(func(indent string) string {
		return "{{- with " + values + ".priorityClassName }}\n" + indent + "priorityClassName: {{ . }}\n{{- end }}"
	})] = ""
	if o.GetKind() != "DaemonSet" { // the values do not select the agent's nodes
		for _, field := range []string{"affinity", "nodeSelector", "tolerations"} {
			p.addOptional(pod, field, values+"."+field)
		}
	}
	p.addOptional(pod, "imagePullSecrets", ".Values.image.pullSecrets")
	for _, c := range pod["containers"].([]any) {
		c := c.(map[string]any)
		of.Resources = c["resources"].(map[string]any)
		c["image"] = p.addInline(`include "croft.image" .`)
		c[p.addSlot(func(indent string) string {
			return "{{- with .Values.image.pullPolicy }}\n" + indent + "imagePullPolicy: {{ . }}\n{{- end }}"
		})] = ""
		p.addBlock(c, "resources", values+".resources")
		if o.GetKind() == "Deployment" && values == ".Values.operator" {
			c["args"] = append(p.replacePlugins(c["args"].([]any)), p.addSlot(func(indent string) string {
				return "{{- with .Values.operator.tracing }}{{ if .endpoint }}\n" + indent + "- --tracing-endpoint={{ .endpoint }}\n" +
					indent + "- --tracing-rate-per-million={{ .ratePerMillion | int }}\n{{- end }}{{ end }}"
			}))
		}
		if o.GetName() == install.SecretsName {
			args := c["args"].([]any)
			args[slices.Index(args, any(install.SourceFlag+sourceMark))] = p.addNames("croft.secretSources", install.SourceFlag+"{{ . }}")
		}
		if o.GetName() == install.DashboardName || o.GetName() == install.LedgerName {
			c["args"] = append(c["args"].([]any), p.addSlot(func(indent string) string {
				return "{{- range " + values + ".args }}\n" + indent + "- {{ . | quote }}\n{{- end }}"
			}))
		}
		if o.GetKind() == "Deployment" || o.GetKind() == "DaemonSet" {
			c["args"] = append(c["args"].([]any), p.addSlot(func(indent string) string {
				return "{{- with " + values + ".logLevel }}\n" + indent + "- --log-level={{ . }}\n{{- end }}\n" +
					"{{- with " + values + ".logFormat }}\n" + indent + "- --log-format={{ . }}\n{{- end }}"
			}))
		}
	}
	switch {
	case o.GetName() == install.AgentName:
		p.wrapMounted(".Values.agent.journal", pod, install.JournalName, "--"+install.JournalName+"=")
	case o.GetKind() == "Deployment" && values == ".Values.operator":
		p.wrapLedger(pod)
	case o.GetName() == proxyName:
		p.wrapMounted(".Values.proxy.ledger", pod, install.LedgerMount, install.LedgerFlag)
	case o.GetName() == install.LedgerName:
		p.wrapMounted("and .Values.proxy.authenticationConfig .Values.proxy.ledger", pod, install.AuthenticationName, install.AuthenticationFlag)
	}
}

// replacePlugins replaces the arguments for the DaemonSets that nodes wait for by the chart's values.
func (p *page) replacePlugins(args []any) []any {
	args = slices.DeleteFunc(args, func(a any) bool { return strings.HasPrefix(a.(string), install.PluginsArgument) })
	return append(args, p.addSlot(func(indent string) string {
		return "{{- if .Values.agent.enabled }}\n" +
			indent + "- {{ printf \"" + install.PluginsArgument + "-namespace=%s\" .Values.agent.plugins.namespace | quote }}\n" +
			indent + "- {{ printf \"" + install.PluginsArgument + "=%s\" .Values.agent.plugins.labels | quote }}\n{{- end }}"
	}))
}

// wrapMounted puts a volume, its mount and the arguments that begin with a flag behind a condition.
func (p *page) wrapMounted(condition string, pod map[string]any, volume, flag string) {
	c := pod["containers"].([]any)[0].(map[string]any)
	for _, list := range []any{pod["volumes"], c["volumeMounts"], c["args"]} {
		p.wrapElements(condition, list.([]any), func(element any) bool {
			if argument, is := element.(string); is {
				return strings.HasPrefix(argument, flag)
			}
			return element.(map[string]any)["name"] == volume
		})
	}
}

// wrapLedger makes the operator's connection to the ledger depend on a value. The operator has no other volumes.
func (p *page) wrapLedger(pod map[string]any) {
	const condition = ".Values.cost.enabled"
	c := pod["containers"].([]any)[0].(map[string]any)
	p.wrapElements(condition, c["args"].([]any), func(element any) bool {
		return strings.HasPrefix(element.(string), install.LedgerFlag)
	})
	p.wrapField(condition, c, "volumeMounts")
	p.wrapField(condition, pod, "volumes")
}

// wrapField puts a field behind a condition.
func (p *page) wrapField(condition string, in map[string]any, field string) {
	text, err := yaml.Marshal(map[string]any{field: in[field]})
	if err != nil {
		panic(err) // the field was parsed from YAML
	}
	delete(in, field)
	in[p.addSlot(func(indent string) string { return formatConditional(condition, indent, text) })] = ""
}

// formatConditional returns YAML behind a condition.
func formatConditional(condition, indent string, text []byte) string {
	lines := strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n"+indent)
	return "{{- if " + condition + " }}\n" + indent + lines + "\n{{- end }}"
}

// wrapElements puts some elements of a list behind a condition.
func (p *page) wrapElements(condition string, list []any, some func(any) bool) {
	for i, element := range list {
		if !some(element) {
			continue
		}
		text, err := yaml.Marshal([]any{element})
		if err != nil {
			panic(err) // the element was parsed from YAML
		}
		list[i] = p.addSlot(func(indent string) string { return formatConditional(condition, indent, text) })
	}
}

// makeHook makes Helm create an object before an upgrade, and delete it afterwards.
func (p *page) makeHook(o *unstructured.Unstructured, weight int) {
	addAnnotations(o, map[string]string{
		"helm.sh/hook":               "pre-upgrade",
		"helm.sh/hook-weight":        strconv.Itoa(weight),
		"helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
	})
}

func addAnnotations(o *unstructured.Unstructured, more map[string]string) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range more {
		all[key] = value
	}
	o.SetAnnotations(all)
}

var (
	slotLine = regexp.MustCompile(`(?m)^( *)(?:- )?zz-croft-slot-(\d+)-end(?:: "")?$`)
	slotMark = regexp.MustCompile(`zz-croft-slot-(\d+)-end`)
)

// conditions are the template conditions of objects and of whole files.
var conditions = map[string]string{
	"agent":       ".Values.agent.enabled",
	"copysecrets": ".Values.copySecrets.enabled",
	"dashboard":   ".Values.dashboard.enabled",
	"ledger":      ".Values.cost.enabled",
	"proxy":       ".Values.proxy.authenticationConfig",
	"verify":      ".Values.verify.schedule",
	// The operator reads DaemonSets only if nodes wait for some.
	"Role " + install.NodesName:        ".Values.agent.plugins.labels",
	"RoleBinding " + install.NodesName: ".Values.agent.plugins.labels",
	v1alpha1.SystemNamespace:           `ne .Release.Namespace "` + v1alpha1.SystemNamespace + `"`,
}

// render returns the content of the file.
func (p *page) render(name string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{{- /* Generated from internal/operate/install by `make generate`. Do not edit. */}}\n")
	open := func(condition string) string {
		if condition == "" {
			return ""
		}
		fmt.Fprintf(&b, "{{- if %s }}\n", condition)
		return "{{- end }}\n"
	}
	end := open(conditions[name])
	for _, o := range p.objects {
		data, err := marshalObject(*o)
		if err != nil {
			return nil, err
		}
		condition := ""
		switch o.GetKind() {
		case "Namespace":
			condition = conditions[o.GetName()]
		case "Role", "RoleBinding":
			condition = conditions[o.GetKind()+" "+o.GetName()]
		}
		around := open(condition)
		b.WriteString("---\n")
		b.Write(p.fillSlots(data))
		b.WriteString(around)
	}
	b.WriteString(end)
	return b.Bytes(), nil
}

// fillSlots replaces the marks by their template fragments.
func (p *page) fillSlots(text []byte) []byte {
	piece := func(number []byte, indent string) []byte {
		n, _ := strconv.Atoi(string(number))
		return []byte(p.slots[n](indent))
	}
	text = slotLine.ReplaceAllFunc(text, func(line []byte) []byte {
		match := slotLine.FindSubmatch(line)
		return piece(match[2], string(match[1]))
	})
	return slotMark.ReplaceAllFunc(text, func(mark []byte) []byte { return piece(slotMark.FindSubmatch(mark)[1], "") })
}

func marshalObject(o unstructured.Unstructured) ([]byte, error) { return yaml.Marshal(o.Object) }
