package crds_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/crds"
)

// invisible are characters that change how a text reads, or hide a part of it: directions,
// joiners, fillers, selectors of variants, and ends of lines.
var invisible = []rune{
	0x00ad, 0x034f, 0x061c, 0x115f, 0x1160, 0x17b4, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x202a, 0x202e, 0x2028, 0x2029,
	0x2060, 0x2063, 0x2066, 0x2069, 0x206f, 0x2800, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0x1d173, 0xe0001, 0xe0041, 0xe0100,
	'\n', '\t', 0x07, 0x1b, 0x7f, 0x85,
}

// unread are fields that name an object of Kubernetes, of Karpenter or of a cloud, by the
// last part of their: none has such a name, or croft checks it elsewhere. The script
// userData and annotations of namespaces may have several lines.
var unread = strings.Fields(`annotations[] annotations{} apiGroups[] branch choose{}[] cloudIdentities[] clusterName csiDrivers[] deviceClasses[] deviceName
	discovery{} domain finalizers[] force labels{} gatewayClasses[] ingressClasses[] instanceProfile instanceTypes[] key kind kmsKeyID loadBalancerClasses[] name
	namespace networks[] nodePool costCode owner pool pools[] priorityClass.default priorityClasses[] project ref.group resources[] role runtimeClass.default
	runtimeClasses[] schedule search[] secondaryNetworks[] securityGroups[] ssmParameter startupTaints[].value storageClasses[] subnet tag tags{}
	userData values[] verbs[] volumeAttributesClasses[] zone`)

// TestTextRefusesInvisibleCharacters finds every text of croft's kinds, and expects that it
// refuses invisible characters: admins decide by texts such as the reason of an elevation, or
// the name of a group.
func TestTextRefusesInvisibleCharacters(t *testing.T) {
	files, err := fs.Glob(crds.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_tenantrules.yaml") {
			continue // croft writes them
		}
		for path, schema := range listTextSchemas(t, file) {
			refuses := buildTextValidator(t, schema)
			accepted := slices.DeleteFunc(slices.Clone(invisible), func(r rune) bool { return refuses("ann" + string(r) + "b") })
			if len(accepted) == 0 {
				continue
			}
			i := slices.IndexFunc(unread, func(end string) bool { return strings.HasSuffix(path, "."+end) })
			if i < 0 {
				t.Errorf("%s: %s accepts %+q", file, path, string(accepted))
				continue
			}
			used[unread[i]] = true
		}
	}
	for _, end := range unread {
		if !used[end] {
			t.Errorf("%s is an exception, and no such field accepts invisible characters", end)
		}
	}
	refuses := buildTextValidator(t, listTextSchemas(t, "croft.dev_elevations.yaml")["spec.reason"])
	for _, text := range []string{"INC-42: the queue is stuck", "Störung: 行列", "تأخير", "🔥 – “down”"} {
		if refuses(text) {
			t.Errorf("a reason %q is refused", text)
		}
	}
}

// listTextSchemas returns the texts in a kind's spec, by their paths.
func listTextSchemas(t *testing.T, file string) map[string]*apiextensions.JSONSchemaProps {
	t.Helper()
	data, err := crds.FS.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
		t.Fatal(err)
	}
	all := map[string]*apiextensions.JSONSchemaProps{}
	var walk func(s apiextensions.JSONSchemaProps, path string)
	walk = func(s apiextensions.JSONSchemaProps, path string) {
		if s.Type == "string" && len(s.Enum) == 0 && s.Format == "" {
			all[path] = &s
		}
		for name, property := range s.Properties {
			walk(property, path+"."+name)
		}
		if s.Items != nil && s.Items.Schema != nil {
			walk(*s.Items.Schema, path+"[]")
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			walk(*s.AdditionalProperties.Schema, path+"{}")
		}
	}
	walk(schema.Properties["spec"], "spec")
	return all
}

// buildTextValidator returns a function that reports whether a schema refuses a text, by its bounds
// or its rules.
func buildTextValidator(t *testing.T, schema *apiextensions.JSONSchemaProps) func(text string) bool {
	t.Helper()
	open, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		t.Fatal(err)
	}
	structure, err := structural.NewStructural(schema)
	if err != nil {
		t.Fatal(err)
	}
	rules := cel.NewValidator(structure, false, celconfig.PerCallLimit)
	return func(text string) bool {
		if len(validation.ValidateCustomResource(nil, text, open)) > 0 {
			return true
		}
		errs, _ := rules.Validate(t.Context(), nil, structure, text, nil, celconfig.RuntimeCELCostBudget)
		return len(errs) > 0
	}
}
