package platform_test

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/walls/wall/identity"
)

// testPeopleBindings fails if the operator lacks a right to bind the platform's roles to people,
// or to delete such a binding.
func testPeopleBindings(f *fixture) {
	f.Patch(operatortest.NewPlatform(), `{"spec":{"admins":["ops"],"auditors":["audit"],"classReaders":["devs"],
		"addons":[{"apiGroup":"monitoring.coreos.com","resources":["servicemonitors"]}]}}`)
	admins := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: identity.AdminRole}}
	auditors := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: identity.AuditorRole}}
	readers := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: identity.ClassesRole}}
	f.awaitBinding(admins, "ops")
	f.awaitBinding(auditors, "audit")
	f.awaitBinding(readers, "devs")
	f.Await("the role operator to have the add-on's kinds", func() string {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "croft-operator"}}
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "servicemonitors") }) {
			return "it has not"
		}
		return ""
	})

	f.Patch(admins, `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"somebody"}]}`)
	f.awaitBinding(admins, "ops")
	f.Delete(admins)
	f.awaitBinding(admins, "ops")

	f.testOwnRole()
	f.Patch(operatortest.NewPlatform(), `{"spec":{"auditors":null,"classReaders":null,"addons":null}}`)
	f.AwaitDeletion(auditors)
	f.AwaitDeletion(readers)
}

// testOwnRole fails if the operator can write a role that is not installed, cannot write one
// that is, or binds it to other subjects.
func (f *fixture) testOwnRole() {
	const role = `{"deployer":{"rules":[{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get","list","watch","patch"]}]}}`
	f.Patch(operatortest.NewPlatform(), `{"spec":{"roles":`+role+`}}`)
	condition := f.AwaitCondition(operatortest.NewPlatform(), v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	if !strings.Contains(condition.Message, "croft-role-deployer: croft's operator may not write this role yet") {
		f.Errorf("the condition's message is: %s", condition.Message)
	}
	if _, err := install.Install(f.Context(), f.Client, install.Options{Roles: []string{"deployer"}}); err != nil {
		f.Fatal(err)
	}
	deploying := operatortest.NewTenant("deploying", "apps")
	deploying.Spec.Access = []v1alpha1.Access{{Group: "ci", Role: "deployer"}}
	f.Create(deploying)
	f.AwaitReady(operatortest.NewPlatform(), deploying)
	c := f.Impersonate("robot", "ci")
	if err := c.List(f.Context(), &appsv1.DeploymentList{}, client.InNamespace("deploying")); err != nil {
		f.Error(err)
	}
	if err := c.List(f.Context(), &corev1.PodList{}, client.InNamespace("deploying")); !apierrors.IsForbidden(err) {
		f.Errorf("a deployer lists pods: %v", err)
	}
	if err := c.List(f.Context(), &appsv1.DeploymentList{}, client.InNamespace("shop")); !apierrors.IsForbidden(err) {
		f.Errorf("a deployer reads another tenant's Deployments: %v", err)
	}

	// The operator refuses a role that croft check would have refused.
	f.Patch(operatortest.NewPlatform(), `{"spec":{"roles":{"deployer":{"rules":[{"apiGroups":["croft.dev"],"resources":["tenantrules"],"verbs":["update"]}]}}}}`)
	condition = f.AwaitCondition(operatortest.NewPlatform(), v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if !strings.Contains(condition.Message, "the role operator does not have the right to update tenantrules.croft.dev") {
		f.Errorf("the condition's message is: %s", condition.Message)
	}
	f.Patch(operatortest.NewPlatform(), `{"spec":{"roles":`+role+`}}`)
	f.AwaitReady(operatortest.NewPlatform())
	f.Patch(deploying, `{"spec":{"access":[]}}`)
	f.Patch(operatortest.NewPlatform(), `{"spec":{"roles":null}}`)
	f.AwaitDeletion(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "croft-role-deployer"}})
}

// awaitBinding waits until a role is bound to exactly one group.
func (f *fixture) awaitBinding(binding *rbacv1.ClusterRoleBinding, group string) {
	f.Helper()
	f.Await("the binding "+binding.Name, func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
			return err.Error()
		}
		if len(binding.Subjects) != 1 || binding.Subjects[0].Name != group {
			return fmt.Sprintf("it binds %v", binding.Subjects)
		}
		return ""
	})
}
