// Package trial tries a team's manifests: it reports which objects the walls refuse, change or
// warn about. Without a cluster it uses package evaluator, and so the API server's own code,
// with the objects of an estate. With a cluster it sends dry runs.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/evaluator"
)

// Verdict is the outcome of an object.
type Verdict string

const (
	// Admitted objects are created unchanged.
	Admitted Verdict = "admitted"
	// Changed objects are created with changes.
	Changed Verdict = "changed"
	// Warned objects are created with a warning about a later failure.
	Warned Verdict = "warned"
	// Refused objects are not created.
	Refused Verdict = "refused"
)

// Change is a field that the walls set.
type Change struct {
	// Path is the path of the field, such as spec.tolerations[2].
	Path string `json:"path"`
	// Before is empty if the field was not set, and After if it was removed.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Result is the outcome of one object.
type Result struct {
	// File and Line are the position of the object, or of the template from which it is
	// created.
	File string `json:"file"`
	Line int    `json:"line"`
	// Object is kind and name. CreatedFrom is the object from which it is created if it is in no
	// manifest, such as the Deployment of a pod.
	Object      string  `json:"object"`
	CreatedFrom string  `json:"of,omitempty"`
	Namespace   string  `json:"namespace,omitempty"`
	Verdict     Verdict `json:"verdict"`
	// Refusals are all violated rules; the API server reports one at a time.
	Refusals []Reason `json:"refusals,omitempty"`
	Warnings []Reason `json:"warnings,omitempty"`
	Changes  []Change `json:"changes,omitempty"`
}

// Reason is the reason for a refusal or a warning.
type Reason struct {
	// Source is the policy, RBAC, PodSecurity, LimitRanger, ResourceQuota, Karpenter or, for all
	// else, the API server. Rule is the policy's rule.
	Source  string `json:"by"`
	Rule    string `json:"rule,omitempty"`
	Message string `json:"message"`
	// Line is the line of the field that the message names. It is the object's line if the
	// message names none, or if the field is not written.
	Line int `json:"line"`
}

// apiServer is the Source of refusals and warnings other than policies', RBAC's and Pod Security's.
const apiServer = "API server"

// karpenter is the Source of warnings about pods that no node can run.
const karpenter = "Karpenter"

// Report has the outcomes of some manifests.
type Report struct {
	// Results are in the order of the manifests, each followed by the results of the objects
	// created from it.
	Results []Result `json:"results"`
	// Unknown lists the limits of the trial, each once.
	Unknown []string `json:"unknown,omitempty"`
}

// Refuses reports whether any object is refused.
func (r *Report) Refuses() bool {
	return slices.ContainsFunc(r.Results, func(r Result) bool { return r.Verdict == Refused })
}

// Trial tries manifests of one tenant.
type Trial struct {
	backend backend
	// user is the user who creates the objects, or nil for the caller.
	user user.Info
	// namespace is the namespace of objects that name none.
	namespace string
}

// backend evaluates one object, by the evaluator or a cluster. It must allow concurrent calls.
type backend interface {
	// create returns the answer to a request to create an object. If controller is set, the
	// request is not checked against Roles.
	create(ctx context.Context, object *unstructured.Unstructured, requester user.Info, controller bool) (evaluator.Answer, error)
	// with returns the backend after an object was created.
	with(*unstructured.Unstructured) (backend, error)
	// clusterWide reports whether a kind is cluster-scoped.
	clusterWide(schema.GroupVersionKind) bool
	// explainUnschedulable explains why no node can run a created pod, or returns "" if some
	// may.
	explainUnschedulable(pod *unstructured.Unstructured) string
	// explainRBAC explains a refusal by RBAC of a kind that is not built in, or returns "" for
	// other refusals.
	explainRBAC(schema.GroupVersionKind, evaluator.Denial) string
	// unknown lists the limits of the evaluation of some manifests.
	unknown([]Manifest) []string
}

// Options set the user who creates the objects, and the defaults of fields.
type Options struct {
	// ServiceAccount creates the objects, as namespace/name or as a name in Namespace. If it is
	// empty, a user with the tenant's role operator does.
	ServiceAccount string
	// Namespace is the namespace of objects that name none. Defaults to the tenant's first.
	Namespace string
	// StorageClass is the cluster's default class, which a claim without a class gets. Defaults
	// to the first of the tenant's storageClasses.
	StorageClass string
}

// New returns a Trial of a tenant of an estate, without a cluster. It returns an error if no
// member of the tenant may write, or if the namespace is not the tenant's.
func New(e *estate.Estate, tenant *estate.Tenant, o Options) (*Trial, error) {
	t, err := newTrial(tenant, o)
	if err != nil {
		return nil, err
	}
	t.backend, err = newOffline(e, tenant, o.StorageClass)
	return t, err
}

// newTrial returns a Trial without a backend.
func newTrial(tenant *estate.Tenant, o Options) (*Trial, error) {
	t := &Trial{namespace: cmp.Or(o.Namespace, tenant.Namespaces[0])}
	if !slices.Contains(tenant.Namespaces, t.namespace) {
		return nil, fmt.Errorf("namespace %s does not belong to tenant %s: choose one of %s", t.namespace, tenant.Name, strings.Join(tenant.Namespaces, ", "))
	}
	var err error
	t.user, err = t.findSender(tenant, o.ServiceAccount)
	return t, err
}

// findSender returns the user who creates the objects.
func (t *Trial) findSender(tenant *estate.Tenant, account string) (user.Info, error) {
	if account != "" {
		return t.newAccount(account), nil
	}
	for _, access := range tenant.Access {
		if access.Role != v1alpha1.RoleOperator {
			continue
		}
		requester := &user.DefaultInfo{Name: cmp.Or(access.User, "somebody"), Groups: []string{user.AllAuthenticated}}
		if access.Group != "" {
			requester.Groups = append(requester.Groups, access.Group)
		}
		return requester, nil
	}
	return nil, fmt.Errorf("tenant %s gives no user or group the role operator: name the service account that creates the objects with --as-service-account", tenant.Name)
}

// newAccount returns a service account, by NAMESPACE/NAME or by its name.
func (t *Trial) newAccount(name string) user.Info {
	namespace, name, ok := strings.Cut(name, "/")
	if !ok {
		namespace, name = t.namespace, namespace
	}
	requester := serviceaccount.UserInfo(namespace, name, "")
	return &user.DefaultInfo{Name: requester.GetName(), Groups: append(requester.GetGroups(), user.AllAuthenticated)}
}

// WithServiceAccount returns the same Trial, with its present state, for a service account.
func (t *Trial) WithServiceAccount(account string) *Trial {
	next := *t
	next.user = t.newAccount(account)
	return &next
}

// Try tries manifests in the order of their creation, and the pods and claims that Kubernetes
// creates from them. A Role's rights and a service account's settings apply to the following
// manifests, also of the next call. An error means that the cluster or the evaluator failed, not
// that a manifest is wrong.
func (t *Trial) Try(ctx context.Context, manifests []Manifest) (*Report, error) {
	all := make([][]Result, len(manifests))
	for from := 0; from < len(manifests); {
		// Objects that affect later ones are tried alone, and all objects between them concurrently.
		to := from + 1
		for to < len(manifests) && !affectsLater(manifests[from]) && !affectsLater(manifests[to]) {
			to++
		}
		if err := t.tryConcurrently(ctx, manifests[from:to], all[from:to]); err != nil {
			return nil, err
		}
		if m := manifests[from]; affectsLater(m) && all[from][0].Verdict != Refused {
			var err error
			if t.backend, err = t.backend.with(t.prepareObject(m)); err != nil {
				return nil, fmt.Errorf("%s: %w", all[from][0].Object, err)
			}
		}
		from = to
	}
	return &Report{Results: slices.Concat([]Result{}, slices.Concat(all...)), Unknown: t.backend.unknown(manifests)}, nil
}

// serviceAccount is the kind of service accounts.
var serviceAccount = schema.GroupKind{Kind: "ServiceAccount"}

// affectsLater reports whether the results of later manifests depend on this one.
func affectsLater(m Manifest) bool {
	kind := m.Object.GroupVersionKind().GroupKind()
	return kind.Group == rbacv1.GroupName || kind == serviceAccount
}

// tryConcurrently tries manifests concurrently.
func (t *Trial) tryConcurrently(ctx context.Context, manifests []Manifest, results [][]Result) error {
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	errs := make([]error, len(manifests))
	var group sync.WaitGroup
	for i, m := range manifests {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			results[i], errs[i] = t.tryManifest(ctx, m)
		})
	}
	group.Wait()
	return cmp.Or(errs...)
}

// tryManifest tries one manifest, and the objects created from it.
func (t *Trial) tryManifest(ctx context.Context, m Manifest) ([]Result, error) {
	object := t.prepareObject(m)
	result, err := t.tryObject(ctx, m, child{object: object, controller: t.user}, false)
	if err != nil {
		return nil, err
	}
	results := []Result{result}
	if result.Verdict == Refused {
		return results, nil
	}
	for _, c := range listChildren(object) {
		if t.user == nil {
			c.controller = nil // a caller without impersonation cannot act as a controller
		}
		r, err := t.tryObject(ctx, m, c, true)
		if errors.Is(err, errNotTried) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r.Object, r.CreatedFrom = c.object.GetKind(), result.Object
		results = append(results, r)
	}
	return results, nil
}

// prepareObject returns the object of a manifest as it is sent.
func (t *Trial) prepareObject(m Manifest) *unstructured.Unstructured {
	object := m.Object.DeepCopy()
	if object.GetNamespace() == "" && !t.backend.clusterWide(object.GroupVersionKind()) {
		object.SetNamespace(t.namespace)
	}
	return object
}

// tryObject tries one object, at a path of a manifest.
func (t *Trial) tryObject(ctx context.Context, m Manifest, c child, controller bool) (Result, error) {
	r := Result{
		File: m.File, Line: m.Line, Namespace: c.object.GetNamespace(),
		Object: c.object.GetKind() + "/" + cmp.Or(c.object.GetName(), c.object.GetGenerateName()+"…"),
	}
	if controller {
		r.Line = m.findLine(c.path...)
	}
	answer, err := t.backend.create(ctx, c.object, c.controller, controller)
	if err != nil {
		return r, fmt.Errorf("%s: %w", r.Object, err)
	}
	for _, d := range answer.Denials {
		r.Refusals = append(r.Refusals, Reason{Source: d.DeniedBy, Rule: d.Rule, Message: d.Message + t.backend.explainRBAC(c.object.GroupVersionKind(), d)})
	}
	for _, w := range answer.Warnings {
		r.Warnings = append(r.Warnings, parseWarning(w))
	}
	if answer.Object != nil && answer.Object.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		if reason := t.backend.explainUnschedulable(answer.Object); reason != "" {
			r.Warnings = append(r.Warnings, Reason{Source: karpenter, Message: reason + ": the pod would stay Pending"})
		}
	}
	for _, reasons := range [][]Reason{r.Refusals, r.Warnings} {
		for i := range reasons {
			reasons[i].Line = m.locateReason(reasons[i], c.path)
		}
	}
	if len(r.Refusals) > 0 {
		r.Verdict = Refused
		return r, nil
	}
	if answer.Sent != nil && answer.Object != nil {
		r.Changes = slices.DeleteFunc(findChanges("", answer.Sent.Object, answer.Object.Object), isDerived)
	}
	switch {
	case len(r.Warnings) > 0:
		r.Verdict = Warned
	case len(r.Changes) > 0:
		r.Verdict = Changed
	default:
		r.Verdict = Admitted
	}
	return r, nil
}

// parseWarning parses the API server's warning.
func parseWarning(text string) Reason {
	if warning, byPolicy := admissionpolicy.ParseWarning(text); byPolicy {
		return Reason{Source: warning.Policy, Rule: warning.Rule, Message: warning.FormatMessage()}
	}
	if strings.HasPrefix(text, wouldViolate) {
		return Reason{Source: podSecurity, Message: text}
	}
	return Reason{Source: apiServer, Message: text}
}

// isDerived reports whether a change clears a field that the API server computes from the pod's priority class, so
// that it has the value of another class.
func isDerived(c Change) bool {
	return c.After == "" && slices.Contains([]string{"spec.priority", "spec.preemptionPolicy"}, c.Path)
}

// findChanges returns the fields in which two values differ.
func findChanges(path string, before, after any) []Change {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	fieldsBefore, ok := before.(map[string]any)
	fieldsAfter, also := after.(map[string]any)
	if ok && also {
		var all []Change
		keys := maps.Clone(fieldsBefore)
		maps.Copy(keys, fieldsAfter)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			all = append(all, findChanges(strings.TrimPrefix(path+"."+key, "."), fieldsBefore[key], fieldsAfter[key])...)
		}
		return all
	}
	oldList, ok := before.([]any)
	newList, also := after.([]any)
	if ok && also {
		var all []Change
		for i := range max(len(oldList), len(newList)) {
			all = append(all, findChanges(path+"["+strconv.Itoa(i)+"]", entryAt(oldList, i), entryAt(newList, i))...)
		}
		return all
	}
	return []Change{{Path: path, Before: formatValue(before), After: formatValue(after)}}
}

func entryAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// formatValue returns a value on one line.
func formatValue(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, key+": "+formatValue(value[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return fmt.Sprint(value)
	}
}
