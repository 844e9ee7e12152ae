package secretcopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/rights"
)

const (
	// maxBytes is the maximum size of a Secret's values that are copied, as for the manifests of
	// objects.
	maxBytes = 256 << 10
	// firstRetry and lastRetry are the shortest and the longest time to the next attempt after a
	// failure. A new RoleBinding takes effect in every API server after less than a second.
	firstRetry, lastRetry = 250 * time.Millisecond, time.Minute
	// lasting is the number of failures in a row after which a problem is logged. An API server may know a
	// new RoleBinding only at the second attempt.
	lasting = 3
	// jitter spreads the repeated applies over time.
	jitter = 0.2
)

// refusedTypes are the types of Secrets that are not copied. Kubernetes writes a token into a new Secret of
// the first type, and accepts the content of the second as credentials.
var refusedTypes = []corev1.SecretType{corev1.SecretTypeServiceAccountToken, "bootstrap.kubernetes.io/token"}

// copier writes copies of Secrets.
type copier struct {
	// client reads RoleBindings and the metadata of namespaces from the cache, and writes copies. It must not
	// read Secrets.
	client client.Client
	// sources has the store of each source, by name.
	sources  map[string]store
	repeat   time.Duration
	problems *problems
	log      logr.Logger
}

// store contains one source, if it exists.
type store interface {
	HasSynced() bool
	GetStore() toolscache.Store
}

func newCopier(c client.Client, o Options) *copier {
	all := &copier{
		client: c, sources: map[string]store{}, repeat: cmp.Or(o.Repeat, defaultRepeat), problems: newProblems(), log: o.Log.WithName("copy"),
	}
	for _, name := range o.Sources {
		all.sources[name] = nil // registerWatches adds the store
	}
	return all
}

// declaredCopy is a copy that a RoleBinding declares.
type declaredCopy struct {
	namespace, name, source string
	owner                   *rbacv1.RoleBinding
}

// listFailed adds the number of failed copies of each source, for metric.CopiesFailed.
func (c *copier) listFailed(add func(value float64, labels ...string)) {
	failed := c.problems.countBySource()
	for name := range c.sources {
		failed[name] += 0 // a source without a problem has a series
	}
	for name, copies := range failed {
		add(float64(copies), name)
	}
}

// readBinding returns the copy that a RoleBinding declares.
func readBinding(b *rbacv1.RoleBinding) (declaredCopy, bool) {
	w := declaredCopy{b.Namespace, b.Labels[v1alpha1.SecretLabel], b.Annotations[v1alpha1.SecretSourceAnnotation], b}
	ok := b.DeletionTimestamp == nil && b.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy && w.name != "" && w.source != "" &&
		b.Name == rights.Copier+"-"+w.name
	return w, ok
}

// Reconcile implements reconcile.Reconciler.
func (c *copier) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	binding := &rbacv1.RoleBinding{}
	if err := c.client.Get(ctx, req.NamespacedName, binding); err != nil {
		if apierrors.IsNotFound(err) {
			c.problems.clearProblem(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	w, ok := readBinding(binding)
	if !ok {
		// It is being deleted, and the garbage collector deletes the copy.
		c.problems.clearProblem(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	ofTenant, err := c.isTenantNamespace(ctx, w.namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	secret, problem := c.findSource(w.source)
	if !ofTenant {
		problem = "the namespace belongs to no tenant; find out who created the RoleBinding, and delete it"
	}
	if problem == "" {
		if err := c.writeCopy(ctx, w, secret); err != nil {
			problem = err.Error()
		}
	}
	if problem == "" {
		c.problems.clearProblem(req.NamespacedName)
		return reconcile.Result{RequeueAfter: wait.Jitter(c.repeat, jitter)}, nil
	}
	attempts, isNew := c.problems.recordProblem(req.NamespacedName, w, problem)
	if attempts == lasting || isNew && attempts > lasting {
		c.log.Info("A Secret is not copied", "namespace", w.namespace, "copy", w.name, "source", w.source, "reason", problem)
	}
	return reconcile.Result{RequeueAfter: computeRetry(attempts)}, nil
}

// isTenantNamespace reports whether a namespace belongs to a tenant. No policy protects croft's label in other
// namespaces: a user who may bind roles there could declare a copy of any source.
func (c *copier) isTenantNamespace(ctx context.Context, name string) (bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := c.client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	return namespace.Labels[v1alpha1.TenantLabel] != "", client.IgnoreNotFound(err)
}

// computeRetry returns the time to the next attempt, which doubles with each failure.
func computeRetry(attempts int) time.Duration {
	delay := firstRetry
	for range attempts - 1 {
		if delay >= lastRetry {
			return lastRetry
		}
		delay *= 2
	}
	return min(delay, lastRetry)
}

// findSource returns the Secret with a name, or the reason why it cannot be copied. The copies of a deleted
// source stay.
func (c *copier) findSource(name string) (*corev1.Secret, string) {
	from, ok := c.sources[name]
	if !ok {
		return nil, "this installation has no right to copy it; run `croft install --copy-secrets` or `helm upgrade` again"
	}
	if from == nil || !from.HasSynced() {
		return nil, "it is not read yet; if this lasts, run `croft install --copy-secrets` or `helm upgrade` again, which gives the right to read it"
	}
	item, exists, err := from.GetStore().GetByKey(v1alpha1.SecretsNamespace + "/" + name)
	if err != nil {
		return nil, err.Error()
	}
	secret, ok := item.(*corev1.Secret)
	if !exists || !ok {
		return nil, "it does not exist; create it in the namespace " + v1alpha1.SecretsNamespace
	}
	return secret, explainRefusedSource(secret)
}

// explainRefusedSource returns why a Secret is not copied, or "". No reason contains a value.
func explainRefusedSource(s *corev1.Secret) string {
	size := 0
	for _, value := range s.Data {
		size += len(value)
	}
	switch {
	case slices.Contains(refusedTypes, s.Type):
		return fmt.Sprintf("a Secret of type %s is not copied, since Kubernetes gives it a meaning of its own; use type Opaque", s.Type)
	case size > maxBytes:
		return fmt.Sprintf("has %d KiB; at most %d KiB are copied", (size+1023)>>10, maxBytes>>10)
	}
	return ""
}

// writeCopy applies a copy. The type of a Secret cannot change, so a copy of another type is deleted first.
func (c *copier) writeCopy(ctx context.Context, w declaredCopy, s *corev1.Secret) error {
	err := c.applyCopy(ctx, w, s)
	if !isTypeConflict(err) {
		return err
	}
	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.name}}
	if err := c.client.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
		return err
	}
	return c.applyCopy(ctx, w, s)
}

func (c *copier) applyCopy(ctx context.Context, w declaredCopy, s *corev1.Secret) error {
	return c.client.Apply(ctx, buildCopy(w, s), client.FieldOwner(rights.Copier), client.ForceOwnership)
}

// buildCopy returns a copy with the type and the content of a Secret. It has none of the source's labels and
// annotations, by which other controllers may select the source. The garbage collector deletes it with the
// RoleBinding.
func buildCopy(w declaredCopy, s *corev1.Secret) runtime.ApplyConfiguration {
	return coreapply.Secret(w.name, w.namespace).
		WithLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.SecretLabel: w.name}).
		WithOwnerReferences(metaapply.OwnerReference().
			WithAPIVersion(rbacv1.SchemeGroupVersion.String()).WithKind("RoleBinding").WithName(w.owner.Name).WithUID(w.owner.UID)).
		WithType(s.Type).
		WithData(s.Data)
}

// isTypeConflict reports whether the API server refused to change the type of a Secret.
func isTypeConflict(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "type" })
}

// listCopies returns the RoleBindings of all copies of a source.
func (c *copier) listCopies(ctx context.Context, secret client.Object) []reconcile.Request {
	var list rbacv1.RoleBindingList
	if err := c.client.List(ctx, &list); err != nil {
		c.log.Error(err, "The copies of a Secret cannot be listed", "source", secret.GetName())
		return nil
	}
	var all []reconcile.Request
	for i := range list.Items {
		if w, ok := readBinding(&list.Items[i]); ok && w.source == secret.GetName() {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.owner)})
		}
	}
	return all
}
