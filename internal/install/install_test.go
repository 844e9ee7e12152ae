package install_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/install"
	"croft.dev/croft/internal/sandbox"
	"croft.dev/croft/internal/scheme"
)

func objects(t *testing.T, o install.Options) []client.Object {
	t.Helper()
	all, err := install.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestObjectsAreMarkedButNoWalls(t *testing.T) {
	for _, o := range objects(t, install.Options{Image: "croft:test", Authentication: "{}", Agent: true}) {
		if o.GetLabels()[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
			t.Errorf("%s is not marked as croft's", apply.RefOf(o))
		}
		if _, ok := o.GetLabels()[v1alpha1.WallLabel]; ok {
			t.Errorf("%s is marked as a wall's and would be pruned with these", apply.RefOf(o))
		}
	}
}

func TestDeploymentOnlyWithAnImage(t *testing.T) {
	isDeployment := func(o client.Object) bool { _, ok := o.(*appsv1.Deployment); return ok }
	if slices.ContainsFunc(objects(t, install.Options{}), isDeployment) {
		t.Error("a Deployment without an image")
	}
	if !slices.ContainsFunc(objects(t, install.Options{Image: "croft:test", Authentication: "{}"}), isDeployment) {
		t.Error("no Deployment")
	}
}

// TestPowersAreNamed keeps the rights to give rights away to the two roles that
// tenants have, the four of the platform's people, the proxy's, that of elevations and the Platform's own.
func TestPowersAreNamed(t *testing.T) {
	for _, o := range objects(t, install.Options{Image: "croft:test", Roles: []string{"deployer"}, Agent: true}) {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			for _, power := range []string{"bind", "escalate", "impersonate", "*"} {
				if slices.Contains(rule.Verbs, power) && !slices.Equal(rule.ResourceNames, []string{"croft-viewer", "croft-operator", "croft-admin", "croft-auditor", "croft-classes", "croft-approvers", "croft-proxy", "croft-elevated", "croft-role-deployer"}) {
					t.Errorf("%s on %v %v", power, rule.Resources, rule.ResourceNames)
				}
			}
			if slices.Contains(rule.Resources, "*") || slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Resources, "secrets") {
				t.Errorf("too much: %v", rule)
			}
		}
	}
}

func TestInstallTwice(t *testing.T) {
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	options := install.Options{Image: "croft:test", Authentication: "{}", Agent: true}
	if _, err := install.Install(t.Context(), c, options); err != nil {
		t.Fatal(err)
	}
	changes, err := install.Install(t.Context(), c, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != len(objects(t, options)) {
		t.Errorf("%d changes for %d objects", len(changes), len(objects(t, options)))
	}
	for _, change := range changes {
		if change.Action != apply.Unchanged {
			t.Errorf("the second time: %s", change)
		}
	}
}
