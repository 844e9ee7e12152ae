package podusage

import (
	"slices"
	"testing"
)

// TestParse expects the sums of containers, in millionths of a CPU and in MiB.
func TestParse(t *testing.T) {
	pods, err := Parse([]byte(`{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": [
{"metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}}, "timestamp": "2026-11-26T20:00:00Z", "window": "15.2s",
 "containers": [{"name": "main", "usage": {"cpu": "1250500n", "memory": "20480Ki"}}, {"name": "proxy", "usage": {"cpu": "2m", "memory": "1"}}]},
{"metadata": {"name": "none", "namespace": "shop"}, "containers": []}]}`))
	want := []Pod{{Namespace: "shop", Name: "web", CPU: 3251, Memory: 21}, {Namespace: "shop", Name: "none"}}
	if err != nil || !slices.Equal(pods, want) {
		t.Errorf("%+v, %v; want %+v", pods, err, want)
	}
	for _, text := range []string{`{"items": [{"containers": [{"usage": {"cpu": "fast"}}]}]}`, `[]`, `<html>`} {
		if pods, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s is no error: %+v", text, pods)
		}
	}
}
