package operator_test

import (
	"os"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/install/installtest"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
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
		Rights: []string{"get costs/budgets.croft.dev"},
		Reason: "croft ledger asks for it while it answers the operator",
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
	f.installKind(schema.GroupVersionKind{Group: "notification.toolkit.fluxcd.io", Version: "v1", Kind: "Receiver"}, "receivers")
	f.installKind(schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}, "network-attachment-definitions")
	f.installKind(secondary.IPPool, "ippools")
	f.installReadinessRules()
	if err := f.Cluster.InstallCRDs(t.Context(), sandbox.Flux, sandbox.KarpenterAWS, sandbox.NetworkPolicyAPI, sandbox.AmazonVPC,
		sandbox.Calico, sandbox.CalicoStorage, sandbox.GatewayAPI); err != nil {
		t.Fatal(err)
	}
	stop := f.Operate()
	life := declareLife(f)
	life.testElevation()
	life.testNamespaceRequest()
	life.testTenantCaller()
	life.testNodeRelease()
	life.refuse()
	life.repairAddOns()
	testDriftRepair(f)
	stop()
	stop = f.Operate() // another leader acquires the lease
	life.writeDialects()
	life.switchEngines()
	life.deleteDeclared()
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
