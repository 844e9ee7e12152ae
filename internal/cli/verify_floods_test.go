package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/internal/prove/flood"
)

// TestFloodsUnconfirmed expects no load without a terminal and without --yes.
func TestFloodsUnconfirmed(t *testing.T) {
	for _, flags := range []string{"--floods", "--floods=lists -o json"} {
		var out, errOut bytes.Buffer
		status := Main(append([]string{"verify"}, strings.Fields(flags)...), strings.NewReader("yes\n"), &out, &errOut)
		if status != exitBadInput || out.Len() > 0 || strings.Count(errOut.String(), "\n") != 1 || !strings.Contains(errOut.String(), "add --yes") {
			t.Errorf("%s: exit status %d: %s%s", flags, status, out.String(), errOut.String())
		}
	}
}

// TestPrintFloods expects a line for each operation, also of a flood at which the measurement stopped.
func TestPrintFloods(t *testing.T) {
	phase := func(seconds float64) flood.Phase {
		p := flood.Phase{}
		for _, o := range flood.Operations {
			p[o.Name] = &flood.Observation{Seconds: []float64{seconds}}
		}
		return p
	}
	results := []flood.Result{
		{Flood: "lists", Summary: "many lists", Before: phase(0.0021), During: phase(0.003), After: phase(0.002), Requests: &flood.RequestCount{Sent: 7}},
		{Flood: "pods", Before: phase(0.002), During: phase(0.02), Requests: &flood.RequestCount{Sent: 1}},
	}
	results[1].During["list pods"] = &flood.Observation{Seconds: []float64{30}, Failures: 1, Failure: "refused"}
	stopped := fmt.Errorf("no clean-up: %w", &flood.Stopped{Flood: "pods", Reason: "slow"})
	var out bytes.Buffer
	if err := (&app{out: &out}).printFloods(results, stopped, formatTable); err != nil {
		t.Fatal(err)
	}
	want := `FLOOD   VICTIM               P50 ALONE   P50    P99 ALONE   P99    RATIO     TARGET   FAILED ALONE   FAILED
lists   create a pod         2ms         3ms    2.1ms       3ms    1.43      1.5      0              0
lists   list pods            2ms         3ms    2.1ms       3ms    1.43      1.5      0              0
lists   get a Secret         2ms         3ms    2.1ms       3ms    1.43      1.5      0              0
lists   pending to Running   2ms         3ms    2.1ms       3ms    1.43      2.0      0              0
pods    create a pod         2ms         20ms   2ms         20ms   10.00     1.5      0              0
pods    list pods            2ms         30s    2ms         30s    15000.00  1.5      0              1
pods    get a Secret         2ms         20ms   2ms         20ms   10.00     1.5      0              0
pods    pending to Running   2ms         20ms   2ms         20ms   10.00     2.0      0              0
`
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(out.String())); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, out.String())
	}
	if slow := countSlow(results); slow != 4 {
		t.Errorf("%d operations above their target", slow)
	}
	out.Reset()
	if err := (&app{out: &out}).printFloods(results, stopped, formatJSON); err != nil {
		t.Fatal(err)
	}
	var data struct {
		Floods  []floodData
		Stopped *flood.Stopped
	}
	if err := json.Unmarshal(out.Bytes(), &data); err != nil {
		t.Fatal(err)
	}
	if len(data.Floods) != 2 || len(data.Floods[0].Operations) != 4 || data.Floods[0].Requests.Sent != 7 || data.Stopped == nil || data.Stopped.Flood != "pods" {
		t.Errorf("unexpected data: %s", out.String())
	}
	out.Reset()
	if err := (&app{out: &out}).printFloods(nil, errors.New("refused"), formatJSON); err != nil || !strings.Contains(out.String(), `"floods": []`) || strings.Contains(out.String(), "stopped") {
		t.Errorf("without results: %v: %s", err, out.String())
	}
}
