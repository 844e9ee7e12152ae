package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

type client struct {
	dynamic.Interface
}

func newClient(kubeconfig string) (*client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	c, err := dynamic.NewForConfig(config)
	return &client{c}, err
}

// findResource returns the client of an object's kind. All objects here are of built-in kinds with
// regular plurals, so that discovery is not needed.
func (c *client) findResource(u *unstructured.Unstructured) dynamic.ResourceInterface {
	gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	if ns := u.GetNamespace(); ns != "" {
		return c.Resource(gvr).Namespace(ns)
	}
	return c.Resource(gvr)
}

// applyAll applies namespaces first, then all other objects at once. It returns all errors, not
// only the first.
func (c *client) applyAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	isNamespace := func(u *unstructured.Unstructured) bool { return u.GetKind() == "Namespace" }
	namespaces := slices.DeleteFunc(slices.Clone(objects), func(u *unstructured.Unstructured) bool { return !isNamespace(u) })
	others := slices.DeleteFunc(slices.Clone(objects), isNamespace)
	return errors.Join(c.applyAtOnce(ctx, namespaces), c.applyAtOnce(ctx, others))
}

func (c *client) applyAtOnce(ctx context.Context, objects []*unstructured.Unstructured) error {
	failed := make([]error, len(objects))
	var group sync.WaitGroup
	for i, u := range objects {
		group.Go(func() {
			_, err := c.findResource(u).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
			switch {
			case apierrors.IsInvalid(err):
				failed[i] = &InvalidError{err}
			case err != nil:
				failed[i] = fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
			}
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

// InvalidError is the API server's refusal of an invalid object that this program was built
// with. A retry cannot succeed.
type InvalidError struct{ error }

// Unwrap returns the API server's own error.
func (e *InvalidError) Unwrap() error { return e.error }

func (c *client) awaitEstablished(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, u := range definitions {
		err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			current, err := c.findResource(u).Get(ctx, u.GetName(), metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return isEstablished(current), nil
		})
		if err != nil {
			return fmt.Errorf("wait until %s is served: %w", u.GetName(), err)
		}
	}
	return nil
}
