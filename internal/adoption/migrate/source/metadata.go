package source

import (
	"strings"
)

// served is the metadata that the API server writes.
var served = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "resourceVersion", "selfLink", "uid",
}

// AccountMetadata accounts for the fields of every object: its kind, its name and the API server's
// metadata. The name becomes a field of croft.yaml.
func AccountMetadata(o *Object, to string) {
	for _, key := range []string{"apiVersion", "kind"} {
		o.At(key).MarkKept(to)
	}
	metadata := o.At("metadata")
	metadata.At("name").MarkKept(to)
	metadata.At("namespace").MarkKept(to)
	for _, key := range append(served, "ownerReferences", "finalizers") {
		metadata.At(key).MarkOther("set by the cluster")
	}
	o.At("status").MarkOther("the observed state, not the desired one")
	for _, mark := range append(metadata.At("labels").Fields(), metadata.At("annotations").Fields()...) {
		if mark.HasOutcome() {
			continue
		}
		switch key := mark.Key(); {
		case strings.HasPrefix(key, "kubectl.kubernetes.io/"):
			mark.MarkOther("set by kubectl")
		case key == "app.kubernetes.io/managed-by" && mark.Text() == "Helm", strings.HasPrefix(key, "helm.sh/"), strings.HasPrefix(key, "meta.helm.sh/"):
			mark.MarkOther("set by Helm: remove the object from the chart when croft's walls are in place, or both will write it")
		case strings.HasPrefix(key, "croft.dev/"), key == "app.kubernetes.io/managed-by" && mark.Text() == "croft":
			mark.MarkKept(to)
		default:
			mark.MarkNotKept("croft does not copy labels and annotations to the objects that replace this one")
		}
		mark.markGeneral()
	}
}
