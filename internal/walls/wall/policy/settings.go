package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/rules/rulefile"
)

// listPodFields returns the fields that croft sets on new pods, from the rule files.
func listPodFields() []rulefile.PodField {
	fields, err := readPolicies()[admissionpolicy.PodsPolicy].ListPodFields(nil)
	utilruntime.Must(err)
	return fields
}

// findFieldValue returns the value of a field for a tenant, or nil for a tenant without the setting.
func findFieldValue(f *rulefile.PodField, t *estate.Tenant) any {
	if slices.Contains(t.Allowances.Trial, f.Trial) {
		return nil
	}
	var rules v1alpha1.TenantRulesSpec
	estate.CopyAllowances(&rules, &t.Allowances)
	annotations := admissionpolicy.BuildAnnotations(rules)
	for _, from := range f.From {
		text := annotations[v1alpha1.RulesAnnotationPrefix+from]
		if value, ok := f.Values[text]; ok {
			return value
		}
		if f.Values == nil && text != "" {
			return text
		}
	}
	return nil
}

// formatField returns CEL expressions: the condition that croft does not set a field, and the value of the field.
func formatField(f *rulefile.PodField) (skip, value string) {
	var missing, choices []string
	for _, from := range f.From {
		parameter := "params.spec." + from
		if f.Values == nil {
			missing, choices = append(missing, parameter+` == ""`), append(choices, parameter+` != "" ? `+parameter)
		}
		for _, text := range slices.Sorted(maps.Keys(f.Values)) {
			literal, err := json.Marshal(f.Values[text]) // CEL has the literals of JSON
			utilruntime.Must(err)
			missing = append(missing, parameter+" != "+admissionpolicy.Quote(text))
			choices = append(choices, parameter+" == "+admissionpolicy.Quote(text)+" ? "+string(literal))
		}
	}
	// The last choice needs no condition, since one of them is true.
	_, last, _ := strings.Cut(choices[len(choices)-1], " ? ")
	value = strings.Join(append(choices[:len(choices)-1], last), " : ")
	skip = strings.Join(missing, " && ")
	if f.Trial != "" {
		skip = admissionpolicy.Quote(f.Trial) + " in params.spec.trial || " + skip
	}
	if f.Skip != "" {
		skip += " || " + f.Skip
	}
	return skip, value
}

// sharesNode is the CEL condition that a pod shares a namespace of its node. Kubernetes refuses a user namespace
// to such pods.
const sharesNode = `has(object.spec.hostNetwork) && object.spec.hostNetwork ||
	has(object.spec.hostPID) && object.spec.hostPID || has(object.spec.hostIPC) && object.spec.hostIPC`

// forbidsHostUsers reports whether croft sets hostUsers on the tenant's pods.
func forbidsHostUsers(t *estate.Tenant) bool {
	return t.Allowances.HostUsers == "Forbidden" && !slices.Contains(t.Allowances.Trial, "hostUsers")
}

// stopSharedNode returns the stopper of pods that share a namespace of their node. Gatekeeper's mutator sets
// hostUsers on these pods, too, and so Kubernetes refuses them before Pod Security evaluates them.
func (s scene) stopSharedNode() attack.Stopper {
	by := attack.ByPodSecurity
	if s.platform.Placement == v1alpha1.PlacementGatekeeper && forbidsHostUsers(s.attacker) {
		by.IsRefusal = func(err error) bool {
			return attack.ByPodSecurity.IsRefusal(err) ||
				apierrors.IsInvalid(err) && strings.Contains(err.Error(), "when `hostUsers` is false")
		}
	}
	return by
}

// isWindows is the CEL condition that a pod runs on Windows.
const isWindows = `has(object.spec.os) && object.spec.os.name == "windows"`

// findRuntimeClass returns the setting of the tenant's runtime class, or an empty one if it is in trial.
func findRuntimeClass(t *estate.Tenant) v1alpha1.PodRuntimeClass {
	if class := t.Allowances.RuntimeClass; class != nil && !slices.Contains(t.Allowances.Trial, "runtimeClass") {
		return *class
	}
	return v1alpha1.PodRuntimeClass{}
}

// addSettingPatch adds the patch that sets the fields.
func addSettingPatch(pods *admissionpolicy.Pods) {
	var patches, present, summaries []string
	for _, f := range listPodFields() {
		skip, value := formatField(&f)
		has := "has(object." + f.Path + ")"
		operations := []string{formatAdd(f.Path, value)}
		for _, path := range f.Cleared {
			// Unlike the operation remove, null also clears a field that is missing.
			operations = append(operations, formatAdd(path, "null"))
		}
		patches = append(patches, fmt.Sprintf("(%s || %s ? []\n: [%s])", skip, has, strings.Join(operations, ",\n")))
		present, summaries = append(present, has), append(summaries, f.Summary)
	}
	pods.SettingPatch, pods.SkipSettingPatch = strings.Join(patches, " +\n"), strings.Join(present, " && ")
	pods.SettingPatchSummary = "pods without the field get " + strings.Join(summaries, ", ") +
		", if the tenant's policy has the setting"
}

// formatAdd returns an operation of a JSON patch in CEL.
func formatAdd(path, value string) string {
	return fmt.Sprintf(`JSONPatch{op: "add", path: "/%s", value: %s}`, strings.ReplaceAll(path, ".", "/"), value)
}

// buildSettingMutators set the fields, if Gatekeeper is the placement engine. A mutator cannot read other
// fields of the pod, so it also sets fields that skip excludes.
func buildSettingMutators(t *estate.Tenant) []client.Object {
	var all []client.Object
	for _, f := range listPodFields() {
		if value := findFieldValue(&f, t); value != nil {
			all = append(all, admissionpolicy.Mutator{
				Kind: "Assign", Name: f.Name, Version: "v1", ObjectKind: "Pod", Operations: []string{"CREATE"},
				Location: f.Path, OnlyMissing: true, Value: value,
			}.Object(t.Name, t.Namespaces))
		}
	}
	return all
}

// buildSettingAttacks leave out each field that the tenant's policy sets.
func (s scene) buildSettingAttacks() []attack.Attack {
	var all []attack.Attack
	for _, f := range listPodFields() {
		value := findFieldValue(&f, s.attacker)
		if value == nil {
			continue
		}
		path := strings.Split(f.Path, ".")
		leave, omit := "leave-out-"+f.Name, "omit-"+f.Name
		by := attack.ByEngine(s.platform.Placement, admissionpolicy.PodSettingsPolicy)
		a := attack.NewCreate(leave, "run a pod without "+f.Summary, by, removeField(s.makePod(leave), path))
		a.Outcome = func(got client.Object) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(got)
			if err != nil {
				return err
			}
			found, _, err := unstructured.NestedFieldNoCopy(content, path...)
			other := !equality.Semantic.DeepEqual(found, value)
			if err == nil && (found == nil || other && !f.HasClusterDefault) {
				err = fmt.Errorf("the pod's %s is %v", f.Path, found)
			}
			return err
		}
		// Without the patch, a rule may refuse the pod. The mirror detects that.
		all = append(all, a, attack.NewCreate(omit, "leave "+f.Summary+" to croft",
			attack.Nobody, removeField(s.makePod(omit), path)))
	}
	return all
}

// removeField returns the pod without a field.
func removeField(pod *corev1.Pod, path []string) *corev1.Pod {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	utilruntime.Must(err)
	unstructured.RemoveNestedField(content, path...)
	without := &corev1.Pod{}
	utilruntime.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(content, without))
	return without
}
