package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/prove/trial"
)

// TestFloodsAreAdmitted expects croft's rules to admit the objects of all floods, and of the victim. An object
// that croft refuses would be no load.
func TestFloodsAreAdmitted(t *testing.T) {
	e, err := tenants.Build(neighboursText)
	if err != nil {
		t.Fatal(err)
	}
	teams := map[string]*trial.Trial{}
	for _, team := range []string{victimTeam, neighbourTeam} {
		if teams[team], err = trial.New(e, e.FindTenant(team), trial.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	n := &neighbours{mostBytes: largestText}
	v := &victim{cluster: n}
	for _, test := range []struct {
		name    string
		team    string
		objects []client.Object
		refused bool
	}{
		{"victim's pod", victimTeam, []client.Object{v.buildGatedPod()}, false},
		{"victim's roll-out", victimTeam, []client.Object{n.buildPod(victimTeam, "roll-out-")}, false},
		{"lists", neighbourTeam, []client.Object{newFloodConfigMap(largestText)}, false},
		{"accounts", neighbourTeam, []client.Object{newLister(), newListerBinding("flood")}, false},
		{"owners", neighbourTeam, []client.Object{newOrphan()}, false},
		{"scalers", neighbourTeam, []client.Object{newScaler("flood")}, false},
		{"scalers' target", neighbourTeam, []client.Object{n.buildDeployment()}, false},
		{"configmaps", neighbourTeam, []client.Object{newFloodConfigMap(1 << 10)}, false},
		{"pods", neighbourTeam, []client.Object{n.buildUnschedulablePod()}, false},
		{"events", neighbourTeam, []client.Object{newFloodEvent()}, false},
		{"leases", neighbourTeam, []client.Object{newFloodLease()}, false},
		{"jobs", neighbourTeam, []client.Object{n.buildFailingJob()}, false},
		{"services", neighbourTeam, []client.Object{newFloodService()}, false},
		{"sizes", neighbourTeam, []client.Object{newFloodConfigMap(n.mostBytes)}, false},
		{"more than the maximum size", neighbourTeam, []client.Object{newFloodConfigMap(estate.MaxObjectBytes)}, true},
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
	all, err := tenants.ToUnstructured([]client.Object{o})
	if err != nil {
		t.Fatal(err)
	}
	kind, err := apiutil.GVKForObject(o, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	all[0].SetGroupVersionKind(kind)
	return all[0]
}

func TestChooseFloods(t *testing.T) {
	if all, err := chooseFloods(""); err != nil || len(all) != len(floods) {
		t.Errorf("%d floods (%v)", len(all), err)
	}
	some, err := chooseFloods("sizes,lists")
	if err != nil || len(some) != 2 || some[0].name != "lists" || some[1].name != "sizes" {
		t.Errorf("%v (%v)", some, err)
	}
	if _, err := chooseFloods("lists,hail"); err == nil || !strings.Contains(err.Error(), `"hail"`) {
		t.Errorf("an unknown flood: %v", err)
	}
	named := map[string]bool{}
	for _, f := range floods {
		if named[f.name] || f.clients < 1 || f.prepare == nil && f.act == nil {
			t.Errorf("%+v", f)
		}
		named[f.name] = true
	}
}

// TestPartsAddUp expects the parts of all clients to be the whole.
func TestPartsAddUp(t *testing.T) {
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
		o, number := &observation{}, 0
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

func TestPhaseWithoutSuccess(t *testing.T) {
	p := phase{"list pods": {Seconds: []float64{30}, Failures: 1, Failure: "refused"}}
	if err := p.check(); err == nil || !strings.Contains(err.Error(), "list pods") {
		t.Errorf("no operation succeeded: %v", err)
	}
	p["list pods"].Seconds = append(p["list pods"].Seconds, 0.1)
	if err := p.check(); err != nil {
		t.Error(err)
	}
}

func TestFloodWithoutSuccess(t *testing.T) {
	c := &requestCount{}
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

// TestCompareFloods expects a row with the ratio to alone for each operation, and one with the ratio to the
// flood without croft if it was measured. Failures alone are in the notes, too.
func TestCompareFloods(t *testing.T) {
	repeat := func(seconds float64) phase {
		p := phase{}
		for _, o := range operations {
			p[o.name] = &observation{Seconds: []float64{seconds, seconds, seconds}}
		}
		return p
	}
	result := func(name string, alone, during float64) floodResult {
		return floodResult{Flood: name, Summary: "a flood", Before: repeat(alone), During: repeat(during), After: repeat(alone), Requests: &requestCount{Sent: 7, Refused: 2}}
	}
	with := []floodResult{result("lists", 0.002, 0.003), result("pods", 0.002, 0.004)}
	without := result("lists", 0.001, 0.012)
	for _, alone := range []*observation{with[1].After["list pods"], without.Before["list pods"]} {
		alone.Failures, alone.Failure = 1, "refused"
	}
	with[0].Naming, with[1].Storage, without.Storage = &naming{Named: true}, &storage{}, &storage{}
	rows := compareFloods(with, []floodResult{without})
	if want := 2*len(operations) + len(operations) + 2; len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for i, want := range map[int]struct {
		name               string
		croft, alternative float64
		note               string
	}{
		0:  {"lists: create a pod, p99", 0.003, 0.002, "a flood: 7 requests, 2 of them refused"},
		1:  {"  and without croft", 0.003, 0.012, "there 12.00× of 1 ms alone; p50 there 12 ms, alone 1 ms; the flood there: 7 requests, 2 of them refused"},
		2:  {"lists: list pods, p99", 0.003, 0.002, "target 1.5×; p50 3 ms, alone 2 ms; p99 alone before 2 ms, after 2 ms; 3 samples, alone 6"},
		3:  {"  and without croft", 0.003, 0.012, "; there alone before 1 of 3 FAILED: refused"},
		8:  {"lists: until croft doctor names the tenant", 0, 30, "from the start of the flood"},
		9:  {"pods: create a pod, p99", 0.004, 0.002, "a flood"},
		10: {"pods: list pods, p99", 0.004, 0.002, "; alone after 1 of 3 FAILED: refused"},
		13: {"pods: etcd's database", 0, 0, "compared with before"},
	} {
		r := rows[i]
		if r.Name != want.name || r.Croft != want.croft || r.Alternative != want.alternative || !strings.Contains(r.Note, want.note) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	raw, err := json.Marshal(rows[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"croft":{"flood":"lists"`, `"withoutCroft":{"flood":"lists"`, `"seconds":[0.003,0.003,0.003]`, `"ratio":1.5`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("the raw data lacks %s: %s", part, raw)
		}
	}
}
