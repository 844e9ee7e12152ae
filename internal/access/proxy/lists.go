package proxy

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"croft.dev/croft/api/v1alpha1"
)

// minRequestTimeout is the minimum duration of a watch, as in kube-apiserver.
const minRequestTimeout = 30 * time.Minute

// newScope describes a kind to the API server's request handlers.
func (n *collection) newScope() *handlers.RequestScope {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	supported := n.fields(n.empty())
	utilruntime.Must(scheme.AddFieldLabelConversionFunc(n.name, func(label, value string) (string, string, error) {
		if supported.Has(label) {
			return label, value, nil
		}
		return runtime.DefaultMetaV1FieldSelectorConversion(label, value)
	}))
	// As in the API server, a list is encoded item by item, while it is sent.
	codecs := serializer.NewCodecFactory(scheme, serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
	return &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: runtime.Namer(meta.NewAccessor()), ClusterScoped: true},
		Serializer: codecs.WithoutConversion(), ParameterCodec: runtime.NewParameterCodec(scheme),
		Creater:   scheme, //nolint:misspell // the API server's own word
		Convertor: scheme, Defaulter: scheme, Typer: scheme, UnsafeConvertor: runtime.UnsafeObjectConvertor(scheme),
		TableConvertor: n.kind, Resource: n.resource, Kind: n.name,
		MetaGroupVersion: metav1.SchemeGroupVersion, HubGroupVersion: schema.GroupVersion{Group: n.name.Group, Version: runtime.APIVersionInternal},
	}
}

// newHandlers returns the API server's own handlers for a collection, by verb.
func (n *collection) newHandlers() map[string]http.Handler {
	scope := n.newScope()
	return map[string]http.Handler{
		"get":   handlers.GetResource(n, scope),
		"list":  handlers.ListResource(n, n, scope, false, minRequestTimeout),
		"watch": handlers.ListResource(n, n, scope, true, minRequestTimeout),
	}
}

// withVisibleNamespaces serves lists and watches of namespaces, filtered by the user's
// rights. For users who may list all namespaces, the API server serves them.
func withVisibleNamespaces(n *namespaces, next http.Handler) http.Handler {
	verbs := n.newHandlers()
	delete(verbs, "get") // RBAC allows get by name
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		u, authenticated := request.UserFrom(r.Context())
		handler := verbs[getVerb(info, n.kind)]
		if !ok || !authenticated || handler == nil || n.access.canListAll(u) {
			next.ServeHTTP(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// getVerb returns the verb of a request for a kind, and "" for any other request.
func getVerb(info *request.RequestInfo, k *kind) string {
	if info == nil || !info.IsResourceRequest || info.Subresource != "" ||
		info.APIGroup != k.resource.Group || info.APIVersion != k.resource.Version || info.Resource != k.resource.Resource {
		return ""
	}
	return info.Verb
}

// withTenancy serves tenants, pools and nodes to users who may not read them at the API
// server: their own tenants, the pools of these tenants, and the nodes of these pools. Other
// users get the API server's own response.
func withTenancy(t *tenancy, direct, next http.Handler) http.Handler {
	type served struct {
		*collection
		verbs map[string]http.Handler
	}
	var all []served
	for _, c := range t.listCollections() {
		all = append(all, served{c, c.newHandlers()})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		for _, s := range all {
			handler := s.verbs[getVerb(info, s.kind)]
			if handler == nil || !t.ready.Load() || r.Header.Get("Upgrade") != "" {
				continue
			}
			forbidden := &forbiddenBuffer{ResponseWriter: w, header: http.Header{}}
			if direct.ServeHTTP(forbidden, r); !forbidden.isBuffered() {
				return
			}
			if t.canAnswer(r, info, s.collection) {
				handler.ServeHTTP(w, r)
			} else {
				forbidden.release()
			}
			return
		}
		next.ServeHTTP(w, r)
	})
}

// canAnswer reports whether the user gets the filtered response instead of the API server's.
// A get of an object that the user cannot see returns the same 403 as for a missing object,
// and users without a tenant may not list.
func (t *tenancy) canAnswer(r *http.Request, info *request.RequestInfo, c *collection) bool {
	u, ok := request.UserFrom(r.Context())
	return ok && t.canAnswerFor(u, info.Verb, info.Name, c)
}

func (t *tenancy) canAnswerFor(u user.Info, verb, name string, c *collection) bool {
	if verb == "get" {
		return c.isVisible(u, name)
	}
	return len(t.findTenants(u)) > 0
}
