package operator_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall/nodes"
)

// writeDialects writes network policies in each dialect.
func (l *life) writeDialects() {
	l.Helper()
	calico, cluster := apply.DialectKinds, apply.ClusterDialectKinds
	others := slices.Concat(calico, cluster)
	for _, dialect := range []struct {
		network string
		kind    schema.GroupVersionKind
	}{
		{`{"dialect": "Calico", "calico": {}}`, calico[0]},
		{`{"dialect": "Calico", "calico": {"apiGroup": "crd.projectcalico.org"}}`, calico[1]},
		{`{"dialect": "ClusterNetworkPolicy", "calico": null}`, cluster[0]},
		{`{"dialect": "AWS"}`, cluster[1]},
		{`{"dialect": "Kubernetes"}`, schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}},
	} {
		l.Patch(l.platform, `{"spec": {"network": `+dialect.network+`}}`)
		l.awaitAllReady()
		l.awaitOnlyKinds([]schema.GroupVersionKind{dialect.kind}, others)
	}
}

// repairAddOns deletes croft's objects of the add-ons in tenants' namespaces, and the objects that the Tenants
// declare, and waits until the operator has created them again. For that, unlike in a new namespace, it reads whether they exist.
func (l *life) repairAddOns() {
	l.Helper()
	for _, kind := range append(slices.Clone(apply.OptionalKinds), corev1.SchemeGroupVersion.WithKind("ConfigMap")) {
		list := func() []unstructured.Unstructured {
			all := &unstructured.UnstructuredList{}
			all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			if err := l.Client.List(l.Context(), all, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil {
				l.Fatal(err)
			}
			return all.Items
		}
		deleted := list()
		if len(deleted) == 0 {
			l.Errorf("no %s", kind.Kind)
		}
		for i := range deleted {
			if err := l.Client.Delete(l.Context(), &deleted[i]); err != nil {
				l.Fatal(err)
			}
		}
		l.Await(kind.Kind+" again", func() string {
			if n := len(list()); n != len(deleted) {
				return fmt.Sprintf("%d of %d", n, len(deleted))
			}
			return ""
		})
	}
}

// switchEngines changes the placement engine to Gatekeeper and back to the API server.
func (l *life) switchEngines() {
	l.Helper()
	gatekeeper := slices.Concat(apply.GatekeeperPlatformKinds, apply.GatekeeperMutatorKinds)
	l.Patch(l.platform, `{"spec": {"placement": "Gatekeeper"}}`)
	l.awaitOnlyKinds(gatekeeper, apply.NativePlatformKinds)
	l.awaitAllReady()
	l.Patch(l.platform, `{"spec": {"placement": "Native"}}`)
	l.awaitOnlyKinds(apply.NativePlatformKinds, gatekeeper)
	l.awaitAllReady()
}

// awaitOnlyKinds waits until croft has objects of all the first kinds and of none of the others.
func (l *life) awaitOnlyKinds(kinds, others []schema.GroupVersionKind) {
	l.Helper()
	count := func(kind schema.GroupVersionKind) int {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := l.Client.List(l.Context(), all, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil {
			return 0 // the kind's CRD was deleted, or is not yet installed
		}
		return len(all.Items)
	}
	l.Await("objects of these kinds alone", func() string {
		for _, kind := range kinds {
			if count(kind) == 0 {
				return "no " + kind.GroupKind().String()
			}
		}
		for _, kind := range others {
			if n := count(kind); n > 0 && !slices.Contains(kinds, kind) {
				return fmt.Sprintf("%d of %s", n, kind.GroupKind())
			}
		}
		return ""
	})
}

// installKind installs an add-on's kind whose CRD is in no Go module.
func (f *fixture) installKind(kind schema.GroupVersionKind, plural string) {
	f.Helper()
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	f.installKindAs(kind, plural, apiextensionsv1.NamespaceScoped, anything)
}

// installReadinessRules installs the CRD of the node readiness controller with the
// validation that matters to croft: required and immutable fields
// (readiness.node.x-k8s.io/v1alpha1 in July 2026).
func (f *fixture) installReadinessRules() {
	f.Helper()
	type schemas = map[string]apiextensionsv1.JSONSchemaProps
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	one := func(values ...string) apiextensionsv1.JSONSchemaProps {
		bounded := text
		for _, v := range values {
			bounded.Enum = append(bounded.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + v + `"`)})
		}
		return bounded
	}
	fixed := func(s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: "self == oldSelf", Message: "immutable"})
		return s
	}
	condition := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"type", "requiredStatus"},
		Properties: schemas{"type": {Type: "string", MaxLength: ptr.To[int64](316)}, "requiredStatus": one("True", "False", "Unknown")},
	}
	spec := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"conditions", "enforcementMode", "nodeSelector", "taint"},
		Properties: schemas{
			"conditions": fixed(apiextensionsv1.JSONSchemaProps{
				Type: "array", MinItems: ptr.To[int64](1), MaxItems: ptr.To[int64](32), XListType: ptr.To("map"), XListMapKeys: []string{"type"},
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
			}),
			"dryRun":          {Type: "boolean"},
			"enforcementMode": fixed(one("bootstrap-only", "continuous")),
			"nodeSelector": fixed(apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: schemas{"matchLabels": {
					Type: "object", MaxProperties: ptr.To[int64](16), AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "string", MaxLength: ptr.To[int64](63),
					}},
				}},
			}),
			"taint": fixed(apiextensionsv1.JSONSchemaProps{
				Type: "object", Required: []string{"key", "effect"},
				Properties: schemas{
					"key":   {Type: "string", Pattern: "^readiness\\.k8s\\.io/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", MaxLength: ptr.To[int64](253)},
					"value": {Type: "string", MaxLength: ptr.To[int64](63)}, "effect": one("NoSchedule", "PreferNoSchedule", "NoExecute"),
				},
			}),
		},
	}
	f.installKindAs(nodes.ReadinessRule, "nodereadinessrules", apiextensionsv1.ClusterScoped,
		&apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"spec"}, Properties: schemas{"spec": spec}})
}

// installKindAs installs a CRD with a schema.
func (f *fixture) installKindAs(kind schema.GroupVersionKind, plural string, scope apiextensionsv1.ResourceScope, of *apiextensionsv1.JSONSchemaProps) {
	f.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + kind.Group,
			// The API server requires this annotation for groups of the Kubernetes project.
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind.Kind, ListKind: kind.Kind + "List", Singular: strings.ToLower(kind.Kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: of},
			}},
		},
	}
	f.Create(definition)
}
