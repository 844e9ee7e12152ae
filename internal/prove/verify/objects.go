package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/survey"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/identity"
)

// repairing is the time in which a running operator restores a changed object.
const repairing = 5 * time.Second

// CompareObjects compares the walls' objects, and the policies that are installed with croft,
// with the objects in the cluster, and returns a result for each wall. Attacks on scratch
// tenants test neither these policies nor the objects of a tenant. If tenant is not empty,
// only the platform's objects and that tenant's are compared. rendered is set for a cluster
// without an operator.
func CompareObjects(ctx context.Context, c client.Client, e *estate.Estate, tenant string, rendered bool) ([]Result, error) {
	var results []Result
	// The deadline limits the repetitions and not the reads: a client with a rate limit would fail shortly before it.
	err := wait.PollUntilContextTimeout(ctx, time.Second, repairing, true, func(context.Context) (bool, error) {
		objects, err := surveyObjects(ctx, c, e, tenant, rendered)
		if err != nil {
			return false, err
		}
		results = summarizeObjects(objects)
		return !slices.ContainsFunc(results, func(r Result) bool { return r.Result == Breached }), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil // the results report the remaining differences
	}
	return results, err
}

func surveyObjects(ctx context.Context, c client.Client, e *estate.Estate, tenant string, rendered bool) ([]survey.Object, error) {
	objects, err := survey.CompareWalls(ctx, c, e, rendered)
	if err != nil {
		return nil, err
	}
	if tenant != "" {
		objects = slices.DeleteFunc(objects, func(o survey.Object) bool {
			return o.Owner != survey.OfPlatform && o.Owner != "Tenant/"+tenant
		})
	}
	if rendered {
		return objects, nil
	}
	for _, o := range install.PolicyObjects() {
		state, err := compareState(ctx, c, o)
		if err != nil {
			return nil, err
		}
		objects = append(objects, survey.Object{
			Surveyed: apply.Surveyed{Ref: apply.RefOf(o), State: state}, Walls: []string{identity.Wall{}.Name()}, Owner: survey.OfPlatform,
		})
	}
	return objects, nil
}

// compareState compares the specification of a policy or binding with the cluster's. The field
// manager does not matter: croft, Helm or kubectl may have installed it.
func compareState(ctx context.Context, c client.Client, want client.Object) (apply.State, error) {
	live, err := copyObject(want)
	if err != nil {
		return "", err
	}
	switch err := c.Get(ctx, client.ObjectKeyFromObject(want), live); {
	case apierrors.IsNotFound(err):
		return apply.Missing, nil
	case apierrors.IsForbidden(err):
		return apply.Unreadable, nil
	case err != nil:
		return "", err
	case !equality.Semantic.DeepEqual(getSpec(want), getSpec(live)):
		return apply.Differs, nil
	}
	return apply.Matches, nil
}

func getSpec(o client.Object) any {
	switch o := o.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		return o.Spec
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return o.Spec
	default:
		return nil
	}
}

// summarizeObjects returns a result for each wall.
func summarizeObjects(objects []survey.Object) []Result {
	var all []Result
	for _, w := range wall.All() {
		r := Result{
			Name: "objects-in-place", Wall: w.Name(), Kind: attack.Breach, Result: Held,
			Summary: "delete or change an object of the wall", StoppedBy: "croft's operator",
		}
		var unread []string
		for _, o := range objects {
			if !slices.Contains(o.Walls, w.Name()) {
				continue
			}
			r.Variants++
			switch o.State {
			case apply.Missing:
				r.Breaches = append(r.Breaches, o.String()+" is missing")
			case apply.Differs:
				r.Breaches = append(r.Breaches, strings.TrimSuffix(fmt.Sprintf("%s was changed by %s", o, strings.Join(o.ChangedBy, ", ")), " by "))
			case apply.Unreadable:
				unread = append(unread, o.String())
			case apply.Matches:
			}
		}
		switch {
		case len(r.Breaches) > 0:
			r.Result, r.Message = Breached, formatList(r.Breaches)
		case len(unread) > 0:
			r.Result, r.Message = NotTried, "you may not read "+formatList(unread)
		}
		all = append(all, r)
	}
	return all
}
