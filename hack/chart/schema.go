package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/declare/manifest"
)

// readSpec returns the kind of a CustomResourceDefinition, and the schema of its spec, which is
// nil if the kind has no spec.
func readSpec(definition unstructured.Unstructured) (kind string, spec map[string]any, err error) {
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

// buildValuesSchema returns the schema of values.yaml: croft.yaml's keys with the schemas of the
// kinds, and the chart's own. Like `croft check`, it refuses unknown fields. It leaves the CEL
// rules to the API server.
func buildValuesSchema(kinds map[string]map[string]any) (map[string]any, error) {
	for _, kind := range []string{manifest.KindPlatform, manifest.KindPool, manifest.KindTenant, manifest.KindNetwork} {
		if kinds[kind] == nil {
			return nil, fmt.Errorf("%s has no schema", kind)
		}
	}
	named := func(kind, what string) map[string]any {
		entry := convertSchema(kinds[kind])
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
			"platform":          convertSchema(kinds[manifest.KindPlatform]),
			"pools":             named(manifest.KindPool, "Pools"),
			"tenants":           named(manifest.KindTenant, "Tenants"),
			"secondaryNetworks": named(manifest.KindNetwork, "Secondary networks"),
			"image": newClosedSchema(map[string]any{
				"repository":  newStringSchema("The image without tag and digest, such as registry.example.org/croft."),
				"tag":         newStringSchema("The tag; the chart's appVersion if empty."),
				"digest":      newStringSchema("The digest, such as sha256:0123...; it goes before the tag."),
				"pullPolicy":  newStringSchema("Always, IfNotPresent or Never; Kubernetes' own default if empty."),
				"pullSecrets": newListSchema("Secrets to pull with, such as {name: registry}."),
			}),
			"operator": newClosedSchema(mergeSchemas(buildPodSchema(), map[string]any{
				"roles": map[string]any{
					"type": "array", "items": map[string]any{"type": "string"},
					"description": "Names of the platform's own roles that the operator may write, in addition to platform.roles.",
				},
				"tracing": newClosedSchema(map[string]any{
					"endpoint": newStringSchema("HOST:PORT of an OpenTelemetry collector, which takes OTLP by gRPC; no traces if empty."),
					"ratePerMillion": map[string]any{
						"type": "integer", "minimum": 0, "maximum": 1_000_000, "description": "How many of a million reconciles are traced.",
					},
				}),
			})),
			"proxy": newClosedSchema(mergeSchemas(buildPodSchema(), map[string]any{
				"authenticationConfig": newStringSchema("An AuthenticationConfiguration (apiserver.config.k8s.io); no proxy if empty."),
				"ledger": map[string]any{
					"type":        "boolean",
					"description": "Whether the proxy forwards requests for costs to croft ledger, which then accepts the tokens that the proxy accepts. It needs cost.enabled.",
				},
			})),
			"dashboard": newClosedSchema(mergeSchemas(buildPodSchema(), map[string]any{
				"enabled": map[string]any{"type": "boolean", "description": "Whether croft dashboard runs."},
				"args": map[string]any{
					"type": "array", "items": map[string]any{"type": "string"},
					"description": "More flags of croft dashboard, such as --oidc-issuer-url=https://login.example.org.",
				},
				"egressPorts": map[string]any{
					"type": "array", "items": map[string]any{"type": "integer", "minimum": 1, "maximum": 65535}, "minItems": 1,
					"description": "TCP ports to which the dashboard connects, on the API server's machines and at the identity provider.",
				},
			})),
			"cost": newClosedSchema(mergeSchemas(buildPodSchema(), map[string]any{
				"enabled": map[string]any{"type": "boolean", "description": "Whether croft ledger runs."},
				"args": map[string]any{
					"type": "array", "items": map[string]any{"type": "string"},
					"description": "More flags of croft ledger, such as --prices=/etc/croft/ledger/prices.yaml.",
				},
				"storage": newClosedSchema(map[string]any{
					"size":      newStringSchema("The size of the ledger's volume, such as 1Gi."),
					"className": newStringSchema("The StorageClass of this volume; the cluster's default one if empty."),
				}),
			})),
			"agent": newClosedSchema(mergeSchemas(buildLogSchema(), map[string]any{
				"enabled": map[string]any{"type": "boolean", "description": "Whether croft agent runs on the nodes of pools with waitForNetworks."},
				"journal": map[string]any{"type": "boolean", "description": "Whether the agent reads the journal of its node once, for croft latency."},
				"plugins": newClosedSchema(map[string]any{
					"namespace": newStringSchema("The namespace of the DaemonSets of Multus and whereabouts."),
					"labels":    newStringSchema("A selector of the labels of these DaemonSets' pods; if empty, nodes do not wait for them."),
				}),
				"resources":         newObjectSchema("Requests and limits of each pod."),
				"priorityClassName": newStringSchema("The pods' PriorityClass; none if empty."),
				"podAnnotations":    newObjectSchema("Annotations of the pods."),
			})),
			"copySecrets": newClosedSchema(mergeSchemas(mergeSchemas(buildJobSchema(), buildLogSchema()), map[string]any{
				"enabled":        map[string]any{"type": "boolean", "description": "Whether croft copy-secrets runs."},
				"podAnnotations": newObjectSchema("Annotations of the pods."),
				"names": map[string]any{
					"type": "object", "additionalProperties": map[string]any{"type": "string"},
					"description": "More copies of Secrets, by name, with the names of their sources, such as {registry: registry-credentials}.",
				},
			})),
			"verify": newClosedSchema(mergeSchemas(buildJobSchema(), map[string]any{
				"schedule": newStringSchema("When croft verify --record runs, in cron's format; no CronJob if empty."),
			})),
		},
	}, nil
}

// buildPodSchema returns the schema of a Deployment's values.
func buildPodSchema() map[string]any {
	return mergeSchemas(mergeSchemas(buildJobSchema(), buildLogSchema()), map[string]any{
		"replicas":       map[string]any{"type": "integer", "minimum": 0, "description": "How many pods run."},
		"podAnnotations": newObjectSchema("Annotations of the pods."),
	})
}

// buildLogSchema returns the schema of the values for the log of a long-running process.
func buildLogSchema() map[string]any {
	return map[string]any{
		"logLevel":  newStringSchema("debug, info, warn or error, also for one subsystem, such as info,tenant=debug; info if empty."),
		"logFormat": map[string]any{"enum": []any{"", "json", "text"}, "description": "The format of the log; json if empty."},
	}
}

// buildJobSchema returns the schema of the values for a Job's pods.
func buildJobSchema() map[string]any {
	return map[string]any{
		"resources":         newObjectSchema("Requests and limits of each pod."),
		"priorityClassName": newStringSchema("The pods' PriorityClass; none if empty."),
		"nodeSelector":      newObjectSchema("Labels of the nodes that the pods run on."),
		"tolerations":       newListSchema("The pods' tolerations."),
		"affinity":          newObjectSchema("The pods' affinity."),
	}
}

func newClosedSchema(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func newStringSchema(what string) map[string]any {
	return map[string]any{"type": "string", "description": what}
}

func newObjectSchema(what string) map[string]any {
	return map[string]any{"type": "object", "description": what}
}

func newListSchema(what string) map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "object"}, "description": what}
}

func mergeSchemas(all, more map[string]any) map[string]any {
	for key, value := range more {
		all[key] = value
	}
	return all
}

// convertSchema converts the schema of a kind to JSON Schema: without Kubernetes' extensions, and
// closed, since the API server would drop an unknown field.
func convertSchema(schema map[string]any) map[string]any {
	converted := map[string]any{}
	for key, value := range schema {
		switch {
		case strings.HasPrefix(key, "x-kubernetes-"), key == "nullable":
		case key == "properties":
			properties := map[string]any{}
			for name, property := range value.(map[string]any) {
				properties[name] = convertSchema(property.(map[string]any))
			}
			converted[key] = properties
		default:
			converted[key] = convertSchemas(value)
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

// convertSchemas converts the schemas below a keyword, such as items or anyOf.
func convertSchemas(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return convertSchema(value)
	case []any:
		all := make([]any, len(value))
		for i := range value {
			all[i] = convertSchemas(value[i])
		}
		return all
	default:
		return value
	}
}
