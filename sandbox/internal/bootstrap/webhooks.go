package bootstrap

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The label of the webhook configurations that the sandbox itself wrote.
const managedBy, managedByUs = "app.kubernetes.io/managed-by", "croft-sandbox"

var webhookResources = []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}

// InstallWebhooks applies the webhook configurations of a component that is ready.
func InstallWebhooks(ctx context.Context, kubeconfig string, configurations []*unstructured.Unstructured) error {
	c, err := newClient(kubeconfig)
	if err != nil {
		return err
	}
	var labelled []*unstructured.Unstructured
	for _, u := range configurations {
		u = u.DeepCopy()
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[managedBy] = managedByUs
		u.SetLabels(labels)
		labelled = append(labelled, u)
	}
	return c.applyAll(ctx, labelled)
}

// removeWebhooks removes the webhooks that InstallWebhooks wrote in the last run. Their
// components do not run at this time, and need an API server to start: with these webhooks, the
// API server would refuse all requests.
func (c *client) removeWebhooks(ctx context.Context) error {
	for _, resource := range webhookResources {
		err := c.Resource(admissionv1.SchemeGroupVersion.WithResource(resource)).
			DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: managedBy + "=" + managedByUs})
		if err != nil {
			return fmt.Errorf("remove the %s of the previous run: %w", resource, err)
		}
	}
	return nil
}
