package policy

import (
	"cmp"
	"fmt"
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
)

// podSetting is a field that croft sets on new pods without it, for tenants whose policy has the setting.
type podSetting struct {
	// name is a part of the names of Gatekeeper's mutator and of the attack.
	name string
	// path is the path of the field in a pod, and summary describes its value.
	path, summary string
	// skip is a CEL condition: the tenant does not have the setting, or pods like this one cannot have the field.
	skip string
	// value is a CEL expression for the value. findValue returns the same value for a tenant, or nil for a
	// tenant without the setting.
	value     string
	findValue func(*estate.Tenant) any
	// cleared are the paths of fields that the API server has derived from the missing field. It derives them
	// again after the patch. Gatekeeper's mutators cannot clear a field, so with Gatekeeper as the engine the
	// estate has no such setting.
	cleared []string
	// hasClusterDefault is set if the API server may set another value before the patch, by a default of the cluster.
	hasClusterDefault bool
}

// podSettings are all such fields. Rules validate the pod afterwards.
var podSettings = []podSetting{
	{
		name: "runtime-class", path: "spec.runtimeClassName", summary: "the tenant's runtime class",
		skip: `"runtimeClass" in params.spec.trial ||
			params.spec.runtimeClassForce == "" && params.spec.runtimeClassDefault == ""`,
		value: `params.spec.runtimeClassForce != "" ? params.spec.runtimeClassForce : params.spec.runtimeClassDefault`,
		findValue: func(t *estate.Tenant) any {
			if class := findRuntimeClass(t); class.Force != "" || class.Default != "" {
				return cmp.Or(class.Force, class.Default)
			}
			return nil
		},
	},
	{
		// A pod without a class has the priority 0, which contradicts a class with another value.
		name: "priority-class", path: "spec.priorityClassName", summary: "the tenant's priority class",
		skip: `params.spec.priorityClassDefault == ""`, value: `params.spec.priorityClassDefault`,
		findValue: func(t *estate.Tenant) any {
			if class := t.Allowances.PriorityClass; class != nil && class.Default != "" {
				return class.Default
			}
			return nil
		},
		cleared: []string{"spec.priority", "spec.preemptionPolicy"}, hasClusterDefault: true,
	},
	{
		// The API server sets a missing securityContext before any policy. Pods of Windows have no seccomp profile.
		name: "seccomp", path: "spec.securityContext.seccompProfile", summary: "the seccomp profile RuntimeDefault",
		skip:  `params.spec.seccomp != "RuntimeDefault" || ` + isWindows,
		value: `{"type": "RuntimeDefault"}`,
		findValue: func(t *estate.Tenant) any {
			if t.Allowances.Seccomp == seccompDefault {
				return map[string]any{"type": seccompDefault}
			}
			return nil
		},
	},
	{
		name: "host-users", path: "spec.hostUsers", summary: "hostUsers: false",
		skip: `params.spec.hostUsers != "Forbidden" || "hostUsers" in params.spec.trial || ` + isWindows + ` ||
			` + sharesNode,
		value: `false`,
		findValue: func(t *estate.Tenant) any {
			if forbidsHostUsers(t) {
				return false
			}
			return nil
		},
	},
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

// seccompDefault is the value of policy.seccomp that requires a profile.
const seccompDefault = string(corev1.SeccompProfileTypeRuntimeDefault)

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
	for _, s := range podSettings {
		has := "has(object." + s.path + ")"
		operations := []string{formatAdd(s.path, s.value)}
		for _, path := range s.cleared {
			// Unlike the operation remove, null also clears a field that is missing.
			operations = append(operations, formatAdd(path, "null"))
		}
		patches = append(patches, fmt.Sprintf("(%s || %s ? []\n: [%s])", s.skip, has, strings.Join(operations, ",\n")))
		present, summaries = append(present, has), append(summaries, s.summary)
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
	for _, s := range podSettings {
		if value := s.findValue(t); value != nil {
			all = append(all, admissionpolicy.Mutator{
				Kind: "Assign", Name: s.name, Version: "v1", ObjectKind: "Pod", Operations: []string{"CREATE"},
				Location: s.path, OnlyMissing: true, Value: value,
			}.Object(t.Name, t.Namespaces))
		}
	}
	return all
}

// buildSettingAttacks leave out each field that the tenant's policy sets.
func (s scene) buildSettingAttacks() []attack.Attack {
	var all []attack.Attack
	for _, setting := range podSettings {
		value := setting.findValue(s.attacker)
		if value == nil {
			continue
		}
		path := strings.Split(setting.path, ".")
		leave, omit := "leave-out-"+setting.name, "omit-"+setting.name
		by := attack.ByEngine(s.platform.Placement, admissionpolicy.PodSettingsPolicy)
		a := attack.NewCreate(leave, "run a pod without "+setting.summary, by, removeField(s.makePod(leave), path))
		a.Outcome = func(got client.Object) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(got)
			if err != nil {
				return err
			}
			found, _, err := unstructured.NestedFieldNoCopy(content, path...)
			other := !equality.Semantic.DeepEqual(found, value)
			if err == nil && (found == nil || other && !setting.hasClusterDefault) {
				err = fmt.Errorf("the pod's %s is %v", setting.path, found)
			}
			return err
		}
		// Without the patch, a rule may refuse the pod. The mirror detects that.
		all = append(all, a, attack.NewCreate(omit, "leave "+setting.summary+" to croft",
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
