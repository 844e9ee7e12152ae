package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/test/sandbox"
)

const (
	monthDays = 30
	// scaleUps is the number of scale-ups of the month, each of which needs nodesPerScaleUp nodes.
	scaleUps, nodesPerScaleUp = 11, 26
)

// monthFile declares three tenants, each with a pool and a cost code.
const monthFile = `
platform: {clusterName: demo, tenantDomain: tenants.example.org, admins: [platform-admins], nodeClass: {kwok: {}}}
pools:
  pool-a: {instances: {capacityTypes: [on-demand], instanceTypes: [m5.large]}, emptyTTL: 1s, budgets: [{nodes: 100%}]}
  pool-b: {instances: {capacityTypes: [spot], instanceTypes: [c5.large]}, emptyTTL: 1s, budgets: [{nodes: 100%}]}
  pool-c: {instances: {capacityTypes: [spot], instanceTypes: [m5.large]}, emptyTTL: 1s, budgets: [{nodes: 100%}]}
tenants:
  tenant-a: {pool: pool-a, costCode: org1, namespaces: [web-a, api-a]}
  tenant-b: {pool: pool-b, costCode: org2, namespaces: [web-b]}
  tenant-c: {pool: pool-c, costCode: org3, namespaces: [web-c]}
`

// month is a simulated month.
type month struct {
	*cluster
	t      *testing.T
	ledger *compressedLedger
	record *history
	random *rand.Rand
	file   string
	// replicas are the pods of each namespace, by the name of their Deployment.
	replicas map[string]map[string]int32
}

// newWorkload returns a Deployment without pods.
func newWorkload(namespace, name, cpu, memory string) *appsv1.Deployment {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}}
	needs := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	spec := corev1.PodSpec{TerminationGracePeriodSeconds: new(int64),
		Containers: []corev1.Container{{Name: "main", Image: "main:1", Resources: corev1.ResourceRequirements{Requests: needs, Limits: needs}}}}
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: spec}}}
}

// createWorkloads creates two Deployments in each namespace, of which the pods of the first need a node each, and pods of the platform
// on all nodes.
func (m *month) createWorkloads() {
	m.t.Helper()
	for _, namespace := range []string{"web-a", "api-a", "web-b", "web-c"} {
		createObjects(m.t, m.admin, newWorkload(namespace, "big", "1200m", "1Gi"), newWorkload(namespace, "small", "70m", "100Mi"))
		m.replicas[namespace] = map[string]int32{"big": 0, "small": 0}
	}
	agent := newWorkload(metav1.NamespaceSystem, "agent", "50m", "64Mi")
	agent.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	createObjects(m.t, m.admin, &appsv1.DaemonSet{ObjectMeta: agent.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: agent.Spec.Selector, Template: agent.Spec.Template}})
}

// passMoments lets some seconds pass, as on a cluster that is not compressed.
func (m *month) passMoments() { m.ledger.pass(m.t, time.Duration(1+m.random.IntN(8))*time.Second) }

// await waits for a condition of the observed objects while time passes.
func (m *month) await(what string, condition func() error) {
	m.t.Helper()
	awaitCondition(m.t, patience, what, func(context.Context) error {
		m.passMoments()
		return condition()
	})
}

func (m *month) scale(namespace, name string, replicas int32) {
	m.t.Helper()
	m.replicas[namespace][name] = replicas
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas))
	if err := m.admin.Patch(m.t.Context(), d, patch); err != nil {
		m.t.Fatal(err)
	}
}

// settle waits until all pods run, and all instances are nodes.
func (m *month) settle() {
	m.t.Helper()
	m.await("pods and nodes to be complete", func() error {
		nodes := map[string]bool{}
		for _, n := range listLive[*corev1.Node](m.record) {
			nodes[n.Spec.ProviderID] = true
		}
		for _, claim := range listLive[*karpenterv1.NodeClaim](m.record) {
			if !nodes[claim.Status.ProviderID] {
				return fmt.Errorf("NodeClaim %s has no node", claim.Name)
			}
		}
		missing := map[string]int32{}
		for namespace, by := range m.replicas {
			for name, replicas := range by {
				missing[namespace+"/"+name] += replicas
			}
		}
		for _, pod := range listLive[*corev1.Pod](m.record) {
			if pod.Namespace == metav1.NamespaceSystem {
				continue
			}
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
			missing[pod.Namespace+"/"+pod.Labels["app"]]--
		}
		for name, n := range missing {
			if n != 0 {
				return fmt.Errorf("%s lacks %d pods", name, n)
			}
		}
		return nil
	})
}

// awaitRemoval waits until Karpenter has removed the nodes of a pool without pods of tenants, which would otherwise be used again.
func (m *month) awaitRemoval(pool string) {
	m.t.Helper()
	m.await("empty nodes to be removed", func() error {
		used := map[string]bool{}
		for _, pod := range listLive[*corev1.Pod](m.record) {
			if pod.Namespace != metav1.NamespaceSystem {
				used[pod.Spec.NodeName] = true
			}
		}
		for _, claim := range listLive[*karpenterv1.NodeClaim](m.record) {
			if claim.Labels[karpenterv1.NodePoolLabelKey] == pool && !used[claim.Status.NodeName] {
				return fmt.Errorf("NodeClaim %s exists", claim.Name)
			}
		}
		return nil
	})
}

// writePrices returns a file of prices. The prices of spot instances are random.
func writePrices(random *rand.Rand) string {
	return fmt.Sprintf("instances:\n  m5.large: {on-demand: 0.096, spot: %g}\n  c5.large: {on-demand: 0.085, spot: %g}\n",
		float64(30_000+random.IntN(20_000))/1e6, float64(25_000+random.IntN(20_000))/1e6)
}

// replace changes the declared file.
func (m *month) replace(before, after string) {
	m.t.Helper()
	changed := strings.Replace(m.file, before, after, 1)
	if changed == m.file {
		m.t.Fatalf("the file has no %q", before)
	}
	m.file = changed
	m.applyContent(m.t, changed)
}

// passQuietly lets days pass, with few small changes.
func (m *month) passQuietly(until time.Time) {
	m.t.Helper()
	namespaces := slices.Sorted(maps.Keys(m.replicas))
	for {
		m.settle()
		next := m.ledger.Now().Add(time.Duration(1+m.random.IntN(12*3600)) * time.Second)
		if !next.Before(until) {
			m.ledger.pass(m.t, until.Sub(m.ledger.Now()))
			return
		}
		if m.random.IntN(3) == 0 {
			m.ledger.setPrices(writePrices(m.random))
		}
		m.ledger.pass(m.t, next.Sub(m.ledger.Now()))
		m.scale(namespaces[m.random.IntN(len(namespaces))], "small", m.random.Int32N(9))
	}
}

// live lets the month pass.
func (m *month) live(from time.Time) {
	m.t.Helper()
	turns := [][]string{{"web-a", "api-a"}, {"web-b"}, {"web-c"}}
	pools := []string{"pool-a", "pool-b", "pool-c"}
	for n := range scaleUps {
		turn, before := n%len(turns), (n+len(turns)-1)%len(turns)
		switch n {
		case 3:
			m.replace("org1", "org9")
		case 5:
			// Tenant-c moves to the pool of tenant-a, which is shared from now on.
			m.replace("{pool: pool-c, costCode", "{pool: pool-a, costCode")
			pools[2] = "pool-a"
		case 7:
			m.replace("org3", "org1")
		}
		m.awaitRemoval(pools[turn])
		for _, namespace := range turns[turn] {
			m.scale(namespace, "big", int32(nodesPerScaleUp/len(turns[turn]))) //nolint:gosec // a small number
		}
		m.settle()
		if n > 0 {
			for _, namespace := range turns[before] {
				m.scale(namespace, "big", 0)
			}
		}
		m.passQuietly(from.Add(time.Duration((n+1)*monthDays*24/scaleUps) * time.Hour))
	}
}

// part is a part of the cost of an hour that is compared.
type part struct{ kind, tenant, code, namespace, pool string }

// readHour returns the parts of a stored hour.
func (m *month) readHour(from time.Time) (map[part]rowCost, error) {
	span := ledger.Span{From: from, Until: from.Add(time.Hour)}
	records, err := m.ledger.store.Read(span)
	if err != nil {
		return nil, err
	}
	if len(records) != 1 || !records[0].From.Equal(span.From) || !records[0].Until.Equal(span.Until) || len(records[0].Gaps) > 0 {
		return nil, fmt.Errorf("the hour of %s: %d records, want one without gaps", from, len(records))
	}
	parts := map[part]rowCost{}
	for _, r := range records[0].Rows {
		// Pods that are deleted later than their node cost nothing.
		if r.Unpriced > 0 && r.Pool != "" || r.EstimatedCost > 0 {
			return nil, fmt.Errorf("the hour of %s has an unknown or estimated cost: %+v", from, r)
		}
		addPart(parts, part{string(r.Kind), r.Tenant, r.CostCode, r.Namespace, r.Pool}, rowCost{int64(r.Cost), int64(r.Idle)})
	}
	return parts, nil
}

func addPart(parts map[part]rowCost, p part, s rowCost) {
	if sum := (rowCost{parts[p].cost + s.cost, parts[p].idle + s.idle}); sum != (rowCost{}) {
		parts[p] = sum
	}
}

// compareMonth returns an error unless the ledger and the replay are equal in each hour, for each tenant, cost code, namespace and pool. It
// returns the cost of the month.
func (m *month) compareMonth(r *replay, from, until time.Time) (sum int64, wrong error) {
	different := 0
	for at := from; at.Before(until); at = at.Add(time.Hour) {
		got, err := m.readHour(at)
		if err != nil {
			return sum, err
		}
		want := map[part]rowCost{}
		for key, s := range r.computeHour(at.Unix()) {
			addPart(want, part{key.kind, key.tenant, key.code, key.namespace, key.pool}, s)
			sum += s.cost
		}
		if maps.Equal(got, want) {
			continue
		}
		if different++; different > 3 {
			continue
		}
		all := maps.Clone(want)
		maps.Copy(all, got)
		for p := range all {
			if got[p] != want[p] {
				wrong = errors.Join(wrong, fmt.Errorf("%s %+v: the ledger has %+v, and the replay %+v", at.Format(time.RFC3339), p, got[p], want[p]))
			}
		}
	}
	if different > 0 {
		wrong = errors.Join(fmt.Errorf("%d hours differ, such as", different), wrong)
	}
	return sum, wrong
}

// readEvents returns the recorded events as soon as the ledger has observed all of them.
func (m *month) readEvents() []event {
	m.t.Helper()
	var events []event
	m.await("the ledger to observe all events", func() error {
		m.record.mu.Lock()
		events = slices.Clone(m.record.events)
		m.record.mu.Unlock()
		for _, e := range events {
			if _, found := m.ledger.findTime(nameEvent(e.object, e.isEnd)); !found {
				return fmt.Errorf("it has not observed %T %s, version %s, end %t", e.object, e.object.GetName(), e.object.GetResourceVersion(), e.isEnd)
			}
		}
		return nil
	})
	return events
}

// TestSimulatedMonth fails if the ledger differs by a millionth from a separate replay of the objects' history: of a month on a
// real API server, in which Karpenter launches more than 200 nodes, prices of spot instances change, and tenants change their
// cost codes and their pools.
func TestSimulatedMonth(t *testing.T) {
	sandbox.Thorough(t)
	t.Parallel()                           // it mostly waits
	random := rand.New(rand.NewPCG(39, 1)) //nolint:gosec // a test repeats its numbers
	m := &month{cluster: startWithCroft(t), t: t, file: monthFile, replicas: map[string]map[string]int32{}, random: random}
	m.applyContent(t, m.file)
	m.createWorkloads()
	from := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	until := from.AddDate(0, 0, monthDays)
	m.ledger = startCompressed(t, m.cluster, from, writePrices(m.random))
	m.record = recordHistory(t, m.cluster)
	m.live(from)
	m.ledger.pass(t, 2*time.Hour) // the last hours are final
	events := m.readEvents()
	r, err := newReplay(events, m.ledger.findTime, m.ledger.priced)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := m.compareMonth(r, from, until)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d events, %d nodes, %d pods, %d files of prices: %.6f USD", len(events), len(r.nodes), len(r.pods), len(r.prices), float64(sum)/1e6)
	if len(r.nodes) < 200 || len(r.prices) < 10 {
		t.Error("the month is not the one that this test is about")
	}
	m.testSensitivity(events, from, until)
}

// testSensitivity fails if the comparison does not notice that events of one object, or a change of prices, are missing.
func (m *month) testSensitivity(events []event, from, until time.Time) {
	m.t.Helper()
	notices := func(without string, events []event, prices []pricedSince) {
		m.t.Helper()
		r, err := newReplay(events, m.ledger.findTime, prices)
		if err == nil {
			_, err = m.compareMonth(r, from, until)
		}
		if err == nil {
			m.t.Errorf("without %s, the replay does not differ", without)
		}
	}
	for without, isIt := range map[string]func(event) bool{
		"the end of a pod": func(e event) bool {
			pod, is := e.object.(*corev1.Pod)
			return is && e.isEnd && pod.Namespace == "web-b"
		},
		"the end of a NodeClaim": func(e event) bool {
			_, is := e.object.(*karpenterv1.NodeClaim)
			return is && e.isEnd
		},
	} {
		i := slices.IndexFunc(events, isIt)
		notices(without, slices.Delete(slices.Clone(events), i, i+1), m.ledger.priced)
	}
	notices("a cost code", slices.DeleteFunc(slices.Clone(events), func(e event) bool {
		return e.object.GetName() == "web-a" && e.object.GetLabels()["croft.dev/cost-code"] == "org9"
	}), m.ledger.priced)
	notices("a change of prices", events, slices.Delete(slices.Clone(m.ledger.priced), 3, 4))
}
