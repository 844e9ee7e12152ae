package latency_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/picture/picturetest"
	"croft.dev/croft/internal/diagnose/latency"
)

var update = flag.Bool("update", false, "rewrite docs/reference/latency.svg")

// readNodes reads the nodes of docs/how-to/latency.md.
func readNodes(t *testing.T) latency.Objects {
	t.Helper()
	text, err := os.ReadFile("testdata/nodes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []json.RawMessage }
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	var o latency.Objects
	for _, item := range list.Items {
		var kind struct{ Kind string }
		err := json.Unmarshal(item, &kind)
		switch kind.Kind {
		case "NodeClaim":
			err = errors.Join(err, appendItem(&o.Claims, item))
		case "Node":
			err = errors.Join(err, appendItem(&o.Nodes, item))
		case "Pod":
			err = errors.Join(err, appendItem(&o.Pods, item))
		case "Event":
			err = errors.Join(err, appendItem(&o.Events, item))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func appendItem[T any](to *[]T, item []byte) error {
	var one T
	err := json.Unmarshal(item, &one)
	*to = append(*to, one)
	return err
}

// TestRenderSVG compares docs/reference/latency.svg with the picture of the example.
func TestRenderSVG(t *testing.T) {
	got := latency.RenderSVG(latency.Build(readNodes(t), latency.Options{}))
	picturetest.ExpectFile(t, got, "../../../docs/reference/latency.svg", *update)
	for _, d := range latency.Definitions() {
		if d.Lane != latency.Totals && !strings.Contains(got, d.Phase.Title()+": "+d.Description+"</text>") {
			t.Errorf("the legend does not explain %s", d.Phase)
		}
	}
}

// TestRenderSVGEscapes expects names of objects not to add markup.
func TestRenderSVGEscapes(t *testing.T) {
	o := readNodes(t)
	for i := range o.Claims {
		o.Claims[i].Labels[corev1.LabelTopologyZone] = "</text><script>alert(1)</script>\u202e\x00&"
	}
	got := latency.RenderSVG(latency.Build(o, latency.Options{}))
	picturetest.ExpectWellFormed(t, got)
	if strings.Contains(got, "<script") || strings.ContainsAny(got, "\u202e\x00") {
		t.Error("a label became a part of the picture")
	}
}

// TestRenderSVGOfManyNodes draws no nodes, and more nodes than a picture shows.
func TestRenderSVGOfManyNodes(t *testing.T) {
	picturetest.ExpectWellFormed(t, latency.RenderSVG(nil))
	var many []latency.Timeline
	for i := range 60 {
		start := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
		many = append(many, latency.Timeline{Node: fmt.Sprintf("node-%d-", i), Events: []latency.Event{
			{Name: latency.NodeCreated, Time: start},
			{Name: latency.NodeReady, Time: start.Add(time.Duration(i) * time.Second), Seconds: float64(i)},
		}})
	}
	got := latency.RenderSVG(many)
	picturetest.ExpectWellFormed(t, got)
	if !strings.Contains(got, "the slowest 40 of 60 nodes") || !strings.Contains(got, "node-20-") ||
		strings.Contains(got, "node-19-") {
		t.Error("the picture does not show the slowest 40")
	}
	if many[0].Node != "node-0-" {
		t.Error("the caller's list was sorted")
	}
}

// TestRenderSVGOfPlainNodes expects the legend to omit the phases of nodes with logs and
// networks.
func TestRenderSVGOfPlainNodes(t *testing.T) {
	got := latency.RenderSVG(latency.Build(*newObjects(), latency.Options{}))
	picturetest.ExpectWellFormed(t, got)
	for _, d := range latency.Definitions() {
		explained := strings.Contains(got, d.Phase.Title()+": "+d.Description)
		if explained == d.IsWide() && d.Lane != latency.Totals {
			t.Errorf("%s: explained %v", d.Phase, explained)
		}
	}
}
