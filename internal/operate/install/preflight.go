package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

// State is the result of one check of Preflight.
type State string

// The results of a check.
const (
	Good    State = "good"
	Warning State = "warning"
	// Problem prevents croft from working, or an installation from succeeding.
	Problem State = "problem"
)

// Finding is the result of one check.
type Finding struct {
	Check   string
	State   State
	Message string
}

// oldest is the first version of Kubernetes with ValidatingAdmissionPolicy.
const oldest = "1.30"

// Preflight checks whether objects can be installed, and whether croft will work. It writes
// nothing. server is the version of the API server.
func Preflight(ctx context.Context, c client.Client, server string, objects []client.Object) ([]Finding, error) {
	all := []Finding{checkVersion(server), checkPlacement(c.RESTMapper()), checkKarpenter(c.RESTMapper())}
	for _, check := range []func(context.Context, client.Client, []client.Object) (Finding, error){checkRights, checkForeign, tryObjects} {
		found, err := check(ctx, c, objects)
		if err != nil {
			return all, err
		}
		all = append(all, found)
	}
	return all, nil
}

func checkVersion(server string) Finding {
	f := Finding{"kubernetes", Good, server}
	v, err := version.ParseGeneric(server)
	if err != nil || v.LessThan(version.MustParseGeneric(oldest)) {
		f.State, f.Message = Problem, fmt.Sprintf("%s: croft needs Kubernetes %s or later, which has ValidatingAdmissionPolicy", server, oldest)
	}
	return f
}

// servesKinds reports whether the API server serves all of the kinds.
func servesKinds(m meta.RESTMapper, kinds ...schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool {
		_, err := m.RESTMapping(kind.GroupKind(), kind.Version)
		return err != nil
	})
}

func checkPlacement(m meta.RESTMapper) Finding {
	native, _ := apply.ServesNative(m)
	f := Finding{"admission", Good, "the API server places pods (MutatingAdmissionPolicy)"}
	switch {
	case !servesKinds(m, apply.PlatformKinds...):
		f.State, f.Message = Problem, "the API server does not serve ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1), which the walls require"
	case native:
	case servesKinds(m, apply.GatekeeperMutatorKinds...):
		f.State, f.Message = Warning, "no MutatingAdmissionPolicy, but Gatekeeper: set platform.placement to Gatekeeper"
	default:
		f.State, f.Message = Problem, apply.NoEngine
	}
	return f
}

func checkKarpenter(m meta.RESTMapper) Finding {
	nodePool, classes := apply.PoolKinds[0], apply.PoolKinds[1:]
	f := Finding{"karpenter", Good, ""}
	for _, class := range classes {
		if servesKinds(m, class) {
			f.Message += ", " + class.Kind
		}
	}
	switch {
	case !servesKinds(m, nodePool):
		f.State, f.Message = Problem, "no NodePool (karpenter.sh/v1): install Karpenter 1.x, which pools require"
	case f.Message == "":
		f.State, f.Message = Warning, "NodePool, but no node class of AWS: name your provider's node class in platform.nodeClass.ref"
	default:
		f.Message = "NodePool" + f.Message
	}
	return f
}

// checkRights checks whether the caller may write every kind of object. tryObjects checks
// whether the caller may grant the rights in the objects.
func checkRights(ctx context.Context, c client.Client, objects []client.Object) (Finding, error) {
	var missing []string
	asked := map[authorizationv1.ResourceAttributes]bool{}
	for _, o := range objects {
		gvk := o.GetObjectKind().GroupVersionKind()
		mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			continue // checkPlacement reports it
		}
		if err != nil {
			return Finding{}, err
		}
		for _, verb := range []string{"get", "create", "patch"} {
			of := authorizationv1.ResourceAttributes{Verb: verb, Group: gvk.Group, Resource: mapping.Resource.Resource, Namespace: o.GetNamespace()}
			if asked[of] {
				continue
			}
			asked[of] = true
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &of}}
			if err := c.Create(ctx, review); err != nil {
				return Finding{}, err
			}
			if !review.Status.Allowed {
				missing = append(missing, verb+" "+mapping.Resource.GroupResource().String())
			}
		}
	}
	if len(missing) > 0 {
		return Finding{"rights", Problem, "you may not " + strings.Join(missing, ", ") + ": ask a cluster administrator to install croft"}, nil
	}
	return Finding{"rights", Good, "you may write every object"}, nil
}

// checkForeign finds existing objects of the same names that croft did not create.
// Namespaces are allowed to exist, because the Secret of the proxy's certificate may be in
// one, and so are croft's CRDs, which the chart installs without a label.
func checkForeign(ctx context.Context, c client.Client, objects []client.Object) (Finding, error) {
	var foreign []string
	for _, o := range objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(o), live)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return Finding{}, err
		}
		if kind := live.GetKind(); kind != "Namespace" && kind != "CustomResourceDefinition" && live.GetLabels()[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
			foreign = append(foreign, apply.RefOf(o).String())
		}
	}
	if len(foreign) > 0 {
		return Finding{"objects", Problem, "existing objects that croft did not create would be overwritten: " + strings.Join(foreign, ", ")}, nil
	}
	return Finding{"objects", Good, "no foreign object has a name that croft needs"}, nil
}

// tryObjects sends dry runs, because other policies, webhooks or RBAC may refuse an object.
func tryObjects(ctx context.Context, c client.Client, objects []client.Object) (Finding, error) {
	served := slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool {
		return !servesKinds(c.RESTMapper(), o.GetObjectKind().GroupVersionKind())
	})
	if _, err := apply.New(c).Diff(ctx, served...); err != nil {
		return Finding{"dry run", Problem, strings.ReplaceAll(err.Error(), "\n", "; ")}, nil
	}
	return Finding{"dry run", Good, fmt.Sprintf("the API server accepts %d objects", len(served))}, nil
}
