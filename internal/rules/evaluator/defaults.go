package evaluator

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fillDefaults sets the API server's defaults that precede all policies, as far as policies read
// them. No package with Kubernetes' own defaults can be imported without all of Kubernetes.
func fillDefaults(u *unstructured.Unstructured, subresource string) {
	kind := u.GroupVersionKind().GroupKind().String()
	if kind == "Namespace" {
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[corev1.LabelMetadataName] = u.GetName()
		u.SetLabels(labels)
		return
	}
	if kind == "Pod" {
		fillPod(ensureObject(u.Object, "spec"))
		if subresource == "" {
			fillAdmittedPod(ensureObject(u.Object, "spec"))
		}
		return
	}
	if kind == "Service" && subresource == "" {
		spec := ensureObject(u.Object, "spec")
		setIfMissing(spec, "type", "ClusterIP")
		setIfMissing(spec, "sessionAffinity", "None")
		fillPorts(spec)
		fillTargetPorts(spec)
		return
	}
	if path, ok := templates[kind]; ok {
		if spec, found, _ := unstructured.NestedFieldNoCopy(u.Object, path...); found {
			if spec, ok := spec.(map[string]any); ok {
				fillPod(spec)
			}
		}
	}
}

// templates has the path of the pod spec in each kind.
var templates = map[string][]string{
	"Deployment.apps":       {"spec", "template", "spec"},
	"StatefulSet.apps":      {"spec", "template", "spec"},
	"DaemonSet.apps":        {"spec", "template", "spec"},
	"ReplicaSet.apps":       {"spec", "template", "spec"},
	"ReplicationController": {"spec", "template", "spec"},
	"Job.batch":             {"spec", "template", "spec"},
	"CronJob.batch":         {"spec", "jobTemplate", "spec", "template", "spec"},
	"PodTemplate":           {"template", "spec"},
}

// fillPod corresponds to SetDefaults_PodSpec and related functions of
// k8s.io/kubernetes/pkg/apis/core/v1.
func fillPod(spec map[string]any) {
	for field, value := range map[string]any{
		"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
		"terminationGracePeriodSeconds": int64(30), "securityContext": map[string]any{},
	} {
		setIfMissing(spec, field, value)
	}
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			if c, ok := c.(map[string]any); ok {
				fillContainer(c)
			}
		}
	}
}

func fillContainer(c map[string]any) {
	setIfMissing(c, "terminationMessagePath", "/dev/termination-log")
	setIfMissing(c, "terminationMessagePolicy", "File")
	image, _ := c["image"].(string)
	setIfMissing(c, "imagePullPolicy", string(defaultPullPolicy(image)))
	fillPorts(c)
}

func fillPorts(in map[string]any) {
	ports, _ := in["ports"].([]any)
	for _, p := range ports {
		if p, ok := p.(map[string]any); ok {
			setIfMissing(p, "protocol", "TCP")
		}
	}
}

// fillTargetPorts sets the target port of a Service's port to the same number, unless it is
// set.
func fillTargetPorts(spec map[string]any) {
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		p, ok := p.(map[string]any)
		if !ok {
			continue
		}
		if target, ok := p["targetPort"]; !ok || target == nil || target == "" || target == int64(0) {
			p["targetPort"] = p["port"]
		}
	}
}

// fillAdmittedPod sets the fields of a pod that the API server's plugins ServiceAccount,
// Priority and DefaultTolerationSeconds set before policies are evaluated.
func fillAdmittedPod(spec map[string]any) {
	setIfMissing(spec, "serviceAccountName", "default")
	// A class decides both fields, and the evaluator does not know the classes.
	if class, _ := spec["priorityClassName"].(string); class == "" {
		setIfMissing(spec, "priority", int64(0))
		setIfMissing(spec, "preemptionPolicy", "PreemptLowerPriority")
	}
	setIfMissing(spec, "enableServiceLinks", true)
	fillToken(spec)
	tolerations, _ := spec["tolerations"].([]any)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !hasToleration(tolerations, key) {
			tolerations = append(tolerations, map[string]any{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)})
		}
	}
	spec["tolerations"] = tolerations
}

// The volume of a pod's own token, its name without the generated suffix, and its mount path.
const (
	tokenVolume = "kube-api-access-"
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// fillToken mounts the service account's token into the containers that mount nothing else at
// its path, unless the pod disables it. The setting of the service account is not known.
func fillToken(spec map[string]any) {
	if automount, ok := spec["automountServiceAccountToken"].(bool); ok && !automount {
		return
	}
	name, known := tokenVolume, false
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		v, _ := v.(map[string]any)
		if own, _ := v["name"].(string); strings.HasPrefix(own, tokenVolume) {
			name, known = own, true
			break
		}
	}
	mounted := false
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			c, ok := c.(map[string]any)
			if !ok || hasMountAt(c, tokenPath) {
				continue
			}
			mounts, _ := c["volumeMounts"].([]any)
			c["volumeMounts"] = append(mounts, map[string]any{"name": name, "readOnly": true, "mountPath": tokenPath})
			mounted = true
		}
	}
	if !mounted || known {
		return
	}
	spec["volumes"] = append(volumes, map[string]any{"name": name, "projected": map[string]any{
		"defaultMode": int64(0o644), "sources": []any{
			map[string]any{"serviceAccountToken": map[string]any{"expirationSeconds": int64(3607), "path": "token"}},
			map[string]any{"configMap": map[string]any{"name": "kube-root-ca.crt", "items": []any{map[string]any{"key": "ca.crt", "path": "ca.crt"}}}},
			map[string]any{"downwardAPI": map[string]any{"items": []any{map[string]any{
				"path": "namespace", "fieldRef": map[string]any{"apiVersion": "v1", "fieldPath": "metadata.namespace"},
			}}}},
		},
	}})
}

func hasMountAt(container map[string]any, path string) bool {
	mounts, _ := container["volumeMounts"].([]any)
	for _, m := range mounts {
		if m, _ := m.(map[string]any); m["mountPath"] == path {
			return true
		}
	}
	return false
}

func hasToleration(tolerations []any, key string) bool {
	for _, t := range tolerations {
		t, _ := t.(map[string]any)
		effect, _ := t["effect"].(string)
		if own, _ := t["key"].(string); (own == key || own == "") && (effect == "NoExecute" || effect == "") {
			return true
		}
	}
	return false
}

// setIfMissing sets a field that is missing, or empty if empty means missing.
func setIfMissing(in map[string]any, field string, value any) {
	if now, ok := in[field]; !ok || now == nil || now == "" {
		in[field] = value
	}
}

// ensureObject returns a field that is an object, and creates it if it is missing.
func ensureObject(in map[string]any, field string) map[string]any {
	o, ok := in[field].(map[string]any)
	if !ok {
		o = map[string]any{}
		in[field] = o
	}
	return o
}

// defaultPullPolicy returns Kubernetes' default: Always for the tag latest and for an image without
// a tag.
func defaultPullPolicy(image string) corev1.PullPolicy {
	if parseTag(image) == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func parseTag(image string) string {
	if strings.Contains(image, "@") {
		return ""
	}
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, ok := strings.Cut(name, ":"); ok {
		return tag
	}
	return "latest"
}
