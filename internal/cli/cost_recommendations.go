package cli

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/podusage"
	"croft.dev/croft/internal/cost/recommend"
)

// recommendSavings prints changes of croft.yaml that save money.
func (a *app) recommendSavings(ctx context.Context, o costOptions) error {
	prices, err := a.readPrices(o)
	if err != nil {
		return err
	}
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	var pools v1alpha1.PoolList
	found, err := readCostObjects(ctx, c, namedList{"pools.croft.dev", &pools})
	if err != nil {
		return toFailure(err)
	}
	in := recommend.Input{Objects: found, Pools: pools.Items, Prices: prices}
	in.Usage, err = readPodUsage(ctx, c)
	if ctx.Err() != nil {
		return toFailure(err)
	}
	in.UsageProblem = describeUsageProblem(err) // other recommendations need no usage
	r := recommend.Build(in)
	if o.output == formatJSON || o.output == formatYAML {
		return o.output.print(a.out, r)
	}
	a.printRecommendations(r)
	return nil
}

// readPodUsage reads the usage of all pods from metrics-server.
func readPodUsage(ctx context.Context, c client.Reader) (recommend.Usage, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetricsList"})
	if err := c.List(ctx, list); err != nil {
		return nil, err
	}
	usage := recommend.Usage{}
	for i := range list.Items {
		var pod podusage.PodMetrics
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &pod); err != nil {
			return nil, err
		}
		containers := map[string]corev1.ResourceList{}
		for _, container := range pod.Containers {
			containers[container.Name] = container.Usage
		}
		usage[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = containers
	}
	return usage, nil
}

// describeUsageProblem returns the reason why usage is unknown, or "".
func describeUsageProblem(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsForbidden(err):
		return "you may not list pods.metrics.k8s.io"
	case meta.IsNoMatchError(err):
		return "the cluster has no metrics-server"
	default:
		return "metrics-server does not answer, or its answer cannot be read: " + err.Error()
	}
}

func (a *app) printRecommendations(r *recommend.Report) {
	if len(r.Recommendations) == 0 {
		printSafely(a.err, "no change that saves money is known\n")
	} else {
		printSafely(a.out, "savings in %d hours, in %s\n\n", ledger.HoursPerMonth, r.Currency)
		var rows [][]string
		for i := range r.Recommendations {
			rows = append(rows, formatRecommendation(&r.Recommendations[i])...)
		}
		if r.MonthlySavings != nil {
			rows = append(rows, []string{r.MonthlySavings.Format(2), "total"})
		}
		printTable(a.out, []string{"SAVES/MONTH", "POOL", "RECOMMENDATION"}, rows)
		printSafely(a.out, "\n")
	}
	a.printMissingPrices(r.MissingPrices)
	for i := range r.Recommendations {
		for _, assumption := range r.Recommendations[i].Assumptions {
			printSafely(a.out, "~ pool %s, %s: if %s\n", r.Recommendations[i].Pool, r.Recommendations[i].Kind, assumption)
		}
	}
	for _, limit := range r.Limits {
		printSafely(a.out, "~ %s\n", limit)
	}
}

// formatRecommendation returns the rows of a recommendation: the reason, new requests, and the lines of croft.yaml.
func formatRecommendation(r *recommend.Recommendation) [][]string {
	rows := [][]string{{r.MonthlySavings.Format(2), r.Pool, r.Reason}}
	for i := range r.Requests {
		rows = append(rows, []string{"", "", formatRequest(&r.Requests[i])})
	}
	for line := range strings.Lines(r.Change) {
		rows = append(rows, []string{"", "", strings.TrimSuffix(line, "\n")})
	}
	return rows
}

// formatRequest formats requests as a comment of croft.yaml: they belong into the manifests of the team.
func formatRequest(r *recommend.Request) string {
	var requests, now []string
	for _, each := range [][3]string{{"cpu", r.CPU, r.CPUNow}, {"memory", r.Memory, r.MemoryNow}} {
		if each[1] != "" {
			requests, now = append(requests, each[0]+": "+each[1]), append(now, each[0]+": "+each[2])
		}
	}
	return fmt.Sprintf("# %s, container %s: requests: {%s}, now {%s}", r.Workload, r.Container, strings.Join(requests, ", "), strings.Join(now, ", "))
}
