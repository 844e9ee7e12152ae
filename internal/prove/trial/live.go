package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/prove/warning"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/evaluator"
)

// NewLive returns a Trial that sends dry runs to a cluster. The sender is a user with the role
// operator of the tenant, or Options.ServiceAccount; the configuration's user must be allowed
// to impersonate them. Without a tenant and an account, the configuration's own user is the
// sender; Options.Namespace is required then.
func NewLive(config *rest.Config, tenant *estate.Tenant, o Options) (*Trial, error) {
	t := &Trial{namespace: o.Namespace}
	switch {
	case tenant != nil:
		var err error
		if t, err = newTrial(tenant, o); err != nil {
			return nil, err
		}
	case o.ServiceAccount != "":
		t.user = t.newAccount(o.ServiceAccount)
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	t.backend = &live{config: config, mapper: mapper, senders: map[string]client.Client{}, accounts: map[string]bool{}}
	return t, nil
}

// NewWithClient returns a Trial that sends dry runs with a client, as its user. The client needs a
// warning.Handler. Its mapper must know the kinds of the manifests.
func NewWithClient(c client.Client, namespace string) *Trial {
	senders := map[string]client.Client{"": c}
	return &Trial{namespace: namespace, backend: &live{mapper: c.RESTMapper(), senders: senders, accounts: map[string]bool{}}}
}

// live tries objects by dry runs in a cluster.
type live struct {
	config *rest.Config
	mapper meta.RESTMapper

	mu sync.Mutex
	// senders are clients by the user that they impersonate.
	senders map[string]client.Client
	// accounts are service accounts that do not exist yet.
	accounts map[string]bool
	// skipReason is the reason why pods could not be tried.
	skipReason string
}

func (j *live) create(ctx context.Context, object *unstructured.Unstructured, requester user.Info, controller bool) (evaluator.Answer, error) {
	sent := object.DeepCopy()
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(sent.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(sent.Object, "status")
	if controller {
		// An existing pod may already have this name, so the API server generates another.
		sent.SetGenerateName(strings.TrimSuffix(sent.GetName(), "0"))
		sent.SetName("")
	}
	answer, err := j.sendDryRun(ctx, sent, requester)
	if err != nil {
		return answer, err
	}
	if account := findMissingAccount(answer.Err()); controller && account != "" {
		// The ServiceAccount is probably among the manifests.
		j.withLock(func() { j.accounts[account] = true })
		unstructured.RemoveNestedField(sent.Object, "spec", "serviceAccountName")
		unstructured.RemoveNestedField(sent.Object, "spec", "serviceAccount")
		return j.sendDryRun(ctx, sent, requester)
	}
	if controller && len(answer.Denials) > 0 && answer.Denials[0].DeniedBy == rbac {
		j.withLock(func() { j.skipReason = answer.Denials[0].Message })
		return answer, errNotTried
	}
	return answer, nil
}

// explainRBAC returns "": discovery refuses unknown kinds before RBAC does.
func (*live) explainRBAC(schema.GroupVersionKind, evaluator.Denial) string { return "" }

// explainUnschedulable returns "": the pools are not known here.
func (*live) explainUnschedulable(*unstructured.Unstructured) string { return "" }

// errNotTried means that a controller's object could not be tried.
var errNotTried = errors.New("not tried")

func (j *live) withLock(do func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	do()
}

// sendDryRun sends an object as a dry run: as a create, or as an apply if the object exists.
func (j *live) sendDryRun(ctx context.Context, object *unstructured.Unstructured, requester user.Info) (evaluator.Answer, error) {
	c, err := j.getClient(requester)
	if err != nil {
		return evaluator.Answer{}, err
	}
	ctx, warnings := warning.Record(ctx)
	got := object.DeepCopy()
	exists := false
	if object.GetName() != "" {
		standing := &unstructured.Unstructured{}
		standing.SetGroupVersionKind(object.GroupVersionKind())
		exists = c.Get(ctx, client.ObjectKeyFromObject(object), standing) == nil
	}
	if !exists {
		if err = c.Create(ctx, got, client.DryRunAll); apierrors.IsAlreadyExists(err) {
			exists, got = true, object.DeepCopy() // the sender may not read it
		}
	}
	if exists {
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(got), client.FieldOwner("kubectl"), client.ForceOwnership, client.DryRunAll)
	}
	answer := evaluator.Answer{Warnings: warnings.List()}
	if err != nil {
		if needs := explainMissing(object, err); needs != "" {
			answer.Warnings = append(answer.Warnings, needs)
			return answer, nil
		}
		denial, err := newDenial(object, err)
		if err == nil {
			answer.Denials = []evaluator.Denial{denial}
		}
		return answer, err
	}
	answer.Sent, answer.Object = object, got
	answer.Sent.Object, answer.Object.Object = removeDefaults(object.Object, got.Object, exists)
	return answer, nil
}

// rbac is the Source of a Reason for missing rights.
const rbac = "RBAC"

// explainMissing returns a message if an object needs another that does not exist, such as the Role of
// a RoleBinding. It may be among the manifests, none of which a dry run creates.
func explainMissing(object *unstructured.Unstructured, err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil || status.Status().Details.Kind == "namespaces" {
		return ""
	}
	message := err.Error()
	if role, found, _ := unstructured.NestedString(object.Object, "roleRef", "name"); found {
		message = "roleRef: role " + role + " does not exist"
	}
	return message + ": it must exist before this object is created"
}

// newDenial returns the API server's refusal, or an error if the request was not evaluated.
func newDenial(object *unstructured.Unstructured, err error) (evaluator.Denial, error) {
	var status apierrors.APIStatus
	text := err.Error()
	d := evaluator.Denial{DeniedBy: apiServer, Message: text, Err: err}
	if meta.IsNoMatchError(err) {
		d.Message = "the cluster has no kind " + object.GroupVersionKind().GroupKind().String() + " in version " + object.GroupVersionKind().Version
		return d, nil
	}
	if !errors.As(err, &status) {
		return d, err
	}
	code := status.Status().Code
	refusal, byPolicy := admissionpolicy.ParseRefusal(text)
	switch {
	case strings.Contains(text, "cannot impersonate resource"):
		return d, &ImpersonationError{err}
	case apierrors.IsUnauthorized(err), apierrors.IsTooManyRequests(err), code >= 500 && !apierrors.IsInternalError(err):
		return d, err
	case byPolicy:
		d.DeniedBy, d.Rule, d.Message = refusal.Policy, refusal.Rule, refusal.FormatMessage()
	case strings.Contains(text, "violates PodSecurity"):
		d.DeniedBy = podSecurity
	case apierrors.IsForbidden(err) && (strings.Contains(text, " cannot ") || strings.Contains(text, "is attempting to grant RBAC permissions not currently held")):
		d.DeniedBy = rbac
	}
	return d, nil
}

// ImpersonationError means that the caller lacks the right to impersonate.
type ImpersonationError struct{ error }

func (e *ImpersonationError) Unwrap() error { return e.error }

var accountNotFound = regexp.MustCompile(`error looking up service account ([^:]+): .*not found`)

// findMissingAccount returns the service account of a pod if it does not exist.
func findMissingAccount(err error) string {
	if err != nil {
		if match := accountNotFound.FindStringSubmatch(err.Error()); match != nil {
			return match[1]
		}
	}
	return ""
}

// getClient returns a client that impersonates a user, or acts as the configuration's own user if
// nil. Without impersonation, pods are created as the sender instead of the controller.
func (j *live) getClient(requester user.Info) (client.Client, error) {
	name := ""
	if requester != nil {
		name = requester.GetName()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if c, ok := j.senders[name]; ok {
		return c, nil
	}
	config := rest.CopyConfig(j.config)
	config.WarningHandlerWithContext = warning.Handler{}
	if requester != nil {
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: requester.GetGroups()}
	}
	c, err := client.New(config, client.Options{Scheme: scheme.New(), Mapper: j.mapper})
	if err == nil {
		j.senders[name] = c
	}
	return c, err
}

// with returns the same backend: a dry run has no effect on later requests.
func (j *live) with(*unstructured.Unstructured) (backend, error) { return j, nil }

func (j *live) clusterWide(kind schema.GroupVersionKind) bool {
	mapping, err := j.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}

func (j *live) unknown(manifests []Manifest) []string {
	all := []string{
		"whether all objects fit into the quota together: a dry run compares each object with the current usage",
		"the effects of an object on later ones: a dry run stores nothing",
	}
	if slices.ContainsFunc(manifests, func(m Manifest) bool { return m.Object.GroupVersionKind().Group == rbacv1.GroupName }) {
		all = append(all, "the effects of the Roles in the manifests: a dry run does not grant their rights")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.accounts) > 0 {
		all = append(all, fmt.Sprintf("pods of service accounts that do not exist yet were tried with the account default: %s", strings.Join(slices.Sorted(maps.Keys(j.accounts)), ", ")))
	}
	if j.skipReason != "" {
		all = append(all, "pods and claims that Kubernetes would create from the manifests, since you may not create them: "+j.skipReason)
	}
	return all
}
