package supportbundle

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// named lists the fields whose values are names, at any place in an object.
var named = map[string]Class{
	"group": Group, "admins": Group, "auditors": Group, "classReaders": Group, "approvers": Group,
	"user": User, "clusterName": Cluster, "tenantDomain": Host, "domains": Host, "registries": Host, "url": Host,
	"costCode": CostCode, "tags": CostCode, "tenant": Tenant, "namespace": Namespace, "namespaces": Namespace,
	"platformNamespaces": Namespace,
	// Messages about budgets contain it.
	"contact":        Contact,
	"holderIdentity": Node, "reportingInstance": Node, "nodeName": Node, "providerID": Node,
}

// kinds lists the kinds whose objects' own names are redacted.
var kinds = map[string]Class{
	"Tenant": Tenant, "Pool": Pool, "SecondaryNetwork": Pool, "NodePool": Pool, "EC2NodeClass": Pool, "KWOKNodeClass": Pool,
	"Namespace": Namespace, "TenantNamespace": Namespace, "Node": Node, "NodeClaim": Node,
}

// Learn adds the names in an object to the names to redact.
func (r *Redactor) Learn(o *unstructured.Unstructured) {
	if r == nil {
		return
	}
	if class, ok := kinds[o.GetKind()]; ok {
		r.Add(class, o.GetName())
	}
	r.Add(Namespace, o.GetNamespace())
	r.learnField("", o.Object)
}

// LearnServer adds the host of the API server to the names to redact.
func (r *Redactor) LearnServer(address string) {
	if u, err := url.Parse(address); err == nil {
		r.Add(Host, u.Hostname())
	}
}

func (r *Redactor) learnField(field string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			switch {
			case field == "tags":
				r.learnField(field, inner)
			case field != "" || name != "metadata": // labels are not fields
				r.learnField(name, inner)
			}
		}
	case []any:
		for _, inner := range v {
			r.learnField(field, inner)
		}
	case string:
		class, ok := named[field]
		switch {
		case !ok || isPublic(v): // the group of an API is not redacted
		case class == Node:
			host, _, _ := strings.Cut(v, "_")
			r.Add(class, v, host)
		case class == Host:
			r.Add(class, parseHost(v))
		default:
			r.Add(class, v)
		}
	}
}

// parseHost returns the host of an address, of a registry's prefix, or of a domain.
func parseHost(text string) string {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	text, _, _ = strings.Cut(text, "/")
	return text
}
