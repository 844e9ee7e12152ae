package source

import (
	"strings"
)

// served is the metadata that the API server writes.
var served = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "resourceVersion", "selfLink", "uid",
}

// Frame accounts for the fields of every object: its kind, its name and the API server's
// metadata. The name becomes a field of croft.yaml.
func Frame(o *Object, to string) {
	for _, key := range []string{"apiVersion", "kind"} {
		o.At(key).Kept(to)
	}
	metadata := o.At("metadata")
	metadata.At("name").Kept(to)
	metadata.At("namespace").Kept(to)
	for _, key := range append(served, "ownerReferences", "finalizers") {
		metadata.At(key).Other("the cluster's own")
	}
	o.At("status").Other("what was observed, not what was asked for")
	for _, mark := range append(metadata.At("labels").Fields(), metadata.At("annotations").Fields()...) {
		if mark.Said() {
			continue
		}
		switch key := mark.Key(); {
		case strings.HasPrefix(key, "kubectl.kubernetes.io/"):
			mark.Other("kubectl's own")
		case key == "app.kubernetes.io/managed-by" && mark.Text() == "Helm", strings.HasPrefix(key, "helm.sh/"), strings.HasPrefix(key, "meta.helm.sh/"):
			mark.Other("Helm's own: take the object out of the chart once croft stands, or both write it")
		case strings.HasPrefix(key, "croft.dev/"), key == "app.kubernetes.io/managed-by" && mark.Text() == "croft":
			mark.Kept(to)
		default:
			mark.NotKept("croft does not carry labels and annotations over to what it writes in this object's place")
		}
		mark.markGeneral()
	}
}
