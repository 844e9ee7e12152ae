package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/walls/wall/identity"
)

// getIDToken returns the machine's ID token, which kubectl obtains in the same way.
func (m *machine) getIDToken(t testing.TB) string {
	t.Helper()
	var credential clientauthenticationv1.ExecCredential
	if err := json.Unmarshal([]byte(m.runCroft(t, "login", "get-token").expectExit(t, 0).stdout), &credential); err != nil {
		t.Fatal(err)
	}
	return credential.Status.Token
}

// sweptVerb describes the request of a verb, which names an object that does not exist and has
// no effect.
type sweptVerb struct {
	name, method string
	named        bool
	parameter    [2]string
}

var dryRun = [2]string{"dryRun", "All"}

var sweptVerbs = []sweptVerb{
	{"list", http.MethodGet, false, [2]string{}},
	{"watch", http.MethodGet, false, [2]string{"watch", "true"}},
	{"create", http.MethodPost, false, dryRun},
	{"deletecollection", http.MethodDelete, false, dryRun},
	{"get", http.MethodGet, true, [2]string{}},
	{"update", http.MethodPut, true, dryRun},
	{"patch", http.MethodPatch, true, dryRun},
	{"delete", http.MethodDelete, true, dryRun},
}

type sweptRequest struct {
	version             schema.GroupVersion
	resource, namespace string
	verb                sweptVerb
}

// runSweep sends a request with every verb for every kind that the cluster serves: in one of the
// user's namespaces, in namespaces of others and, for cluster-scoped kinds, in the cluster. It
// returns the number of requests, and the requests that were not refused although the
// operator's role does not allow them in the user's own namespace.
func (p *proxiedCluster) runSweep(t testing.TB, u testUser) (tried int, problems []string) {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := p.admin.Get(t.Context(), client.ObjectKey{Name: identity.ClusterRoleName(v1alpha1.RoleOperator)}, role); err != nil {
		t.Fatal(err)
	}
	_, lists, err := kubernetes.NewForConfigOrDie(p.Config).Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.APIResources {
			served := &list.APIResources[i]
			for _, r := range buildSweptRequests(version, served) {
				if r.isAllowed(role) {
					continue
				}
				tried++
				if err := r.sendRequest(t, u); !apierrors.IsForbidden(err) {
					problems = append(problems, fmt.Sprintf("%s is not refused: %v", r, err))
				}
			}
			if served.Namespaced && slices.Contains(served.Verbs, "list") {
				tried++
				problems = append(problems, u.findForeignObjects(t, version, served.Name)...)
			}
		}
	}
	return tried, problems
}

// buildSweptRequests returns the requests of a sweep for a kind or a subresource.
func buildSweptRequests(version schema.GroupVersion, served *metav1.APIResource) (requests []sweptRequest) {
	namespaces := []string{""}
	if served.Namespaced {
		namespaces = []string{ownNamespace, otherNamespace, metav1.NamespaceSystem, v1alpha1.SystemNamespace}
	}
	for _, namespace := range namespaces {
		for _, verb := range sweptVerbs {
			if slices.Contains(served.Verbs, verb.name) {
				requests = append(requests, sweptRequest{version, served.Name, namespace, verb})
			}
		}
	}
	return requests
}

// filtered are the resources whose lists the proxy filters for all members of a tenant;
// testProxyTenancy checks their content.
var filtered = []schema.GroupResource{
	{Resource: "namespaces"}, {Resource: "nodes"},
	{Group: v1alpha1.GroupVersion.Group, Resource: "pools"}, {Group: v1alpha1.GroupVersion.Group, Resource: "tenants"},
}

// isAllowed reports whether the user may send a request: by the role in their own namespace, or
// because every user may, such as the list of namespaces, which the proxy filters.
func (r sweptRequest) isAllowed(role *rbacv1.ClusterRole) bool {
	if r.namespace == ownNamespace {
		covered, _ := validation.Covers(role.Rules, []rbacv1.PolicyRule{{
			APIGroups: []string{r.version.Group}, Resources: []string{r.resource}, Verbs: []string{r.verb.name},
		}})
		return covered
	}
	switch r.resource {
	case "selfsubjectaccessreviews", "selfsubjectreviews", "selfsubjectrulesreviews":
		return r.verb.name == "create"
	}
	return (r.verb.name == "list" || r.verb.name == "watch") &&
		slices.Contains(filtered, schema.GroupResource{Group: r.version.Group, Resource: r.resource})
}

func (r sweptRequest) sendRequest(t testing.TB, u testUser) error {
	t.Helper()
	request := u.client.Discovery().RESTClient().Verb(r.verb.method).AbsPath(buildPath(r.version, r.resource, r.namespace, r.verb.named))
	if name := r.verb.parameter[0]; name != "" {
		request.Param(name, r.verb.parameter[1])
	}
	if r.verb.method == http.MethodPatch {
		request.SetHeader("Content-Type", "application/merge-patch+json")
	}
	if r.verb.method != http.MethodGet {
		request.Body([]byte("{}"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), moments)
	defer cancel()
	stream, err := request.Stream(ctx) // an allowed watch does not end
	if err == nil {
		err = stream.Close()
	}
	return err
}

// String describes a request like kubectl auth can-i.
func (r sweptRequest) String() string {
	return fmt.Sprintf("%s %s.%s in namespace %q", r.verb.name, r.resource, r.version.Group, r.namespace)
}

// findForeignObjects lists a kind in all namespaces, and reports objects of other users'
// namespaces. The request may also be refused.
func (u testUser) findForeignObjects(t testing.TB, version schema.GroupVersion, resource string) (problems []string) {
	t.Helper()
	content, err := u.client.Discovery().RESTClient().Get().AbsPath(buildPath(version, resource, "", false)).Do(t.Context()).Raw()
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return []string{fmt.Sprintf("listing all %s: %v", resource, err)}
	}
	var all unstructured.UnstructuredList
	if err := all.UnmarshalJSON(content); err != nil {
		return []string{fmt.Sprintf("listing all %s: %v", resource, err)}
	}
	for i := range all.Items {
		if namespace := all.Items[i].GetNamespace(); !slices.Contains(ownNamespaces, namespace) {
			problems = append(problems, fmt.Sprintf("a list of all %s shows %s/%s", resource, namespace, all.Items[i].GetName()))
		}
	}
	return problems
}

func buildPath(version schema.GroupVersion, resource, namespace string, named bool) string {
	path := "/apis/" + version.String()
	if version.Group == "" {
		path = "/api/" + version.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	resource, subresource, ok := strings.Cut(resource, "/")
	path += "/" + resource
	if ok || named {
		path += "/no-such-object"
	}
	if ok {
		path += "/" + subresource
	}
	return path
}
