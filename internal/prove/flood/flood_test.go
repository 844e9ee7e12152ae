package flood

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/prove/trial"
)

// twoTeams declares two tenants with croft's default limits.
const twoTeams = `platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  nodeClass: {kwok: {}}
pools:
  apps:
    instances: {instanceTypes: [m5.large]}
tenants:
  victim: {pool: apps, access: [{group: victim-team, role: operator}]}
  neighbour: {pool: apps, access: [{group: neighbour-team, role: operator}]}
`

// TestFloodsAreAdmitted expects croft's rules to admit the objects of all floods, and of the victim. An object
// that croft refuses would be no load.
func TestFloodsAreAdmitted(t *testing.T) {
	declaration, problems := manifest.Parse("croft.yaml", []byte(twoTeams))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := estate.Build(declaration)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	teams := map[string]*trial.Trial{}
	for _, team := range []string{"victim", "neighbour"} {
		tries, err := trial.New(e, e.FindTenant(team), trial.Options{})
		if err != nil {
			t.Fatal(err)
		}
		teams[team] = tries
	}
	n := &Neighbours{Options: Options{Victim: Team{Namespace: "victim"}, Neighbour: Team{Namespace: "neighbour"}, MostBytes: LargestText}}
	v := &victim{cluster: n}
	for _, test := range []struct {
		name    string
		team    string
		objects []client.Object
		refused bool
	}{
		{"victim's pod", "victim", []client.Object{v.buildGatedPod()}, false},
		{"victim's roll-out", "victim", []client.Object{n.buildPod(n.Victim, "roll-out-")}, false},
		{"lists", "neighbour", []client.Object{n.newFloodConfigMap(LargestText)}, false},
		{"accounts", "neighbour", []client.Object{n.newLister(), n.newListerBinding("flood")}, false},
		{"owners", "neighbour", []client.Object{n.newOrphan()}, false},
		{"scalers", "neighbour", []client.Object{n.newScaler("flood")}, false},
		{"scalers' target", "neighbour", []client.Object{n.buildDeployment()}, false},
		{"configmaps", "neighbour", []client.Object{n.newFloodConfigMap(1 << 10)}, false},
		{"pods", "neighbour", []client.Object{n.buildUnschedulablePod()}, false},
		{"events", "neighbour", []client.Object{n.newFloodEvent()}, false},
		{"leases", "neighbour", []client.Object{n.newFloodLease()}, false},
		{"jobs", "neighbour", []client.Object{n.buildFailingJob()}, false},
		{"services", "neighbour", []client.Object{n.newFloodService()}, false},
		{"sizes", "neighbour", []client.Object{n.newFloodConfigMap(n.MostBytes)}, false},
		{"more than the maximum size", "neighbour", []client.Object{n.newFloodConfigMap(estate.MaxObjectBytes)}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var manifests []trial.Manifest
			for _, o := range test.objects {
				manifests = append(manifests, trial.Manifest{File: test.name, Line: 1, Object: convertToManifest(t, o)})
			}
			report, err := teams[test.team].Try(t.Context(), manifests)
			if err != nil {
				t.Fatal(err)
			}
			if report.Refuses() != test.refused {
				t.Errorf("refused: %t; %+v", report.Refuses(), report.Results)
			}
		})
	}
}

// convertToManifest returns an object as a file would contain it.
func convertToManifest(t *testing.T, o client.Object) *unstructured.Unstructured {
	t.Helper()
	o.SetName(cmp.Or(o.GetName(), "flood"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	kind, err := apiutil.GVKForObject(o, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	converted := &unstructured.Unstructured{Object: content}
	converted.SetGroupVersionKind(kind)
	return converted
}

func TestChoose(t *testing.T) {
	if all, err := Choose(nil); err != nil || len(all) != len(All) {
		t.Errorf("%d floods (%v)", len(all), err)
	}
	some, err := Choose([]string{"sizes", "lists"})
	if err != nil || len(some) != 2 || some[0].Name != "lists" || some[1].Name != "sizes" {
		t.Errorf("%v (%v)", some, err)
	}
	if _, err := Choose([]string{"lists", "hail"}); err == nil || !strings.Contains(err.Error(), `"hail"`) {
		t.Errorf("an unknown flood: %v", err)
	}
	named := map[string]bool{}
	for _, f := range All {
		if named[f.Name] || f.clients < 1 || f.prepare == nil && f.act == nil {
			t.Errorf("%+v", f)
		}
		named[f.Name] = true
	}
}

// TestGetPart expects the parts of all clients to add up to the total.
func TestGetPart(t *testing.T) {
	for _, test := range []struct{ total, clients int }{{80, 64}, {2000, 40}, {192, 64}, {250, 8}, {3, 16}} {
		sum := 0
		for number := range test.clients {
			u := flooder{number: number, clients: test.clients}
			sum += u.getPart(test.total)
		}
		if sum != test.total {
			t.Errorf("%d clients create %d of %d", test.clients, sum, test.total)
		}
	}
}

// TestCollect expects a constant rate, also if operations take longer than the time between two of them. One
// that fails counts as one that took until the time limit.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, number := &Observation{}, 0
		began := time.Now()
		o.collect(t.Context(), time.Second, 10*time.Second, func(context.Context) (float64, error) {
			o.mu.Lock()
			number++
			fails := number == 4
			o.mu.Unlock()
			if fails {
				return 0.1, errors.New("refused")
			}
			return timeSeconds(func() error { time.Sleep(5 * time.Second); return nil })
		})
		if len(o.Seconds) != 10 || o.Failures != 1 || o.Failure != "refused" {
			t.Errorf("%d operations, %d failures: %s", len(o.Seconds), o.Failures, o.Failure)
		}
		if took := time.Since(began); took != 14*time.Second {
			t.Errorf("the last operation ended after %s", took)
		}
		slow := 0
		for _, s := range o.Seconds {
			if s == operationTimeout.Seconds() {
				slow++
			}
		}
		if slow != 1 {
			t.Errorf("durations: %v", o.Seconds)
		}
		if notes := o.describeFailures("alone"); len(notes) != 1 || notes[0] != "alone 1 of 10 FAILED: refused" {
			t.Errorf("notes: %q", notes)
		}
	})
}

func TestPhaseCheck(t *testing.T) {
	p := Phase{"list pods": {Seconds: []float64{30}, Failures: 1, Failure: "refused"}}
	if err := p.check(); err == nil || !strings.Contains(err.Error(), "list pods") {
		t.Errorf("no operation succeeded: %v", err)
	}
	p["list pods"].Seconds = append(p["list pods"].Seconds, 0.1)
	if err := p.check(); err != nil {
		t.Error(err)
	}
}

func TestRequestCountCheck(t *testing.T) {
	c := &RequestCount{}
	c.add(errors.New("refused"))
	c.add(context.Canceled)
	if err := c.check(); err == nil || c.Sent != 1 || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%d requests: %v", c.Sent, err)
	}
	c.add(nil)
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

func TestDocsNameFloods(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/how-to/noisy-neighbours.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ListNames() {
		if !strings.Contains(string(docs), "`"+name+"`") {
			t.Errorf("docs/how-to/noisy-neighbours.md does not name the flood %s", name)
		}
	}
}
