package operator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/install/installtest"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/elevation"
	"croft.dev/croft/internal/walls/gitops"
	"croft.dev/croft/internal/walls/wall/identity"
	"croft.dev/croft/internal/walls/wall/nodes"
)

// auditPolicy logs the operator's requests without bodies. In tests the sandbox's
// administrator impersonates the operator.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: [` + admissionpolicy.OperatorUser + `, sandbox-admin]}
- {level: None}
`

// excuses are rights that the operator needs although TestRights observes no request with
// them. This list may only become shorter.
var excuses = []installtest.Excuse{
	{
		Rights: []string{"bind clusterroles.rbac.authorization.k8s.io", "escalate clusterroles.rbac.authorization.k8s.io"},
		Reason: "the API server asks for them while it handles the creation of a binding and the change of a role",
	},
	{
		Rights: []string{
			"get tier.networkpolicies.projectcalico.org", "list tier.networkpolicies.projectcalico.org", "watch tier.networkpolicies.projectcalico.org",
			"create tier.networkpolicies.projectcalico.org", "patch tier.networkpolicies.projectcalico.org", "delete tier.networkpolicies.projectcalico.org",
			"get tiers.projectcalico.org", "list tiers.projectcalico.org", "watch tiers.projectcalico.org",
		},
		Reason: "Calico's API server asks for them, which no sandbox has",
	},
	{
		Rights: []string{
			"list clusterrolebindings.rbac.authorization.k8s.io", "list clusterroles.rbac.authorization.k8s.io",
			"list validatingadmissionpolicies.admissionregistration.k8s.io", "list validatingadmissionpolicybindings.admissionregistration.k8s.io",
			"list mutatingadmissionpolicies.admissionregistration.k8s.io", "list mutatingadmissionpolicybindings.admissionregistration.k8s.io",
			"list constrainttemplates.templates.gatekeeper.sh", "list elevations.croft.dev", "list events", "list nodeclaims.karpenter.sh",
			"list ippools.whereabouts.cni.cncf.io",
		},
		Reason:          "caches begin with a watch that streams what is there, and list where the API server cannot stream",
		DependsOnTiming: true,
	},
	{
		Rights:          []string{"patch events.events.k8s.io"},
		Reason:          "an event that comes again within minutes becomes a series",
		DependsOnTiming: true,
	},
	{
		Rights: []string{
			"delete croftannotations.constraints.gatekeeper.sh", "delete croftcertificates.constraints.gatekeeper.sh",
			"delete croftgateways.constraints.gatekeeper.sh", "delete croftingresses.constraints.gatekeeper.sh",
			"delete croftplacement.constraints.gatekeeper.sh", "delete croftroutes.constraints.gatekeeper.sh",
			"delete croftservices.constraints.gatekeeper.sh",
		},
		Reason:          "Kubernetes deletes constraints with the kinds that Gatekeeper makes of their templates, sometimes before the operator does",
		DependsOnTiming: true,
	},
}

// TestRights runs a platform through its life with exactly the rights that croft install
// grants to the operator, and reads from the API server's audit log which of them the
// operator used. It fails if a right is missing or unused. It belongs to the third tier
// (make test-all): it takes minutes, and needs `make gatekeeper`.
func TestRights(t *testing.T) {
	sandbox.Thorough(t)
	// The operator must not use the test machine's AWS region and credentials.
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	installed := install.Options{Roles: []string{"deployer"}, Image: "croft:test", Agent: true}
	f := &fixture{operatortest.StartWith(t, sandbox.Options{
		Components: sandbox.WithControllers, With: []string{sandbox.Gatekeeper}, AuditPolicy: policy,
	}, installed)}
	f.define(schema.GroupVersionKind{Group: "notification.toolkit.fluxcd.io", Version: "v1", Kind: "Receiver"}, "receivers")
	f.define(schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}, "network-attachment-definitions")
	f.define(secondary.IPPool, "ippools")
	f.defineReadinessRules()
	if err := f.Cluster.InstallCRDs(t.Context(), sandbox.Flux, sandbox.KarpenterAWS, sandbox.NetworkPolicyAPI, sandbox.AmazonVPC,
		sandbox.Calico, sandbox.CalicoStorage); err != nil {
		t.Fatal(err)
	}
	stop := f.Operate()
	life := declareLife(f)
	life.elevate()
	life.ask()
	life.release()
	driftPutBack(f)
	stop()
	stop = f.Operate() // another leader acquires the lease
	life.speakDialects()
	life.switchEngines()
	life.end()
	stop()

	log, err := os.Open(f.Cluster.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	requests, err := installtest.Read(log, admissionpolicy.OperatorUser)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := install.Objects(installed)
	if err != nil {
		t.Fatal(err)
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: v1alpha1.ManagedBy}
	rights, problems := installtest.FindGranted(account, objects)
	t.Logf("%d rights, %d requests", len(rights), len(requests))
	if len(rights) < 100 || len(requests) < 500 {
		t.Error("there is little to compare")
	}
	for _, problem := range append(problems, installtest.Compare(rights, requests, excuses)...) {
		t.Error(problem)
	}
}

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
    selfService: {namespaces: 1}
    access: [{group: shop-devs, role: operator}, {group: ci, role: deployer}]
    deletion: Delete
    quota: {}
    sources:
      app: {git: "https://git.example.org/deploy", webhook: {type: github, secretRef: {name: hook}}}
      oci: {oci: "oci://registry.example.org/tools"}
  legacy: {pool: apps, namespaces: [old], deletion: Delete, quota: {pods: "30"}, limits: {max: {cpu: "1"}}, access: [{group: legacy-devs, role: operator}]}
  far: {pool: telco, networks: [n4], deletion: Delete, quota: {}, access: [{group: far-devs, role: operator}]}
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
	l.stands()
	return l
}

// stands waits until the platform and all tenants are Ready.
func (l *life) stands() {
	l.Helper()
	l.AwaitReady(l.platform, l.shop, l.legacy, l.far)
}

// elevate elevates a user and withdraws the elevation.
func (l *life) elevate() {
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

// ask requests a namespace, and deletes the request.
func (l *life) ask() {
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
}

// release creates a tainted node, which pods can use once its pool no longer waits for
// networks.
func (l *life) release() {
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
	said := func(reason string) {
		l.Helper()
		l.Await("the node to say "+reason, func() string {
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
	said(v1alpha1.ReasonNotRegistered)
	if err := l.Client.Status().Patch(l.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{"status":{"providerID":"aws:///us-west-2a/i-1",
		"conditions":[{"type":"Registered","status":"True","reason":"Registered","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`))); err != nil {
		l.Fatal(err)
	}
	said(v1alpha1.ReasonInterfacesPending)
	l.Patch(operatortest.NewPool("telco"), `{"spec":{"waitForNetworks":false}}`)
	l.AwaitDeletion(rule)
	said(v1alpha1.ReasonNotAwaited)
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
	l.stands()
}

// speakDialects writes network policies in each dialect.
func (l *life) speakDialects() {
	l.Helper()
	calico, cluster := apply.DialectKinds, apply.ClusterDialectKinds
	others := slices.Concat(calico, cluster)
	for _, dialect := range []struct {
		network string
		kind    schema.GroupVersionKind
	}{
		{`{"dialect": "Calico", "calico": {}}`, calico[0]},
		{`{"dialect": "Calico", "calico": {"apiGroup": "crd.projectcalico.org"}}`, calico[1]},
		{`{"dialect": "ClusterNetworkPolicy", "calico": null}`, cluster[0]},
		{`{"dialect": "AWS"}`, cluster[1]},
		{`{"dialect": "Kubernetes"}`, schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}},
	} {
		l.Patch(l.platform, `{"spec": {"network": `+dialect.network+`}}`)
		l.stands()
		l.only([]schema.GroupVersionKind{dialect.kind}, others)
	}
}

// switchEngines changes the placement engine to Gatekeeper and back to the API server.
func (l *life) switchEngines() {
	l.Helper()
	gatekeeper := slices.Concat(apply.GatekeeperPlatformKinds, apply.GatekeeperMutatorKinds)
	l.Patch(l.platform, `{"spec": {"placement": "Gatekeeper"}}`)
	l.only(gatekeeper, apply.NativePlatformKinds)
	l.stands()
	l.Patch(l.platform, `{"spec": {"placement": "Native"}}`)
	l.only(apply.NativePlatformKinds, gatekeeper)
	l.stands()
}

// only waits until croft has objects of all the first kinds and of none of the others.
func (l *life) only(kinds, others []schema.GroupVersionKind) {
	l.Helper()
	count := func(kind schema.GroupVersionKind) int {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := l.Client.List(l.Context(), all, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil {
			return 0 // the kind's CRD was deleted, or is not yet installed
		}
		return len(all.Items)
	}
	l.Await("objects of these kinds alone", func() string {
		for _, kind := range kinds {
			if count(kind) == 0 {
				return "no " + kind.GroupKind().String()
			}
		}
		for _, kind := range others {
			if n := count(kind); n > 0 && !slices.Contains(kinds, kind) {
				return fmt.Sprintf("%d of %s", n, kind.GroupKind())
			}
		}
		return ""
	})
}

// end removes parts of the declared objects, and then all of them.
func (l *life) end() {
	l.Helper()
	l.Patch(l.platform, `{"spec": {"auditors": null, "elevation": null}}`)
	l.Patch(l.shop, `{"spec": {"access": [], "namespaces": ["shop"], "sources": null}}`)
	l.Patch(l.far, `{"spec": {"networks": null}}`)
	l.stands()
	l.AwaitDeletion(operatortest.NewNamespace("shop-db"))
	l.AwaitDeletion(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: gitops.Deployer}})
	l.only(nil, apply.OptionalKinds)
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

// define installs an add-on's kind whose CRD is in no Go module.
func (f *fixture) define(kind schema.GroupVersionKind, plural string) {
	f.Helper()
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	f.defineAs(kind, plural, apiextensionsv1.NamespaceScoped, anything)
}

// defineReadinessRules installs the CRD of the node readiness controller with the
// validation that matters to croft: required and immutable fields
// (readiness.node.x-k8s.io/v1alpha1 in July 2026).
func (f *fixture) defineReadinessRules() {
	f.Helper()
	type schemas = map[string]apiextensionsv1.JSONSchemaProps
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	one := func(values ...string) apiextensionsv1.JSONSchemaProps {
		bounded := text
		for _, v := range values {
			bounded.Enum = append(bounded.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + v + `"`)})
		}
		return bounded
	}
	fixed := func(s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: "self == oldSelf", Message: "immutable"})
		return s
	}
	condition := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"type", "requiredStatus"},
		Properties: schemas{"type": {Type: "string", MaxLength: ptr.To[int64](316)}, "requiredStatus": one("True", "False", "Unknown")},
	}
	spec := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"conditions", "enforcementMode", "nodeSelector", "taint"},
		Properties: schemas{
			"conditions": fixed(apiextensionsv1.JSONSchemaProps{
				Type: "array", MinItems: ptr.To[int64](1), MaxItems: ptr.To[int64](32), XListType: ptr.To("map"), XListMapKeys: []string{"type"},
				Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
			}),
			"dryRun":          {Type: "boolean"},
			"enforcementMode": fixed(one("bootstrap-only", "continuous")),
			"nodeSelector": fixed(apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: schemas{"matchLabels": {
					Type: "object", MaxProperties: ptr.To[int64](16), AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "string", MaxLength: ptr.To[int64](63),
					}},
				}},
			}),
			"taint": fixed(apiextensionsv1.JSONSchemaProps{
				Type: "object", Required: []string{"key", "effect"},
				Properties: schemas{
					"key":   {Type: "string", Pattern: "^readiness\\.k8s\\.io/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$", MaxLength: ptr.To[int64](253)},
					"value": {Type: "string", MaxLength: ptr.To[int64](63)}, "effect": one("NoSchedule", "PreferNoSchedule", "NoExecute"),
				},
			}),
		},
	}
	f.defineAs(nodes.ReadinessRule, "nodereadinessrules", apiextensionsv1.ClusterScoped,
		&apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"spec"}, Properties: schemas{"spec": spec}})
}

// defineAs installs a CRD with a schema.
func (f *fixture) defineAs(kind schema.GroupVersionKind, plural string, scope apiextensionsv1.ResourceScope, of *apiextensionsv1.JSONSchemaProps) {
	f.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + kind.Group,
			// The API server requires this annotation for groups of the Kubernetes project.
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind.Kind, ListKind: kind.Kind + "List", Singular: strings.ToLower(kind.Kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: of},
			}},
		},
	}
	f.Create(definition)
}
