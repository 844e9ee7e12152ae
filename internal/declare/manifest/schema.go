package manifest

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/crds"
	"croft.dev/croft/api/v1alpha1"
)

// kinds are the kinds of declared objects, in the order of messages.
var kinds = []string{KindPlatform, KindPool, KindTenant, KindNetwork}

func isKind(kind any) bool {
	for _, k := range kinds {
		if kind == k {
			return true
		}
	}
	return false
}

// schemas returns the compiled schemas of all kinds. They come from croft's
// CustomResourceDefinitions, so that a rule is written once and has the same effect for a file
// and in the API server. Compiling them takes a moment.
var schemas = sync.OnceValues(func() (map[string]*compiledSchema, error) {
	all := map[string]*compiledSchema{}
	for _, kind := range kinds {
		c, err := compileSchema(kind)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		all[kind] = c
	}
	return all, nil
})

// compiledSchema has the three forms of a schema for the API server's own packages: for defaulting
// and pruning, for types and bounds, and for rules.
type compiledSchema struct {
	structure *structural.Structural
	openAPI   validation.SchemaCreateValidator
	rules     *cel.Validator
}

func compileSchema(kind string) (*compiledSchema, error) {
	file := fmt.Sprintf("%s_%ss.yaml", v1alpha1.GroupVersion.Group, strings.ToLower(kind))
	data, err := crds.FS.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		return nil, err
	}
	schema, err := findSchema(&crd)
	if err != nil {
		return nil, err
	}
	structure, err := structural.NewStructural(schema)
	if err != nil {
		return nil, err
	}
	openAPI, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return nil, err
	}
	return &compiledSchema{structure, openAPI, cel.NewValidator(structure, true, celconfig.PerCallLimit)}, nil
}

func findSchema(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.JSONSchemaProps, error) {
	for _, version := range crd.Spec.Versions {
		if version.Name != v1alpha1.GroupVersion.Version || version.Schema == nil {
			continue
		}
		var schema apiextensions.JSONSchemaProps
		err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &schema, nil)
		return &schema, err
	}
	return nil, fmt.Errorf("%s has no schema for %s", crd.Name, v1alpha1.GroupVersion.Version)
}
