package policy

import "croft.dev/croft/internal/rules/admissionpolicy"

// ofSecretsBy begins a condition on the user who writes a Secret. byCopier is the condition that
// `croft copy-secrets` writes it. byGarbageCollector is the condition that the garbage collector does: it
// deletes a copy with the RoleBinding that owns it. Other controllers of the whole cluster may not change
// copies: a tenant could make some of them write a Secret of its choice.
const (
	ofSecretsBy        = `request.resource.resource == "secrets" && request.userInfo.username == `
	byCopier           = ofSecretsBy + `"` + admissionpolicy.CopierUser + `"`
	byGarbageCollector = ofSecretsBy + `"` + admissionpolicy.GarbageCollector + `"`
)

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
