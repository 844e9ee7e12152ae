package page_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/connections"
	"croft.dev/croft/internal/dashboard/hosts"
	"croft.dev/croft/internal/dashboard/nodes"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/walls"
	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/prove/trial"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// renderText returns the text of a page, without elements.
func renderText(t *testing.T, p page.Page) string {
	t.Helper()
	source, err := page.Render(p)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	z := html.NewTokenizer(strings.NewReader(string(source)))
	for z.Next() != html.ErrorToken {
		switch token := z.Token(); {
		case token.Type == html.TextToken:
			text.WriteString(token.Data)
		case token.Data != "time": // a part of a sentence
			text.WriteString(" ")
		}
	}
	if !errors.Is(z.Err(), io.EOF) {
		t.Fatal(z.Err())
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// TestPages compares the texts of pages.
func TestPages(t *testing.T) {
	m := &me.Me{
		User: "ana", Groups: []string{"devs"}, Tenant: "shop",
		Namespaces: []me.Namespace{
			{Name: "shop-dev", Roles: []string{"croft-viewer"}, Abilities: []string{"look"}},
			{Name: "shop", Roles: []string{"croft-operator"}, Abilities: []string{"look", "exec"}, Quota: []me.Use{
				{Resource: "requests.cpu", Used: "3500m", Hard: "4", Percent: 87}, {Resource: "pods", Used: "2", Hard: "10", Percent: 20}, {Resource: "secrets", Used: "9", Hard: "5", Percent: 180},
			}},
		},
		Refused: []v1alpha1.RefusedWorkload{{Namespace: "shop", Kind: "ReplicaSet", Name: "web", Message: "exceeded quota"}},
	}
	var many []workloads.Workload
	for i := range 35 {
		many = append(many, workloads.Workload{Kind: "pod", Namespace: "shop", Name: fmt.Sprint("web-", i), State: "CrashLoopBackOff", Verdict: why.Bad})
	}
	condition := func(status metav1.ConditionStatus) v1alpha1.Status {
		return v1alpha1.Status{ObservedGeneration: 2, Conditions: []metav1.Condition{{Type: "Ready", Status: status, Reason: "Because", Message: "of this"}}}
	}
	tenant := func(name string, generation int64, status v1alpha1.Status) v1alpha1.Tenant {
		return v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation, CreationTimestamp: metav1.Time{Time: now.Add(-time.Hour)}}, Status: v1alpha1.TenantStatus{Status: status, Namespaces: []string{"a", "b", "c", "d"}}}
	}
	tenants := []v1alpha1.Tenant{tenant("good", 2, condition("True")), tenant("old", 3, condition("True")), tenant("broken", 2, condition("False"))}
	tenants[0].Spec = v1alpha1.TenantSpec{Owner: "Shop team", Contact: "#shop-oncall", Description: "The shop"}
	bindings := []rbacv1.RoleBinding{
		{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "croft-viewer"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "qa"}, {Kind: "Group", Name: "qa"}}},
		{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "croft-viewer"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "shop", Name: "ci"}}},
	}
	shopPolicies := &connections.Snapshot{Namespace: "shop", Policies: []networkingv1.NetworkPolicy{{ObjectMeta: metav1.ObjectMeta{
		Name: "croft-isolation", Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
	}}}}
	isolation := []string{"shop/croft-isolation"}
	allowed := &netpol.Verdict{Allowed: true, Egress: netpol.Direction{Allowed: true, Allowing: isolation, Selecting: isolation}, Ingress: netpol.Direction{Allowed: true, Allowing: isolation, Selecting: isolation}}
	denied := &netpol.Verdict{Egress: netpol.Direction{Selecting: isolation}, Ingress: netpol.Direction{Selecting: isolation}}
	peers := []connections.Peer{
		{Name: "shop", From: allowed, To: allowed}, {Name: connections.OtherTenants, From: denied, To: allowed},
		{Name: netpol.Metadata, To: &netpol.Verdict{Allowed: true, Egress: netpol.Direction{Allowed: true}}},
	}
	for name, c := range map[string]struct {
		page page.Page
		// parts appear in this order.
		parts []string
		lacks []string
	}{
		"problems come first": {page.NewOverview("shop", m, many), []string{
			"Tenant shop", "Problems in shop", "5 more pods wait or fail", "ReplicaSet shop/web ✗ pods are refused exceeded quota",
			"pod shop/web-0 ✗ CrashLoopBackOff", "Namespaces", "shop-dev quota your roles", "You may use", "The same in a terminal croft me -n shop",
		}, []string{"web-31"}},
		"no problems":  {page.NewOverview("shop", &me.Me{Tenant: "shop"}, nil), []string{"Problems in shop No pod waits or fails"}, nil},
		"no workloads": {page.NewWorkloads("shop", &workloads.List{Hidden: []string{"jobs", "cronjobs"}}, now), []string{"You may not list jobs and cronjobs.", "There are no Deployments", "There are no pods"}, nil},
		"workloads":    {page.NewWorkloads("shop", &workloads.List{Workloads: []workloads.Workload{{Kind: "pod", Namespace: "shop", Name: "web-1", State: "Running", Verdict: why.Good, Created: now.Add(-90 * time.Minute)}}}, now), []string{"Pods", "web-1 pod ✓ Running 90m"}, nil},
		"jobs":         {page.NewJobs("shop", &workloads.List{Workloads: []workloads.Workload{{Kind: "job", Namespace: "shop", Name: "nightly", State: "Failed", Verdict: why.Bad, Created: now.Add(-90 * time.Minute)}}}, now), []string{"nightly job ✗ Failed 90m", "kubectl get jobs,cronjobs,daemonsets -n shop"}, []string{"Pods"}},
		"no jobs":      {page.NewJobs("shop", &workloads.List{}, now), []string{"There are no Jobs, CronJobs and DaemonSets: create one"}, nil},
		"quota":        {page.NewQuota("shop", m), []string{"Quota of shop", "requests.cpu 3500m 4 500m 87%", "pods 2 10 8 20%", "secrets 9 5 0 100%", "Other namespaces", "shop-dev"}, nil},
		"workload": {page.NewWorkload(&why.Story{Target: why.Target{Kind: "deployment", Namespace: "shop", Name: "web"}, Verdict: why.Good, Summary: "is available"}, page.Details{
			Events:  []corev1.Event{{Type: "Warning", Reason: "BackOff", Message: "restarts", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-1"}, Source: corev1.EventSource{Component: "kubelet"}, LastTimestamp: metav1.Time{Time: now}}},
			Pods:    []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}},
			Changes: []page.Change{{Name: "restart"}, {Name: "scale", Replicas: ptr.To[int32](3)}},
		}), []string{
			"deployment/web in shop: is available", "Change", "Restart", "Replicas", "Scale", "Pods", "web-1 … Pending, no node",
			"Events", "2026-11-26 12:00:00 UTC pod/web-1 … BackOff restarts kubelet", "kubectl events --for deployment/web -n shop",
		}, []string{"Log of"}},
		"log of a pod": {page.NewWorkload(&why.Story{Target: why.Target{Kind: "pod", Namespace: "shop", Name: "web-1"}}, page.Details{
			Log: &page.Log{Containers: []string{"main", "side"}, Container: "side", Previous: true, Text: strings.Repeat("early\n", 20_000) + strings.Repeat("x", 3000) + "\nlast\n"},
		}), []string{
			"There are no events", "Log of side before its last restart", "main", "side", "Download the whole log", strings.Repeat("x", 2000) + "… last", "kubectl logs pod/web-1 -c side -n shop --previous",
		}, []string{strings.Repeat("early ", 17_000), strings.Repeat("x", 2001)}},
		"a form for commands": {page.NewWorkload(&why.Story{Target: why.Target{Kind: "pod", Namespace: "shop", Name: "web-1"}}, page.Details{Command: &page.CommandForm{Containers: []string{"main", "side"}, Container: "main"}}), []string{
			"Run a command", "at once in the container, by sh and without input, for at most 30 seconds", "up to 128 KiB", "main side", "Command", "Run", "Events", "kubectl exec pod/web-1 -c main -n shop -- sh -c COMMAND",
		}, nil},
		"a command": {page.NewCommand(why.Target{Kind: "pod", Namespace: "shop", Name: "web-1"}, page.CommandForm{Containers: []string{"main"}, Container: "main", Command: "echo 'a  b'; id"}, page.CommandResult{
			State: page.T("The command ended with exit code %d.", 1), Verdict: why.Bad, Ran: true, Stdout: "a b\n", Stderr: strings.Repeat("é", page.LongestOutput), Cut: true,
		}), []string{
			"Command in pod/web-1", "✗ The command ended with exit code 1.", "The output is longer than 128 KiB", "Standard output a b", "Standard error éé", "Run a command", "Back to the pod",
			`kubectl exec pod/web-1 -c main -n shop -- sh -c 'echo '\''a b'\''; id'`,
		}, []string{"has written nothing", strings.Repeat("é", page.LongestOutput/2), `\x`}},
		"no log yet":   {page.NewWorkload(&why.Story{}, page.Details{Log: &page.Log{Problem: "it waits to start"}}), []string{"There is no log: it waits to start"}, nil},
		"an empty log": {page.NewWorkload(&why.Story{}, page.Details{Log: &page.Log{}}), []string{"The log is empty"}, nil},
		"hosts": {page.NewHosts("shop", &me.Me{Tenant: "shop", Rules: v1alpha1.TenantRulesSpec{Domains: []string{"*.shop.example.org"}}}, &hosts.Snapshot{Group: hosts.Groups[0], Hidden: []string{"Gateways"}, Objects: []unstructured.Unstructured{
			{Object: map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"rules": []any{map[string]any{"host": "a.shop.example.org"}, map[string]any{}}}}},
		}}), []string{
			"You may not list Gateways. A refused host is older than the rules", "every host Ingress/web ✗ refused: outside of the domains", "a.shop.example.org Ingress/web ✓ allowed", "Domains of tenant shop", "*.shop.example.org",
		}, nil},
		"no hosts": {page.NewHosts("shop", &me.Me{Tenant: "shop"}, &hosts.Snapshot{Group: hosts.Groups[1]}), []string{"None of the Gateways and HTTPRoutes has a host: write", "Ingresses and Certificates", "GRPCRoutes and TLSRoutes", "The tenant has no domains: a platform admin grants"}, []string{"refused"}},
		"pools": {page.NewPools(&nodes.Snapshot{
			Pools: []v1alpha1.Pool{{ObjectMeta: metav1.ObjectMeta{Name: "apps", CreationTimestamp: metav1.Time{Time: now.Add(-time.Hour)}}, Status: v1alpha1.PoolStatus{Nodes: 2, Tenants: 3, Status: v1alpha1.Status{Conditions: condition("False").Conditions}}}},
			Claims: []karpenterv1.NodeClaim{
				{ObjectMeta: metav1.ObjectMeta{Name: "apps-1", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "apps"}, CreationTimestamp: metav1.Time{Time: now.Add(-time.Hour)}}},
			},
			Refusals: []corev1.Event{{InvolvedObject: corev1.ObjectReference{Name: "apps-9"}, LastTimestamp: metav1.Time{Time: now}, Message: "api error NoSuchEntity: The role with name NoSuchRole cannot be found."}},
		}, now), []string{
			"Failed launches", "NodeClaim/apps-1 ✗ Launched=Unknown", "NodePool/apps ✗ api error NoSuchEntity: The role with name NoSuchRole cannot be found. the nodes' IAM role does not exist correct `role`", "Pools", "apps ✗ False Because of this 2 0 0 3 60m",
			"Nodes", "nodeclaim/apps-1 apps … not Launched yet - - 60m", "Duration of starts", "Starts of nodes", "croft doctor",
		}, nil},
		"no pools": {page.NewPools(&nodes.Snapshot{}, now), []string{"No launch has failed", "There are no pools: declare them", "There are no nodes: Karpenter creates one"}, nil},
		"pools of a team": {page.NewPools(&nodes.Snapshot{Hidden: []string{"NodeClaims"}, Nodes: []corev1.Node{
			{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "True"}}}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.NodeSpec{Unschedulable: true}},
		}}, now), []string{"You may not list NodeClaims. Ask a platform admin for failed launches", "b - … not Ready, accepts no new pods", "a - ✓ Ready"}, []string{"No launch has failed"}},
		"starts of nodes": {page.NewStarts(&nodes.Starts{More: 3, Timelines: newTimelines("apps-1")}, now), []string{
			"Starts of nodes", "A phase is - if the cluster lacks one of its times", "3 older nodes are not shown.", "Where the time of the nodes went", "decision 1s: Karpenter decides", "boot 3s: instance boots, kubelet registers",
			"scheduling: pod is scheduled", "no known phase", "decision launch boot ready initialization scheduling start pod to node ready pod to pod ready",
			"apps-1 apps-1 apps-1 60m apps-1 1s 2s 3s 4s 5s 6s 7s 18s 19s", "nodeclaim/apps-1 - - - - - -",
			"Boot and secondary networks", "apps-1 8s 9s 10s", "apps-1 -", "Missing times", "apps-1: apps-1", "croft latency --since 0 croft latency --since 0 -o wide",
		}, []string{"claim to node ready"}},
		"starts in a pool": {page.NewStarts(&nodes.Starts{Pool: "apps", Hidden: []string{"NodeClaims"}}, now), []string{
			"Starts of nodes of pool apps", "You may not list NodeClaims. Ask a platform admin", "There are no nodes", "croft latency --since 0 --pool apps",
		}, []string{"Where the time", "Missing times", "Boot and"}},
		"walls": {page.NewWalls(&walls.Snapshot{
			Platform: v1alpha1.Platform{Spec: v1alpha1.PlatformSpec{ClusterName: "one"}, Status: v1alpha1.PlatformStatus{Verify: &v1alpha1.VerifyStatus{Time: metav1.Time{Time: now.Add(-time.Hour)}, Version: "v1", Held: 900, Breached: 1, NotTried: 2, FirstBreach: "nodes/bind", Duration: &metav1.Duration{Duration: 3 * time.Minute}}, VerifyHistory: []v1alpha1.VerifyStatus{
				{Time: metav1.Time{Time: now.Add(-2 * time.Hour)}, Held: 901, BlockedElsewhere: 1}, {Time: metav1.Time{Time: now.Add(-26 * time.Hour)}, Version: "v0", Held: 899},
			}}},
			Repairs: []corev1.Event{{Message: "restored NetworkPolicy shop/croft-dns, which was deleted", InvolvedObject: corev1.ObjectReference{Kind: "Tenant", Name: "shop"}, LastTimestamp: metav1.Time{Time: now}}},
			Refused: m.Refused,
		}, now), []string{
			"Walls of one", "2026-11-26 11:00:00 UTC, 60m ago, by version v1.", "held ✓ 900 BREACHED ✗ 1 blocked elsewhere ✓ 0 not tried 2",
			"Verifications", "2026-11-26 11:00:00 UTC ✗ 1 BREACHED nodes/bind 900 0 2 3m0s v1", "2026-11-26 10:00:00 UTC ✗ blocked elsewhere - 901 1 0 - -", "2026-11-25 10:00:00 UTC ✓ held - 899 0 0 - v0",
			"2026-11-26 12:00:00 UTC tenant/shop … restored NetworkPolicy shop/croft-dns", "ReplicaSet shop/web ✗ pods are refused exceeded quota", "croft verify --record",
		}, nil},
		"no results": {page.NewWalls(&walls.Snapshot{Hidden: []string{"events of repairs", "events of refusals"}}, now), []string{
			"You may not list events of repairs and events of refusals.", "No result is recorded: run croft verify --record", "Each croft verify --record adds a line", "The operator has repaired nothing in the last hour", "No pods of tenants are refused",
		}, nil},
		"try": {page.NewTry("shop", "kind: Pod", nil, &trial.Report{Unknown: []string{"the quota"}, Results: []trial.Result{
			{Line: 1, Object: "Deployment/web", Verdict: trial.Admitted},
			{Line: 9, Object: "Pod", CreatedFrom: "Deployment/web", Verdict: trial.Refused, Refusals: []trial.Reason{{Source: "croft-pods", Rule: "host", Message: "spec.hostNetwork: no", Line: 12}}},
		}}), []string{
			"kind: Pod", "1 of 2 objects refused, 1 admitted", "1 Deployment/web ✓ admitted", "9 Pod of Deployment/web ✗ refused croft-pods, rule host line 12: spec.hostNetwork: no",
			"Unknown the quota", "croft try --live -n shop MANIFEST...",
		}, nil},
		"nothing tried": {page.NewTry("shop", "", page.Raw("there is no object"), nil), []string{"✗ there is no object"}, []string{"Results"}},
		"network": {page.NewNetwork(shopPolicies, peers), []string{
			"Connections of shop", "must allow it, too. You may not list namespaces", "Sources are on the left, destinations on the right. 3 of 5 connections are allowed. About 1 of them, the other tenant decides. The table has the same data.",
			"can connect can connect, and should not × cannot connect the other tenant decides",
			"shop (this namespace) ✓ can connect allowed by shop/croft-isolation ✓ can connect",
			"other tenants cannot connect denied, since no rule allows it of shop/croft-isolation the other tenant decides allowed", "metadata - - ✗ can connect allowed, since no policy selects the pod",
			"NetworkPolicies", "croft-isolation yes", "kubectl describe networkpolicies -n shop",
		}, nil},
		"network with a hole": {page.NewNetwork(shopPolicies, []connections.Peer{{Name: connections.OtherTenants, From: allowed, To: denied}}), []string{
			"1 of 2 connections are allowed. The table", "other tenants ✗ can connect allowed by shop/croft-isolation cannot connect",
		}, nil},
		"network without a wall": {page.NewNetwork(&connections.Snapshot{Namespace: "shop"}, nil), []string{"Ask a platform admin for croft reach.", "There are no NetworkPolicies"}, []string{"can connect"}},
		"access":                 {page.NewAccess("shop", m, bindings), []string{"You are ana, in the groups devs.", "croft-operator look, exec", "Group qa ClusterRole croft-viewer look, read logs", "ServiceAccount shop/ci Role croft-viewer see kubectl describe Role croft-viewer"}, []string{"read Secrets"}},
		"hidden access":          {page.NewAccess("shop", &me.Me{Namespaces: []me.Namespace{{Name: "shop", Unreadable: []string{"rolebindings"}}}}, nil), []string{"You may not list the RoleBindings"}, nil},
		"tenants": {page.NewTenants(tenants, page.Filter{}, now), []string{
			"broken ✗ False Because of this", "old … Unknown NotSeenYet", "good ✓ True Because - a, b, c and 1 more 0 60m Shop team #shop-oncall The shop", "croft status --all",
		}, nil},
		"tenants by name":   {page.NewTenants(tenants, page.Filter{Query: "oo"}, now), []string{"good"}, []string{"broken", "old"}},
		"tenants not ready": {page.NewTenants(tenants, page.Filter{NotReady: true}, now), []string{"broken", "old"}, []string{"good"}},
		"start":             {page.NewStart(tenants, false, now), []string{"Open a namespace", "Your tenants", "broken"}, nil},
		"start of a team":   {page.NewStart(nil, true, now), []string{"Open a namespace", "croft me -n NAMESPACE"}, []string{"Your tenants"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := renderText(t, c.page)
			rest := text
			for _, part := range c.parts {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("no %q, or not in this order:\n%s", part, text)
				}
				rest = after
			}
			for _, part := range c.lacks {
				if strings.Contains(text, part) {
					t.Errorf("the page has %q:\n%s", part, text)
				}
			}
		})
	}
}

// TestLink expects each segment to stay one segment.
func TestLink(t *testing.T) {
	if got, want := page.Link("namespaces", "a/b?c#d%e f", "workloads"), "/namespaces/a%2Fb%3Fc%23d%25e%20f/workloads"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
