package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/identity"
)

const (
	// dashboardUsers is the number of users with an open page, each in a tenant of their own.
	dashboardUsers = 200
	// podsPerNamespace is the number of pods in each of a tenant's two namespaces. They have a scheduling gate, so
	// that no node is needed.
	podsPerNamespace = 3
	// dashboardRounds is the number of requests for each page, and dashboardChanges the number of
	// changes whose time to the page is measured.
	dashboardRounds, dashboardChanges = 30, 40
	// mostMemory and mostMemoryOfMany are the targets for the memory with one user and with many.
	mostMemory, mostMemoryOfMany = 150 << 20, 300 << 20
)

// measureDashboard compares pages of croft dashboard with the same requests to the API server, and its memory, its
// pages in Chromium and its load on the API server with their targets, and with Headlamp if its directory is known.
func measureDashboard(ctx context.Context, b *bench) (found []comparison, err error) {
	err = withSandbox(ctx, sandbox.Options{Croft: b.croft}, func(c *sandbox.Cluster) (err error) {
		d := &dashboardBench{cluster: c, tenants: b.tenants}
		if err := d.fillCluster(ctx, b); err != nil {
			return err
		}
		if err := d.start(ctx, b.croft); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.stop()) }()
		if d.browser, err = startChromium(b.croft, d.url); err != nil {
			return err
		}
		defer d.browser.stop()
		if b.headlamp != "" {
			if d.headlamp, err = d.startHeadlamp(ctx, b.croft, b.headlamp); err != nil {
				return err
			}
			defer d.headlamp.stop()
		}
		if err := d.logInUsers(ctx); err != nil {
			return err
		}
		more, err := measureInTurn(ctx, d.measurePages, d.measureBrowser, d.measureScreen, d.measureLog, d.measureOpenPages)
		found = append(found, more...)
		return err
	})
	return found, err
}

// dashboardBench is a cluster with many tenants, and a dashboard for it.
type dashboardBench struct {
	cluster *sandbox.Cluster
	tenants int
	client  client.Client
	// team may view the last tenant, and admin everything.
	team, admin *visitor
	browser     *chromium
	headlamp    *headlamp
	// url is the dashboard's URL, and process its process.
	url     string
	process *os.Process
	stop    func() error
}

// fillCluster writes the tenants without the operator, which would take longer.
func (d *dashboardBench) fillCluster(ctx context.Context, b *bench) (err error) {
	printProgress("dashboard: %d tenants with %d pods each", d.tenants, 2*podsPerNamespace)
	if d.client, err = client.New(removeRateLimit(d.cluster.Config), client.Options{Scheme: scheme.New()}); err != nil {
		return err
	}
	if err := b.declarePlatform(ctx, d.cluster); err != nil {
		return err
	}
	var declared strings.Builder
	declared.WriteString("tenants:\n")
	for i := range d.tenants {
		name := tenants.Name("tenant", i)
		fmt.Fprintf(&declared, "%s    namespaces: [%s]\n", tenants.RenderTenant(name, tenants.PoolName(0)), strings.Join(listNamespaces(name), ", "))
	}
	if _, err := convergeBare(ctx, d.cluster, declared.String()); err != nil {
		return err
	}
	return d.forEach(ctx, d.tenants, func(ctx context.Context, name string) error {
		tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TenantSpec{Pool: tenants.PoolName(0), Namespaces: listNamespaces(name)}}
		if err := d.client.Create(ctx, tenant); err != nil {
			return err
		}
		for _, namespace := range tenant.Spec.Namespaces {
			for i := range podsPerNamespace {
				if err := d.createPod(ctx, namespace, fmt.Sprintf("web-%d", i)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// listNamespaces returns the namespaces of a tenant.
func listNamespaces(tenant string) []string { return []string{tenant, tenant + "-jobs"} }

// createPod waits for the service account of a new namespace.
func (d *dashboardBench) createPod(ctx context.Context, namespace, name string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, restPoll, restTimeout, true, func(ctx context.Context) (bool, error) {
		last = d.client.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.PodSpec{
				SchedulingGates: []corev1.PodSchedulingGate{{Name: "bench.croft.dev/wait"}}, Containers: []corev1.Container{{Name: "main", Image: "web:1"}},
			},
		})
		return last == nil, ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("create a pod in %s: %w", namespace, errors.Join(err, last))
	}
	return nil
}

// forEach calls a function with the names of the first tenants, some at a time.
func (d *dashboardBench) forEach(ctx context.Context, count int, do func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(bareWorkers)
	for i := range min(count, d.tenants) {
		group.Go(func() error { return do(ctx, tenants.Name("tenant", i)) })
	}
	return group.Wait()
}

// start starts the dashboard, and waits until it answers.
func (d *dashboardBench) start(ctx context.Context, croft string) error {
	ca := d.cluster.Config.CAFile
	if ca == "" {
		file, err := os.CreateTemp("", "croft-bench-*.crt")
		if err != nil {
			return err
		}
		ca = file.Name()
		_, err = file.Write(d.cluster.Config.CAData)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		defer func() { _ = os.Remove(ca) }() // the dashboard has read it
	}
	address := findFreeAddress()
	cmd := exec.Command(croft, "dashboard", "--server", d.cluster.Config.Host, "--certificate-authority", ca, "--listen", address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	d.url, d.process = "https://"+address, cmd.Process
	d.stop = func() error {
		_ = cmd.Process.Kill() // it may have exited already
		_ = cmd.Wait()
		return nil
	}
	visitor := newVisitor(d.url)
	return wait.PollUntilContextTimeout(ctx, restPoll, restTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := visitor.get(ctx, "/healthz")
		return err == nil, nil
	})
}

// visitor is a browser without scripts.
type visitor struct {
	client *http.Client
	url    string
	// direct is the configuration of the same user without the dashboard.
	direct *rest.Config
}

func newVisitor(base string) *visitor {
	jar, _ := cookiejar.New(nil) // never returns an error without options
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // self-signed, and of this machine
	return &visitor{client: &http.Client{Jar: jar, Transport: transport}, url: base}
}

// get returns the body of a page.
func (v *visitor) get(ctx context.Context, path string) (string, error) {
	return v.send(ctx, http.MethodGet, path, "")
}

func (v *visitor) send(ctx context.Context, method, path, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, v.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := v.client.Do(r)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", path, answer.Status)
	}
	return string(content), nil
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// logIn logs in as a service account of a namespace with a role: a ClusterRole of the namespace, or of the
// cluster if the namespace is default.
func (d *dashboardBench) logIn(ctx context.Context, namespace, role string) (*visitor, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bench"}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bench"}, Subjects: subjects, RoleRef: ref}
	if namespace == metav1.NamespaceDefault {
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Subjects: subjects, RoleRef: ref}
	}
	for _, o := range []client.Object{account, binding} {
		if err := d.client.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := d.client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, err
	}
	v := newVisitor(d.url)
	v.direct = rest.AnonymousClientConfig(d.cluster.Config)
	v.direct.BearerToken, v.direct.QPS = token.Status.Token, -1
	page, err := v.get(ctx, "/login")
	if err != nil {
		return nil, err
	}
	found := csrfField.FindStringSubmatch(page)
	if found == nil {
		return nil, errors.New("the login page has no form")
	}
	_, err = v.send(ctx, http.MethodPost, "/login", url.Values{"csrf": {found[1]}, "token": {v.direct.BearerToken}}.Encode())
	return v, err
}

// logInUsers logs in the users of the pages.
func (d *dashboardBench) logInUsers(ctx context.Context) (err error) {
	if d.team, err = d.logIn(ctx, tenants.Name("tenant", d.tenants-1), identity.ClusterRoleName(v1alpha1.RoleViewer)); err != nil {
		return err
	}
	d.admin, err = d.logIn(ctx, metav1.NamespaceDefault, "cluster-admin")
	return err
}

// measurePages compares pages with the requests that they send.
func (d *dashboardBench) measurePages(ctx context.Context) ([]comparison, error) {
	printProgress("dashboard: pages")
	namespace, team, admin := tenants.Name("tenant", d.tenants-1), d.team, d.admin
	cold, err := timeSeconds(func() error { _, err := admin.get(ctx, "/"); return err })
	if err != nil {
		return nil, err
	}
	rules, pods := "/apis/croft.dev/v1alpha1/namespaces/"+namespace+"/tenantrules/croft", "/api/v1/namespaces/"+namespace+"/pods"
	var found []comparison
	for _, p := range []struct {
		name, path, note string
		user             *visitor
		requests         []string
	}{
		{"first page of a team", "/namespaces/" + namespace, "target 300 ms", team, []string{rules, "/api/v1/namespaces/" + namespace + "/events", pods}},
		{
			"workloads of a team", "/namespaces/" + namespace + "/workloads", "sent one after the other", team,
			[]string{pods, "/apis/apps/v1/namespaces/" + namespace + "/deployments", "/apis/apps/v1/namespaces/" + namespace + "/statefulsets"},
		},
		{"first page of a platform admin", "/", fmt.Sprintf("target 1 s; %.2f s at the first time, target 2.5 s", cold), admin, []string{"/apis/croft.dev/v1alpha1/tenants"}},
		{"search of a tenant", "/tenants?q=" + namespace, "the search reads all tenants", admin, []string{"/apis/croft.dev/v1alpha1/tenants"}},
	} {
		direct, err := getRequest(p.user.direct, p.requests...)
		if err != nil {
			return found, err
		}
		page := func(ctx context.Context) error { _, err := p.user.get(ctx, p.path); return err }
		durations, err := runInTurns(ctx, dashboardRounds, page, direct)
		if err != nil {
			return found, err
		}
		found = append(found, comparison{
			Name: p.name, Unit: inSeconds, Croft: samples.Median(durations[0]), Alternative: samples.Median(durations[1]), Raw: durations,
			Note: fmt.Sprintf("compared with its %d requests sent directly; p95 %.0f ms; %s", len(p.requests), 1000*samples.Percentile(95, durations[0]), p.note),
		})
	}
	memory, err := d.compareMemory("dashboard's memory, two users", mostMemory)
	return append(found, memory), err
}

// compareMemory compares the dashboard's memory with a target.
func (d *dashboardBench) compareMemory(name string, target float64) (comparison, error) {
	now, most, err := machine.ReadResident(d.process.Pid)
	return comparison{Name: name, Unit: inBytes, Croft: now, Alternative: target, Note: fmt.Sprintf("compared with the target; %s at most", machine.FormatBytes(most))}, err
}

// openPage is a user with an open stream of live updates.
type openPage struct {
	namespace string
	versions  chan string
}

// measureOpenPages opens a page for each user, and measures the time from a change to the report of a new
// version, compared with a watch of the same pods.
func (d *dashboardBench) measureOpenPages(ctx context.Context) ([]comparison, error) {
	count := min(dashboardUsers, d.tenants-1) // the last tenant has a user
	printProgress("dashboard: %d open pages", count)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages := make(chan *openPage, count)
	closed, err := d.measureLoad(ctx)
	if err != nil {
		return nil, err
	}
	err = d.forEach(ctx, count, func(_ context.Context, name string) error {
		user, err := d.logIn(ctx, name, identity.ClusterRoleName(v1alpha1.RoleViewer))
		if err != nil {
			return err
		}
		page, err := user.openStream(ctx, name)
		if err == nil {
			pages <- page
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	memory, err := d.compareMemory(fmt.Sprintf("dashboard's memory, %d open pages", count), mostMemoryOfMany)
	if err != nil {
		return nil, err
	}
	open, err := d.measureLoad(ctx)
	if err != nil {
		return nil, err
	}
	found := []comparison{memory, {
		Name: fmt.Sprintf("API server's CPU, %d open pages", count), Unit: inSeconds, Croft: open, Alternative: closed,
		Note: fmt.Sprintf("per second, compared with no open page; target 1.1×; %d pods a second change, in all %d tenants alike", loadRate, d.tenants),
	}}
	var reported, watched []float64
	for range min(dashboardChanges, count) {
		r, w, err := d.measureChange(ctx, <-pages)
		if err != nil {
			return found, err
		}
		reported, watched = append(reported, r), append(watched, w)
	}
	return append(found, comparison{
		Name: "change to report, p95", Unit: inSeconds, Croft: samples.Percentile(95, reported), Alternative: samples.Percentile(95, watched), Raw: [][]float64{reported, watched},
		Note: fmt.Sprintf("compared with a watch of the pods; %d changes; median %.0f ms", len(reported), 1000*samples.Median(reported)),
	}), nil
}

// openStream opens the stream of the page of workloads, and waits for its first version.
func (v *visitor) openStream(ctx context.Context, namespace string) (*openPage, error) {
	path := "/namespaces/" + namespace + "/workloads"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+path+"?live=1", http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := v.client.Do(r) //nolint:bodyclose // the end of the context closes it
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the stream of %s: %s", namespace, answer.Status)
	}
	page := &openPage{namespace: namespace, versions: make(chan string, 10)}
	go func() {
		defer close(page.versions)
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			version, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			select {
			case page.versions <- version:
			default: // it is not awaited
			}
			if _, err := v.get(ctx, path); err != nil && ctx.Err() == nil { // as the browser does
				printProgress("%s: %v", path, err)
			}
		}
	}()
	return page, page.await(ctx)
}

// await waits for the next version.
func (p *openPage) await(ctx context.Context) error {
	select {
	case _, ok := <-p.versions:
		if !ok {
			return fmt.Errorf("the stream of %s has ended", p.namespace)
		}
		return nil
	case <-time.After(restTimeout):
		return fmt.Errorf("the stream of %s reports nothing", p.namespace)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forgetVersions removes the versions that were not awaited.
func (p *openPage) forgetVersions() {
	for len(p.versions) > 0 {
		<-p.versions
	}
}

// measureChange deletes a pod, and returns the times until the page and a watch report it.
func (d *dashboardBench) measureChange(ctx context.Context, page *openPage) (reported, watched float64, err error) {
	watching, err := client.NewWithWatch(removeRateLimit(d.cluster.Config), client.Options{Scheme: scheme.New()})
	if err != nil {
		return 0, 0, err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: page.namespace, Name: "web-0"}}
	if err := d.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return 0, 0, err
	}
	changes, err := watching.Watch(ctx, &corev1.PodList{}, &client.ListOptions{Namespace: page.namespace, Raw: &metav1.ListOptions{ResourceVersion: pod.ResourceVersion}})
	if err != nil {
		return 0, 0, err
	}
	defer changes.Stop()
	page.forgetVersions()
	start := time.Now()
	if err := d.client.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return 0, 0, err
	}
	for change := range changes.ResultChan() {
		if o, ok := change.Object.(*corev1.Pod); ok && o.Name == pod.Name {
			break
		}
	}
	watched = time.Since(start).Seconds()
	err = page.await(ctx)
	return time.Since(start).Seconds(), watched, err
}
