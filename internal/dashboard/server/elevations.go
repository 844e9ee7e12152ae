package server

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/session"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/prove/warning"
	"croft.dev/croft/internal/walls/elevation"
)

// showElevations shows the elevations that were requested in a namespace.
func (d *dashboard) showElevations(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, error) {
	namespace, m, err := readRules(ctx, c, r)
	if err != nil {
		return page.Page{}, err
	}
	rights := page.ElevationRights{User: findUser(r)}
	if key, err := d.Keys.OpenElevation(r.Cookies(), rights.User, time.Now()); err == nil && key.Namespace == namespace {
		rights.Key = key.Name
	}
	var all v1alpha1.ElevationList
	switch err := c.List(ctx, &all, client.InNamespace(namespace)); {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		rights.Hidden = true
		return page.NewElevations(namespace, m.Tenant, nil, rights), nil
	case err != nil:
		return page.Page{}, err
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := c.Create(ctx, review); err != nil {
		return page.Page{}, err
	}
	// Service accounts cannot request elevations.
	rights.Request = mayChangeElevations(&review.Status, "create") && !strings.HasPrefix(rights.User, "system:serviceaccount:")
	rights.Approve, rights.End = mayChangeElevations(&review.Status, "patch"), mayChangeElevations(&review.Status, "delete")
	return page.NewElevations(namespace, m.Tenant, all.Items, rights), nil
}

// mayChangeElevations reports whether the user may have a right. An authorizer that cannot list rights, such
// as a webhook, may give it, too.
func mayChangeElevations(s *authorizationv1.SubjectRulesReviewStatus, verb string) bool {
	return s.Incomplete || me.GrantsRight(s.ResourceRules, v1alpha1.GroupVersion.Group, "elevations", verb)
}

// changeElevations returns the handler of a form that may set cookies.
func (d *dashboard) changeElevations(handle func(http.ResponseWriter) form) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { d.newFormHandler(largestForm, handle(w))(w, r) }
}

// requestElevation creates a request after a dry run and a confirmation. The key of the confirmed
// request is then in a cookie.
func (d *dashboard) requestElevation(w http.ResponseWriter) form {
	return func(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, string, error) {
		namespace, m, err := readRules(ctx, c, r)
		if err != nil {
			return page.Page{}, "", err
		}
		text, reason := strings.TrimSpace(r.PostForm.Get("duration")), strings.TrimSpace(r.PostForm.Get("reason"))
		duration, _ := time.ParseDuration(text) // 0 for other texts, which is too short
		body := page.Confirmation{
			Question: page.T("Request an elevation in %s?", namespace), Button: page.T("Request"), Action: page.ElevationsPath(namespace),
			Fields: map[string]string{"duration": text, "reason": reason},
		}
		switch {
		case duration < elevation.Shortest || duration > elevation.Longest:
			body.Refused = page.T("the duration must be between 15m and 24h, such as 1h")
			return page.NewElevationConfirmation(namespace, body), "", nil
		case reason == "":
			body.Refused = page.T("the reason is empty: write a reason, for the approver and the record")
			return page.NewElevationConfirmation(namespace, body), "", nil
		}
		private, public, err := elevation.NewKey()
		if err != nil {
			return page.Page{}, "", err
		}
		e := elevation.NewRequest(namespace, findUser(r), duration, reason, public)
		body.Effect = page.T("%s. It applies to all namespaces of tenant %s. Its token can be used only in this browser, until you log out.", page.DescribeElevation(e), m.Tenant)
		body.Command = fmt.Sprintf("croft elevate --tenant %s -n %s --for %s --reason TEXT", m.Tenant, namespace, duration)
		p, ok, err := confirm(ctx, r, namespace, body, func(ctx context.Context, dryRun bool) error {
			var opts []client.CreateOption
			if dryRun {
				opts = append(opts, client.DryRunAll)
			}
			return c.Create(ctx, e, opts...)
		})
		if err != nil || !ok {
			return p, "", err
		}
		cookie, err := d.Keys.SealElevation(session.ElevationKey{User: e.Spec.RequestedBy, Namespace: namespace, Name: e.Name, Private: private.Bytes()}, time.Now())
		if err != nil {
			return page.Page{}, "", err
		}
		http.SetCookie(w, cookie)
		return page.Page{}, page.ElevationsPath(namespace), nil
	}
}

// confirm makes a change if the form is confirmed; otherwise it makes a dry run. ok means that the change
// was made. If not, the page asks for the confirmation, or shows the API server's refusal.
func confirm(ctx context.Context, r *http.Request, namespace string, body page.Confirmation, change func(ctx context.Context, dryRun bool) error) (p page.Page, ok bool, err error) {
	confirmed := r.PostForm.Get("confirmed") == "yes"
	ctx, warnings := warning.Record(ctx)
	err = change(ctx, !confirmed)
	var status apierrors.APIStatus
	switch {
	case err == nil && confirmed:
		return page.Page{}, true, nil
	case apierrors.IsUnauthorized(err), err != nil && !errors.As(err, &status):
		return page.Page{}, false, err
	case err != nil:
		body.Refused = page.Raw(status.Status().Message)
	}
	body.Warnings = warnings.List()
	return page.NewElevationConfirmation(namespace, body), false, nil
}

// changeElevation approves, ends or uses an elevation. It is read first, so that a hidden elevation and a
// missing one are the same.
func (d *dashboard) changeElevation(w http.ResponseWriter) form {
	return func(ctx context.Context, c *cluster.Client, r *http.Request) (page.Page, string, error) {
		namespace, err := readNamespace(r)
		name := r.PathValue("name")
		if err != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return page.Page{}, "", errMissing
		}
		change := r.PathValue("change")
		if !slices.Contains([]string{page.ApproveElevation, page.EndElevation, page.UseElevation}, change) {
			return page.Page{}, "", errMissing
		}
		e := &v1alpha1.Elevation{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, e); err != nil {
			return page.Page{}, "", err
		}
		if change == page.UseElevation {
			return d.useElevation(ctx, w, r, e)
		}
		path := page.ElevationsPath(namespace)
		body := page.Confirmation{
			Action: path + page.Link(name) + "/" + change, Fields: map[string]string{"uid": string(e.UID)}, Effect: page.T("%s.", page.DescribeElevation(e)),
		}
		if uid := r.PostForm.Get("uid"); uid != "" && uid != string(e.UID) {
			body.Question, body.Refused = page.T("Change %s?", name), page.T("this elevation is another one than before: go back, and read it")
			return page.NewElevationConfirmation(namespace, body), "", nil
		}
		act := func(ctx context.Context, dryRun bool) error { return approve(ctx, c, e, findUser(r), dryRun) }
		if change == page.ApproveElevation {
			body.Question, body.Button, body.Command = page.T("Approve %s?", name), page.T("Approve"), "croft elevate approve "+name+" -n "+namespace
		} else {
			body.Question, body.Button, body.Command = page.T("End %s?", name), page.T("End"), "kubectl delete elevation "+name+" -n "+namespace
			body.Effect = append(body.Effect, page.T("The operator ends its access, and its record is deleted.")...)
			act = func(ctx context.Context, dryRun bool) error { return end(ctx, c, e, dryRun) }
		}
		p, ok, err := confirm(ctx, r, namespace, body, act)
		if err != nil || !ok {
			return p, "", err
		}
		return page.Page{}, path, nil
	}
}

// approve writes the approver's name into a request. The patch fails if the request has changed since it was
// read.
func approve(ctx context.Context, c client.Client, e *v1alpha1.Elevation, user string, dryRun bool) error {
	opts := []client.PatchOption{client.FieldOwner("croft-dashboard")}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	before := e.DeepCopy()
	e.Spec.ApprovedBy = user
	return c.Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), opts...)
}

// end deletes an elevation, but not a later one with the same name.
func end(ctx context.Context, c client.Client, e *v1alpha1.Elevation, dryRun bool) error {
	opts := []client.DeleteOption{client.Preconditions{UID: &e.UID}}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	return c.Delete(ctx, e, opts...)
}

// useElevation replaces the session by one with the token of the elevation.
func (d *dashboard) useElevation(ctx context.Context, w http.ResponseWriter, r *http.Request, e *v1alpha1.Elevation) (page.Page, string, error) {
	now := time.Now()
	refuse := func(why page.Text) (page.Page, string, error) {
		return page.NewElevationConfirmation(e.Namespace, page.Confirmation{Question: page.T("Use %s?", e.Name), Refused: why}), "", nil
	}
	key, err := d.Keys.OpenElevation(r.Cookies(), findUser(r), now)
	if err != nil || key.Namespace != e.Namespace || key.Name != e.Name {
		return refuse(page.T("its token is encrypted for another browser, or for a command"))
	}
	if e.Status.Phase != v1alpha1.ElevationActive || e.Status.Until == nil {
		return refuse(page.T("the elevation is not active"))
	}
	private, err := ecdh.X25519().NewPrivateKey(key.Private)
	if err != nil {
		return page.Page{}, "", err
	}
	token, err := elevation.Open(private, e.Status.Token)
	if err != nil {
		return refuse(page.T("the token is not encrypted for this request"))
	}
	user, err := d.Cluster.ReviewUser(ctx, token)
	if apierrors.IsUnauthorized(err) {
		return refuse(page.T("the cluster does not accept the token of the elevation: it has ended"))
	}
	if err != nil {
		return page.Page{}, "", err
	}
	s := session.New(token, user, now)
	if until := e.Status.Until.Time; until.Before(s.Expiry) {
		s.Expiry = until.Truncate(time.Second)
	}
	if err := d.setSession(w, r, s, now); err != nil {
		return page.Page{}, "", err
	}
	d.endReplaced(ctx, r, now)
	return page.Page{}, page.Link("namespaces", e.Namespace), nil
}

// endReplaced ends the session that the browser had until now, without a logout at the identity provider.
func (d *dashboard) endReplaced(ctx context.Context, r *http.Request, now time.Time) {
	old, err := d.Keys.Open(r.Cookies(), now)
	if err != nil {
		return
	}
	d.streams.endSession(old.CSRF)
	if old.Refresh == "" || d.Provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logoutTimeout)
	defer cancel()
	if err := d.Provider.Revoke(ctx, old.Refresh); err != nil {
		d.Log.WarnContext(ctx, "the refresh token of a replaced session was not revoked", "user", old.User, "error", err)
	}
}
