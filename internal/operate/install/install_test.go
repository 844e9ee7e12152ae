package install_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/install/installtest"
	"croft.dev/croft/internal/test/sandbox"
)

func buildObjects(t *testing.T, o install.Options) []client.Object {
	t.Helper()
	all, err := install.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestObjectLabels(t *testing.T) {
	for _, o := range buildObjects(t, install.Options{Image: "croft:test", Authentication: "{}", Dashboard: true, Ledger: true, Agent: true, CopySecrets: true}) {
		if o.GetLabels()[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
			t.Errorf("%s is not marked as croft's", apply.RefOf(o))
		}
		if _, ok := o.GetLabels()[v1alpha1.WallLabel]; ok {
			t.Errorf("%s is marked as a wall's and would be pruned with these", apply.RefOf(o))
		}
	}
}

func TestDeploymentRequiresImage(t *testing.T) {
	isDeployment := func(o client.Object) bool { _, ok := o.(*appsv1.Deployment); return ok }
	if slices.ContainsFunc(buildObjects(t, install.Options{}), isDeployment) {
		t.Error("a Deployment without an image")
	}
	if !slices.ContainsFunc(buildObjects(t, install.Options{Image: "croft:test", Authentication: "{}"}), isDeployment) {
		t.Error("no Deployment")
	}
}

// TestEscalatingVerbsAreLimitedByName fails if the verbs bind, escalate and impersonate are not
// limited to these roles by name: the two roles of tenants, the four roles of the platform's people,
// the proxy's, the role of elevations, the Platform's own and, for bind, the role that copies Secrets.
func TestEscalatingVerbsAreLimitedByName(t *testing.T) {
	for _, o := range buildObjects(t, install.Options{Image: "croft:test", Roles: []string{"deployer"}, Agent: true}) {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			for _, power := range []string{"bind", "escalate", "impersonate", "*"} {
				names := []string{"croft-viewer", "croft-operator", "croft-admin", "croft-auditor", "croft-classes", "croft-approvers", "croft-proxy", "croft-elevated", "croft-role-deployer"}
				if power == "bind" {
					names = append(names, "croft-secrets")
				}
				if slices.Contains(rule.Verbs, power) && !slices.Equal(rule.ResourceNames, names) {
					t.Errorf("%s on %v %v", power, rule.Resources, rule.ResourceNames)
				}
			}
			if slices.Contains(rule.Resources, "*") || slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Resources, "secrets") {
				t.Errorf("too much: %v", rule)
			}
		}
	}
}

// TestVerifySchedule fails if croft verify is scheduled without the option, if its pods
// are less confined than the operator's, or if they have more rights than to impersonate.
// Default tier.
func TestVerifySchedule(t *testing.T) {
	const schedule = "17 3 * * *"
	jobs := func(o install.Options) (all []*batchv1.CronJob) {
		for _, object := range buildObjects(t, o) {
			if job, ok := object.(*batchv1.CronJob); ok {
				all = append(all, job)
			}
		}
		return all
	}
	if n := len(jobs(install.Options{Image: "croft:test"})) + len(jobs(install.Options{VerifySchedule: schedule})); n > 0 {
		t.Errorf("%d CronJobs without a schedule or without an image", n)
	}
	asked := install.Options{Image: "croft:test", VerifySchedule: schedule}
	all := jobs(asked)
	if len(all) != 1 || all[0].Spec.Schedule != schedule {
		t.Fatalf("the CronJobs are %v", all)
	}
	pod := all[0].Spec.JobTemplate.Spec.Template.Spec
	for _, object := range buildObjects(t, asked) {
		switch o := object.(type) {
		case *appsv1.Deployment:
			operator := o.Spec.Template.Spec
			if diff := cmp.Diff(operator.SecurityContext, pod.SecurityContext) + cmp.Diff(operator.Containers[0].SecurityContext, pod.Containers[0].SecurityContext); diff != "" {
				t.Errorf("the operator's pods (-) and those of croft verify (+):\n%s", diff)
			}
		case *rbacv1.ClusterRole:
			want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"users", "groups"}, Verbs: []string{"impersonate"}}}
			if diff := cmp.Diff(want, o.Rules); o.Name == pod.ServiceAccountName && diff != "" {
				t.Errorf("its rights:\n%s", diff)
			}
		}
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: all[0].Namespace, Name: pod.ServiceAccountName}
	if rights, _ := installtest.FindGranted(account, buildObjects(t, asked)); len(rights) != 2 {
		t.Errorf("its rights are %v", rights)
	}
}

// TestDashboardHasNoRights fails if any option gives the dashboard's ServiceAccount a role, directly or
// by a group, if its pods have a token, or if they are less confined than the operator's.
func TestDashboardHasNoRights(t *testing.T) {
	all := buildObjects(t, install.Options{Image: "croft:test", Authentication: "{}", ProxyLedger: true, Roles: []string{"deployer"}, Dashboard: true, Ledger: true, Agent: true, AgentJournal: true, CopySecrets: true, VerifySchedule: "@daily"})
	subjects := []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: install.DashboardName},
		{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + install.DashboardName},
	}
	for _, name := range []string{"system:serviceaccounts", "system:serviceaccounts:" + v1alpha1.SystemNamespace, "system:authenticated"} {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name})
	}
	for _, subject := range subjects {
		if rights, _ := installtest.FindGranted(subject, all); len(rights) > 0 {
			t.Errorf("%s %s has the rights %v", subject.Kind, subject.Name, rights)
		}
	}
	var operator, dashboard *appsv1.Deployment
	for _, object := range all {
		switch o := object.(type) {
		case *appsv1.Deployment:
			switch o.Name {
			case v1alpha1.ManagedBy:
				operator = o
			case install.DashboardName:
				dashboard = o
			}
		case *corev1.ServiceAccount:
			if o.Name == install.DashboardName && ptr.Deref(o.AutomountServiceAccountToken, true) {
				t.Error("the ServiceAccount's pods get a token")
			}
		}
	}
	if dashboard == nil {
		t.Fatal("no dashboard")
	}
	pod := dashboard.Spec.Template.Spec
	if pod.ServiceAccountName != install.DashboardName || ptr.Deref(pod.AutomountServiceAccountToken, true) {
		t.Errorf("the pods are of %s, with a token", pod.ServiceAccountName)
	}
	if slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Projected != nil }) {
		t.Error("the pods have a projected volume, which may contain a token")
	}
	other := operator.Spec.Template.Spec
	if diff := cmp.Diff(other.SecurityContext, pod.SecurityContext) + cmp.Diff(other.Containers[0].SecurityContext, pod.Containers[0].SecurityContext); diff != "" {
		t.Errorf("the operator's pods (-) and the dashboard's (+):\n%s", diff)
	}
	for _, o := range buildObjects(t, install.Options{Image: "croft:test", Authentication: "{}", Agent: true}) {
		if o.GetName() == install.DashboardName {
			t.Errorf("%s without the option", apply.RefOf(o))
		}
	}
}

// TestOperatorsRights fails if the operator has a right by a wildcard or twice, or may
// grant rights that are not limited to names. In TestRights the operator uses its rights.
// Default tier.
func TestOperatorsRights(t *testing.T) {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: v1alpha1.ManagedBy}
	rights, problems := installtest.FindGranted(account, buildObjects(t, install.Options{Roles: []string{"deployer"}}))
	if len(rights) < 100 {
		t.Errorf("the operator has %d rights", len(rights))
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

func TestInstallTwice(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	options := install.Options{Image: "croft:test", Authentication: "{}", ProxyLedger: true, Dashboard: true, Ledger: true, Agent: true, AgentJournal: true, CopySecrets: true}
	if _, err := install.Install(t.Context(), c, options); err != nil {
		t.Fatal(err)
	}
	changes, err := install.Install(t.Context(), c, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != len(buildObjects(t, options)) {
		t.Errorf("%d changes for %d objects", len(changes), len(buildObjects(t, options)))
	}
	for _, change := range changes {
		if change.Action != apply.Unchanged {
			t.Errorf("the second time: %s", change)
		}
	}
}

// TestProxyLedger fails if croft proxy and croft ledger are connected without the option, if the proxy gets more of the
// ledger's Secret than its certificate authority, or if an argument names a file that is not mounted.
func TestProxyLedger(t *testing.T) {
	find := func(connected bool) map[string]corev1.PodSpec {
		pods := map[string]corev1.PodSpec{}
		for _, o := range buildObjects(t, install.Options{Image: "croft:test", Authentication: "{}", Ledger: true, ProxyLedger: connected,
			LedgerArgs: []string{"--log-level=debug"}}) {
			if d, ok := o.(*appsv1.Deployment); ok {
				pods[d.Name] = d.Spec.Template.Spec
			}
		}
		return pods
	}
	for name, want := range map[string]struct{ args, volume string }{
		"croft-proxy": {"--ledger=https://croft-ledger.croft-system.svc --ledger-ca-file=/var/run/croft/ledger/ca.crt",
			`{"name":"ledger","secret":{"secretName":"croft-ledger-tls","items":[{"key":"ca.crt","path":"ca.crt"}],"optional":true}}`},
		install.LedgerName: {"--authentication-config=/etc/croft/authentication/authentication.yaml",
			`{"name":"authentication","configMap":{"name":"croft-proxy"}}`},
	} {
		before, after := find(false)[name], find(true)[name]
		args := strings.Join(after.Containers[0].Args, " ")
		volume, err := json.Marshal(after.Volumes[len(after.Volumes)-1])
		if err != nil || !strings.Contains(args, want.args) || string(volume) != want.volume {
			t.Errorf("%s: %s with %s, want %s with %s", name, args, volume, want.args, want.volume)
		}
		mounts := after.Containers[0].VolumeMounts
		if mount := mounts[len(mounts)-1]; !strings.Contains(want.args, "="+mount.MountPath+"/") || !mount.ReadOnly {
			t.Errorf("%s: the volume is mounted at %s", name, mount.MountPath)
		}
		if strings.Contains(strings.Join(before.Containers[0].Args, " "), want.args) || len(before.Volumes) != len(after.Volumes)-1 {
			t.Errorf("%s is connected without the option", name)
		}
	}
	if args := find(true)[install.LedgerName].Containers[0].Args; args[len(args)-1] != "--log-level=debug" {
		t.Errorf("the last argument is not the platform's: %v", args)
	}
}
