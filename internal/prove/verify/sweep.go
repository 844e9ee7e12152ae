package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/rules/attack"
)

const (
	// sweepers is the number of concurrent requests of a sweep.
	sweepers = 8
	// placeholder is the name of the object in a sweep's requests, which need not exist:
	// authorization comes before the lookup.
	placeholder = "croft-verify"
	// few is the maximum number of variants in a message.
	few = 5
)

// probe is one request of a sweep.
type probe struct {
	kind
	verb      attack.Verb
	namespace string
}

func (p probe) String() string { return string(p.verb) + " " + p.displayName() }

// buildProbes returns the requests of a sweep.
func buildProbes(s *attack.Sweep, kinds []kind) []probe {
	var all []probe
	for _, k := range kinds {
		// A namespace is cluster-scoped, but rights to it can be given in the namespace itself.
		inside := k.namespaced || k.Group == "" && k.Resource == "namespaces"
		for _, verb := range s.Verbs {
			everywhere := !k.namespaced || verb == attack.List || verb == attack.Watch
			switch {
			case !slices.Contains(k.verbs, verb), s.Permitted != nil && s.Permitted(k.Group, k.rbacName(), verb):
			case s.Namespace == "" && everywhere:
				all = append(all, probe{k, verb, ""})
			case s.Namespace != "" && inside && (k.namespaced || needsName(verb)):
				all = append(all, probe{k, verb, s.Namespace})
			}
		}
	}
	return all
}

// needsName reports whether a verb applies to one object instead of a collection.
func needsName(verb attack.Verb) bool {
	return verb == attack.Get || verb == attack.Update || verb == attack.Patch || verb == attack.Delete
}

// runSweep tries every kind that the cluster serves. Authorization comes first, so any response
// other than a refusal by RBAC means that the request is allowed.
func (r *Runner) runSweep(ctx context.Context, a attack.Attack, m *member) Result {
	served, err := r.discoverKinds()
	if err != nil {
		return newUnprepared(a, err)
	}
	all := buildProbes(a.Sweep, served.kinds)
	if len(all) == 0 {
		return newNotTried(a, errors.New("this cluster serves no kind on which to try it"))
	}
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	turns := make(chan struct{}, sweepers)
	for i, p := range all {
		turns <- struct{}{}
		wait.Go(func() {
			errs[i] = p.sendWithRetry(ctx, m.raw)
			<-turns
		})
	}
	wait.Wait()
	result := classifySweep(a, all, errs)
	if len(served.unknown) > 0 {
		result.Message += "; not tried on API groups that could not be discovered: " + strings.Join(served.unknown, ", ")
	}
	return result
}

// classifySweep returns one result for the responses to all requests of a sweep.
func classifySweep(a attack.Attack, all []probe, errs []error) Result {
	var refused, through, unclear []string
	var refusal, failure string
	for i, err := range errs {
		switch {
		case err != nil && attack.ByRBAC.IsRefusal(err):
			refused, refusal = append(refused, all[i].String()), err.Error()
		case err != nil && isUnanswered(err):
			unclear, failure = append(unclear, all[i].String()), err.Error()
		default:
			through = append(through, all[i].String())
		}
	}
	result := newResult(a, Held, "")
	wrong, outcome := through, "succeeded"
	if a.Kind == attack.Mirror {
		wrong, outcome = refused, "refused"
	}
	switch {
	case len(wrong) > 0:
		result.Result, result.Breaches = Breached, wrong
		result.Message = fmt.Sprintf("%d of %d requests %s: %s", len(wrong), len(all), outcome, formatList(wrong))
	case len(unclear) > 0:
		result.Result = BlockedElsewhere
		result.Message = fmt.Sprintf("%d of %d requests failed: %s: %s", len(unclear), len(all), formatList(unclear), failure)
	case a.Kind == attack.Breach:
		result.Message = fmt.Sprintf("%d requests refused, such as: %s", len(all), refusal)
	}
	result.Variants = len(all)
	return result
}

func formatList(list []string) string { return wording.FormatFirst(list, few) }

// sendWithRetry sends the request, and retries while the API server does not serve the kind yet.
func (p probe) sendWithRetry(ctx context.Context, c rest.Interface) error {
	var err error
	_ = wait.PollUntilContextTimeout(ctx, again, settling, true, func(context.Context) (bool, error) {
		err = p.send(ctx, c)
		return !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err), nil
	})
	return err
}

// send sends the request. Even if it is allowed it has no effect: it is a dry run for objects
// that do not exist.
func (p probe) send(ctx context.Context, c rest.Interface) error {
	const dryRun = "dryRun"
	switch p.verb {
	case attack.Get:
		return c.Get().AbsPath(p.buildPath(true)).MaxRetries(0).Do(ctx).Error()
	case attack.List:
		return c.Get().AbsPath(p.buildPath(false)).Param("limit", "1").MaxRetries(0).Do(ctx).Error()
	case attack.Watch:
		stream, err := c.Get().AbsPath(p.buildPath(false)).Param("watch", "true").Param("timeoutSeconds", "1").MaxRetries(0).Stream(ctx)
		if err == nil {
			err = stream.Close()
		}
		return err
	case attack.Create:
		return c.Post().AbsPath(p.buildPath(p.subresource != "")).Param(dryRun, metav1.DryRunAll).Body(p.buildBody()).MaxRetries(0).Do(ctx).Error()
	case attack.Update:
		return c.Put().AbsPath(p.buildPath(true)).Param(dryRun, metav1.DryRunAll).Body(p.buildBody()).MaxRetries(0).Do(ctx).Error()
	case attack.Patch:
		return c.Patch(types.MergePatchType).AbsPath(p.buildPath(true)).Param(dryRun, metav1.DryRunAll).Body([]byte("{}")).MaxRetries(0).Do(ctx).Error()
	case attack.Delete:
		return c.Delete().AbsPath(p.buildPath(true)).Body(deletion).MaxRetries(0).Do(ctx).Error()
	case attack.DeleteCollection:
		return c.Delete().AbsPath(p.buildPath(false)).Param(dryRun, metav1.DryRunAll).Param("labelSelector", "croft.dev/verify=nothing").MaxRetries(0).Do(ctx).Error()
	default:
		return fmt.Errorf("no sweep uses the verb %q", p.verb)
	}
}

// deletion requests a dry run, with a UID that no object has.
var deletion = []byte(`{"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"], "preconditions": {"uid": "croft-verify"}}`)

func (p probe) buildPath(toObject bool) string {
	var b strings.Builder
	if p.Group == "" {
		b.WriteString("/api/" + p.Version)
	} else {
		b.WriteString("/apis/" + p.Group + "/" + p.Version)
	}
	name := placeholder
	if p.namespace != "" && p.namespaced {
		b.WriteString("/namespaces/" + p.namespace)
	} else if p.namespace != "" {
		name = p.namespace
	}
	b.WriteString("/" + p.Resource)
	if toObject {
		b.WriteString("/" + name)
	}
	if p.subresource != "" {
		b.WriteString("/" + p.subresource)
	}
	return b.String()
}

func (p probe) buildBody() []byte {
	name := placeholder
	if p.namespace != "" && !p.namespaced {
		name = p.namespace
	}
	body := map[string]any{
		"apiVersion": p.object.GroupVersion().String(), "kind": p.object.Kind,
		"metadata": map[string]string{"name": name, "namespace": p.namespace},
	}
	if p.Group == rbacv1.GroupName {
		// Without it the API server cannot determine which rights a binding would give, and
		// returns an internal error.
		body["roleRef"] = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: placeholder}
	}
	if p.object.Kind == "Pod" {
		// Gatekeeper's mutators fail for a pod without containers.
		body["spec"] = map[string]any{"containers": []any{map[string]string{"name": placeholder, "image": placeholder}}}
	}
	if p.object.Kind == "Binding" {
		// Without a target the API server fails.
		body["target"] = map[string]string{"kind": "Node", "name": placeholder}
	}
	data, err := json.Marshal(body)
	if err != nil { // a map of strings can always be marshalled
		return nil
	}
	return data
}
