package cluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served lists the kinds that the pages read or try, by group and version: first the namespaced kinds,
// then the cluster-scoped ones. A list of our own costs no requests, and contains nothing
// that one user may see and another may not, as a shared discovery could.
var served = []struct{ groupVersion, namespaced, clusterScoped string }{
	{
		"v1", "Pod Service ConfigMap Secret PodTemplate Event PersistentVolumeClaim ServiceAccount ReplicationController ResourceQuota LimitRange Endpoints",
		"Node Namespace PersistentVolume",
	},
	{"apps/v1", "Deployment ReplicaSet StatefulSet DaemonSet", ""},
	{"batch/v1", "Job CronJob", ""},
	{"autoscaling/v2", "HorizontalPodAutoscaler", ""},
	{"coordination.k8s.io/v1", "Lease", ""},
	{"resource.k8s.io/v1", "ResourceClaim ResourceClaimTemplate", ""},
	{"networking.k8s.io/v1", "Ingress NetworkPolicy", "IngressClass"},
	{"discovery.k8s.io/v1", "EndpointSlice", ""},
	{"policy/v1", "PodDisruptionBudget", ""},
	{"rbac.authorization.k8s.io/v1", "Role RoleBinding", "ClusterRole ClusterRoleBinding"},
	{"authentication.k8s.io/v1", "", "SelfSubjectReview"},
	{"authorization.k8s.io/v1", "", "SelfSubjectRulesReview SelfSubjectAccessReview"},
	{"storage.k8s.io/v1", "", "StorageClass VolumeAttachment"},
	{"scheduling.k8s.io/v1", "", "PriorityClass"},
	{"node.k8s.io/v1", "", "RuntimeClass"},
	{"apiregistration.k8s.io/v1", "", "APIService"},
	{"gateway.networking.k8s.io/v1", "Gateway ListenerSet HTTPRoute GRPCRoute TLSRoute ReferenceGrant", "GatewayClass"},
	{"gateway.networking.k8s.io/v1alpha2", "TLSRoute", ""},
	{"gateway.networking.k8s.io/v1beta1", "ReferenceGrant", ""},
	{"croft.dev/v1alpha1", "TenantRules TenantNamespace TenantCaller Elevation", "Platform Pool Tenant SecondaryNetwork"},
	{"karpenter.sh/v1", "", "NodePool NodeClaim"},
	{"karpenter.k8s.aws/v1", "", "EC2NodeClass"},
	{"karpenter.kwok.sh/v1alpha1", "", "KWOKNodeClass"},
	{"source.toolkit.fluxcd.io/v1", "GitRepository OCIRepository HelmRepository HelmChart Bucket", ""},
	{"helm.toolkit.fluxcd.io/v2", "HelmRelease", ""},
	{"kustomize.toolkit.fluxcd.io/v1", "Kustomization", ""},
	{"cert-manager.io/v1", "Certificate CertificateRequest Issuer", "ClusterIssuer"},
	{"acme.cert-manager.io/v1", "Order Challenge", ""},
}

// irregular are the resources whose names do not follow from their kinds.
var irregular = map[string]string{"TenantRules": "tenantrules", "Gateway": "gateways"}

func newMapper() meta.RESTMapper {
	var versions []schema.GroupVersion
	for _, s := range served {
		versions = append(versions, parseGroupVersion(s.groupVersion))
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for i, s := range served {
		addKinds(mapper, versions[i], s.namespaced, meta.RESTScopeNamespace)
		addKinds(mapper, versions[i], s.clusterScoped, meta.RESTScopeRoot)
	}
	return mapper
}

func addKinds(mapper *meta.DefaultRESTMapper, version schema.GroupVersion, kinds string, scope meta.RESTScope) {
	for _, kind := range strings.Fields(kinds) {
		if name, ok := irregular[kind]; ok {
			resource := version.WithResource(name)
			mapper.AddSpecific(version.WithKind(kind), resource, resource, scope)
			continue
		}
		mapper.Add(version.WithKind(kind), scope)
	}
}

// parseGroupVersion parses a constant.
func parseGroupVersion(text string) schema.GroupVersion {
	version, err := schema.ParseGroupVersion(text)
	if err != nil {
		panic(err)
	}
	return version
}
