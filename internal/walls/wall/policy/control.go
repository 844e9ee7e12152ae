package policy

// clusterWide is the condition that the user may update or patch the resource in every
// namespace. The controllers of the cluster and the platform may, and tenants may not, so the
// policies need not name these controllers.
const clusterWide = everyNamespace + `.check("update").allowed() ||
	` + everyNamespace + `.check("patch").allowed()`

// everyNamespace calls the authorizer for the request's resource, without a namespace and so
// for all namespaces.
const everyNamespace = `authorizer.group(request.resource.group).resource(request.resource.resource)`

// ofTheCluster is the condition that an owner o is cluster-scoped or belongs to croft or
// Karpenter, and not to a tenant.
const ofTheCluster = `o.apiVersion == "v1" && o.kind in ["Namespace", "Node", "PersistentVolume"] ||
	o.apiVersion.startsWith("croft.dev/") || o.apiVersion.startsWith("karpenter.")`
