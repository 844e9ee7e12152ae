package page_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/dashboard/connections"
	"croft.dev/croft/internal/dashboard/hosts"
	"croft.dev/croft/internal/dashboard/nodes"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/walls"
	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/latency"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/network/boot"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/prove/trial"
)

// payloads are texts that would do harm in a page that did not escape them.
var payloads = map[string]string{
	"script":       `<script>alert(1)</script>`,
	"attribute":    `" onmouseover="alert(1)" x="`,
	"single quote": `' onfocus='alert(1)' autofocus='`,
	"svg":          `<svg onload=alert(1)><animate onbegin=alert(1)>`,
	"end tags":     `</td></tr></table></section></title></textarea></pre></main><img src=x onerror=alert(1)>`,
	"url":          `javascript:alert(1)`,
	"template":     `{{.CSRF}}{{template "layout" .}}`,
	"comment":      `<!--><img src=x onerror=alert(1)>-->`,
	"bidi":         "shop\u202egnp\u2066\u200f.exe",
	"escapes":      "\x1b[2J\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\u009b31m",
	"line breaks":  "a\r\nSet-Cookie: x=1\r\n\r\n<html>\x00\u2028\u2029",
	"length":       strings.Repeat("<b>long</b>\u00a0", 100_000),
	"path":         `../../../logout?x=1#y`,
	"entity":       `&lt;script&gt;&#60;script&#62;`,
}

// newPages returns every page with a text in each field that tenants, pods or tokens can write.
func newPages(text string) map[string]page.Page {
	m := &me.Me{
		User: text, Groups: []string{text}, Tenant: text,
		Namespaces: []me.Namespace{{
			Name: text, Roles: []string{text}, Abilities: []string{text}, Unreadable: []string{text},
			Quota: []me.Use{{Resource: corev1.ResourceName(text), Used: text, Hard: text, Percent: 90}},
		}},
		Refused: []v1alpha1.RefusedWorkload{{Namespace: text, Kind: text, Name: text, Message: text}},
		Rules: v1alpha1.TenantRulesSpec{
			Domains: []string{text}, Pools: []string{text}, Egress: v1alpha1.Egress(text),
			PolicySettings: v1alpha1.PolicySettings{Registries: []string{"*", text}, StorageClasses: []string{"*"}},
		},
		Classes: map[string][]string{"storageClasses": {text}}, Restrictions: []string{text},
	}
	one := []workloads.Workload{
		{Kind: text, Namespace: text, Name: text, State: text, Verdict: why.Bad}, {Kind: "pod", Namespace: text, Name: text, State: text, Verdict: why.Waiting},
	}
	finding := catalog.Finding{ID: "a", Symptom: text, Cause: text, Fix: text, Run: text, Who: catalog.Platform, Link: text}
	other := finding
	other.ID = "b"
	story := &why.Story{
		Target: why.Target{Kind: "pod", Namespace: text, Name: text}, Verdict: why.Bad, Summary: text, First: &finding, Latency: text,
		Steps: []why.Step{
			{Link: why.LinkPod, Object: text, Verdict: why.Bad, Observation: text, Finding: &finding},
			{Link: why.LinkNode, Object: text, Verdict: why.Waiting, Observation: text, Finding: &other},
		},
	}
	tenants := []v1alpha1.Tenant{{
		ObjectMeta: metav1.ObjectMeta{Name: text, CreationTimestamp: metav1.Time{Time: now}},
		Status: v1alpha1.TenantStatus{
			Status:     v1alpha1.Status{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: text, Message: text}}},
			Namespaces: []string{text}, Pools: []string{text}, RefusedPods: &v1alpha1.RefusedPods{Workloads: 1},
			Budget: &v1alpha1.TenantBudgetStatus{Month: text, Monthly: 1, Currency: text, Spent: text, Forecast: text, Stage: v1alpha1.BudgetStage(text), Problem: text},
		},
	}}
	bindings := []rbacv1.RoleBinding{{
		RoleRef: rbacv1.RoleRef{Kind: text, Name: text}, Subjects: []rbacv1.Subject{{Kind: text, Name: text}, {Kind: "ServiceAccount", Namespace: text, Name: text}},
	}}
	verdict := &netpol.Verdict{Allowed: true, Egress: netpol.Direction{Allowed: true, Allowing: []string{text}}, Ingress: netpol.Direction{Selecting: []string{text}}, Connection: text}
	policies := &connections.Snapshot{Namespace: text, Policies: []networkingv1.NetworkPolicy{
		{ObjectMeta: metav1.ObjectMeta{Name: text}},
		{ObjectMeta: metav1.ObjectMeta{Name: "croft-isolation", Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}}},
	}}
	peers := []connections.Peer{{Name: text, From: verdict, To: verdict}, {Name: text, Platform: true, From: &netpol.Verdict{}, To: &netpol.Verdict{}}, {Name: netpol.Metadata, To: verdict}}
	reasons := []trial.Reason{{Source: text, Rule: text, Message: text, Line: 2}}
	report := &trial.Report{Unknown: []string{text}, Results: []trial.Result{
		{Line: 1, Object: text, CreatedFrom: text, Verdict: trial.Refused, Refusals: reasons},
		{Line: 1, Object: text, Verdict: trial.Warned, Warnings: reasons, Changes: []trial.Change{{Path: text, Before: text, After: text}}},
	}}
	pages := map[string]page.Page{
		"hosts": page.NewHosts(text, m, &hosts.Snapshot{Hidden: []string{text}, Objects: []unstructured.Unstructured{
			{Object: map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"name": text}, "spec": map[string]any{"rules": []any{map[string]any{"host": text}, map[string]any{}}}}},
			{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": map[string]any{"name": text}, "spec": map[string]any{"hostnames": []any{text + "."}}}},
		}}),
		"pools": page.NewPools(&nodes.Snapshot{Hidden: []string{text}, Pools: []v1alpha1.Pool{{ObjectMeta: metav1.ObjectMeta{Name: text}, Status: v1alpha1.PoolStatus{Status: tenants[0].Status.Status}}}, Claims: []karpenterv1.NodeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: text, Labels: map[string]string{karpenterv1.NodePoolLabelKey: text, corev1.LabelInstanceTypeStable: text, corev1.LabelTopologyZone: text}}, Status: karpenterv1.NodeClaimStatus{NodeName: text},
		}}, Refusals: []corev1.Event{{Message: text}}}, now),
		"nodes of a team": page.NewPools(&nodes.Snapshot{Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: text, Labels: map[string]string{v1alpha1.DefaultNodePoolKey: text}}}}}, now),
		"starts":          page.NewStarts(&nodes.Starts{More: 1, Timelines: newTimelines(text)}, now), "starts in a pool": page.NewStarts(&nodes.Starts{Pool: text, Hidden: []string{text}}, now),
		"walls": page.NewWalls(&walls.Snapshot{
			Platform: v1alpha1.Platform{Spec: v1alpha1.PlatformSpec{ClusterName: text}, Status: v1alpha1.PlatformStatus{
				Verify: &v1alpha1.VerifyStatus{Version: text, Breached: 1, FirstBreach: text}, VerifyHistory: []v1alpha1.VerifyStatus{{Version: text, BlockedElsewhere: 1, FirstBreach: text}, {}},
			}}, Hidden: []string{text},
			Repairs: []corev1.Event{{Message: text, InvolvedObject: corev1.ObjectReference{Kind: text, Name: text}}}, Refused: m.Refused,
		}, now),
		"try": page.NewTry(text, text, nil, report), "nothing tried": page.NewTry(text, text, page.Raw(text), nil),
		"network":  page.NewNetwork(policies, peers),
		"overview": page.NewOverview(text, m, one), "workloads": page.NewWorkloads(text, &workloads.List{Workloads: one, Hidden: []string{text}}, now),
		"story": page.NewStory(story),
		"workload": page.NewWorkload(story, page.Details{
			Events:  []corev1.Event{{Type: corev1.EventTypeWarning, Reason: text, Message: text, InvolvedObject: corev1.ObjectReference{Kind: text, Name: text}, Source: corev1.EventSource{Component: text}}, {ReportingController: text}},
			Pods:    []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: text}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: text}}},
			Log:     &page.Log{Containers: []string{text, "b"}, Container: text, Text: text},
			Changes: []page.Change{{Name: "restart"}, {Name: "scale"}},
			Command: &page.CommandForm{Containers: []string{text, "b"}, Container: text},
		}),
		"command": page.NewCommand(story.Target, page.CommandForm{Containers: []string{text, "b"}, Container: text, Command: text}, page.CommandResult{
			State: page.Raw(text), Verdict: why.Bad, Ran: true, Stdout: text, Cut: true,
		}),
		"error of a command": page.NewCommand(story.Target, page.CommandForm{Containers: []string{text, "b"}, Container: text, Command: text}, page.CommandResult{
			State: page.Raw(text), Verdict: why.Waiting, Ran: true, Stderr: text,
		}),
		"no output":    page.NewCommand(story.Target, page.CommandForm{Containers: []string{text}, Container: text}, page.CommandResult{Ran: true}),
		"no log":       page.NewWorkload(story, page.Details{Log: &page.Log{Containers: []string{text}, Container: text, Problem: text}}),
		"confirmation": page.NewConfirmation(story.Target, page.Confirmation{Question: page.Raw(text), Effect: page.Raw(text), Warnings: []string{text}, Button: page.T("Scale"), Action: page.Link(text), Back: page.Link(text), Fields: map[string]string{"replicas": "1"}, Command: text}),
		"refusal":      page.NewConfirmation(story.Target, page.Confirmation{Question: page.Raw(text), Refused: page.Raw(text), Back: page.Link(text), Command: text}),
		"quota":        page.NewQuota(text, m), "access": page.NewAccess(text, m, bindings), "jobs": page.NewJobs(text, &workloads.List{Workloads: one, Hidden: []string{text}}, now),
		"tenants": page.NewTenants(tenants, page.Filter{Query: text}, now), "start": page.NewStart(tenants, false, now), "hidden start": page.NewStart(nil, true, now),
		"elevations": page.NewElevations(text, text, []v1alpha1.Elevation{
			{ObjectMeta: metav1.ObjectMeta{Namespace: text, Name: text}, Spec: v1alpha1.ElevationSpec{RequestedBy: text, Role: "operator", Reason: text}},
			{ObjectMeta: metav1.ObjectMeta{Name: text}, Spec: v1alpha1.ElevationSpec{RequestedBy: text, ApprovedBy: text, Reason: text}, Status: v1alpha1.ElevationStatus{Phase: v1alpha1.ElevationActive, Message: text, User: text, Until: &metav1.Time{Time: now}}},
			{ObjectMeta: metav1.ObjectMeta{Name: text}, Status: v1alpha1.ElevationStatus{Phase: v1alpha1.ElevationRefused, Message: text}},
		}, page.ElevationRights{User: text, Request: true, Approve: true, End: true, Key: text}),
		"cost": page.NewCost(page.Scope{Namespace: text, Tenant: text}, makeHistory(text)), "cost of the platform": page.AddBudgets(page.NewCost(page.Scope{}, makeHistory(text)), tenants),
		"no cost": page.AddBudgets(page.NewCostProblem(page.Scope{Namespace: text, Tenant: text}, page.NoLedger), []v1alpha1.Tenant{
			newBudget(text, func(b *v1alpha1.TenantBudgetStatus) { b.Stage = v1alpha1.BudgetDenyNewNodes }), newBudget(text, func(b *v1alpha1.TenantBudgetStatus) { b.Stage = v1alpha1.BudgetDenyNewPods }),
			newBudget(text, func(b *v1alpha1.TenantBudgetStatus) { b.Stage = v1alpha1.BudgetWarn }), newBudget(text, func(b *v1alpha1.TenantBudgetStatus) { b.Spent = "" }),
		}),
		"login":   {Title: page.T("Log in"), Heading: page.T("Log in"), Body: page.Login{Next: text, Problem: page.Raw(text)}},
		"message": {Title: page.Raw(text), Heading: page.Raw(text), Body: page.Message{Text: page.Raw(text)}},
	}
	for name, p := range pages {
		p.User, p.CSRF = text, "csrf"
		pages[name] = p
	}
	return pages
}

// newTimelines returns a node with all phases, each as long as its number, and a NodeClaim without any time.
func newTimelines(text string) []latency.Timeline {
	full := latency.Timeline{Node: text, Claim: text, Pool: text, InstanceType: text, Pod: text, Phases: map[latency.Phase]float64{}, Notes: []string{text}}
	names := []string{latency.PodCreated, latency.ClaimCreated, latency.ClaimLaunched}
	for _, e := range boot.Events() {
		names = append(names, string(e))
	}
	names = append(names, latency.NodeCreated, latency.InterfacesAttached, latency.LinksUp, latency.NodeReady, latency.ClaimInitialized, latency.PodScheduled, latency.PodReady)
	for i, name := range names {
		seconds := float64(10 * i)
		full.Events = append(full.Events, latency.Event{Name: name, Time: now.Add(time.Duration(seconds)*time.Second - time.Hour), Seconds: seconds})
	}
	for i, d := range latency.Definitions() {
		full.Phases[d.Phase] = float64(i + 1)
	}
	return []latency.Timeline{full, {Claim: text}}
}

// makeHistory returns costs of two months and two days.
func makeHistory(text string) *report.History {
	month := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	return &report.History{
		Now: now, Currency: text, By: report.ByWorkload,
		Months:    []report.Sum{{From: month.AddDate(0, -1, 0), Until: month, Total: 300 * money.Unit}, {From: month, Until: month.AddDate(0, 1, 0), Total: 250 * money.Unit, Unknown: true}},
		Days:      []report.Sum{{From: now.AddDate(0, 0, -1), Until: now, Total: 10 * money.Unit}, {From: now, Until: now.AddDate(0, 0, 1), Total: 5 * money.Unit}},
		ThisMonth: []*report.Line{{Name: text, Cost: 200 * money.Unit, Idle: 50 * money.Unit, Total: 250 * money.Unit, Estimated: 1, UnknownSeconds: 1, CostUnknown: true}, {Name: "b", IdleHidden: true}},
		LastMonth: []*report.Line{{Name: text, Total: 300 * money.Unit}}, Limits: []string{text}, MissingPrices: []string{text},
		Forecast: &report.Forecast{BaseFrom: now.AddDate(0, 0, -7), BaseUntil: now, Total: &report.ForecastLine{Month: 330 * money.Unit}, Lines: []*report.ForecastLine{{Name: text, Month: 330 * money.Unit}}},
	}
}

// listElements parses a page as a browser does. It returns each element with its attributes' names,
// and each link.
func listElements(t *testing.T, p page.Page) (elements, links []string) {
	t.Helper()
	text, err := page.Render(p)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := html.Parse(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range tree.Descendants() {
		if n.Type == html.CommentNode {
			elements = append(elements, "comment")
		}
		if n.Type != html.ElementNode {
			continue
		}
		element := n.Data
		for _, a := range n.Attr {
			element += " " + a.Key
			if a.Key == "href" || a.Key == "action" || a.Key == "src" {
				links = append(links, a.Val)
			}
		}
		elements = append(elements, element)
	}
	return elements, links
}

// TestHostileTexts expects the same elements and attributes on a page with any texts.
func TestHostileTexts(t *testing.T) {
	for name, payload := range payloads {
		hostile := newPages(payload)
		for kind, harmless := range newPages("x") {
			t.Run(name+" "+kind, func(t *testing.T) {
				want, _ := listElements(t, harmless)
				got, links := listElements(t, hostile[kind])
				if !slices.Equal(got, want) {
					t.Errorf("the page has other elements:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				for _, link := range links {
					if !strings.HasPrefix(link, "/") && link != "#main" && link != "data:," || strings.HasPrefix(link, "//") || strings.ContainsAny(strings.TrimPrefix(link, "#"), "?#\\") {
						t.Errorf("the page links to %.80q", link)
					}
				}
				text, err := page.Render(hostile[kind])
				if err != nil {
					t.Fatal(err)
				}
				if i := strings.IndexAny(string(text), "\x00\x07\x1b\r\u009b\u200f\u202e\u2066\u2028\u2029"); i >= 0 {
					t.Errorf("the page contains %q", string(text)[i:i+3])
				}
				if len(text) > 1<<20 {
					t.Errorf("the page has %d bytes", len(text))
				}
			})
		}
	}
}

// TestPagesNeedNoScript expects pages without inline scripts and styles, which the Content Security
// Policy would refuse, and without files of other hosts. The script that updates a page adds its button.
func TestPagesNeedNoScript(t *testing.T) {
	for name, p := range newPages("x") {
		elements, links := listElements(t, p)
		for _, element := range elements {
			words := strings.Fields(element)
			if words[0] == "script" && element != "script type src" {
				t.Errorf("%s: element %s", name, element)
			}
			if slices.Contains([]string{"style", "iframe", "object", "img", "base", "comment"}, words[0]) {
				t.Errorf("%s: element %s", name, element)
			}
			for _, attribute := range words[1:] {
				if attribute == "style" || strings.HasPrefix(attribute, "on") {
					t.Errorf("%s: attribute %s of %s", name, attribute, words[0])
				}
			}
		}
		if links[0] != page.StylePath || !slices.Contains(links, page.ScriptPath) {
			t.Errorf("%s: no style sheet or no script: %q", name, links)
		}
		if len(p.Commands) == 0 && name != "login" && name != "message" {
			t.Errorf("%s: no command for the same data", name)
		}
	}
	if style := string(page.Style); strings.Contains(style, "url(") || strings.Contains(style, "@import") || !strings.Contains(style, "prefers-color-scheme: dark") {
		t.Error("the style sheet loads files, or has no dark colours")
	}
}
