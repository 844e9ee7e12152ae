package trial

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// child is an object that a controller of Kubernetes creates from another.
type child struct {
	object     *unstructured.Unstructured
	controller user.Info
	// path is the path of its template.
	path []string
}

// makers maps kinds with a pod template to the path of the template and the controller that
// creates the pods. For a Deployment, this is the ReplicaSet controller.
var makers = map[string]struct {
	path              []string
	controller, owner string
}{
	"Deployment.apps":       {[]string{"spec", "template"}, "replicaset-controller", "ReplicaSet"},
	"ReplicaSet.apps":       {[]string{"spec", "template"}, "replicaset-controller", "ReplicaSet"},
	"ReplicationController": {[]string{"spec", "template"}, "replication-controller", "ReplicationController"},
	"StatefulSet.apps":      {[]string{"spec", "template"}, "statefulset-controller", "StatefulSet"},
	"DaemonSet.apps":        {[]string{"spec", "template"}, "daemon-set-controller", "DaemonSet"},
	"Job.batch":             {[]string{"spec", "template"}, "job-controller", "Job"},
	"CronJob.batch":         {[]string{"spec", "jobTemplate", "spec", "template"}, "job-controller", "Job"},
}

// listChildren returns the pod and the claims that Kubernetes creates from an object.
func listChildren(o *unstructured.Unstructured) []child {
	kind := o.GroupVersionKind().GroupKind().String()
	maker, ok := makers[kind]
	if !ok {
		return nil
	}
	controller := serviceaccount.UserInfo("kube-system", maker.controller, "")
	var all []child
	if template, found, _ := unstructured.NestedMap(o.Object, maker.path...); found {
		pod := makeChild("v1", "Pod", template, o, maker.owner)
		all = append(all, child{pod, controller, maker.path})
	}
	claims, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
	for i, c := range claims {
		if c, ok := c.(map[string]any); ok && kind == "StatefulSet.apps" {
			claim := makeChild("v1", "PersistentVolumeClaim", c, o, maker.owner)
			all = append(all, child{claim, controller, []string{"spec", "volumeClaimTemplates", strconv.Itoa(i)}})
		}
	}
	return all
}

// findTemplatePath returns the path of an object's pod template.
func findTemplatePath(o *unstructured.Unstructured) []string {
	if o.GetKind() == "PodTemplate" {
		return []string{"template"}
	}
	return makers[o.GroupVersionKind().GroupKind().String()].path
}

// makeChild returns an object from a template, as its owner's controller creates it.
func makeChild(apiVersion, kind string, template map[string]any, from *unstructured.Unstructured, owner string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range template {
		u.Object[key] = value
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(from.GetNamespace())
	u.SetName(from.GetName() + "-0")
	group := from.GetAPIVersion()
	if owner == "Job" {
		group = "batch/v1"
	}
	if kind == "Pod" {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{
			"apiVersion": group, "kind": owner, "name": from.GetName(), "uid": "00000000-0000-0000-0000-000000000000",
			"controller": true, "blockOwnerDeletion": true,
		}}, "metadata", "ownerReferences")
	}
	return u
}
