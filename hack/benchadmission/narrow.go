package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/hack/internal/metrics"
)

// These are the webhooks for tenants' objects in Gatekeeper's own manifest.
const (
	mutationWebhook   = "mutation.gatekeeper.sh"
	validationWebhook = "validation.gatekeeper.sh"
)

// excludeGatekeeper keeps the API server from placing the pods that Gatekeeper is to place. It
// only changes the selection of namespaces, by one more requirement in an existing selector.
// The validating policies stay unchanged: croft also has them when Gatekeeper places pods.
func excludeGatekeeper(objects []client.Object) {
	for _, o := range objects {
		if policy, ok := o.(*admissionv1.MutatingAdmissionPolicy); ok {
			selector := policy.Spec.MatchConstraints.NamespaceSelector
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: engineLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{engineGatekeeper},
			})
		}
	}
}

// webhookSettings is the configuration of Gatekeeper's webhooks.
type webhookSettings struct {
	failurePolicy admissionv1.FailurePolicyType
	// mutation and validation are the timeouts in seconds.
	mutation, validation int32
}

// These are the webhook configurations that are measured.
var (
	// patiently is for measuring: no call times out.
	patiently = webhookSettings{admissionv1.Fail, 10, 10}
	// asInstalled are the defaults of Gatekeeper's chart, and asRequired is the configuration
	// that croft requires.
	asInstalled = webhookSettings{admissionv1.Ignore, 1, 3}
	asRequired  = webhookSettings{admissionv1.Fail, 3, 3}
)

// narrowWebhooks narrows Gatekeeper's webhooks to its own namespaces, so that they are not called for
// pods of other lines, and configures them. No selector excludes cluster-scoped objects, such
// as thousands of new mutators, so the rules are narrowed, too. For pods of Gatekeeper's own
// lines nothing changes.
//
// A sandbox rewrites the webhooks when Gatekeeper is restarted, so this must be repeated then.
func (c *comparison) narrowWebhooks(ctx context.Context, how webhookSettings) error {
	requirement := metav1.LabelSelectorRequirement{Key: engineLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{engineGatekeeper}}
	narrow := func(selector *metav1.LabelSelector, rules []admissionv1.RuleWithOperations) {
		for i := range rules {
			rules[i].Scope = ptr.To(admissionv1.NamespacedScope)
		}
		selector.MatchExpressions = slices.DeleteFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == engineLabel })
		selector.MatchExpressions = append(selector.MatchExpressions, requirement)
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var mutating admissionv1.MutatingWebhookConfigurationList
		var validating admissionv1.ValidatingWebhookConfigurationList
		if err := errors.Join(c.admin.List(ctx, &mutating), c.admin.List(ctx, &validating)); err != nil {
			return err
		}
		for i := range mutating.Items {
			for j := range mutating.Items[i].Webhooks {
				if w := &mutating.Items[i].Webhooks[j]; w.Name == mutationWebhook {
					narrow(w.NamespaceSelector, w.Rules)
					w.FailurePolicy, w.TimeoutSeconds = &how.failurePolicy, ptr.To(how.mutation)
				}
			}
			if err := c.admin.Update(ctx, &mutating.Items[i]); err != nil {
				return err
			}
		}
		for i := range validating.Items {
			for j := range validating.Items[i].Webhooks {
				if w := &validating.Items[i].Webhooks[j]; w.Name == validationWebhook {
					narrow(w.NamespaceSelector, w.Rules)
					w.FailurePolicy, w.TimeoutSeconds = &how.failurePolicy, ptr.To(how.validation)
				}
			}
			if err := c.admin.Update(ctx, &validating.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.awaitNarrowed(ctx)
}

// awaitNarrowed waits until the API server's count of calls to Gatekeeper stays constant while
// a pod is created in another line's namespace.
func (c *comparison) awaitNarrowed(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		before, err := c.countWebhookCalls(ctx)
		if err != nil {
			return false, err
		}
		if _, err := c.lines[0].createPod(ctx, 0, true); err != nil {
			return false, err
		}
		after, err := c.countWebhookCalls(ctx)
		return before == after, err
	})
	if err != nil {
		return fmt.Errorf("pods without policy still go to Gatekeeper: %w", err)
	}
	return nil
}

// countWebhookCalls returns the number of the API server's calls to Gatekeeper's webhooks.
func (c *comparison) countWebhookCalls(ctx context.Context) (float64, error) {
	calls, err := c.readMetrics(ctx, "apiserver_admission_webhook_request_total", "name")
	return calls[mutationWebhook] + calls[validationWebhook], err
}

// readMetrics reads the API server's metrics.
func (c *comparison) readMetrics(ctx context.Context, name, label string) (map[string]float64, error) {
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return nil, err
	}
	return metrics.SumByLabel(ctx, client, c.config.Host+"/metrics", name, label)
}
