package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// maxReviewBytes is the maximum size of an access review.
const maxReviewBytes = 64 << 10

// accessReviews answers SelfSubjectAccessReviews consistently with the proxy's answers to
// the reviewed requests. k9s, Headlamp and other clients send a review before they list,
// and do not list if it is denied (k9s#2687, capsule#1666).
type accessReviews struct {
	namespaces *namespaces
	tenants    *tenancy
	forward    *forwarder
}

func withAccessReviews(a *accessReviews, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		if info == nil || info.Verb != "create" || info.APIGroup != authorizationv1.GroupName ||
			info.APIVersion != authorizationv1.SchemeGroupVersion.Version || info.Resource != "selfsubjectaccessreviews" {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReviewBytes))
		if err != nil {
			respondError(w, r, apierrors.NewRequestEntityTooLargeError("an access review has some hundred bytes"))
			return
		}
		if u, ok := request.UserFrom(r.Context()); ok && a.serve(w, r, u, body) {
			return
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// serve responds to reviews that the API server denies and for which the proxy serves a
// filtered response. Otherwise it sends nothing and returns false.
func (a *accessReviews) serve(w http.ResponseWriter, r *http.Request, u user.Info, body []byte) bool {
	review := &authorizationv1.SelfSubjectAccessReview{}
	if _, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, review); err != nil || review.Spec.ResourceAttributes == nil {
		return false
	}
	asked := review.Spec.ResourceAttributes
	if asked.Subresource != "" || !slices.Contains([]string{"get", "list", "watch"}, asked.Verb) {
		return false
	}
	allowed, err := a.sendReview(r, *asked)
	if err != nil || allowed {
		return false // the API server's own response is right
	}
	if allowed, err = a.canServe(r, u, *asked); err != nil || !allowed {
		return false
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: true, Reason: "croft proxy: the response has the objects that you may read",
	}
	responsewriters.WriteObjectNegotiated(clientgoscheme.Codecs.WithoutConversion(), negotiation.DefaultEndpointRestrictions,
		authorizationv1.SchemeGroupVersion, w, r, http.StatusCreated, review, false)
	return true
}

// canServe reports whether the proxy serves a request that the API server denies.
func (a *accessReviews) canServe(r *http.Request, u user.Info, asked authorizationv1.ResourceAttributes) (bool, error) {
	isList := asked.Verb != "get" && asked.Name == ""
	is := func(k *kind) bool { return asked.Group == k.resource.Group && asked.Resource == k.resource.Resource }
	if is(a.namespaces.kind) {
		return isList, nil
	}
	for _, c := range a.tenants.listCollections() {
		if is(c.kind) {
			return a.tenants.ready.Load() && a.tenants.canAnswerFor(u, asked.Verb, asked.Name, c), nil
		}
	}
	if !isList || asked.Namespace != "" {
		return false, nil
	}
	for _, namespace := range a.namespaces.listVisibleNamesFrom(u, "") {
		asked.Namespace = namespace
		if allowed, err := a.sendReview(r, asked); err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}

// sendReview sends a review to the API server with the user's identity.
func (a *accessReviews) sendReview(r *http.Request, asked authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &asked}}
	review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
	body, err := json.Marshal(review)
	if err != nil {
		return false, err
	}
	response, err := a.postReview(r, body)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return false, errors.New(response.Status)
	}
	answer := &authorizationv1.SelfSubjectAccessReview{}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

func (a *accessReviews) postReview(r *http.Request, body []byte) (*http.Response, error) {
	target := a.forward.location
	out := (&http.Request{
		Method: http.MethodPost, Host: target.Host, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		URL:    &url.URL{Scheme: target.Scheme, Host: target.Host, Path: path.Join(target.Path, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")},
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}, "Accept": {runtime.ContentTypeJSON}, "User-Agent": r.Header["User-Agent"]},
	}).WithContext(r.Context())
	return a.forward.transport.RoundTrip(out)
}
