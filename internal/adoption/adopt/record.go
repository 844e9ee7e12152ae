package adopt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

// Record is the state before a tenant was adopted. It is stored in the cluster, in a ConfigMap
// in the namespace of croft's operator, so that it does not depend on the machine that ran the
// command. Its content is valid input of kubectl apply.
type Record struct {
	Tenant string
	// Namespaces are the labels and annotations that were overwritten or removed.
	Namespaces map[string]Marks
	// Objects were deleted or overwritten.
	Objects []*unstructured.Unstructured

	stored *corev1.ConfigMap
}

// Marks are labels and annotations.
type Marks struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const (
	recordPrefix   = "croft-adopt-"
	namespacesFile = "namespaces.yaml"
	objectsFile    = "objects.yaml"
)

// RecordName returns the kind and name of a tenant's record, for messages.
func RecordName(tenant string) string {
	return "configmap " + v1alpha1.SystemNamespace + "/" + recordPrefix + tenant
}

// ReadRecord reads the record of a tenant. It returns nil if nothing was adopted.
func ReadRecord(ctx context.Context, c client.Reader, tenant string) (*Record, error) {
	var stored corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: recordPrefix + tenant}, &stored)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	r := &Record{Tenant: tenant, stored: &stored}
	if err := yaml.Unmarshal([]byte(stored.Data[namespacesFile]), &r.Namespaces); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", RecordName(tenant), namespacesFile, err)
	}
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(stored.Data[objectsFile])), 4096)
	for {
		var o unstructured.Unstructured
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", RecordName(tenant), objectsFile, err)
		}
		if len(o.Object) > 0 {
			r.Objects = append(r.Objects, &o)
		}
	}
}

// addObject adds an object, unless it was added before: the first state is kept.
func (r *Record) addObject(o *unstructured.Unstructured) {
	if !slices.ContainsFunc(r.Objects, func(recorded *unstructured.Unstructured) bool { return apply.RefOf(recorded) == apply.RefOf(o) }) {
		r.Objects = append(r.Objects, stripServerFields(o))
	}
}

// save writes the record, if it has not changed since it was read.
func (r *Record) save(ctx context.Context, applier *apply.Applier) error {
	var objects bytes.Buffer
	for _, o := range r.Objects {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&objects, "---\n%s", data)
	}
	namespaces, err := yaml.Marshal(r.Namespaces)
	if err != nil {
		return err
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: recordPrefix + r.Tenant}}
	if r.stored != nil {
		stored = r.stored.DeepCopy()
	}
	stored.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	stored.Data = map[string]string{namespacesFile: string(namespaces), objectsFile: objects.String()}
	err = applier.Save(ctx, stored)
	switch {
	case apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsInvalid(err):
		return fmt.Errorf("the objects to delete do not fit into %s (%d bytes): save and delete some of them yourself: %w", RecordName(r.Tenant), objects.Len(), err)
	case err != nil:
		return fmt.Errorf("writing %s: %w", RecordName(r.Tenant), err)
	}
	r.stored = stored
	return nil
}
