package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/discovery"

	"croft.dev/croft/internal/operate/apply"
)

// testSteadyState fails if apply or the operator changes objects that are up to date: for
// example because a status contains the time, or because two of them write a value differently.
func testSteadyState(t *testing.T, c *twoTenants) {
	printed := c.applyFile(t, c.file).stdout
	for line := range strings.Lines(printed) {
		if !strings.HasSuffix(line, " unchanged\n") {
			t.Errorf("applying the same file once more: %s", line)
		}
	}
	declared := 1 + len(c.estate.Pools) + len(c.estate.Tenants)
	if lines := strings.Count(printed, "\n"); lines != declared {
		t.Errorf("%d lines, want one for each of the %d objects that are declared:\n%s", lines, declared, printed)
	}

	c.awaitIdleOperator(t)
	before, tenants := c.listRevisions(t), c.listTenants(t)
	if err := c.Stop("croft"); err != nil {
		t.Fatal(err)
	}
	c.resumeOperator(t)
	expectSame(t, "after a restart of the operator", before, c.listRevisions(t))
	if t.Failed() {
		t.Logf("Tenants (-before the restart +after):\n%s", cmp.Diff(tenants, c.listTenants(t)))
	}
}

// listRevisions returns a value for each object of croft and each declared object that changes when
// the object is written.
func (c *twoTenants) listRevisions(t testing.TB) map[apply.Ref]string {
	t.Helper()
	all := map[apply.Ref]string{}
	for _, found := range []objectMetadata{c.listEverything(t, ours), c.listDeclared(t)} {
		for ref, o := range found {
			all[ref] = "revision " + o.ResourceVersion
			// Karpenter updates the NodePool's status, and kube-controller-manager the
			// policies', whose expressions it type-checks.
			if ref.Kind == "NodePool" || ref.Kind == "ValidatingAdmissionPolicy" {
				all[ref] = "generation " + strconv.FormatInt(o.Generation, 10)
			}
		}
	}
	return all
}

// listDeclared returns the Platform, the Pools and the Tenants.
func (c *cluster) listDeclared(t testing.TB) objectMetadata {
	t.Helper()
	declared := objectMetadata{}
	for ref, o := range c.listEverything(t) {
		if ref.Group == "croft.dev" && ref.Kind != "TenantRules" {
			declared[ref] = o
		}
	}
	return declared
}

// resumeOperator starts the sandbox's operator again, and waits until it has reconciled all
// declared objects. It keeps no state, so at the end it probes the walls again, by dry runs of
// pods.
func (c *cluster) resumeOperator(t testing.TB) {
	t.Helper()
	namespaces, err := c.listTenantNamespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before, err := c.countProbes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start("croft"); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, patience, "croft to try a pod in each tenant's namespace", func(ctx context.Context) error {
		now, err := c.countProbes(ctx)
		if tried := now - before; err == nil && tried < float64(len(namespaces)) {
			err = fmt.Errorf("it has tried %v in %d namespaces", tried, len(namespaces))
		}
		return err
	})
	c.awaitIdleOperator(t)
}

// countProbes returns the number of pods created in dry runs, from the API server's metrics.
func (c *cluster) countProbes(ctx context.Context) (float64, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return 0, err
	}
	page, err := d.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	return metrics(page).sumSeries("apiserver_request_total", `dry_run="All"`, `resource="pods"`, `verb="POST"`)
}

// awaitIdleOperator waits until the sandbox's operator has no work left.
func (c *cluster) awaitIdleOperator(t testing.TB) {
	t.Helper()
	awaitCondition(t, patience, "the operator to be idle", func(ctx context.Context) error {
		metrics, err := c.readMetrics(ctx)
		if err != nil {
			return err
		}
		waiting, err := metrics.sumSeries("workqueue_depth")
		if err != nil {
			return err
		}
		working, err := metrics.sumSeries("controller_runtime_active_workers")
		if err == nil && waiting+working > 0 {
			err = fmt.Errorf("%v things are left to do", waiting+working)
		}
		return err
	})
}

// metrics is a page in the Prometheus text format.
type metrics string

// readMetrics reads the metrics of the sandbox's operator.
func (c *cluster) readMetrics(ctx context.Context) (metrics, error) {
	var ports map[string]int
	content, err := os.ReadFile(filepath.Join(c.Dir, "ports.json"))
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(content, &ports); err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", ports["croft-metrics"]), nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	return metrics(page), err
}

// sumSeries adds up the series of a metric that have all of the labels. A metric without any series
// is an error: after a change of its name the sum would always be 0.
func (m metrics) sumSeries(name string, labels ...string) (float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(m)))
	if err != nil {
		return 0, err
	}
	family, found := families[name]
	if !found {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	total := 0.0
	for _, series := range family.Metric {
		has := func(label string) bool {
			return slices.ContainsFunc(series.Label, func(l *dto.LabelPair) bool {
				return fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()) == label
			})
		}
		if !slices.ContainsFunc(labels, func(label string) bool { return !has(label) }) {
			total += series.GetGauge().GetValue() + series.GetCounter().GetValue()
		}
	}
	return total, nil
}
