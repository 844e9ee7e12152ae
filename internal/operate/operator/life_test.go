package operator_test

import (
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/walls/elevation"
	"croft.dev/croft/internal/walls/gitops"
	"croft.dev/croft/internal/walls/wall/identity"
	"croft.dev/croft/internal/walls/wall/nodes"
)

// lifeFile declares a case for every kind of object that the operator writes: shop has
// sources and its own namespaces, legacy adopts an existing namespace, far is on AWS.
// kube-controller-manager takes up to five minutes to count kinds that were installed after
// it started. Only legacy has a quota, because it uses none of these kinds.
const lifeFile = `
platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  admins: [ops]
  auditors: [audit]
  classReaders: [devs]
  elevation: {maxDuration: 1h}
  proxy: {}
  roles: {deployer: {rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]}}
  nodeClass: {kwok: {}}
secondaryNetworks:
  n4:
    zones:
      - {zone: us-west-2a, subnet: subnet-0a4, securityGroups: [sg-0n4], cidr: 10.0.4.0/24, podCIDR: 10.0.4.32/27}
pools:
  apps: {}
  telco:
    nodeClass: {aws: {role: nodes}}
    instances: {instanceTypes: [c6i.xlarge], requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a]}]}
    secondaryNetworks: [n4]
    waitForNetworks: true
tenants:
  shop:
    pool: apps
    namespaces: [shop, shop-db]
    selfService: {namespaces: 2}
    objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: platform}, data: {tenant: $(tenant)}}]
    access: [{group: shop-devs, role: operator}, {group: ci, role: deployer}]
    deletion: Delete
    quota: {}
    network: {callers: {far: {ports: [443], services: [api]}}, callersFrom: [far]}
    sources:
      app: {git: "https://git.example.org/deploy", webhook: {type: github, secretRef: {name: hook}}}
      oci: {oci: "oci://registry.example.org/tools"}
  legacy: {pool: apps, namespaces: [old], deletion: Delete, quota: {pods: "30"}, limits: {max: {cpu: "1"}}, access: [{group: legacy-devs, role: operator}]}
  far: {pool: telco, networks: [n4], network: {calls: {shop: {}}}, deletion: Delete, quota: {}, access: [{group: far-devs, role: operator}]}
`

// life is the platform that lifeFile declares.
type life struct {
	*fixture
	platform          *v1alpha1.Platform
	shop, legacy, far *v1alpha1.Tenant
}

func declareLife(f *fixture) *life {
	f.Helper()
	old := operatortest.NewNamespace("old")
	old.Annotations = map[string]string{v1alpha1.AdoptAnnotation: "legacy"}
	f.Create(old)
	file, problems := manifest.Parse("life.yaml", []byte(lifeFile))
	if len(problems) > 0 {
		f.Fatal(problems)
	}
	f.Create(file.Objects()...)
	l := &life{fixture: f, platform: operatortest.NewPlatform(), shop: operatortest.NewTenant("shop", ""), legacy: operatortest.NewTenant("legacy", ""), far: operatortest.NewTenant("far", "")}
	l.awaitAllReady()
	return l
}

// awaitAllReady waits until the platform and all tenants are Ready.
func (l *life) awaitAllReady() {
	l.Helper()
	l.AwaitReady(l.platform, l.shop, l.legacy, l.far)
}

// testElevation elevates a user and withdraws the elevation.
func (l *life) testElevation() {
	l.Helper()
	_, public, err := elevation.NewKey()
	if err != nil {
		l.Fatal(err)
	}
	e := &v1alpha1.Elevation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "eve-1"}, Spec: v1alpha1.ElevationSpec{
		RequestedBy: "eve", Role: v1alpha1.ElevationOperator, Duration: metav1.Duration{Duration: 20 * time.Minute}, Reason: "the queue is stuck", PublicKey: public,
	}}
	eve := l.Impersonate("eve", "shop-devs")
	l.Await("eve to be let in", func() string {
		if err := eve.Create(l.Context(), e); err != nil {
			return err.Error()
		}
		return ""
	})
	l.AwaitPhase(e, v1alpha1.ElevationActive)
	account := elevation.Account(elevation.Name("shop", "eve-1"))
	l.MoveEnd(e, 31*24*time.Hour)
	l.AwaitDeletion(e)
	l.AwaitDeletion(account)
}

// testNamespaceRequest requests a namespace, and deletes the request.
func (l *life) testNamespaceRequest() {
	l.Helper()
	ann := l.Impersonate("ann", "shop-devs")
	r := operatortest.NewTenantNamespace("shop", "shop-a")
	l.Await("ann to be let in", func() string {
		if err := ann.Create(l.Context(), r); err != nil {
			return err.Error()
		}
		return ""
	})
	l.AwaitCondition(r, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	l.AwaitReady(r)

	ended := operatortest.NewTenantNamespace("shop", "shop-b")
	if err := ann.Create(l.Context(), ended); err != nil {
		l.Fatal(err)
	}
	l.AwaitReady(ended)
	l.Patch(ended, fmt.Sprintf(`{"spec": {"until": %q}}`, time.Now().Add(-time.Second).UTC().Format(time.RFC3339)))
	l.AwaitDeletion(ended)
	l.AwaitDeletion(operatortest.NewNamespace(ended.Name))
}

// testTenantCaller accepts a caller, and withdraws the consent.
func (l *life) testTenantCaller() {
	l.Helper()
	ann := l.Impersonate("ann", "shop-devs")
	consent := operatortest.NewTenantCaller("shop-db", "api", "far")
	if err := ann.Create(l.Context(), consent); err != nil {
		l.Fatal(err)
	}
	l.AwaitCondition(consent, v1alpha1.ConditionAgreed, metav1.ConditionTrue, v1alpha1.ReasonAgreed)
	if err := ann.Delete(l.Context(), consent); err != nil {
		l.Fatal(err)
	}
	l.AwaitDeletion(consent)
}

// testNodeRelease creates a tainted node, which pods can use once its pool no longer waits for
// networks.
func (l *life) testNodeRelease() {
	l.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "far-1", Labels: map[string]string{v1alpha1.NodeNetworksLabel: "true"}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///us-west-2a/i-1", Taints: []corev1.Taint{
			{Key: v1alpha1.NetworksTaint, Value: v1alpha1.NetworksTaintValue, Effect: corev1.TaintEffectNoSchedule},
		}},
	}
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "telco-1", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "telco"}},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "telco"},
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{},
		},
	}
	rule := &unstructured.Unstructured{}
	rule.SetGroupVersionKind(nodes.ReadinessRule)
	rule.SetName("croft-telco")
	dry := func(want bool) {
		l.Helper()
		l.Await(fmt.Sprintf("the pool's rule, with dryRun %t", want), func() string {
			if err := l.Client.Get(l.Context(), client.ObjectKeyFromObject(rule), rule); err != nil {
				return err.Error()
			}
			if got, _, err := unstructured.NestedBool(rule.Object, "spec", "dryRun"); err != nil || got != want {
				return fmt.Sprintf("it is %t (%v)", got, err)
			}
			return ""
		})
	}
	dry(false)
	l.Patch(rule, `{"spec":{"dryRun":true}}`)
	dry(false)
	l.Create(node, claim)
	expectReason := func(reason string) {
		l.Helper()
		l.Await("the node's condition to have the reason "+reason, func() string {
			if err := l.Client.Get(l.Context(), client.ObjectKeyFromObject(node), node); err != nil {
				return err.Error()
			}
			for _, c := range node.Status.Conditions {
				if c.Type == v1alpha1.ConditionPodNetworksReady && c.Reason == reason {
					return ""
				}
			}
			return fmt.Sprint(node.Status.Conditions)
		})
	}
	expectReason(v1alpha1.ReasonNotRegistered)
	if err := l.Client.Status().Patch(l.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{"status":{"providerID":"aws:///us-west-2a/i-1",
		"conditions":[{"type":"Registered","status":"True","reason":"Registered","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`))); err != nil {
		l.Fatal(err)
	}
	expectReason(v1alpha1.ReasonInterfacesPending)
	l.Patch(operatortest.NewPool("telco"), `{"spec":{"waitForNetworks":false}}`)
	l.AwaitDeletion(rule)
	expectReason(v1alpha1.ReasonNotAwaited)
	l.Await("the node's taint to go", func() string {
		if err := l.Client.Get(l.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			return err.Error()
		}
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.NetworksTaint }) {
			return fmt.Sprint(node.Spec.Taints)
		}
		return ""
	})
	l.Delete(node)
	l.Delete(claim)
	l.awaitAllReady()
}

// refuse creates a NodeClaim whose launch the cloud refuses.
func (l *life) refuse() {
	l.Helper()
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "telco-2", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "telco"}},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "telco"},
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{},
		},
	}
	l.Create(claim)
	l.PatchStatus(claim, `{"status":{"conditions":[{"type":"Launched","status":"Unknown","reason":"Unauthorized","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
	l.AwaitDeletion(claim)
}

// deleteDeclared removes parts of the declared objects, and then all of them.
func (l *life) deleteDeclared() {
	l.Helper()
	l.Patch(l.platform, `{"spec": {"auditors": null, "elevation": null}}`)
	l.Patch(l.shop, `{"spec": {"access": [], "namespaces": ["shop"], "sources": null, "network": null, "objects": null}}`)
	l.Patch(l.far, `{"spec": {"networks": null, "network": null}}`)
	l.awaitAllReady()
	l.AwaitDeletion(operatortest.NewNamespace("shop-db"))
	l.AwaitDeletion(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: gitops.Deployer}})
	l.awaitOnlyKinds(nil, apply.OptionalKinds)
	l.AwaitDeletion(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: identity.AuditorRole}})
	l.AwaitDeletion(&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: identity.ElevationsPolicy}})
	l.AwaitDeletion(&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: identity.ElevationsPolicy}})
	l.Patch(l.platform, `{"spec": {"roles": null}}`)
	l.AwaitDeletion(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: identity.ClusterRoleName("deployer")}})
	for _, o := range []client.Object{l.shop, l.legacy, l.far, operatortest.NewPool("apps"), operatortest.NewPool("telco"), l.platform} {
		l.Delete(o)
		l.AwaitDeletion(o)
	}
}
