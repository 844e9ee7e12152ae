package gatekeeper

import (
	"encoding/base64"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// croft's requirements for Gatekeeper. Its own chart sets Ignore, and one second for
// mutation: while Gatekeeper is down or slow, pods are then admitted unchanged.
const (
	failurePolicy = "Fail"
	// A machine with two cores runs all components at once.
	timeoutSeconds = int64(10)
)

// exempt are the namespaces whose objects must be writable while Gatekeeper is down: without
// heartbeats in kube-node-lease, the cluster would lose its nodes.
var exempt = []string{Namespace, "kube-system", "kube-node-lease"}

// ownPath is the path of the webhook that refuses to exempt further namespaces.
const ownPath = "/v1/admitlabel"

// mutatedSubresources are the resources that Gatekeeper's chart adds to the rules of the
// mutating webhook. The plain manifest lists them only for the validating webhook.
var mutatedSubresources = []string{
	"pods/ephemeralcontainers", "pods/exec", "pods/log", "pods/eviction", "pods/portforward", "pods/proxy",
	"pods/attach", "pods/binding", "deployments/scale", "replicasets/scale", "statefulsets/scale",
	"replicationcontrollers/scale", "services/proxy", "nodes/proxy", "services/status",
}

// BuildWebhooks returns the webhook configurations with an address of this machine instead of the
// Service, and with the settings that Gatekeeper's chart writes for the values that croft
// requires. All other fields stay the same.
func (m Manifest) BuildWebhooks(address string, ca []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, configuration := range m.Webhooks {
		u := configuration.DeepCopy()
		webhooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.GetName(), err)
		}
		for _, item := range webhooks {
			webhook, ok := item.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s: a webhook is not an object", u.GetName())
			}
			if err := setClient(webhook, address, ca); err != nil {
				return nil, fmt.Errorf("%s: %v: %w", u.GetName(), webhook["name"], err)
			}
			if u.GetKind() == "MutatingWebhookConfiguration" {
				addResources(webhook, mutatedSubresources)
			}
		}
		if err := unstructured.SetNestedSlice(u.Object, webhooks, "webhooks"); err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

func setClient(webhook map[string]any, address string, ca []byte) error {
	path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
	if err != nil || !found {
		return fmt.Errorf("no path of the service (%w)", err)
	}
	webhook["clientConfig"] = map[string]any{
		"url":      "https://" + address + path,
		"caBundle": base64.StdEncoding.EncodeToString(ca),
	}
	webhook["failurePolicy"], webhook["timeoutSeconds"] = failurePolicy, timeoutSeconds
	if path != ownPath {
		exemptNamespaces(webhook)
	}
	return nil
}

// exemptNamespaces exempts the namespaces in exempt from a webhook. It keeps the other terms of
// the webhook's selector, such as the label of exempt namespaces.
func exemptNamespaces(webhook map[string]any) {
	selector, _, _ := unstructured.NestedSlice(webhook, "namespaceSelector", "matchExpressions")
	selector = slices.DeleteFunc(selector, func(item any) bool {
		expression, _ := item.(map[string]any)
		return expression["key"] == "kubernetes.io/metadata.name"
	})
	selector = append(selector, map[string]any{
		"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": toAnySlice(exempt),
	})
	webhook["namespaceSelector"] = map[string]any{"matchExpressions": selector}
}

func addResources(webhook map[string]any, names []string) {
	rules, _ := webhook["rules"].([]any)
	for _, item := range rules {
		if rule, ok := item.(map[string]any); ok {
			resources, _ := rule["resources"].([]any)
			rule["resources"] = append(resources, toAnySlice(names)...)
		}
	}
}

func toAnySlice(names []string) []any {
	var out []any
	for _, name := range names {
		out = append(out, name)
	}
	return out
}
