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

	"croft.dev/croft/internal/operate/install"
)

const (
	// rightsInterval is how long an answer about the operator's rights is reused.
	rightsInterval = 10 * time.Second
	// rightsTimeout limits one check of the rights, so that a probe does not time out.
	rightsTimeout = 900 * time.Millisecond
	// named is how many missing rights a message names.
	named = 5
)

// errUnasked is the result before the first answer of the API server.
var errUnasked = errors.New("the operator's rights are not known yet")

// rights checks that the operator has the rights that the installation grants. Without one
// of them the operator would start, and fail later.
type rights struct {
	// client only creates access reviews, which are not stored.
	client client.Writer
	log    logr.Logger

	mu      sync.Mutex
	asked   time.Time
	verdict error
}

func newRights(c client.Writer, log logr.Logger) *rights {
	return &rights{client: c, log: log, verdict: errUnasked}
}

// checkRights implements healthz.Checker. If the API server does not answer, check returns its
// last result: an outage does not change the operator's rights.
func (r *rights) checkRights(req *http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) < rightsInterval {
		return r.verdict
	}
	ctx, cancel := context.WithTimeout(req.Context(), rightsTimeout)
	defer cancel()
	missing, err := r.listMissing(ctx)
	switch {
	case apierrors.IsForbidden(err):
		// On this cluster the ClusterRole system:basic-user is not bound to all users.
		if errors.Is(r.verdict, errUnasked) {
			r.log.Info("the operator's rights cannot be checked: it may not query its own rights", "error", err.Error())
		}
		missing = nil
	case err != nil:
		return r.verdict
	}
	r.asked = time.Now()
	before := r.verdict
	r.verdict = explainMissing(missing)
	// The probe's response does not contain the reason, so it is logged.
	if r.verdict != nil && (before == nil || before.Error() != r.verdict.Error()) {
		r.log.Error(r.verdict, "not ready")
	}
	return r.verdict
}

// explainMissing returns an error that names some of the missing rights, or nil.
func explainMissing(missing []authorizationv1.ResourceAttributes) error {
	if len(missing) == 0 {
		return nil
	}
	var names []string
	for _, right := range missing[:min(len(missing), named)] {
		names = append(names, describeRight(right))
	}
	if more := len(missing) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("the operator may not %s: run croft install or helm upgrade again, with this version", strings.Join(names, ", "))
}

// listMissing returns the rights that the operator lacks.
func (r *rights) listMissing(ctx context.Context) ([]authorizationv1.ResourceAttributes, error) {
	needed := install.Rights()
	var all []authorizationv1.ResourceAttributes
	for _, namespace := range slices.Sorted(maps.Keys(needed)) {
		lacks, err := r.listMissingIn(ctx, namespace, needed[namespace])
		if err != nil {
			return nil, err
		}
		all = append(all, lacks...)
	}
	return all, nil
}

// listMissingIn requests the list of all rights in a namespace. If the list is incomplete, it
// checks each right that the list lacks: some authorizers can decide, but cannot list.
func (r *rights) listMissingIn(ctx context.Context, namespace string, rules []rbacv1.PolicyRule) ([]authorizationv1.ResourceAttributes, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if namespace == "" {
		// Cluster-wide rights apply to every namespace, but the review requires one.
		review.Spec.Namespace = metav1.NamespaceDefault
	}
	if err := r.client.Create(ctx, review); err != nil {
		return nil, err
	}
	lacks := listLacking(rules, review.Status.ResourceRules)
	if !review.Status.Incomplete {
		return setNamespace(namespace, lacks), nil
	}
	var denied []authorizationv1.ResourceAttributes
	for _, right := range setNamespace(namespace, lacks) {
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

// setNamespace sets the namespace of rights.
func setNamespace(namespace string, rights []authorizationv1.ResourceAttributes) []authorizationv1.ResourceAttributes {
	for i := range rights {
		rights[i].Namespace = namespace
	}
	return rights
}
