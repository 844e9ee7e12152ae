package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	costreport "croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/server"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/ledgerclient"
	"croft.dev/croft/internal/test/sandbox"
)

const (
	// hourlyDays and dailyDays are the ages at which croft ledger deletes hours and the sums of days.
	hourlyDays, dailyDays = 35, 396
	// Each tenant has some namespaces, and each namespace some workloads, on one of the pools.
	namespacesPerTenant, workloadsPerNamespace, costPools = 2, 3, 40
	// costRounds is the number of queries of each kind.
	costRounds = 20
	// mostOnDisk and mostOfLedger are the targets for the ledger's files and its memory, and mostOfTenant and
	// mostOfAll those for queries of 30 days, in seconds. They are for 5,000 tenants.
	mostOnDisk, mostOfLedger = 250 << 20, 100 << 20
	mostOfTenant, mostOfAll  = 0.02, 0.2
	// ledgerTimeout limits the start of the ledger, which merges the hours of a day.
	ledgerTimeout = 5 * time.Minute
)

// measureCost compares croft ledger's files, memory and answers with their targets. The records are
// generated. The cluster is nearly empty, so that the memory is without the cache of its objects.
func measureCost(ctx context.Context, b *bench) (found []comparison, err error) {
	directory, err := os.MkdirTemp("", "croft-bench-cost-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	l := &ledgerBench{directory: directory, records: filepath.Join(directory, "records"), tenants: b.tenants}
	until := time.Now().UTC().Truncate(time.Hour)
	if err := fillLedger(ctx, l.records, b.tenants, until.AddDate(0, 0, -dailyDays), until); err != nil {
		return nil, err
	}
	size, err := sumSizes(l.records)
	if err != nil {
		return nil, err
	}
	rows := b.tenants * namespacesPerTenant * workloadsPerNamespace
	found = append(found, comparison{
		Name: "ledger's files", Unit: inBytes, Croft: size, Alternative: mostOnDisk,
		Note: fmt.Sprintf("compared with the target for 5,000 tenants; here %d tenants with %d rows an hour; %d days of hours, %d days of sums",
			b.tenants, rows, hourlyDays, dailyDays),
	})
	err = withSandbox(ctx, sandbox.Options{Components: sandbox.APIOnly}, func(c *sandbox.Cluster) error {
		if err := l.prepareCluster(ctx, c); err != nil {
			return err
		}
		stop, err := l.start(ctx, b.croft, c.Kubeconfig)
		if err != nil {
			return err
		}
		defer stop()
		more, err := measureInTurn(ctx, l.measureQueries, l.measureMemory)
		found = append(found, more...)
		return err
	})
	return found, err
}

// fillLedger stores hours until a time, and merges the hours of complete days. The ledger keeps only the sums of days
// that are older than hourlyDays, so that each of these days has one hour with the cost of a day. The last complete day
// is not merged: the ledger does so at its start.
func fillLedger(ctx context.Context, directory string, count int, from, until time.Time) error {
	s, err := store.Open(directory, func(file string, err error) { printProgress("cost: %s: %v", file, err) })
	if err != nil {
		return err
	}
	if err := s.Lead(store.Leader{Identity: "bench"}); err != nil {
		return err
	}
	const day = 24 * time.Hour
	today := until.Truncate(day)
	for date := from.Truncate(day); date.Before(until); date = date.Add(day) {
		end, hours := earlier(date.Add(day), until), int64(1)
		if date.Before(today.Add(-hourlyDays * day)) {
			end, hours = date.Add(time.Hour), 24
		}
		if hours == 1 || date.Day() == 1 {
			printProgress("cost: records of %s, until %s", date.Format(time.DateOnly), today.Format(time.DateOnly))
		}
		for at := date; at.Before(end); at = at.Add(time.Hour) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := s.WriteHour(buildHour(at, count, hours)); err != nil {
				return err
			}
		}
		if next := date.Add(day); next.Before(today) {
			if err := s.Maintain(next); err != nil {
				return err
			}
		}
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// buildHour returns the record of an hour, with the cost of some hours. One in fifty workloads has twice as many pods
// as in the other hours. The share of idle cost and the usage of each workload change in each hour.
func buildHour(from time.Time, count int, hours int64) store.Record {
	r := store.Record{Span: ledger.Span{From: from, Until: from.Add(time.Hour)}, Currency: "USD"}
	n := from.Unix() / int64(time.Hour/time.Second)
	random := rand.New(rand.NewPCG(uint64(n), 39)) //nolint:gosec // the same records each time
	for i := range int64(count * namespacesPerTenant * workloadsPerNamespace) {
		of := i / (namespacesPerTenant * workloadsPerNamespace)
		tenant, pool, pods := tenants.Name("team", int(of)), of%costPools, hours
		if i%50 == n%50 {
			pods *= 2
		}
		cost, idlePerMille := money.Amount((20_000+i%997)*pods), 200+(pool*31+n*17)%300
		// A workload uses from 5 to 95 % of its requests of CPU, in thousandths, and the rest to 100 % of its requests of memory.
		used := 50 + i*7919%900
		r.Rows = append(r.Rows, ledger.Row{
			Key: ledger.Key{
				Kind: ledger.Tenant, Resource: ledger.NodeResource, Pool: fmt.Sprintf("pool-%02d", pool), CapacityType: "spot", InstanceType: "m5.2xlarge",
				Tenant: tenant, CostCode: fmt.Sprintf("org-%03d", of%300), Namespace: nameNamespace(tenant, i/workloadsPerNamespace%namespacesPerTenant),
				Workload: fmt.Sprintf("Deployment/service-%d", i%workloadsPerNamespace), PriceSource: "prices.yaml",
			},
			CPU: (1 + i%8) * 3_600_000 * pods, Memory: (1 + i%16) * 3_600_000 * pods, Weight: ((1+i%8)*9216 + (1+i%16)*1000) * 3_600_000 * pods,
			Cost: cost, Idle: money.Scale(cost, idlePerMille, 1000),
			// CPU changes by up to a third from hour to hour, and memory, as of most processes, by up to a fiftieth.
			UsedCPU: (1 + i%8) * used * (3000 + random.Int64N(1200)) * pods / 1000, Measured: 3600 * pods,
			UsedMemory: (1 + i%16) * (1000 - used) * (3564 + random.Int64N(72)) * pods / 1000,
		})
	}
	return r
}

func nameNamespace(tenant string, i int64) string { return fmt.Sprintf("%s-%d", tenant, i) }

// sumSizes returns the size of all files in a directory.
func sumSizes(directory string) (sum float64, err error) {
	err = filepath.WalkDir(directory, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += float64(info.Size())
		}
		return err
	})
	return sum, err
}

// ledgerBench is a ledger with many records, and a client of it.
type ledgerBench struct {
	directory, records string
	tenants            int
	// token is of a user who may read everything.
	token  string
	client *ledgerclient.Client
	pid    int
}

// nameTenant returns the name of the queried tenant.
func (l *ledgerBench) nameTenant() string { return tenants.Name("team", l.tenants/2) }

// prepareCluster creates the namespace of one tenant, and a user who may read the cost of all.
func (l *ledgerBench) prepareCluster(ctx context.Context, c *sandbox.Cluster) error {
	admin, err := client.New(removeRateLimit(c.Config), client.Options{Scheme: scheme.New()})
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: "bench"}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "bench"}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: nameNamespace(l.nameTenant(), 0), Labels: map[string]string{v1alpha1.TenantLabel: l.nameTenant()}}},
		account,
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{server.Resource}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bench"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		},
	} {
		if err := admin.Create(ctx, o); err != nil {
			return err
		}
	}
	request := &authenticationv1.TokenRequest{}
	err = admin.SubResource("token").Create(ctx, account, request)
	l.token = request.Status.Token
	return err
}

// start starts croft ledger, and waits until it answers.
func (l *ledgerBench) start(ctx context.Context, croft, kubeconfig string) (stop func(), err error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(l.directory, "tls.crt"), filepath.Join(l.directory, "tls.key")
	if err := errors.Join(os.WriteFile(certFile, certificate, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(certificate)
	address := findFreeAddress()
	target, err := ledgerclient.ParseAddress("https://" + address)
	if err != nil {
		return nil, err
	}
	l.client = ledgerclient.New(target, authorities)
	cmd := exec.Command(croft, "ledger", "--kubeconfig", kubeconfig, "--data-dir", l.records, "--addr", address, "--health-addr", "0",
		"--metrics-addr", "0", "--leader-elect=false", "--tls-cert-file", certFile, "--tls-private-key-file", keyFile)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l.pid = cmd.Process.Pid
	stop = func() {
		_ = cmd.Process.Kill() // it may have exited already
		_ = cmd.Wait()
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, restPoll, ledgerTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = l.query(ctx, "1h", "")
		return last == nil, nil
	})
	if err != nil {
		stop() // and so nothing writes to stderr
		return nil, fmt.Errorf("croft ledger is not ready: %w: %s", errors.Join(err, last), stderr.String())
	}
	return stop, nil
}

// query asks for the cost of the tenant of a namespace, or of all tenants, by tenant.
func (l *ledgerBench) query(ctx context.Context, since, namespace string) (*costreport.Report, error) {
	values := url.Values{"since": {since}}
	if namespace != "" {
		values.Set("namespace", namespace)
	}
	r := &costreport.Report{}
	return r, l.client.Get(ctx, server.Path, values, l.token, r)
}

// measureQueries measures answers about 30 days, until the client has decoded them.
func (l *ledgerBench) measureQueries(ctx context.Context) ([]comparison, error) {
	printProgress("cost: queries")
	ask := func(namespace string, lines int) request {
		return func(ctx context.Context) error {
			r, err := l.query(ctx, "30d", namespace)
			if err == nil && len(r.Lines) != lines {
				err = fmt.Errorf("the answer has %d lines, not %d", len(r.Lines), lines)
			}
			return err
		}
	}
	durations, err := runInTurns(ctx, costRounds, ask(nameNamespace(l.nameTenant(), 0), 1), ask("", l.tenants))
	if err != nil {
		return nil, err
	}
	var found []comparison
	for i, q := range []struct {
		name   string
		target float64
	}{{"30 days of one tenant", mostOfTenant}, {"30 days of all tenants", mostOfAll}} {
		found = append(found, comparison{
			Name: q.name, Unit: inSeconds, Croft: samples.Median(durations[i]), Alternative: q.target, Raw: durations[i],
			Note: fmt.Sprintf("compared with the target; by HTTPS, with reviews of the token and of the right; median of %d, p95 %.0f ms",
				len(durations[i]), 1000*samples.Percentile(95, durations[i])),
		})
	}
	return found, nil
}

// measureMemory compares the ledger's memory with its target.
func (l *ledgerBench) measureMemory(context.Context) ([]comparison, error) {
	now, most, err := machine.ReadResident(l.pid)
	return []comparison{{
		Name: "ledger's memory", Unit: inBytes, Croft: now, Alternative: mostOfLedger,
		Note: fmt.Sprintf("compared with the target; after the queries; %s at most, with the merge of a day; without a cache of the cluster's objects",
			machine.FormatBytes(most)),
	}}, err
}
