package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/install"
)

const (
	// rightsInterval is how long an answer about the operator's rights holds.
	rightsInterval = 10 * time.Second
	// rightsTimeout is the time limit of a look at them: a probe waits no longer.
	rightsTimeout = 900 * time.Millisecond
	// named is how many missing rights a message names.
	named = 5
)

// errUnasked is the verdict before the first answer.
var errUnasked = errors.New("the operator's rights are not known yet")

// rights checks that the operator has the rights that the installation gives to it. Without
// one of them it would run, and fail where it needs it.
type rights struct {
	// client asks; it writes nothing.
	client client.Writer
	log    logr.Logger

	mu      sync.Mutex
	asked   time.Time
	verdict error
}

func newRights(c client.Writer, log logr.Logger) *rights {
	return &rights{client: c, log: log, verdict: errUnasked}
}

// check implements healthz.Checker. While the API server does not answer, the last answer
// holds: it says nothing about rights.
func (r *rights) check(req *http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) < rightsInterval {
		return r.verdict
	}
	ctx, cancel := context.WithTimeout(req.Context(), rightsTimeout)
	defer cancel()
	missing, err := r.missing(ctx)
	switch {
	case apierrors.IsForbidden(err):
		// The ClusterRole system:basic-user is not bound to everybody on this cluster.
		if errors.Is(r.verdict, errUnasked) {
			r.log.Info("the operator's rights cannot be checked: it may not ask what it may do", "error", err.Error())
		}
		missing = nil
	case err != nil:
		return r.verdict
	}
	r.asked = time.Now()
	before := r.verdict
	r.verdict = verdictOn(missing)
	// The probe's answer gives no reasons.
	if r.verdict != nil && (before == nil || before.Error() != r.verdict.Error()) {
		r.log.Error(r.verdict, "not ready")
	}
	return r.verdict
}

// verdictOn is an error that names some of the missing rights, if there are any.
func verdictOn(missing []authorizationv1.ResourceAttributes) error {
	if len(missing) == 0 {
		return nil
	}
	var names []string
	for _, right := range missing[:min(len(missing), named)] {
		names = append(names, described(right))
	}
	if more := len(missing) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("the operator may not %s: run croft install or helm upgrade again, with this version", strings.Join(names, ", "))
}

// missing are the rights that the operator does not have.
func (r *rights) missing(ctx context.Context) ([]authorizationv1.ResourceAttributes, error) {
	needed := install.Rights()
	var all []authorizationv1.ResourceAttributes
	for _, namespace := range slices.Sorted(maps.Keys(needed)) {
		lacks, err := r.missingIn(ctx, namespace, needed[namespace])
		if err != nil {
			return nil, err
		}
		all = append(all, lacks...)
	}
	return all, nil
}

// missingIn asks once for all rights in a namespace, and then for each that is not named,
// if the answer is incomplete: some authorizers decide and cannot list.
func (r *rights) missingIn(ctx context.Context, namespace string, rules []rbacv1.PolicyRule) ([]authorizationv1.ResourceAttributes, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if namespace == "" {
		// Rights in the whole cluster hold in each namespace; one has to be named.
		review.Spec.Namespace = metav1.NamespaceDefault
	}
	if err := r.client.Create(ctx, review); err != nil {
		return nil, err
	}
	lacks := lacking(rules, review.Status.ResourceRules)
	if !review.Status.Incomplete {
		return within(namespace, lacks), nil
	}
	var denied []authorizationv1.ResourceAttributes
	for _, right := range within(namespace, lacks) {
		asked := right
		asked.Resource, asked.Subresource, _ = strings.Cut(right.Resource, "/")
		access := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &asked}}
		if err := r.client.Create(ctx, access); err != nil {
			return nil, err
		}
		if !access.Status.Allowed {
			denied = append(denied, right)
		}
	}
	return denied, nil
}

// within are rights in a namespace.
func within(namespace string, rights []authorizationv1.ResourceAttributes) []authorizationv1.ResourceAttributes {
	for i := range rights {
		rights[i].Namespace = namespace
	}
	return rights
}
