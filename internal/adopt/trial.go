package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

const (
	// settle is the maximum time until a cluster's policies apply in a new namespace;
	// usually they take a second or two.
	settle = 60 * time.Second
	// removal is the maximum time for deleting the scratch namespace, also after an
	// interruption.
	removal = 20 * time.Second
)

// Try asks the API server: it gives a scratch namespace the tenant's rules, and creates
// a copy of every object in it as a dry run. The namespace belongs to no tenant, and no
// operator reconciles it.
func (a *Adoption) Try(ctx context.Context, p *Plan) (err error) {
	scratch := a.scratch()
	objects := scratch.objects(a.tenant)
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		err = errors.Join(err, a.discard(ending, scratch.Name, objects))
	}()
	if _, err := a.applier.Apply(ctx, objects...); err != nil {
		return fmt.Errorf("making a scratch namespace to try the rules in: %w", err)
	}
	if err := a.settled(ctx, scratch.Namespaces[0]); err != nil {
		return err
	}
	for i := range p.Pods {
		w := &p.Pods[i]
		if w.pod, err = a.admitted(ctx, p, w.Namespace, w.template); err != nil {
			return err
		}
		next, refused, err := a.tryPod(ctx, scratch.Namespaces[0], w.pod)
		if err != nil {
			return err
		}
		w.Next, w.Refused = next, a.said(refused, scratch.Name)
	}
	a.fit(p)
	if err := a.tryNamespaces(ctx, p, scratch); err != nil {
		return err
	}
	p.Refused, err = a.tryOthers(ctx, scratch)
	p.Tried = err == nil
	return err
}

// scratch is a tenant of the same rules that exists only while they are tried.
type scratch struct {
	*estate.Tenant
	platform *estate.Platform
}

func (a *Adoption) scratch() scratch {
	t := *a.tenant
	t.Name = "croft-adopt-" + utilrand.String(5)
	t.Namespaces = []string{t.Name}
	t.Access, t.Quota, t.Shares = nil, nil, nil
	return scratch{&t, &a.estate.Platform}
}

// objects are the walls of the scratch tenant. Its namespace counts as one of the
// real tenant's, since objects name these.
func (s scratch) objects(like *estate.Tenant) []client.Object {
	objects := wall.TenantObjects(s.platform, s.Tenant)
	var namespace *corev1.Namespace
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Namespace:
			namespace = o
		case *v1alpha1.TenantRules:
			o.Spec.Namespaces = slices.Concat(like.Namespaces, s.Namespaces)
			if namespace != nil { // the namespace comes before its objects
				admissionpolicy.Annotate(namespace, o.Spec)
			}
		}
	}
	return objects
}

// discard removes the scratch tenant, and waits until its namespace is gone, so that the
// cluster is as before.
func (a *Adoption) discard(ctx context.Context, namespace string, objects []client.Object) error {
	err := a.applier.Discard(ctx, objects...)
	_ = wait.PollUntilContextCancel(ctx, again, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(a.client.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})), nil
	})
	return err
}

// again is the polling interval.
const again = 200 * time.Millisecond

// admitted is a pod as the cluster's admission changes it in a namespace that the tenant does
// not have yet: plugins, webhooks and policies may go by the namespace's name, labels and
// annotations. A pod that is refused there is tried as it is.
func (a *Adoption) admitted(ctx context.Context, p *Plan, namespace string, template *corev1.Pod) (*corev1.Pod, error) {
	if !slices.Contains(p.Namespaces, Namespace{Name: namespace, State: Free}) {
		return template, nil
	}
	pod := template.DeepCopy()
	pod.Namespace = namespace
	switch err := a.client.Create(ctx, pod, client.DryRunAll); {
	case err == nil:
		return fresh(pod), nil
	case isAnswer(err) || apierrors.IsConflict(err):
		return template, nil
	default:
		return nil, err
	}
}

// tryNamespaces looks for namespaces in which not even an ordinary pod would be let in, so
// that the tenant would never become Ready.
func (a *Adoption) tryNamespaces(ctx context.Context, p *Plan, s scratch) error {
	for _, n := range p.Namespaces {
		pod, err := a.admitted(ctx, p, n.Name, a.ordinary())
		if err != nil {
			return err
		}
		_, refused, err := a.tryPod(ctx, s.Namespaces[0], pod)
		if err != nil {
			return err
		}
		if refused != "" {
			p.Blocking = append(p.Blocking, fmt.Sprintf("every new pod in namespace %s would be refused for what the cluster adds to it, and the tenant would not become Ready: %s",
				n.Name, a.said(refused, s.Name)))
		}
	}
	return nil
}

// ordinary is a pod that every tenant may create.
func (a *Adoption) ordinary() *corev1.Pod {
	pod := fresh(attack.Pod("", "croft-ordinary"))
	pod.Spec.Containers[0].Image = attack.ImageOf(a.tenant.Allowances.Registries)
	return pod
}

// settled waits until an ordinary pod is let in and placed.
func (a *Adoption) settled(ctx context.Context, namespace string) error {
	ordinary := a.ordinary()
	var last string
	err := wait.PollUntilContextTimeout(ctx, again, settle, true, func(ctx context.Context) (bool, error) {
		next, refused, err := a.tryPod(ctx, namespace, ordinary)
		if err != nil {
			return false, err
		}
		last = cmp.Or(refused, a.misplaced(next))
		return last == "", nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("croft's rules did not come into force in a scratch namespace within %s: an ordinary pod there: %s", settle, last)
	}
	return err
}

// misplaced returns why a pod that was let in is not placed on the tenant's pools; "" if it
// is.
func (a *Adoption) misplaced(pool string) string {
	switch {
	case pool == "":
		return "croft's placement policy does not select a pool for it: `croft doctor` checks the policy"
	case !slices.Contains(a.tenant.Pools, pool):
		return fmt.Sprintf("it lands on pool %s, which is not the tenant's", pool)
	default:
		return ""
	}
}

// tryPod creates a copy of a pod in a namespace as a dry run. It returns the pod's pool,
// or the refusal.
func (a *Adoption) tryPod(ctx context.Context, namespace string, template *corev1.Pod) (next, refused string, err error) {
	pod := template.DeepCopy()
	pod.Namespace = namespace
	err = a.client.Create(ctx, pod, client.DryRunAll)
	if apierrors.IsConflict(err) { // others met it at the quota
		err = a.client.Create(ctx, pod, client.DryRunAll)
	}
	switch {
	case err == nil:
		return pod.Spec.NodeSelector[a.estate.Platform.NodePoolKey], "", nil
	case isAnswer(err):
		return "", words(err), nil
	default:
		return "", "", err
	}
}

// isAnswer reports whether the API server has refused an object, and not failed to
// look at it.
func isAnswer(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsInternalError(err)
}

// words are a rule's message, without the API server's prefix.
func words(err error) string {
	text := err.Error()
	for _, before := range []string{" denied request: ", " is forbidden: "} {
		if _, after, ok := strings.Cut(text, before); ok {
			return after
		}
	}
	return text
}

// said puts the tenant's name where the rules speak of the scratch tenant.
func (a *Adoption) said(text, scratch string) string {
	return strings.ReplaceAll(text, scratch, a.tenant.Name)
}

// exceeded is the prefix of a ResourceQuota's message.
const exceeded = "exceeded quota: "

// Look tries the tenant's pods in their own namespaces, once the tenant is adopted. It
// returns those that would be refused or not be placed, and why. Quota is the last
// check: a pod that only the quota stops, beside the running ones, has passed every
// rule.
func (a *Adoption) Look(ctx context.Context, p *Plan) ([]Refusal, error) {
	var wrong []Refusal
	for i := range p.Pods {
		w := &p.Pods[i]
		next, refused, err := a.tryPod(ctx, w.Namespace, w.template)
		switch {
		case err != nil:
			return wrong, err
		case strings.HasPrefix(refused, exceeded):
		case refused != "":
			wrong = append(wrong, Refusal{w.String(), refused})
		case a.misplaced(next) != "":
			wrong = append(wrong, Refusal{w.String(), a.misplaced(next)})
		}
	}
	return wrong, nil
}

// controlled reports whether an object has a controller: then the controller is
// re-created instead.
func controlled(o metav1.Object) bool { return metav1.GetControllerOf(o) != nil }
