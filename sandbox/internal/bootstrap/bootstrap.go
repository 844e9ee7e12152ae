// Package bootstrap writes the objects to a new cluster that its components and croft need:
// CRDs, and the rights of Karpenter and kwok.
package bootstrap

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"

	"croft.dev/croft/api/crds"
)

// fieldManager is the field manager of a sandbox's own objects.
const fieldManager = "croft-sandbox"

// patience is the time limit for the API server to serve a CRD.
const patience = 30 * time.Second

//go:embed manifests
var manifests embed.FS

//go:embed dns.yaml
var dns []byte

// DecodeDNS returns the objects of the DNS server that runs on real nodes.
func DecodeDNS() ([]*unstructured.Unstructured, error) {
	return Decode(dns)
}

// Install applies all objects, including the caller's in more, and returns when the API server
// serves all kinds. A second call changes nothing.
func Install(ctx context.Context, kubeconfig string, more ...*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := newClient(kubeconfig)
	if err != nil {
		return err
	}
	if err := c.removeWebhooks(ctx); err != nil {
		return err
	}
	objects, err := readCRDs()
	if err != nil {
		return err
	}
	rest, err := readFS(manifests)
	if err != nil {
		return err
	}
	objects = slices.Concat(objects, rest, more)
	if err := c.applyAll(ctx, objects); err != nil {
		return err
	}
	return c.awaitEstablished(ctx, slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool {
		return u.GetKind() != "CustomResourceDefinition"
	}))
}

// readCRDs returns the CRDs of the linked version of Karpenter, and croft's.
func readCRDs() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, list := range [][]*apiextensionsv1.CustomResourceDefinition{karpenterapis.CRDs, kwokapis.CRDs} {
		for _, crd := range list {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
			if err != nil {
				return nil, fmt.Errorf("definition %s: %w", crd.Name, err)
			}
			u := &unstructured.Unstructured{Object: object}
			u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
			// Go encodes these fields although they are not set.
			unstructured.RemoveNestedField(u.Object, "status")
			unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
			out = append(out, u)
		}
	}
	croft, err := readFS(crds.FS)
	return append(out, croft...), err
}

// readFS reads all documents of all files. It skips empty documents.
func readFS(fsys fs.FS) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	err := fs.WalkDir(fsys, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, path)
		if err != nil {
			return err
		}
		objects, err := Decode(content)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, objects...)
		return nil
	})
	return out, err
}

// Decode reads all documents of a YAML file. It skips empty documents.
func Decode(content []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

// isEstablished reports whether the API server serves a CRD's kind.
func isEstablished(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == string(apiextensionsv1.Established) {
			return condition["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}
