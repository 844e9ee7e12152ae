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
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
)

const (
	// settle is the maximum time until a cluster's policies apply in a new namespace. Usually
	// it takes a second or two.
	settle = 60 * time.Second
	// removal is the maximum time for deleting the scratch namespace, also after an
	// interruption.
	removal = 20 * time.Second
)

// Try tries the objects on the API server: it creates a scratch namespace with the tenant's
// rules, and creates a copy of every object in it as a dry run. The namespace belongs to no
// tenant, and no operator reconciles it.
func (a *Adoption) Try(ctx context.Context, p *Plan) (err error) {
	scratch := a.newScratch()
	objects := scratch.buildObjects(a.tenant)
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		err = errors.Join(err, a.discard(ending, scratch.Name, objects))
	}()
	if _, err := a.applier.Apply(ctx, objects...); err != nil {
		return fmt.Errorf("creating a scratch namespace to try the rules in: %w", err)
	}
	if err := a.waitSettled(ctx, scratch.Namespaces[0]); err != nil {
		return err
	}
	for i := range p.Pods {
		w := &p.Pods[i]
		if w.pod, err = a.admitPod(ctx, p, w.Namespace, w.template); err != nil {
			return err
		}
		next, refused, err := a.tryPod(ctx, scratch.Namespaces[0], w.pod)
		if err != nil {
			return err
		}
		w.NextPool, w.Refusal = next, a.replaceScratchName(refused, scratch.Name)
	}
	a.checkFit(p)
	if err := a.tryNamespaces(ctx, p, scratch); err != nil {
		return err
	}
	p.Refusals, err = a.tryOthers(ctx, scratch)
	p.Evaluated = err == nil
	return err
}

// scratch is a tenant with the same rules that exists only during the trial.
type scratch struct {
	*estate.Tenant
	platform *estate.Platform
}

func (a *Adoption) newScratch() scratch {
	t := *a.tenant
	t.Name = "croft-adopt-" + utilrand.String(5)
	t.Namespaces = []string{t.Name}
	t.Access, t.Quota, t.Shares = nil, nil, nil
	return scratch{&t, &a.estate.Platform}
}

// buildObjects returns the walls of the scratch tenant. Its rules name the real tenant's namespaces
// in addition to its own, since objects refer to these.
func (s scratch) buildObjects(like *estate.Tenant) []client.Object {
	objects := wall.TenantObjects(s.platform, s.Tenant)
	var namespace *corev1.Namespace
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Namespace:
			namespace = o
		case *v1alpha1.TenantRules:
			o.Spec.Namespaces = slices.Concat(like.Namespaces, s.Namespaces)
			if namespace != nil { // the namespace comes before its objects
				admissionpolicy.AnnotateNamespace(namespace, o.Spec)
			}
		}
	}
	return objects
}

// discard deletes the scratch tenant, and waits until its namespace is deleted, so that the
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

// admitPod returns a pod after the cluster's admission in a namespace that does not belong to
// the tenant yet: plugins, webhooks and policies may depend on the namespace's name, labels and
// annotations. A pod that is refused there is tried unchanged.
func (a *Adoption) admitPod(ctx context.Context, p *Plan, namespace string, template *corev1.Pod) (*corev1.Pod, error) {
	if !slices.Contains(p.Namespaces, Namespace{Name: namespace, State: Free}) {
		return template, nil
	}
	pod := template.DeepCopy()
	pod.Namespace = namespace
	switch err := a.client.Create(ctx, pod, client.DryRunAll); {
	case err == nil:
		return resetPod(pod), nil
	case isAnswer(err) || apierrors.IsConflict(err):
		return template, nil
	default:
		return nil, err
	}
}

// tryNamespaces reports namespaces in which not even an ordinary pod would be admitted, so that
// the tenant would never become Ready.
func (a *Adoption) tryNamespaces(ctx context.Context, p *Plan, s scratch) error {
	for _, n := range p.Namespaces {
		pod, err := a.admitPod(ctx, p, n.Name, a.buildOrdinaryPod())
		if err != nil {
			return err
		}
		_, refused, err := a.tryPod(ctx, s.Namespaces[0], pod)
		if err != nil {
			return err
		}
		if refused != "" {
			p.Blockers = append(p.Blockers, fmt.Sprintf("every new pod in namespace %s would be refused because of fields that the cluster adds to it, and the tenant would not become Ready: %s",
				n.Name, a.replaceScratchName(refused, s.Name)))
		}
	}
	return nil
}

// buildOrdinaryPod returns a pod that every tenant may create.
func (a *Adoption) buildOrdinaryPod() *corev1.Pod {
	pod := resetPod(attack.NewPod("", "croft-ordinary"))
	pod.Spec.Containers[0].Image = attack.ChooseImage(&a.tenant.Allowances)
	return pod
}

// waitSettled waits until an ordinary pod is admitted and placed.
func (a *Adoption) waitSettled(ctx context.Context, namespace string) error {
	ordinary := a.buildOrdinaryPod()
	var last string
	err := wait.PollUntilContextTimeout(ctx, again, settle, true, func(ctx context.Context) (bool, error) {
		next, refused, err := a.tryPod(ctx, namespace, ordinary)
		if err != nil {
			return false, err
		}
		last = cmp.Or(refused, a.explainMisplacement(next))
		return last == "", nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("croft's rules did not come into force in a scratch namespace within %s: the test with an ordinary pod failed: %s", settle, last)
	}
	return err
}

// explainMisplacement returns why an admitted pod is not placed on the tenant's pools, or "" if it is.
func (a *Adoption) explainMisplacement(pool string) string {
	switch {
	case pool == "":
		return "croft's placement policy does not select a pool for the pod: `croft doctor` checks the policy"
	case !slices.Contains(a.tenant.Pools, pool):
		return fmt.Sprintf("the pod is placed on pool %s, which is not the tenant's", pool)
	default:
		return ""
	}
}

// tryPod creates a copy of a pod in a namespace as a dry run. It returns the pod's pool, or the
// refusal.
func (a *Adoption) tryPod(ctx context.Context, namespace string, template *corev1.Pod) (next, refused string, err error) {
	pod := template.DeepCopy()
	pod.Namespace = namespace
	err = a.client.Create(ctx, pod, client.DryRunAll)
	if apierrors.IsConflict(err) { // a concurrent request changed the quota
		err = a.client.Create(ctx, pod, client.DryRunAll)
	}
	switch {
	case err == nil:
		return pod.Spec.NodeSelector[a.estate.Platform.NodePoolKey], "", nil
	case isAnswer(err):
		return "", extractMessage(err), nil
	default:
		return "", "", err
	}
}

// isAnswer reports whether the API server has refused an object, as opposed to failing to
// evaluate it.
func isAnswer(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsInternalError(err)
}

// extractMessage returns a rule's message, without the API server's prefix.
func extractMessage(err error) string {
	text := err.Error()
	for _, before := range []string{" denied request: ", " is forbidden: "} {
		if _, after, ok := strings.Cut(text, before); ok {
			return after
		}
	}
	return text
}

// replaceScratchName replaces the name of the scratch tenant in a message by the tenant's.
func (a *Adoption) replaceScratchName(text, scratch string) string {
	return strings.ReplaceAll(text, scratch, a.tenant.Name)
}

// exceeded is the prefix of a ResourceQuota's message.
const exceeded = "exceeded quota: "

// CheckPods tries the tenant's pods in their own namespaces, once the tenant is adopted. It returns
// the pods that would be refused or not be placed, with the reason. It ignores refusals by the
// quota, which is the last check: such a pod has passed every rule, and exceeds the quota only
// because the existing pods count too.
func (a *Adoption) CheckPods(ctx context.Context, p *Plan) ([]Refusal, error) {
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
		case a.explainMisplacement(next) != "":
			wrong = append(wrong, Refusal{w.String(), a.explainMisplacement(next)})
		}
	}
	return wrong, nil
}

// hasController reports whether an object has a controller, which is then re-created instead.
func hasController(o metav1.Object) bool { return metav1.GetControllerOf(o) != nil }
