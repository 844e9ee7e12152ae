package cli_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/test/sandbox"
)

// ranCommand is a command of docs/reference/rights.md, and the result of a run with all rights that it
// needs.
type ranCommand struct {
	args []string
	// statuses are the possible exit statuses. No operator runs here, so some commands report
	// problems.
	statuses []int
	// shows is a part of the output.
	shows string
}

// refusal matches the messages about missing rights.
var refusal = regexp.MustCompile(`forbidden|[Yy]ou may not read|nothing was tried`)

// unreadStep matches a step of croft why about an object that only the platform may read, such as the
// NodePool of a pod that is not scheduled yet. croft why explains the pod nevertheless.
var unreadStep = regexp.MustCompile(`(?m)^\? .*$`)

// checkAllowed reports whether the command ran with all rights. It returns an error if the
// command failed for another reason than missing rights.
func (c ranCommand) checkAllowed(status int, output string) (bool, error) {
	refused := refusal.MatchString(unreadStep.ReplaceAllString(output, ""))
	switch {
	case refused && status != 0:
		return false, nil
	case !refused && slices.Contains(c.statuses, status) && strings.Contains(output, c.shows):
		return true, nil
	default:
		return false, fmt.Errorf("exit status %d, want one of %v with %q, or a refusal", status, c.statuses, c.shows)
	}
}

// TestCheckAllowed expects that a step of croft why about an object of the platform is no refusal.
func TestCheckAllowed(t *testing.T) {
	why := ranCommand{statuses: []int{0, 1}, shows: "deployment/web in shop-prod: "}
	shown := why.shows + "0 of 1 pods are ready\n\n"
	for _, test := range []struct {
		output string
		status int
		may    bool
	}{
		{shown, 0, true},
		{shown + "? pool       nodepool/apps: you may not read this: ask a platform admin\n", 0, true},
		{"you may not read deployments\n", 1, false},
	} {
		if may, err := why.checkAllowed(test.status, test.output); err != nil || may != test.may {
			t.Errorf("%q: allowed: %t, %v", test.output, may, err)
		}
	}
}

// TestRights runs each command as members of an estate's groups, and fails if a group has
// fewer or more rights than docs/reference/rights.md documents, or if a command fails for another reason
// than missing rights.
func TestRights(t *testing.T) {
	sandbox.EndToEnd(t)
	p := startPeople(t)
	file := writeConfig(t, strings.Replace(peopled, "requests.cpu: 4", "requests.cpu: 5", 1))
	commands := map[string]ranCommand{
		"croft status":              {[]string{"status"}, []int{1}, "shop"},
		"croft diff -f FILE":        {[]string{"diff", "-f", file}, []int{1}, "ResourceQuota"},
		"croft apply -f FILE":       {[]string{"apply", "-f", file, "--wait=false"}, []int{0}, "tenant.croft.dev/shop"},
		"croft delete tenant NAME":  {[]string{"delete", "tenant", "gone", "--yes"}, []int{0}, "gone"},
		"croft doctor":              {[]string{"doctor"}, []int{1}, "kubelets"},
		"croft support-bundle":      {[]string{"support-bundle"}, []int{0}, "croft-support-"},
		"croft reach":               {[]string{"reach"}, []int{0}, "shop-prod"},
		"croft latency":             {[]string{"latency"}, []int{0}, "--since"},
		"croft cost":                {[]string{"cost"}, []int{0}, "NOW/HOUR"},
		"croft why nodepool/NAME":   {[]string{"why", "nodepool/apps"}, []int{0, 1}, "nodepool/apps: "},
		"croft why deployment/NAME": {[]string{"why", "deployment/web", "-n", "shop-prod"}, []int{0, 1}, "deployment/web in shop-prod: "},
		"croft me":                  {[]string{"me", "-n", "shop-prod"}, []int{0}, "shop-dev"},
		"croft verify":              {[]string{"verify", "--attack", "list-pods-elsewhere"}, []int{0}, "list-pods-elsewhere"},
		"croft certificate":         {[]string{"certificate", "--tenant", "vault"}, []int{0}, "vault"},
		"croft install":             {[]string{"install", "--image", "croft:test"}, []int{0}, "croft"},
	}
	columns := []string{"platform-admins", "platform-auditors", "oidc:devs"}
	rows := readRightsTable(t)
	if len(rows) != len(commands) {
		t.Fatalf("docs/reference/rights.md has %d commands, and this test %d", len(rows), len(commands))
	}
	// The group with write access runs last.
	for i := len(columns) - 1; i >= 0; i-- {
		kubeconfig := p.writeKubeconfig(columns[i], "")
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			t.Run(strings.ReplaceAll(columns[i]+" "+name, "/", " "), func(t *testing.T) {
				t.Chdir(t.TempDir()) // support-bundle writes its file there
				command, ok := commands[name]
				if !ok {
					t.Fatal("docs/reference/rights.md documents a command that this test does not run")
				}
				status, stdout, stderr := runCroft(t, "", append(command.args, "--kubeconfig", kubeconfig)...)
				may, err := command.checkAllowed(status, stdout+stderr)
				if err != nil {
					t.Errorf("%v:\n%s%s", err, stdout, stderr)
				} else if may != rows[name][i] {
					t.Errorf("allowed: %t; docs/reference/rights.md documents %t:\n%s%s", may, rows[name][i], stdout, stderr)
				}
			})
		}
	}
	t.Run("an auditor's diff shows the walls", func(t *testing.T) {
		changed := writeConfig(t, strings.Replace(peopled, "requests.cpu: 4", "requests.cpu: 7", 1))
		status, stdout, stderr := runCroft(t, "", "diff", "-f", changed, "--kubeconfig", p.writeKubeconfig("platform-auditors", ""))
		if status != 1 || !strings.Contains(stdout, "ResourceQuota") || stderr != "" {
			t.Errorf("exit status %d:\n%s%s", status, stdout, stderr)
		}
	})
	t.Run("an auditor's diff shows deletions", func(t *testing.T) {
		changed := writeConfig(t, strings.Replace(peopled, ", count/secrets: 10", "", 1))
		status, stdout, stderr := runCroft(t, "", "diff", "-f", changed, "--kubeconfig", p.writeKubeconfig("platform-auditors", ""))
		if status != 1 || !strings.Contains(stdout, "-    count/secrets:") || stderr != "" {
			t.Errorf("exit status %d:\n%s%s", status, stdout, stderr)
		}
	})
	t.Run("add-ons", p.testAddons)
	t.Run("me", p.testMe)
	t.Run("dashboard", p.testDashboard)
	t.Run("support bundle", p.testSupportBundle)
	t.Run("try --live", p.testTryLive)
	t.Run("policies of charts", p.testCharts)
}

// readRightsTable returns the table of docs/reference/rights.md.
func readRightsTable(t *testing.T) map[string][]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `(croft [^`]+)` \\| (yes|no) \\| (yes|no) \\| (yes|no) \\|$").FindAllStringSubmatch(string(text), -1) {
		rows[match[1]] = []bool{match[2] == "yes", match[3] == "yes", match[4] == "yes"}
	}
	return rows
}

// testAddons fails if a tenant's members have more or fewer rights to the kinds of add-ons
// than the Platform specifies.
func (p *people) testAddons(t *testing.T) {
	for who, may := range map[string]map[string]bool{
		"oidc:devs":   {"create servicemonitors.monitoring.coreos.com": true, "create podmonitors.monitoring.coreos.com": false, "list reports.example.org": true, "create reports.example.org": false},
		"oidc:guests": {"list servicemonitors.monitoring.coreos.com": true, "create servicemonitors.monitoring.coreos.com": false},
	} {
		c := p.newClient(p.newConfig(who))
		for question, want := range may {
			verb, kind, _ := strings.Cut(question, " ")
			resource, group, _ := strings.Cut(kind, ".")
			for namespace, want := range map[string]bool{"shop-dev": want, "gone": false, "": false} {
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource},
				}}
				if err := c.Create(t.Context(), review); err != nil {
					t.Fatal(err)
				}
				if review.Status.Allowed != want {
					t.Errorf("%s may %s in namespace %q: %t, want %t", who, question, namespace, review.Status.Allowed, want)
				}
			}
		}
	}
}

// testMe fails if croft me does not show a tenant's member their namespaces, roles and
// quota.
func (p *people) testMe(t *testing.T) {
	p.awaitCondition(t, "the quota is counted", func(ctx context.Context) error {
		var quotas corev1.ResourceQuotaList
		if err := p.admin.List(ctx, &quotas, client.InNamespace("shop-dev")); err != nil {
			return err
		}
		if len(quotas.Items) == 0 || len(quotas.Items[0].Status.Hard) == 0 {
			return fmt.Errorf("not yet: %v", quotas.Items)
		}
		return nil
	})
	for name, c := range map[string]struct {
		group, namespace string
		status           int
		wantText         []string
	}{
		"operator": {"oidc:devs", "shop-prod", 0, []string{
			"shop-prod   croft-operator", "shop-dev    croft-operator", "requests.cpu", "shop.tenants.example.org, *.shop.tenants.example.org",
			"StorageClasses    any of fast", "apps", "exec", "Services of type NodePort",
		}},
		"viewer":           {"oidc:guests", "shop-dev", 0, []string{"croft-viewer", "look, read logs", "run workloads: no role of yours gives it", "StorageClasses    any\n"}},
		"stranger":         {"oidc:others", "shop-prod", 2, []string{"you have no role in namespace shop-prod: name a namespace of your tenant with -n NAMESPACE"}},
		"no namespace":     {"oidc:devs", "", 2, []string{"you have no role in namespace default"}},
		"no tenant, admin": {"platform-admins", "default", 2, []string{"namespace default belongs to no tenant"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := runCroft(t, "", "me", "--kubeconfig", p.writeKubeconfig(c.group, c.namespace))
			if status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			for _, want := range c.wantText {
				if !strings.Contains(stdout+stderr, want) {
					t.Errorf("it does not print %q:\n%s%s", want, stdout, stderr)
				}
			}
		})
	}
	t.Run("yaml", func(t *testing.T) {
		_, stdout, _ := runCroft(t, "", "me", "-n", "shop-dev", "-o", "yaml", "--kubeconfig", p.writeKubeconfig("oidc:devs", ""))
		var read struct {
			Tenant     string `json:"tenant"`
			Namespaces []struct {
				Quota []struct{ Resource, Hard string } `json:"quota"`
			} `json:"namespaces"`
		}
		if err := yaml.Unmarshal([]byte(stdout), &read); err != nil || read.Tenant != "shop" || len(read.Namespaces) != 2 || len(read.Namespaces[1].Quota) == 0 {
			t.Errorf("%v:\n%s", err, stdout)
		}
	})
}
