package gatekeeper

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"croft.dev/croft/internal/test/sandbox"
)

// TestRealGatekeeper fails if the status of a sandbox's real Gatekeeper is not understood.
func TestRealGatekeeper(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	sandbox.Thorough(t)
	c := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly, With: []string{sandbox.Gatekeeper}})
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range Check(readInstallation(t, clients)) {
		// The sandbox sets the webhooks to fail closed. This is the only other finding with
		// the chart's defaults.
		if f.Reason != ReasonNotReinvoked {
			t.Errorf("a finding about a good installation: %s", f)
		}
	}

	mutators := objects.Resource(schema.GroupVersionResource{Group: "mutations.gatekeeper.sh", Version: "v1", Resource: "assign"})
	until := func(name string, condition func(Enforcement) bool) {
		t.Helper()
		var last Enforcement
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			object, err := mutators.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			last = ReadEnforcement(object)
			return condition(last), nil
		})
		if err != nil {
			t.Fatalf("%v; last seen: %+v", err, last)
		}
	}
	create := func(name, location string) {
		t.Helper()
		_, err := mutators.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "mutations.gatekeeper.sh/v1", "kind": "Assign", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"applyTo":    []any{map[string]any{"groups": []any{""}, "versions": []any{"v1"}, "kinds": []any{"Pod"}}},
				"location":   location,
				"parameters": map[string]any{"assign": map[string]any{"value": "Always"}},
			},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	create("pull", "spec.containers[name: *].imagePullPolicy")
	until("pull", Enforcement.IsEnforced)
	// This mutator treats the list of containers as an object. Gatekeeper then skips both.
	create("conflict", "spec.containers.imagePullPolicy")
	conflict := func(e Enforcement) bool { return strings.Contains(e.Message, "ErrConflictingSchema") }
	until("conflict", conflict)
	until("pull", conflict)
}

func readInstallation(t *testing.T, clients kubernetes.Interface) Installation {
	t.Helper()
	in := Installation{Namespaces: []Namespace{{Name: "shop"}}}
	var err error
	webhooks := clients.AdmissionregistrationV1()
	if in.Mutating, err = webhooks.MutatingWebhookConfigurations().Get(t.Context(), "gatekeeper-mutating-webhook-configuration", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if in.Validating, err = webhooks.ValidatingWebhookConfigurations().Get(t.Context(), "gatekeeper-validating-webhook-configuration", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	_, lists, err := clients.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			in.Served = append(in.Served, group.WithKind(resource.Kind))
		}
	}
	return in
}
