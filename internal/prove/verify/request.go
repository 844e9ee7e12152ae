package verify

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/rules/attack"
)

// prepareObject returns the object of the request. For an update or a patch, it is the changed live
// object.
func (r *Runner) prepareObject(ctx context.Context, request *attack.Request) (client.Object, error) {
	object, err := copyObject(request.Object)
	if err != nil {
		return object, err
	}
	if request.Verb != attack.Update && request.Verb != attack.Patch {
		return object, attack.SetClusterIP(object, func() (string, error) { return r.pickClusterIP(ctx) })
	}
	if err := r.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, fmt.Errorf("read the object that the attack would change: %w", err)
	}
	if request.Change != nil && request.Verb == attack.Update {
		return object, request.Change(object)
	}
	return object, nil
}

// pickClusterIP returns an address next to the address of the API server's Service, which every
// cluster has: it is in the range, and probably free. If it is in use, another is tried.
func (r *Runner) pickClusterIP(ctx context.Context) (string, error) {
	server := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}}
	if err := r.admin.Get(ctx, client.ObjectKeyFromObject(server), server); err != nil {
		return "", fmt.Errorf("find the address range of Services: %w", err)
	}
	address, err := netip.ParseAddr(server.Spec.ClusterIP)
	if err != nil {
		return "", fmt.Errorf("find the address range of Services: %w", err)
	}
	bytes := address.AsSlice()
	bytes[len(bytes)-1] = byte(utilrand.IntnRange(100, 250))
	free, _ := netip.AddrFromSlice(bytes)
	return free.String(), nil
}

func sendRequest(ctx context.Context, c client.WithWatch, request *attack.Request, object client.Object) error {
	switch request.Verb {
	case attack.Create:
		if request.Subresource == "" {
			return c.Create(ctx, object, client.DryRunAll)
		}
		body, err := copyObject(request.Body)
		if err != nil {
			return err
		}
		return c.SubResource(request.Subresource).Create(ctx, object, body, client.DryRunAll)
	case attack.Update:
		if request.Subresource == "" {
			return c.Update(ctx, object, client.DryRunAll)
		}
		options := []client.SubResourceUpdateOption{client.DryRunAll}
		if request.Body != nil {
			body, err := copyObject(request.Body)
			if err != nil {
				return err
			}
			options = append(options, client.WithSubResourceBody(body))
		}
		return c.SubResource(request.Subresource).Update(ctx, object, options...)
	case attack.Patch:
		return sendPatch(ctx, c, request, object)
	case attack.Delete:
		options := []client.DeleteOption{client.DryRunAll}
		if request.GracePeriodSeconds != nil {
			options = append(options, client.GracePeriodSeconds(*request.GracePeriodSeconds))
		}
		return c.Delete(ctx, object, options...)
	case attack.DeleteCollection:
		return c.DeleteAllOf(ctx, object, client.InNamespace(object.GetNamespace()), client.DryRunAll)
	case attack.Get:
		return sendGet(ctx, c, request, object)
	case attack.List, attack.Watch:
		return sendList(ctx, c, request.Verb, object)
	default:
		return fmt.Errorf("no attack uses the verb %q", request.Verb)
	}
}

// sendPatch sends the difference that Change makes as a merge patch.
func sendPatch(ctx context.Context, c client.Client, request *attack.Request, object client.Object) error {
	before, err := copyObject(object)
	if err != nil {
		return err
	}
	if request.Change != nil {
		if err := request.Change(object); err != nil {
			return err
		}
	}
	patch := client.MergeFrom(before)
	if request.Subresource == "" {
		return c.Patch(ctx, object, patch, client.DryRunAll)
	}
	return c.SubResource(request.Subresource).Patch(ctx, object, patch, client.DryRunAll)
}

func sendGet(ctx context.Context, c client.Client, request *attack.Request, object client.Object) error {
	if request.Subresource == "" {
		return c.Get(ctx, client.ObjectKeyFromObject(object), object)
	}
	body, err := copyObject(request.Body)
	if err != nil {
		return err
	}
	return c.SubResource(request.Subresource).Get(ctx, object, body)
}

func sendList(ctx context.Context, c client.WithWatch, verb attack.Verb, object client.Object) error {
	gvk, err := c.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	// Unstructured works for every kind; the content of the list is irrelevant.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	inNamespace := client.InNamespace(object.GetNamespace())
	if verb == attack.List {
		return c.List(ctx, list, inNamespace)
	}
	stream, err := c.Watch(ctx, list, inNamespace, &client.ListOptions{Raw: &metav1.ListOptions{TimeoutSeconds: ptr.To(int64(1))}})
	if err != nil {
		return err
	}
	stream.Stop()
	return nil
}
