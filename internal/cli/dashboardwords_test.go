package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/prove/trial"
)

// TestDashboardWords expects the dashboard's pages to have every word of the commands.
func TestDashboardWords(t *testing.T) {
	finding := func(id string) *catalog.Finding {
		row := catalog.FindRow(id)
		if row == nil {
			t.Fatalf("the catalogue has no row %s", id)
		}
		f := row.ToFinding("seen")
		return &f
	}
	rows := catalog.Rows()
	first, second := finding(rows[0].ID), finding(rows[len(rows)-1].ID)
	first.Who, first.Run = catalog.Platform, "kubectl get pods"
	story := why.Story{
		Target: why.Target{Kind: "pod", Namespace: "shop", Name: "web-1"}, Verdict: why.Bad, Summary: "waits for a node", First: first, Latency: "a node took a minute",
		Steps: []why.Step{
			{Link: why.LinkPod, Object: "pod/web-1", Verdict: why.Bad, Observation: "it fails", Finding: first},
			{Link: why.LinkNode, Object: "node/a", Verdict: why.Waiting, Observation: "it starts", Finding: second},
			{Link: why.LinkPool, Object: "pool/a", Verdict: why.Hidden, Observation: "you may not read this"}, {Link: why.LinkClaim, Object: "nodeclaim/a", Verdict: why.Good, Observation: "it is ready"},
		},
	}
	m := &me.Me{
		User: "ana", Tenant: "shop", Namespaces: []me.Namespace{{Name: "shop", Roles: []string{"croft-viewer"}, Abilities: []string{"look"}}}, Restrictions: []string{"exec: no role of yours gives it"},
		Refused: []v1alpha1.RefusedWorkload{{Namespace: "shop", Kind: "Job", Name: "a", Message: "exceeded quota"}},
		Rules: v1alpha1.TenantRulesSpec{
			Domains: []string{"shop.example.org"}, Pools: []string{"apps"}, Egress: "Open",
			PolicySettings: v1alpha1.PolicySettings{Registries: []string{"*"}, StorageClasses: []string{"*"}},
		},
		Classes: map[string][]string{"storageClasses": {"fast", "slow"}},
	}
	report := &trial.Report{Unknown: []string{"whether all objects fit"}, Results: []trial.Result{
		{Line: 1, Object: "Deployment/web", Verdict: trial.Changed, Changes: []trial.Change{{Path: "spec.replicas", After: "3"}}},
		{Line: 3, Object: "Pod", CreatedFrom: "Deployment/web", Verdict: trial.Refused, Refusals: []trial.Reason{{Source: "croft-pods", Rule: "host", Message: "spec.hostNetwork: no", Line: 9}}},
	}}
	var whyText, meText, tryText bytes.Buffer
	(&app{out: &tryText}).printVerdicts(report, time.Second)
	printStory(&whyText, story)
	(&app{out: &meText}).printMe(m)
	for name, c := range map[string]struct {
		printed string
		pages   []page.Page
		// others are words of tables in a terminal.
		others []string
	}{
		"why": {whyText.String(), []page.Page{page.NewStory(&story)}, nil},
		"me":  {meText.String(), []page.Page{page.NewOverview("shop", m, nil), page.NewAccess("shop", m, nil)}, []string{"ana", "-", "refused:"}},
		"try": {tryText.String(), []page.Page{page.NewTry("shop", "", page.Text{}, report)}, []string{"manifest", ":1", ":3", "-", "changed;", "tried", "in", "1.0", "s"}},
	} {
		t.Run(name, func(t *testing.T) {
			var words []string
			for _, p := range c.pages {
				words = append(words, listWords(t, p)...)
			}
			for _, word := range strings.Fields(c.printed) {
				word = strings.ToLower(strings.TrimSuffix(word, ":"))
				if !slices.Contains(words, word) && !slices.Contains(c.others, word) {
					t.Errorf("the page lacks %q of\n%s\nit has %q", word, c.printed, words)
				}
			}
		})
	}
}

// listWords returns the words of a page in lower case, without a colon at their end.
func listWords(t *testing.T, p page.Page) []string {
	t.Helper()
	text, err := page.Render(p)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for z := html.NewTokenizer(bytes.NewReader(text)); z.Next() != html.ErrorToken; {
		if token := z.Token(); token.Type == html.TextToken {
			for _, word := range strings.Fields(strings.ToLower(token.Data)) {
				words = append(words, strings.TrimSuffix(word, ":"))
			}
		}
	}
	return words
}
