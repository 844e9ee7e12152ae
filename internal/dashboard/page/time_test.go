package page_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/nodes"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/walls"
	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

// clock matches every time of the day.
var clock = regexp.MustCompile(`\d\d:\d\d`)

// listTimes returns the class, the attribute and the text of each time on a page, and the texts outside of
// the elements for times that contain one.
func listTimes(t *testing.T, p page.Page) (times, others []string) {
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
		switch {
		case n.Type == html.ElementNode && n.Data == "time":
			line := ""
			for _, a := range n.Attr {
				line += a.Val + " "
			}
			times = append(times, line+n.FirstChild.Data)
		case n.Type == html.TextNode && n.Parent.Data != "time" && clock.MatchString(n.Data):
			others = append(others, n.Data)
		}
	}
	return times, others
}

// TestTimes expects each time of a page in an element that the page's script converts to the viewer's time
// zone, and that names the zone without the script.
func TestTimes(t *testing.T) {
	const (
		absolute = "2026-11-26T11:00:00Z 2026-11-26 11:00:00 UTC"
		age      = "age 2026-11-26T11:00:00Z 60m"
	)
	at := metav1.Time{Time: now.Add(-time.Hour)}
	created := metav1.ObjectMeta{Name: "a", CreationTimestamp: at}
	text := "since " + wording.FormatTime(at.Time) + ", and until 2026-02-31 00:00:00 UTC."
	tenants := []v1alpha1.Tenant{{ObjectMeta: created}}
	events := []corev1.Event{{LastTimestamp: at}}
	one := []workloads.Workload{{Kind: "pod", Name: "a", Created: at.Time}, {Kind: "job", Name: "b", Created: at.Time}, {Kind: "job", Name: "c"}}
	finding := &catalog.Finding{ID: "a", Cause: text, Fix: text}
	for name, c := range map[string]struct {
		page page.Page
		want []string
	}{
		"tenants":   {page.NewTenants(tenants, page.Filter{}, now), []string{age}},
		"start":     {page.NewStart(tenants, false, now), []string{age}},
		"workloads": {page.NewWorkloads("shop", &workloads.List{Workloads: one}, now), []string{age, age}},
		"jobs":      {page.NewJobs("shop", &workloads.List{Workloads: one[1:]}, now), []string{age}},
		"pools": {page.NewPools(&nodes.Snapshot{Pools: []v1alpha1.Pool{{ObjectMeta: created}}, Claims: []karpenterv1.NodeClaim{{ObjectMeta: created}}}, now),
			[]string{age, age}},
		"nodes":  {page.NewPools(&nodes.Snapshot{Nodes: []corev1.Node{{ObjectMeta: created}}}, now), []string{age}},
		"events": {page.NewWorkload(&why.Story{}, page.Details{Events: events}), []string{absolute}},
		"walls": {page.NewWalls(&walls.Snapshot{Repairs: events, Platform: v1alpha1.Platform{Status: v1alpha1.PlatformStatus{Verify: &v1alpha1.VerifyStatus{Time: at}}}}, now),
			[]string{absolute, absolute, absolute}},
		"explanations": {page.NewStory(&why.Story{Summary: text, Latency: text, First: finding, Steps: []why.Step{{Observation: text, Finding: &catalog.Finding{ID: "b", Cause: text, Fix: text}}}}),
			slices.Repeat([]string{absolute}, 7)},
	} {
		t.Run(name, func(t *testing.T) {
			times, others := listTimes(t, c.page)
			if !slices.Equal(times, c.want) {
				t.Errorf("got %q, want %q", times, c.want)
			}
			for _, other := range others {
				if strings.TrimSpace(other) != ", and until 2026-02-31 00:00:00 UTC." {
					t.Errorf("no time element for %q", other)
				}
			}
		})
	}
}

// TestVersion expects a new version of a page for each change but the age of its objects.
func TestVersion(t *testing.T) {
	newVersion := func(change func(*v1alpha1.Tenant), at time.Time) string {
		tenant := v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop", CreationTimestamp: metav1.Time{Time: now.Add(-time.Hour)}}}
		change(&tenant)
		p := page.NewTenants([]v1alpha1.Tenant{tenant}, page.Filter{}, at)
		p.Live = true
		version, err := page.Version(p)
		if err != nil {
			t.Fatal(err)
		}
		text, err := page.Render(p)
		if err != nil || !strings.Contains(string(text), `<main id="main" data-version="`+version+`">`) {
			t.Errorf("%v: the page has no version %s:\n%s", err, version, text)
		}
		return version
	}
	first := newVersion(func(*v1alpha1.Tenant) {}, now)
	if later := newVersion(func(*v1alpha1.Tenant) {}, now.Add(time.Minute)); later != first {
		t.Error("the age of an object changes the version")
	}
	for name, change := range map[string]func(*v1alpha1.Tenant){
		"status":   func(tenant *v1alpha1.Tenant) { tenant.Status.Pools = []string{"apps"} },
		"recreate": func(tenant *v1alpha1.Tenant) { tenant.CreationTimestamp.Time = now.Add(-time.Minute) },
	} {
		if newVersion(change, now) == first {
			t.Errorf("the version does not change with: %s", name)
		}
	}
}
