package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/manifest"
)

// specOf returns the kind of a CustomResourceDefinition, and the schema of its spec, which is
// nil if the kind has no spec.
func specOf(definition unstructured.Unstructured) (kind string, spec map[string]any, err error) {
	kind, _, err = unstructured.NestedString(definition.Object, "spec", "names", "kind")
	if err != nil {
		return "", nil, err
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		return "", nil, fmt.Errorf("%s has %d versions; the chart's values are of one: %w", kind, len(versions), err)
	}
	spec, _, err = unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec")
	return kind, spec, err
}

// valuesSchema returns the schema of values.yaml: croft.yaml's keys with the schemas of the
// kinds, and the chart's own. Like `croft check`, it refuses unknown fields. It leaves the CEL
// rules to the API server.
func valuesSchema(kinds map[string]map[string]any) (map[string]any, error) {
	for _, kind := range []string{manifest.KindPlatform, manifest.KindPool, manifest.KindTenant, manifest.KindNetwork} {
		if kinds[kind] == nil {
			return nil, fmt.Errorf("%s has no schema", kind)
		}
	}
	named := func(kind, what string) map[string]any {
		entry := jsonSchema(kinds[kind])
		entry["type"] = []any{"object", "null"} // without a value, the defaults apply
		return map[string]any{"type": "object", "description": what + " by their names.", "additionalProperties": entry}
	}
	return map[string]any{
		"$schema": "http://json-schema.org/draft-07/schema#",
		"title":   "Values of croft's chart: croft.yaml, and how croft itself runs",
		"type":    "object", "additionalProperties": false,
		"properties": map[string]any{
			"global":            map[string]any{"type": "object", "description": "Values that Helm shares among a chart and its dependencies; croft does not read them."},
			"enabled":           map[string]any{"type": "boolean", "description": "For a chart that has this one as a dependency with the condition croft.enabled; croft does not read it."},
			"platform":          jsonSchema(kinds[manifest.KindPlatform]),
			"pools":             named(manifest.KindPool, "Pools"),
			"tenants":           named(manifest.KindTenant, "Tenants"),
			"secondaryNetworks": named(manifest.KindNetwork, "Secondary networks"),
			"image": closed(map[string]any{
				"repository":  text("The image without tag and digest, such as registry.example.org/croft."),
				"tag":         text("The tag; the chart's appVersion if empty."),
				"digest":      text("The digest, such as sha256:0123...; it goes before the tag."),
				"pullPolicy":  text("Always, IfNotPresent or Never; Kubernetes' own default if empty."),
				"pullSecrets": list("Secrets to pull with, such as {name: registry}."),
			}),
			"operator": closed(with(pods(), map[string]any{
				"roles": map[string]any{
					"type": "array", "items": map[string]any{"type": "string"},
					"description": "Names of roles of the platform's own that the operator may write, beside those below platform.roles.",
				},
				"tracing": closed(map[string]any{
					"endpoint": text("HOST:PORT of an OpenTelemetry collector, which takes OTLP by gRPC; no traces if empty."),
					"ratePerMillion": map[string]any{
						"type": "integer", "minimum": 0, "maximum": 1_000_000, "description": "How many of a million reconciles are traced.",
					},
				}),
			})),
			"proxy": closed(with(pods(), map[string]any{
				"authenticationConfig": text("An AuthenticationConfiguration (apiserver.config.k8s.io); no proxy if empty."),
			})),
			"agent": closed(map[string]any{
				"enabled": map[string]any{"type": "boolean", "description": "Whether croft agent runs on the nodes of pools with waitForNetworks."},
				"journal": map[string]any{"type": "boolean", "description": "Whether the agent reads the journal of its node once, for croft latency."},
				"plugins": closed(map[string]any{
					"namespace": text("The namespace of the DaemonSets of Multus and whereabouts."),
					"labels":    text("A selector of the labels of these DaemonSets' pods; nodes wait for none if empty."),
				}),
				"resources":         object("Requests and limits of each pod."),
				"priorityClassName": text("The pods' PriorityClass; none if empty."),
				"podAnnotations":    object("Annotations of the pods."),
			}),
			"verify": closed(with(job(), map[string]any{
				"schedule": text("When croft verify --record runs, in cron's format; no CronJob if empty."),
			})),
		},
	}, nil
}

// pods returns the schema of a Deployment's values.
func pods() map[string]any {
	return with(job(), map[string]any{
		"replicas":       map[string]any{"type": "integer", "minimum": 0, "description": "How many pods run."},
		"podAnnotations": object("Annotations of the pods."),
	})
}

// job returns the schema of the values for a Job's pods.
func job() map[string]any {
	return map[string]any{
		"resources":         object("Requests and limits of each pod."),
		"priorityClassName": text("The pods' PriorityClass; none if empty."),
		"nodeSelector":      object("Labels of the nodes that the pods run on."),
		"tolerations":       list("The pods' tolerations."),
		"affinity":          object("The pods' affinity."),
	}
}

func closed(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func text(what string) map[string]any { return map[string]any{"type": "string", "description": what} }

func object(what string) map[string]any {
	return map[string]any{"type": "object", "description": what}
}

func list(what string) map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "object"}, "description": what}
}

func with(all, more map[string]any) map[string]any {
	for key, value := range more {
		all[key] = value
	}
	return all
}

// jsonSchema converts the schema of a kind to JSON Schema: without Kubernetes' extensions, and
// closed, since the API server would drop an unknown field.
func jsonSchema(schema map[string]any) map[string]any {
	converted := map[string]any{}
	for key, value := range schema {
		switch {
		case strings.HasPrefix(key, "x-kubernetes-"), key == "nullable":
		case key == "properties":
			properties := map[string]any{}
			for name, property := range value.(map[string]any) {
				properties[name] = jsonSchema(property.(map[string]any))
			}
			converted[key] = properties
		default:
			converted[key] = jsonSchemas(value)
		}
	}
	if _, has := converted["properties"]; has && schema["x-kubernetes-preserve-unknown-fields"] != true {
		converted["additionalProperties"] = false
	}
	if kind, ok := converted["type"].(string); ok && schema["nullable"] == true {
		converted["type"] = []any{kind, "null"}
	}
	return converted
}

// jsonSchemas converts the schemas below a keyword, such as items or anyOf.
func jsonSchemas(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return jsonSchema(value)
	case []any:
		all := make([]any, len(value))
		for i := range value {
			all[i] = jsonSchemas(value[i])
		}
		return all
	default:
		return value
	}
}
