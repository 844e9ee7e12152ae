package gatekeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The names of the webhooks in the API server's metrics.
const (
	mutation   = "mutation.gatekeeper.sh"
	ownWebhook = "check-ignore-label.gatekeeper.sh"
)

// CheckCalls returns an error until the API server calls Gatekeeper, which it does a moment after
// the webhooks are written. Without this check, the first objects in the sandbox would bypass
// Gatekeeper.
func CheckCalls(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ask := func(labels map[string]string) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "is-gatekeeper-asked-", Labels: labels}}
		_, err := clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	// No user may exempt a namespace: Gatekeeper must refuse this one.
	err = ask(map[string]string{"admission.gatekeeper.sh/ignore": ""})
	if err == nil || !strings.Contains(err.Error(), ownWebhook) {
		return errors.Join(errors.New("the API server does not call Gatekeeper yet"), err)
	}
	// Without mutators, Gatekeeper changes no object. Only the API server's own metrics show
	// the calls for mutation.
	if err := ask(nil); err != nil {
		return err
	}
	figures, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return err
	}
	if !strings.Contains(string(figures), fmt.Sprintf("name=%q", mutation)) {
		return errors.New("the API server does not call Gatekeeper for mutation yet")
	}
	return nil
}
